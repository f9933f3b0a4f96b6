#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "cuda/tensor_scatter_update_kernel.cuh"
#include "driver/driver.h"

namespace driver {

namespace {

using Bytes = std::vector<char>;

// Rows of coordinates, some out of bounds, and which of them win.
template <typename Index>
struct Rows {
  int64_t depth;
  std::vector<int64_t> sizes;
  int64_t slices = 1;
  int64_t count;
  Memory<Index> memory;
  tso::ScatterRows<Index> kernel;
  std::vector<int64_t> named;       // slice of each row, -1: out of bounds
  std::map<int64_t, int64_t> last;  // row that wins each slice named

  Rows(Random& random, Size size)
      : depth(random.between(1, 4)),
        count(random.between(1, some_count(random, size))),
        memory(count * 2 * (depth + 1), random.any_of<int64_t>({0, 8})) {
    const bool bad = random.one_in(2);
    for (int64_t d = 0; d < depth; ++d) {
      sizes.push_back(random.between(1, 20));
      slices *= sizes[d];
    }
    const bool by_row = random.one_in(2);
    kernel.data = memory.data();
    kernel.row_stride = by_row ? depth + 1 : 2;
    kernel.dim_stride = by_row ? 1 : 2 * count + 1;
    kernel.count = count;
    kernel.depth = static_cast<int>(depth);
    std::copy(sizes.begin(), sizes.end(), kernel.sizes);
    tso::row_major_strides(kernel.sizes, depth, kernel.strides);
    for (int64_t row = 0; row < count; ++row) {
      int64_t slice = 0;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t beyond = bad && random.one_in(9) ? 3 : 0;
        const int64_t at = random.between(-beyond, sizes[d] + beyond);
        memory[row * kernel.row_stride + d * kernel.dim_stride] =
            static_cast<Index>(at);
        const bool outside = slice < 0 || at < 0 || at >= sizes[d];
        slice = outside ? -1 : slice * sizes[d] + at;
      }
      named.push_back(slice);
      if (slice >= 0) {
        last[slice] = row;
      }
    }
  }

  bool wins(int64_t row) const {
    return named[row] >= 0 && last.at(named[row]) == row;
  }
};

// Calls f(winners) with one of the tables, cleared.
template <typename Index, typename F>
void with_winners(Random& random, const Rows<Index>& rows, const F& f) {
  const auto dense = [&](auto zero) {
    using Word = decltype(zero);
    const Memory<Word> words(rows.slices);
    std::memset(words.data(), 0, words.bytes());
    f(tso::DenseWinners<Word>{words.data()});
  };
  switch (random.between(0, 3)) {
    case 0:
      return dense(0u);
    case 1:
      return dense(0ull);
    default:
      break;
  }
  int log_words = 1;
  while ((int64_t{1} << log_words) < 2 * rows.count + 1) {
    ++log_words;
  }
  int row_bits = 0;
  while ((int64_t{1} << row_bits) < rows.count) {
    ++row_bits;
  }
  const Memory<unsigned long long> words(int64_t{1} << log_words);
  std::memset(words.data(), 0xff, words.bytes());
  f(tso::HashedWinners{words.data(), log_words, row_bits});
}

void compare(const Bytes& wanted, const Memory<char>& got, const char* what) {
  const auto wrong = std::mismatch(wanted.begin(), wanted.end(), got.data());
  check(
      wrong.first == wanted.end(), "byte ", wrong.first - wanted.begin(),
      " of ", wanted.size(), " of ", what, " is wrong");
}

Memory<char> random_memory(Random& random, int64_t bytes, int64_t shift) {
  Memory<char> memory(bytes, shift);
  fill_randomly(random, memory);
  return memory;
}

// A new tensor, in one pass over all slices.
template <typename Index>
void check_fill(Random& random, const Rows<Index>& rows) {
  const int64_t bytes =
      random.any_of<int64_t>({1, 2, 4, 8, 8, 16, 3, 5, 12, 24, 40, 80});
  const int64_t shift = random.any_of<int64_t>({0, 0, 8, 4, 1});
  const Memory<char> tensor =
      random_memory(random, rows.slices * bytes, random.one_in(2) ? 0 : shift);
  const Memory<char> updates = random_memory(random, rows.count * bytes, shift);
  const bool zeros = random.one_in(4);
  const Memory<char> out(rows.slices * bytes);
  Bytes wanted(tensor.data(), tensor.data() + tensor.bytes());
  for (const auto& [slice, row] : rows.last) {
    char* to = wanted.data() + slice * bytes;
    if (zeros) {
      std::memset(to, 0, bytes);
    } else {
      std::memcpy(to, updates.data() + row * bytes, bytes);
    }
  }
  const tso::ScatterTarget target{
      out.data(), tensor.data(), zeros ? nullptr : updates.data(), rows.slices,
      bytes};
  const auto run = [&](auto zero) {
    using Word = decltype(zero);
    const Memory<Word> words(rows.slices);
    std::memset(words.data(), 0, words.bytes());
    tso::launch_scatter_record(
        rows.kernel, tso::DenseWinners<Word>{words.data()}, nullptr);
    tso::launch_scatter_fill(target, words.data(), nullptr);
  };
  if (random.one_in(2)) {
    run(0u);
  } else {
    run(0ull);
  }
  compare(wanted, out, "the new tensor");
}

// A tensor whose slices lie anywhere: dimensions in any order, gaps in between.
struct Slices {
  std::vector<int64_t> sizes;  // of the trailing dimensions
  int64_t element;             // bytes
  tso::SliceStrides strides;
  std::vector<int64_t> trailing;  // strides
  int64_t bytes = 0;              // of the whole memory
  int64_t slice_elements = 1;

  template <typename Index>
  Slices(Random& random, const Rows<Index>& rows)
      : element(random.any_of<int64_t>({1, 2, 4, 8, 16})) {
    const int64_t dims = random.between(0, 4);
    for (int64_t d = 0; d < dims; ++d) {
      sizes.push_back(random.between(1, 5));
      slice_elements *= sizes[d];
    }
    trailing.resize(dims);
    std::vector<int64_t> order(rows.depth + dims);
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<int64_t>(i);
      std::swap(order[i], order[random.between(0, order[i] + 1)]);
    }
    int64_t stride = element;
    for (int64_t dim : order) {
      const bool leads = dim < rows.depth;
      const int64_t size = leads ? rows.sizes[dim] : sizes[dim - rows.depth];
      (leads ? strides.bytes[dim] : trailing[dim - rows.depth]) = stride;
      stride = stride * size + (random.one_in(3) ? element : 0);
    }
    bytes = stride;
  }

  // Where the element of a slice lies that comes at this place in row-major
  // order.
  int64_t place(int64_t number) const {
    int64_t result = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      result += number % sizes[d] * trailing[d];
      number /= sizes[d];
    }
    return result;
  }

  template <typename Index>
  int64_t begin(const Rows<Index>& rows, int64_t row) const {
    int64_t slice = rows.named[row];
    int64_t result = 0;
    for (int64_t d = rows.depth - 1; d >= 0; --d) {
      result += slice % rows.sizes[d] * strides.bytes[d];
      slice /= rows.sizes[d];
    }
    return result;
  }

  tso::StridedPieces pieces() const {
    tso::StridedPieces result;
    for (size_t d = 0; d < sizes.size(); ++d) {
      result.sizes[result.dims] = tso::make_divider(sizes[d]);
      result.strides[result.dims++] = trailing[d];
    }
    return result;
  }
};

// Rows moved one by one, from or to the slices that they win.
template <tso::ScatterDirection kDirection, typename Index>
void check_move(Random& random, const Rows<Index>& rows) {
  constexpr bool kToRows = kDirection == tso::ScatterDirection::kToRows;
  const Slices slices(random, rows);
  const int64_t shift = random.one_in(2) ? 0 : slices.element;
  const int64_t row_bytes = slices.slice_elements * slices.element;
  const Memory<char> tensor = random_memory(random, slices.bytes, shift);
  const Memory<char> data =
      random_memory(random, rows.count * row_bytes, shift);
  const bool zeros = !kToRows && random.one_in(4);
  Bytes wanted_tensor(tensor.data(), tensor.data() + tensor.bytes());
  Bytes wanted_rows(data.data(), data.data() + data.bytes());
  for (int64_t row = 0; row < rows.count; ++row) {
    for (int64_t i = 0; i < slices.slice_elements; ++i) {
      char* in_row = wanted_rows.data() + row * row_bytes + i * slices.element;
      if (!rows.wins(row)) {
        if (kToRows) {
          std::memset(in_row, 0, slices.element);
        }
        continue;
      }
      char* in_tensor =
          wanted_tensor.data() + slices.begin(rows, row) + slices.place(i);
      if (kToRows) {
        std::memcpy(in_row, in_tensor, slices.element);
      } else if (zeros) {
        std::memset(in_tensor, 0, slices.element);
      } else {
        std::memcpy(in_tensor, in_row, slices.element);
      }
    }
  }
  const Memory<int64_t> places(rows.count);
  with_winners(random, rows, [&](const auto& winners) {
    tso::launch_scatter_record(rows.kernel, winners, nullptr);
    tso::launch_scatter_resolve(
        rows.kernel, slices.strides, winners, places.data(), nullptr);
  });
  const auto move = [&](int unit, const auto& pieces) {
    tso::launch_scatter_move<kDirection>(
        tensor.data(), zeros ? nullptr : data.data(), rows.count, row_bytes,
        unit, pieces, places.data(), nullptr);
  };
  if (slices.sizes.empty() && slices.element > 1 && random.one_in(2)) {
    // A slice is a run of bytes, which may be moved in smaller units.
    const int unit = static_cast<int>(slices.element / 2);
    move(unit, tso::DensePieces{unit});
  } else {
    move(static_cast<int>(slices.element), slices.pieces());
  }
  compare(wanted_tensor, tensor, "the tensor");
  compare(wanted_rows, data, "the rows");
}

template <typename Index>
void check_report(const Rows<Index>& rows) {
  const Memory<int64_t> report(1 + rows.depth);
  tso::launch_scatter_check(rows.kernel, report.data(), nullptr);
  const auto bad = std::find(rows.named.begin(), rows.named.end(), -1);
  const int64_t wanted =
      bad == rows.named.end() ? -1 : bad - rows.named.begin();
  check(
      report[0] == wanted, "the first bad row is ", report[0], " instead of ",
      wanted);
  for (int64_t d = 0; wanted >= 0 && d < rows.depth; ++d) {
    const int64_t at =
        rows.memory
            [wanted * rows.kernel.row_stride + d * rows.kernel.dim_stride];
    check(
        report[1 + d] == at, "coordinate ", d, " of the bad row is ",
        report[1 + d], " instead of ", at);
  }
}

template <typename Index>
void check_rows(Random& random, Size size) {
  const Rows<Index> rows(random, size);
  check_report(rows);
  check_fill(random, rows);
  check_move<tso::ScatterDirection::kToTensor>(random, rows);
  check_move<tso::ScatterDirection::kToRows>(random, rows);
}

}  // namespace

void check_scatter(Random& random, Size size) {
  if (random.one_in(2)) {
    check_rows<int32_t>(random, size);
  } else {
    check_rows<int64_t>(random, size);
  }
}

}  // namespace driver
