#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cuda/concat_merge.cuh"
#include "cuda/radix_sort.cuh"
#include "cuda/sparse_concat_kernel.cuh"
#include "driver/driver.h"

namespace driver {

namespace {

using Coordinates = std::vector<int64_t>;

struct Input {
  Memory<int64_t> indices;
  Memory<char> values;
  Coordinates shape;
  std::vector<Coordinates> entries;
};

constexpr int64_t kLayouts = 3;

// An entry of the result: its coordinates, and its row of values.
using Entry = std::pair<Coordinates, std::string>;

struct Case {
  int64_t rank;
  int64_t axis;
  int64_t row_bytes;
  bool sorted;  // what the kernels are told of the inputs
  bool truly_sorted;
  int64_t layout;  // of the indices; kLayouts: any, for each input
  std::vector<Input> inputs;
  std::vector<tso::ConcatSource> sources;
  int64_t total = 0;
  Coordinates shape;
  std::vector<Entry> wanted;
};

// `shift` is what all the values' addresses have beyond a multiple of 16.
void add_input(Random& random, Case& c, int64_t most, int64_t shift) {
  const int64_t nnz = random.one_in(4) ? 0 : random.between(0, most);
  Coordinates shape = c.shape;
  shape[c.axis] = random.between(1, 9);
  std::vector<Coordinates> entries(nnz, Coordinates(c.rank));
  for (Coordinates& entry : entries) {
    for (int64_t d = 0; d < c.rank; ++d) {
      entry[d] = random.between(0, shape[d]);
    }
  }
  if (c.truly_sorted) {
    std::sort(entries.begin(), entries.end());
  }
  const int64_t layout =
      c.layout == kLayouts ? random.between(0, kLayouts) : c.layout;
  const int64_t row_stride = layout == 0 ? 1 : layout == 1 ? c.rank : 2;
  const int64_t dim_stride = layout == 0 ? nnz : layout == 1 ? 1 : 2 * nnz + 3;
  const int64_t last =
      nnz == 0 ? 0 : (nnz - 1) * row_stride + (c.rank - 1) * dim_stride + 1;
  Memory<int64_t> indices(last, random.any_of({0, 8}));
  for (int64_t i = 0; i < nnz; ++i) {
    for (int64_t d = 0; d < c.rank; ++d) {
      indices[i * row_stride + d * dim_stride] = entries[i][d];
    }
  }
  Memory<char> values(nnz * c.row_bytes, shift);
  fill_randomly(random, values);
  const int64_t offset = std::accumulate(
      c.inputs.begin(), c.inputs.end(), int64_t{0},
      [&](int64_t sum, const Input& input) {
        return sum + input.shape[c.axis];
      });
  if (nnz > 0) {
    c.sources.push_back(
        {{indices.data(), row_stride, dim_stride},
         values.data(),
         c.total,
         offset});
  }
  c.total += nnz;
  c.inputs.push_back(
      {std::move(indices), std::move(values), shape, std::move(entries)});
}

void set_wanted(Case& c) {
  int64_t offset = 0;
  for (const Input& input : c.inputs) {
    for (size_t i = 0; i < input.entries.size(); ++i) {
      Coordinates at = input.entries[i];
      at[c.axis] += offset;
      const char* row = input.values.data() + i * c.row_bytes;
      c.wanted.emplace_back(std::move(at), std::string(row, c.row_bytes));
    }
    offset += input.shape[c.axis];
  }
  c.shape[c.axis] = offset;
  std::stable_sort(
      c.wanted.begin(), c.wanted.end(),
      [](const Entry& a, const Entry& b) { return a.first < b.first; });
}

Case make_case(Random& random, Size size, int64_t shift) {
  Case c;
  c.rank = random.between(1, 6);
  c.axis = random.between(0, c.rank);
  c.row_bytes = random.any_of<int64_t>({0, 1, 2, 3, 4, 6, 8, 12, 16, 24});
  c.row_bytes *= random.between(1, 4);
  c.sorted = random.one_in(2);
  // A promise may be false.
  c.truly_sorted = c.sorted && !random.one_in(4);
  c.layout = random.between(0, kLayouts + 1);
  for (int64_t d = 0; d < c.rank; ++d) {
    c.shape.push_back(random.between(1, 30));
  }
  const bool many = random.one_in(4);
  const int64_t inputs = many               ? random.between(65, 400)
                         : random.one_in(2) ? 2
                                            : random.between(1, 6);
  const int64_t most = many ? 5 : some_count(random, size);
  for (int64_t i = 0; i < inputs; ++i) {
    add_input(random, c, most, shift);
  }
  set_wanted(c);
  return c;
}

// As the launchers are called by csrc/cuda/sparse_concat.cu, every part of the
// workspace in memory of its own.
class Run {
 public:
  Run(const Case& c, int64_t shift)
      : c_(c),
        table_(static_cast<int64_t>(c.sources.size())),
        indices_(c.total * c.rank),
        values_(c.total * c.row_bytes, shift) {
    tso::Alignment alignment;
    alignment.add(c.row_bytes).add(values_.data());
    for (const tso::ConcatSource& source : c.sources) {
      alignment.add(source.values);
    }
    unit_ = alignment.unit();
  }

  const Memory<int64_t>& indices() const {
    return indices_;
  }
  const Memory<char>& values() const {
    return values_;
  }

  template <tso::ConcatDirection kDirection>
  void copy() {
    tso::launch_concat_copy<kDirection>(
        sources(), target<kDirection>(), unit_, nullptr);
  }

  template <tso::ConcatDirection kDirection, typename Place>
  void merge() {
    const Memory<int64_t> splits(tso::merge_splits(c_.total));
    const Memory<int> broken(1);
    const Memory<Place> places(c_.total);
    const tso::ConcatSources inputs = sources();
    tso::launch_concat_merge(
        inputs, keys(), splits.data(), broken.data(), places.data(), nullptr);
    tso::launch_concat_gather<Place, kDirection>(
        inputs, target<kDirection>(), unit_, places.data(), nullptr);
  }

  template <tso::ConcatDirection kDirection, typename Key, typename Place>
  void sort() {
    const tso::ConcatKeys shape = keys();
    int64_t volume = 1;
    tso::volume(c_.shape.data(), shape.dims, &volume);
    int bits = 0;
    while ((int64_t{1} << bits) < volume) {
      ++bits;
    }
    const Memory<Key> some_keys(c_.total);
    const Memory<Key> other_keys(c_.total);
    const Memory<Place> places(c_.total);
    const Memory<Place> other_places(c_.total);
    tso::RadixSort<Key, Place> sort(c_.total, bits);
    const Memory<char> workspace(static_cast<int64_t>(sort.bytes()));
    const tso::ConcatSources inputs = sources();
    tso::launch_concat_keys(
        inputs, shape, some_keys.data(), places.data(), nullptr);
    const Place* sorted = sort.sort(
        some_keys.data(), other_keys.data(), places.data(), other_places.data(),
        workspace.data(), nullptr);
    tso::launch_concat_gather<Place, kDirection>(
        inputs, target<kDirection>(), unit_, sorted, nullptr);
  }

 private:
  tso::ConcatSources sources() {
    return tso::make_sources(
        c_.sources.data(), static_cast<int64_t>(c_.sources.size()), c_.total,
        c_.rank, table_.data(), nullptr);
  }

  tso::ConcatKeys keys() const {
    tso::ConcatKeys result;
    result.axis = c_.axis;
    result.dims = static_cast<int>(c_.sorted ? c_.axis : c_.rank);
    tso::row_major_strides(c_.shape.data(), result.dims, result.strides);
    return result;
  }

  template <tso::ConcatDirection kDirection>
  tso::ConcatTarget target() const {
    const bool forward = kDirection == tso::ConcatDirection::kForward;
    return {
        forward ? indices_.data() : nullptr, c_.rank, c_.axis, values_.data(),
        c_.row_bytes};
  }

  const Case& c_;
  Memory<tso::ConcatSource> table_;
  Memory<int64_t> indices_;
  Memory<char> values_;
  int unit_;
};

template <tso::ConcatDirection kDirection>
void run(Random& random, const Case& c, Run& run) {
  if (c.sorted && (c.axis == 0 || c.sources.size() == 1)) {
    return run.copy<kDirection>();
  }
  const bool merges = c.sorted && c.sources.size() == 2;
  switch (random.between(0, merges ? 5 : 3)) {
    case 0:
      return run.sort<kDirection, unsigned, unsigned>();
    case 1:
      return run.sort<kDirection, unsigned long long, unsigned>();
    case 2:
      return run.sort<kDirection, unsigned long long, unsigned long long>();
    case 3:
      return run.merge<kDirection, unsigned>();
    default:
      return run.merge<kDirection, unsigned long long>();
  }
}

}  // namespace

void check_concat(Random& random, Size size) {
  const int64_t shift = random.any_of<int64_t>({0, 0, 8, 4, 2, 1});
  const Case c = make_case(random, size, shift);
  if (c.total == 0) {
    return;
  }
  Run forward(c, shift);
  run<tso::ConcatDirection::kForward>(random, c, forward);
  std::vector<Entry> got;
  for (int64_t j = 0; j < c.total; ++j) {
    Coordinates at;
    for (int64_t d = 0; d < c.rank; ++d) {
      at.push_back(forward.indices()[d * c.total + j]);
    }
    const char* row = forward.values().data() + j * c.row_bytes;
    got.emplace_back(std::move(at), std::string(row, c.row_bytes));
  }
  std::vector<Entry> wanted = c.wanted;
  if (c.sorted && !c.truly_sorted) {
    // Each entry comes up once, in some order.
    std::sort(got.begin(), got.end());
    std::sort(wanted.begin(), wanted.end());
  }
  const auto wrong = std::mismatch(wanted.begin(), wanted.end(), got.begin());
  check(
      wrong.first == wanted.end(), "output ", wrong.first - wanted.begin(),
      " of ", c.total, " is wrong");
  if (c.row_bytes == 0) {
    return;
  }
  // The transpose brings every row back to where it came from.
  std::vector<std::string> before;
  for (const Input& input : c.inputs) {
    before.emplace_back(input.values.data(), input.values.bytes());
    cuda_on_host::poison(input.values.data(), input.values.bytes());
  }
  Run transpose(c, shift);
  std::memcpy(
      transpose.values().data(), forward.values().data(),
      forward.values().bytes());
  run<tso::ConcatDirection::kTranspose>(random, c, transpose);
  for (size_t i = 0; i < before.size(); ++i) {
    const Memory<char>& values = c.inputs[i].values;
    // After a false promise the two directions need not agree on an order.
    check(
        before[i] == std::string(values.data(), values.bytes()) ||
            (c.sorted && !c.truly_sorted),
        "the gradient of input ", i, " is wrong");
  }
}

}  // namespace driver
