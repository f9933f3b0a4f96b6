// Which row wins each slice: the last one to name it, found by integer maxima,
// so that neither the order of threads nor a repeated run changes it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/index_math.h"
#include "cuda/launch.cuh"

namespace tso {

// The rows of indices, [count, depth] of any strides. Index is int32_t or
// int64_t. Travels in the kernel's parameters.
template <typename Index>
struct ScatterRows {
  const Index* data = nullptr;
  int64_t row_stride = 0;
  int64_t dim_stride = 0;
  int64_t count = 0;
  int depth = 0;
  int64_t sizes[kMaxRank];    // leading sizes of the tensor
  int64_t strides[kMaxRank];  // their row-major strides, in slices

  // The number of the slice the row names, or -1 if it is out of bounds.
  __device__ int64_t slice(int64_t row) const {
    const Index* at = data + row * row_stride;
    int64_t number = 0;
    bool bad = false;
    for (int d = 0; d < depth; ++d, at += dim_stride) {
      const int64_t coordinate = *at;
      bad |= out_of_range(coordinate, sizes[d]);
      number = multiply_add(coordinate, strides[d], number);
    }
    return bad ? -1 : number;
  }
};

// ---- Winner tables ----

// One word for each slice: the winning row + 1, or 0. Starts as zeros. Word is
// unsigned int where that holds every row.
template <typename Word>
struct DenseWinners {
  Word* words = nullptr;

  __device__ void record(int64_t slice, int64_t row) const {
    const Word mine = static_cast<Word>(row + 1);
    // A word only grows, so a row that has lost already need not queue.
    if (__ldcg(words + slice) < mine) {
      atomicMax(words + slice, mine);
    }
  }

  __device__ bool wins(int64_t slice, int64_t row) const {
    return words[slice] == static_cast<Word>(row + 1);
  }
};

// A hash table with one word for each slice that is named: slice and row in one
// number, so that a maximum over the rows of one slice is one over its words.
// Starts as all ones, which no such number is: together they have 63 bits at
// most. At least half of the words stay free, which ends every search.
struct HashedWinners {
  unsigned long long* words = nullptr;
  int log_words = 0;
  int row_bits = 0;

  static constexpr unsigned long long kFree = ~0ull;

  __device__ unsigned long long first(int64_t slice) const {
    return (static_cast<unsigned long long>(slice) * 0x9e3779b97f4a7c15ull) >>
           (64 - log_words);
  }

  __device__ unsigned long long next(unsigned long long at) const {
    return (at + 1) & ((1ull << log_words) - 1);
  }

  __device__ unsigned long long word(int64_t slice, int64_t row) const {
    return static_cast<unsigned long long>(slice) << row_bits |
           static_cast<unsigned long long>(row);
  }

  __device__ void record(int64_t slice, int64_t row) const {
    const unsigned long long mine = word(slice, row);
    for (unsigned long long at = first(slice);; at = next(at)) {
      unsigned long long found = __ldcg(words + at);
      if (found == kFree) {
        found = atomicCAS(words + at, kFree, mine);
        if (found == kFree) {
          return;
        }
      }
      if (found >> row_bits == mine >> row_bits) {
        if (found < mine) {
          atomicMax(words + at, mine);
        }
        return;
      }
    }
  }

  // Requires that the slice has been recorded.
  __device__ bool wins(int64_t slice, int64_t row) const {
    const unsigned long long mine = word(slice, row);
    unsigned long long at = first(slice);
    while (words[at] >> row_bits != mine >> row_bits) {
      at = next(at);
    }
    return words[at] == mine;
  }
};

// ---- Kernels ----

// Records every row that is within bounds, the last ones first: most rows that
// lose then see it without an atomic.
template <typename Index, typename Winners>
static __global__ void __launch_bounds__(kThreads) scatter_record_kernel(
    const __grid_constant__ ScatterRows<Index> rows, const Winners winners) {
  for (int64_t i = grid_index(); i < rows.count; i += grid_stride()) {
    const int64_t row = rows.count - 1 - i;
    const int64_t slice = rows.slice(row);
    if (slice >= 0) {
      winners.record(slice, row);
    }
  }
}

// Where the slices of a tensor of any strides begin, in bytes.
struct SliceStrides {
  int64_t bytes[kMaxRank];
};

// places[row] is where the slice begins that the row wins, or -1.
template <typename Index, typename Winners>
static __global__ void __launch_bounds__(kThreads) scatter_resolve_kernel(
    const __grid_constant__ ScatterRows<Index> rows,
    const __grid_constant__ SliceStrides strides,
    const Winners winners,
    int64_t* __restrict__ places) {
  for (int64_t row = grid_index(); row < rows.count; row += grid_stride()) {
    const int64_t slice = rows.slice(row);
    int64_t place = -1;
    if (slice >= 0 && winners.wins(slice, row)) {
      place = 0;
      const Index* at = rows.data + row * rows.row_stride;
      for (int d = 0; d < rows.depth; ++d, at += rows.dim_stride) {
        place += *at * strides.bytes[d];
      }
    }
    places[row] = place;
  }
}

// Finds the first row out of bounds. *bad starts as all ones.
template <typename Index>
static __global__ void __launch_bounds__(kThreads) scatter_check_kernel(
    const __grid_constant__ ScatterRows<Index> rows, unsigned long long* bad) {
  for (int64_t row = grid_index(); row < rows.count; row += grid_stride()) {
    if (rows.slice(row) < 0) {
      atomicMin(bad, static_cast<unsigned long long>(row));
      return;
    }
  }
}

// Writes the coordinates of the row that the check has found behind it.
template <typename Index>
static __global__ void __launch_bounds__(kThreads) scatter_report_kernel(
    const __grid_constant__ ScatterRows<Index> rows, int64_t* report) {
  const int64_t row = report[0];
  if (row >= 0 && threadIdx.x < static_cast<unsigned>(rows.depth)) {
    const int64_t d = threadIdx.x;
    report[1 + d] = rows.data[row * rows.row_stride + d * rows.dim_stride];
  }
}

// ---- Launchers ----

template <typename Index, typename Winners>
void launch_scatter_record(
    const ScatterRows<Index>& rows,
    const Winners& winners,
    cudaStream_t stream) {
  launch(
      stream, rows.count, kThreads, scatter_record_kernel<Index, Winners>, rows,
      winners);
}

template <typename Index, typename Winners>
void launch_scatter_resolve(
    const ScatterRows<Index>& rows,
    const SliceStrides& strides,
    const Winners& winners,
    int64_t* places,
    cudaStream_t stream) {
  launch(
      stream, rows.count, kThreads, scatter_resolve_kernel<Index, Winners>,
      rows, strides, winners, places);
}

// report[0] becomes the first row out of bounds, followed by its coordinates,
// or -1.
template <typename Index>
void launch_scatter_check(
    const ScatterRows<Index>& rows, int64_t* report, cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(report, 0xff, sizeof(int64_t), stream));
  launch(
      stream, rows.count, kThreads, scatter_check_kernel<Index>, rows,
      reinterpret_cast<unsigned long long*>(report));
  launch(
      stream, rows.depth, kThreads, scatter_report_kernel<Index>, rows, report);
}

}  // namespace tso
