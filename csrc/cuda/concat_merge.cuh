// The order of the entries of two sorted inputs, by merging: each key is read
// once, where a sort reads and writes it in every pass.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/concat_sources.cuh"
#include "cuda/launch.cuh"

namespace tso {

constexpr int kMergeItems = 8;
constexpr int kMergeTile = kThreads * kMergeItems;

// How many of the first `outputs` come from the first of two sorted runs, of
// `first` and `second` keys; equal keys come from the first run first. If the
// runs are not sorted, a number that both runs have keys for.
template <typename FirstKey, typename SecondKey>
__device__ __forceinline__ int64_t merge_split(
    int64_t outputs,
    int64_t first,
    int64_t second,
    const FirstKey& first_key,
    const SecondKey& second_key) {
  int64_t low = outputs > second ? outputs - second : 0;
  int64_t high = outputs < first ? outputs : first;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (first_key(middle) <= second_key(outputs - 1 - middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Whether `some` outputs can be `taken` keys of the first run and the rest of
// the second: always, if the runs are sorted.
__device__ __forceinline__ bool splits_well(int64_t taken, int64_t some) {
  return taken >= 0 && taken <= some;
}

// Writes to splits[t] how many of the first t * kMergeTile outputs come from
// the first source. *broken, 0 before, becomes 1 where that cannot be.
static __global__ void __launch_bounds__(kThreads) concat_split_kernel(
    const __grid_constant__ ConcatSources sources,
    const __grid_constant__ ConcatKeys keys,
    int64_t* __restrict__ splits,
    int* broken) {
  const ConcatSource& a = sources.data()[0];
  const ConcatSource& b = sources.data()[1];
  const int64_t total = sources.total;
  const auto split = [&](int64_t outputs) {
    return merge_split(
        outputs, b.start, total - b.start,
        [&](int64_t entry) { return keys.key(a, entry); },
        [&](int64_t entry) { return keys.key(b, entry); });
  };
  for (int64_t tile = grid_index(); tile * kMergeTile < total;
       tile += grid_stride()) {
    const int64_t first = tile * kMergeTile;
    const int64_t end = first + kMergeTile < total ? first + kMergeTile : total;
    const int64_t from = split(first);
    const int64_t to = split(end);
    splits[tile] = from;
    if (end == total) {
      splits[tile + 1] = to;
    }
    if (!splits_well(to - from, end - first)) {
      atomicMax(broken, 1);
    }
  }
}

// Writes the places of all entries in the order of their keys. Entries stand
// in some order, each once, if the inputs are not sorted.
template <typename Place>
static __global__ void __launch_bounds__(kThreads) concat_merge_kernel(
    const __grid_constant__ ConcatSources sources,
    const __grid_constant__ ConcatKeys keys,
    const int64_t* __restrict__ splits,
    const int* __restrict__ broken,
    Place* __restrict__ places) {
  __shared__ int64_t tile_keys[kMergeTile];
  __shared__ uint16_t order[kMergeTile];
  __shared__ int starts[kThreads + 1];
  const ConcatSource& a = sources.data()[0];
  const ConcatSource& b = sources.data()[1];
  const int64_t total = sources.total;
  const int thread = static_cast<int>(threadIdx.x);
  // In place of splits that cannot be: the first source, then the second.
  const bool sound = *broken == 0;
  const auto split = [&](int64_t tile) {
    const int64_t outputs = tile * kMergeTile;
    return sound ? splits[tile] : outputs < b.start ? outputs : b.start;
  };
  for (int64_t tile = blockIdx.x; tile * kMergeTile < total;
       tile += gridDim.x) {
    const int64_t first = tile * kMergeTile;
    const int some = static_cast<int>(
        first + kMergeTile < total ? kMergeTile : total - first);
    // This tile merges a's entries from a_first on with b's from b_first on.
    const int64_t a_first = split(tile);
    const int64_t b_first = first - a_first;
    const int a_some = static_cast<int>(split(tile + 1) - a_first);
    for (int i = thread; i < some; i += kThreads) {
      tile_keys[i] = i < a_some ? keys.key(a, a_first + i)
                                : keys.key(b, b_first + (i - a_some));
    }
    __syncthreads();
    // This thread merges its share of them.
    const int begin = min(thread * kMergeItems, some);
    const int end = min(begin + kMergeItems, some);
    int a_at = static_cast<int>(merge_split(
        begin, a_some, some - a_some, [&](int64_t i) { return tile_keys[i]; },
        [&](int64_t i) { return tile_keys[a_some + i]; }));
    starts[thread] = a_at;
    if (thread == 0) {
      starts[kThreads] = a_some;
    }
    __syncthreads();
    int a_end = starts[thread + 1];
    if (__syncthreads_or(!splits_well(a_end - a_at, end - begin)) != 0) {
      a_at = min(begin, a_some);
      a_end = min(end, a_some);
    }
    int b_at = a_some + begin - a_at;
    const int b_end = a_some + end - a_end;
    for (int i = begin; i < end; ++i) {
      const bool from_a =
          a_at < a_end && (b_at >= b_end || tile_keys[a_at] <= tile_keys[b_at]);
      order[i] = static_cast<uint16_t>(from_a ? a_at++ : b_at++);
    }
    __syncthreads();
    for (int i = thread; i < some; i += kThreads) {
      const int at = order[i];
      places[first + i] = static_cast<Place>(
          at < a_some ? a_first + at : b.start + b_first + (at - a_some));
    }
    // The next tile overwrites what this one reads.
    __syncthreads();
  }
}

// Elements of `splits` for so many entries.
inline int64_t merge_splits(int64_t total) {
  return (total + kMergeTile - 1) / kMergeTile + 1;
}

// Requires two sources. `broken` is scratch.
template <typename Place>
void launch_concat_merge(
    const ConcatSources& sources,
    const ConcatKeys& keys,
    int64_t* splits,
    int* broken,
    Place* places,
    cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(broken, 0, sizeof(int), stream));
  launch(
      stream, merge_splits(sources.total) - 1, kThreads, concat_split_kernel,
      sources, keys, splits, broken);
  launch(
      stream, sources.total, kMergeTile, concat_merge_kernel<Place>, sources,
      keys, splits, broken, places);
}

}  // namespace tso
