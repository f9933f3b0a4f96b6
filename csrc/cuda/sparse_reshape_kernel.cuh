// The kernel of sparse_reshape on CUDA.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/index_math.h"
#include "cuda/launch.cuh"
#include "cuda/unit.cuh"

namespace tso {

// Reads the coordinates of a group of input dimensions and writes those of the
// target dimensions that hold the same elements, group after group. Travels in
// the kernel's parameters, hence the narrow numbers.
struct ReshapeKernel {
  IndexView indices{};
  int64_t* out = nullptr;  // one row of nnz per target dimension
  int64_t nnz = 0;
  int steps = 0;
  int zeros = 0;
  int64_t in_sizes[kMaxRank];
  Divider out_dividers[kMaxRank];
  uint8_t in_dims[kMaxRank];
  uint8_t out_dims[kMaxRank];
  uint8_t in_ends[kMaxRank];   // step s reads dims [in_ends[s - 1], in_ends[s])
  uint8_t out_ends[kMaxRank];  // and writes dims in the same way
  uint8_t zero_dims[kMaxRank];  // target dimensions of size 1
};

// Two entries of one thread: neighbours, moved by 16-byte accesses (kPairs), or
// kThreads apart. kPairs requires indices.row_stride == 1, even nnz, even
// dim_stride and both addresses to be multiples of 16.
template <bool kPairs>
struct TwoEntries {
  static constexpr int64_t kSpan = 2 * kThreads;
  using Pair = Pack<int64_t, 2>;

  int64_t first;
  bool second;  // whether there is one

  __device__ TwoEntries(int64_t tile, int64_t nnz)
      : first(tile * kSpan + (kPairs ? 2 : 1) * int64_t{threadIdx.x}),
        second(first + kStep < nnz) {}

  __device__ Pair load(const IndexView& indices, int64_t dim) const {
    const int64_t* from =
        indices.data + first * indices.row_stride + dim * indices.dim_stride;
    if constexpr (kPairs) {
      return *reinterpret_cast<const Pair*>(from);
    } else {
      return {from[0], second ? from[kStep * indices.row_stride] : 0};
    }
  }

  __device__ void store(int64_t* row, const Pair& pair) const {
    if constexpr (kPairs) {
      *reinterpret_cast<Pair*>(row + first) = pair;
    } else {
      row[first] = pair.at[0];
      if (second) {
        row[first + kStep] = pair.at[1];
      }
    }
  }

 private:
  static constexpr int64_t kStep = kPairs ? 1 : kThreads;
};

// Writes the target's coordinates of every entry; of an entry out of bounds,
// some coordinates. Reads each index and writes each output once.
template <bool kPairs>
static __global__ void __launch_bounds__(kThreads)
    sparse_reshape_kernel(const __grid_constant__ ReshapeKernel kernel) {
  using Entries = TwoEntries<kPairs>;
  using Pair = typename Entries::Pair;
  const int64_t nnz = kernel.nnz;
  for (int64_t tile = blockIdx.x; tile * Entries::kSpan < nnz;
       tile += gridDim.x) {
    const Entries entries(tile, nnz);
    if (entries.first >= nnz) {
      continue;
    }
    int in = 0;
    int out_begin = 0;
    for (int step = 0; step < kernel.steps; ++step) {
      Pair key = entries.load(kernel.indices, kernel.in_dims[in]);
      for (++in; in < kernel.in_ends[step]; ++in) {
        const Pair next = entries.load(kernel.indices, kernel.in_dims[in]);
        const int64_t size = kernel.in_sizes[in];
        key.at[0] = multiply_add(key.at[0], size, next.at[0]);
        key.at[1] = multiply_add(key.at[1], size, next.at[1]);
      }
      const int out_end = kernel.out_ends[step];
      for (int out = out_end - 1; out > out_begin; --out) {
        const Divider& divider = kernel.out_dividers[out];
        const Pair quotient{
            divider.quotient(key.at[0]), divider.quotient(key.at[1])};
        const int64_t size = -divider.divisor;
        entries.store(
            kernel.out + kernel.out_dims[out] * nnz,
            {multiply_add(quotient.at[0], size, key.at[0]),
             multiply_add(quotient.at[1], size, key.at[1])});
        key = quotient;
      }
      entries.store(kernel.out + kernel.out_dims[out_begin] * nnz, key);
      out_begin = out_end;
    }
    for (int zero = 0; zero < kernel.zeros; ++zero) {
      entries.store(kernel.out + kernel.zero_dims[zero] * nnz, {0, 0});
    }
  }
}

inline void launch_sparse_reshape(
    const ReshapeKernel& kernel, cudaStream_t stream) {
  constexpr int64_t kPair = 2 * sizeof(int64_t);
  const bool pairs =
      kernel.indices.row_stride == 1 && kernel.nnz % 2 == 0 &&
      Alignment()
              .add(kernel.indices.data)
              .add(kernel.indices.dim_stride * int64_t{sizeof(int64_t)})
              .add(kernel.out)
              .unit() == kPair;
  launch(
      stream, kernel.nnz, TwoEntries<true>::kSpan,
      pairs ? sparse_reshape_kernel<true> : sparse_reshape_kernel<false>,
      kernel);
}

}  // namespace tso
