// Runs each kernel once on a small fixed input, without torch: for callgrind, and
// with threads for ThreadSanitizer.
//
// Prints "case entries" for each, and first whether the AVX2 code is used.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "cpu/concat_sort.h"
#include "cpu/sparse_concat_kernel.h"
#include "cpu/sparse_reshape_kernel.h"
#include "cpu/tensor_scatter_update_kernel.h"

namespace {

using namespace tso;

constexpr int64_t kEntries = int64_t{1} << 16;

#ifdef KERNEL_THREADS

// As many threads as that, for ThreadSanitizer.
struct Workers {
  int64_t threads = KERNEL_THREADS;

  template <typename F>
  void each_thread(const F& f) const {
    std::vector<std::thread> all;
    for (int64_t thread = 0; thread < threads; ++thread) {
      all.emplace_back([&f, thread] { f(thread); });
    }
    for (std::thread& one : all) {
      one.join();
    }
  }
  template <typename Scratch, typename F>
  void each_task(int64_t tasks, const F& f) const {
    std::atomic<int64_t> next{0};
    each_thread([&](int64_t) {
      Scratch scratch;
      for (int64_t task = next++; task < tasks; task = next++) {
        f(task, scratch);
      }
    });
  }
  template <typename F>
  void each_range(int64_t count, const F& f) const {
    const int64_t share = (count + threads - 1) / threads;
    each_thread([&](int64_t thread) {
      const int64_t begin = std::min(count, share * thread);
      const int64_t end = std::min(count, begin + share);
      if (begin < end) {
        f(begin, end);
      }
    });
  }
};

#else

struct Workers {
  int64_t threads = 1;

  template <typename F>
  void each_thread(const F& f) const {
    f(int64_t{0});
  }
  template <typename Scratch, typename F>
  void each_task(int64_t tasks, const F& f) const {
    Scratch scratch;
    for (int64_t task = 0; task < tasks; ++task) {
      f(task, scratch);
    }
  }
  template <typename F>
  void each_range(int64_t count, const F& f) const {
    f(int64_t{0}, count);
  }
};

#endif

// The same numbers everywhere, unlike the distributions of <random>.
struct Random {
  uint64_t state = 1;

  uint64_t operator()(uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  }
};

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "wrong result: %s\n", what);
    std::exit(1);
  }
}

// ---- sparse_concat -----------------------------------------------------------

struct ConcatCase {
  std::vector<int64_t> shape;
  std::vector<int64_t> out_shape;
  std::vector<std::vector<int64_t>> indices;
  std::vector<std::vector<char>> values;
  std::vector<int64_t> out_indices;
  std::vector<char> out_values;
  ConcatJob job{};

  ConcatCase(
      int64_t inputs,
      std::vector<int64_t> size,
      int64_t axis,
      int64_t width,
      int64_t sorted_inputs = kEntries)
      : shape(size), out_shape(size) {
    Random random;
    const int64_t rank = static_cast<int64_t>(shape.size());
    const int64_t nnz = kEntries / inputs;
    out_shape[axis] *= inputs;
    out_indices.resize(rank * kEntries);
    out_values.resize(width * kEntries);
    job = {
        rank,
        axis,
        kEntries,
        out_shape.data(),
        {},
        out_indices.data(),
        out_values.data(),
        width};
    indices.resize(inputs);
    values.resize(inputs);
    for (int64_t i = 0; i < inputs; ++i) {
      std::vector<std::vector<int64_t>> entries(nnz);
      for (auto& entry : entries) {
        for (int64_t d = 0; d < rank; ++d) {
          entry.push_back(static_cast<int64_t>(random(shape[d])));
        }
      }
      if (i < sorted_inputs) {
        std::sort(entries.begin(), entries.end());
      }
      indices[i].resize(rank * nnz);
      values[i].resize(width * nnz);
      for (int64_t d = 0; d < rank; ++d) {
        for (int64_t j = 0; j < nnz; ++j) {
          indices[i][d * nnz + j] = entries[j][d];
        }
      }
      job.sources.push_back(
          {{indices[i].data(), 1, nnz},
           nnz,
           i * shape[axis],
           shape.data(),
           values[i].data()});
    }
  }
};

#define MEASURED(name) extern "C" __attribute__((noinline)) void measure_##name

void forward(const ConcatCase& c) {
  require(
      run_concat<ConcatDirection::kForward>(Workers{}, c.job).bad >= 0,
      "concat");
}

void transpose(const ConcatCase& c) {
  require(
      run_concat<ConcatDirection::kTranspose>(Workers{}, c.job).bad >= 0,
      "concat's transpose");
}

}  // namespace

MEASURED(concat_copies)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_long_runs)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_runs_of_two)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_short_runs)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_short_runs_rank_3)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_sparse_prefixes)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_sparse_prefixes_many)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_long_runs_rank_4)(const ConcatCase& c) {
  forward(c);
}
MEASURED(concat_long_runs_back)(const ConcatCase& c) {
  transpose(c);
}
MEASURED(concat_short_runs_back)(const ConcatCase& c) {
  transpose(c);
}

MEASURED(concat_unsorted)(const ConcatCase& c) {
  require(
      concat_unsorted<ConcatDirection::kForward>(Workers{}, c.job), "concat");
}
MEASURED(concat_few_unsorted_back)(const ConcatCase& c) {
  require(
      concat_unsorted<ConcatDirection::kTranspose>(Workers{}, c.job),
      "concat's transpose");
}

// ---- sparse_reshape ----------------------------------------------------------

namespace {

struct ReshapeCase {
  std::vector<int64_t> indices;
  std::vector<int64_t> out;
  ReshapeKernel kernel;

  // One group of dimensions.
  ReshapeCase(std::vector<int64_t> from, std::vector<int64_t> to) {
    Random random;
    ReshapeStep step;
    for (size_t d = 0; d < from.size(); ++d) {
      step.in.push_back({static_cast<int64_t>(d), from[d]});
      for (int64_t j = 0; j < kEntries; ++j) {
        indices.push_back(static_cast<int64_t>(random(from[d])));
      }
    }
    for (size_t d = 0; d < to.size(); ++d) {
      step.out.push_back({static_cast<int64_t>(d), make_divider(to[d])});
    }
    step.choose_width();
    out.resize(to.size() * kEntries);
    kernel.indices = {indices.data(), 1, kEntries};
    kernel.out = out.data();
    kernel.nnz = kEntries;
    kernel.steps.push_back(step);
  }
};

void reshape(const ReshapeCase& c) {
  require(c.kernel.run(0, kEntries) >= 0, "reshape");
}

}  // namespace

MEASURED(reshape_merge)(const ReshapeCase& c) {
  reshape(c);
}
MEASURED(reshape_split)(const ReshapeCase& c) {
  reshape(c);
}
MEASURED(reshape_split_by_powers)(const ReshapeCase& c) {
  reshape(c);
}
MEASURED(reshape_split_wide)(const ReshapeCase& c) {
  reshape(c);
}

// ---- tensor_scatter_update ---------------------------------------------------

namespace {

template <int kBytes>
struct ScatterCase {
  std::vector<int64_t> indices;
  std::vector<char> tensor;
  std::vector<char> updates;
  std::vector<uint64_t> scratch;  // for the entries of a partition
  int64_t sizes[1];
  int64_t strides[1] = {1};
  int64_t width;

  ScatterCase(int64_t slices, int64_t slice_bytes)
      : tensor(slices * slice_bytes),
        updates(kEntries * slice_bytes),
        scratch(kEntries),
        sizes{slices},
        width(slice_bytes) {
    Random random;
    for (int64_t row = 0; row < kEntries; ++row) {
      indices.push_back(static_cast<int64_t>(random(slices)));
    }
  }

  ScatterRows<int64_t> rows() const {
    return {indices.data(), 1, 1, 1, sizes, strides};
  }

  // In place: how many instructions a plain copy takes is the C library's.
  ScatterTarget target() {
    return {nullptr, tensor.data(), updates.data(), sizes[0], width};
  }

  template <typename Entry, typename Make>
  ScatterPartition<Entry> partition(const Make& make) {
    return partition_rows(
        Workers{}, rows(), kEntries, sizes[0], width,
        reinterpret_cast<Entry*>(scratch.data()), make);
  }

  template <typename Entry, typename Make>
  void update(const Make& make) {
    const auto partition = this->partition<Entry>(make);
    NamedSlices named;
    for (int64_t block = 0; block < partition.blocks; ++block) {
      update_block<kBytes>(partition, block, target(), named);
    }
  }

  void take() {
    using Entry = CarriedUpdate<uint32_t>;
    const auto partition = this->partition<Entry>(
        [](int64_t, uint32_t slice) { return Entry{0, slice}; });
    NamedSlices named;
    for (int64_t block = 0; block < partition.blocks; ++block) {
      carry_block<kBytes>(partition, block, tensor.data(), named);
    }
    deliver_rows<kBytes>(partition, rows(), kEntries, 0, updates.data());
  }
};

}  // namespace

MEASURED(scatter_scalars)(ScatterCase<4>& c) {
  using Entry = CarriedUpdate<uint32_t>;
  c.update<Entry>([updates = c.updates.data()](int64_t row, uint32_t slice) {
    Entry entry{0, slice};
    std::memcpy(&entry.value, updates + row * 4, 4);
    return entry;
  });
}
MEASURED(scatter_rows)(ScatterCase<0>& c) {
  using Entry = NumberedRow<uint32_t>;
  c.update<Entry>([](int64_t row, uint32_t slice) {
    return Entry{static_cast<uint32_t>(row), slice};
  });
}
MEASURED(scatter_scalars_in_order)(ScatterCase<4>& c) {
  update_rows<4>(c.rows(), kEntries, c.target());
}
MEASURED(scatter_shares)(ScatterCase<4>& c) {
  char* out = reinterpret_cast<char*>(c.scratch.data());
  const ScatterTarget target{
      c.tensor.data(), out, c.updates.data(), c.sizes[0], c.width};
  update_shares<4>(Workers{}, c.rows(), kEntries, target);
}
MEASURED(scatter_take_scalars)(ScatterCase<4>& c) {
  c.take();
}
MEASURED(scatter_take_in_order)(ScatterCase<4>& c) {
  take_rows<4>(
      c.rows(), kEntries, c.sizes[0], c.tensor.data(), c.updates.data(), 4);
}

int main() {
  std::printf("avx2 %d\n", has_avx2() ? 1 : 0);
  const auto report = [](const char* name) {
    std::printf("%s %lld\n", name, static_cast<long long>(kEntries));
  };
#define RUN(name, ...)        \
  do {                        \
    auto input = __VA_ARGS__; \
    measure_##name(input);    \
    report(#name);            \
  } while (false)
  RUN(concat_copies, ConcatCase(2, {4096, 100000}, 0, 4));
  RUN(concat_long_runs, ConcatCase(2, {4096, 100000}, 1, 4));
  RUN(concat_runs_of_two, ConcatCase(8, {4096, 100000}, 1, 4));
  RUN(concat_short_runs, ConcatCase(64, {4096, 100000}, 1, 4));
  RUN(concat_short_runs_rank_3, ConcatCase(2, {256, 256, 1000}, 2, 4));
  RUN(concat_sparse_prefixes, ConcatCase(2, {2000000000, 1000}, 1, 4));
  RUN(concat_sparse_prefixes_many, ConcatCase(16, {2000000000, 1000}, 1, 4));
  RUN(concat_long_runs_rank_4, ConcatCase(2, {16, 256, 50, 50}, 2, 4));
  RUN(concat_long_runs_back, ConcatCase(2, {4096, 100000}, 1, 4));
  RUN(concat_short_runs_back, ConcatCase(64, {4096, 100000}, 1, 4));
  RUN(concat_unsorted, ConcatCase(2, {4096, 100000}, 1, 4, 0));
  RUN(concat_few_unsorted_back, ConcatCase(8, {4096, 100000}, 1, 4, 7));
  RUN(reshape_merge, ReshapeCase({1000, 1000}, {1000000}));
  RUN(reshape_split, ReshapeCase({37500, 32000}, {250, 480, 125, 80}));
  RUN(reshape_split_by_powers,
      ReshapeCase({32768, 32768}, {64, 4096, 256, 16}));
  RUN(reshape_split_wide, ReshapeCase({1000000000000}, {1000000, 1000000}));
  RUN(scatter_scalars, ScatterCase<4>(10 * kEntries, 4));
  RUN(scatter_rows, ScatterCase<0>(kEntries, 64));
  RUN(scatter_scalars_in_order, ScatterCase<4>(4 * kEntries, 4));
  RUN(scatter_shares, ScatterCase<4>(2 * kEntries, 4));
  RUN(scatter_take_scalars, ScatterCase<4>(10 * kEntries, 4));
  RUN(scatter_take_in_order, ScatterCase<4>(4 * kEntries, 4));
  return 0;
}
