// How the kernels of sparse_concat see their inputs: a few in the kernel's
// parameters, many in a table in device memory, which is filled from kernel
// parameters too. So nothing on the host is read when a CUDA graph is replayed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/index_math.h"
#include "cuda/launch.cuh"

namespace tso {

// One input that has entries. Places count the entries of all inputs, one after
// another.
struct ConcatSource {
  IndexView indices;
  char* values;    // read by the forward, written by the transpose
  int64_t start;   // place of its first entry
  int64_t offset;  // added to the coordinate on the axis
};

constexpr int kFewSources = 64;

struct ConcatSources {
  int64_t total = 0;  // entries
  int count = 0;
  const ConcatSource* table = nullptr;  // null: they are in `few`
  ConcatSource few[kFewSources];

  __device__ const ConcatSource* data() const {
    return table != nullptr ? table : few;
  }
};

// What entries are sorted by: coordinates [0, dims) in the shape of the result,
// so with the offset of their input where they reach the axis.
struct ConcatKeys {
  int dims = 0;
  int64_t axis = 0;
  int64_t strides[kMaxRank];

  // Wraps for coordinates out of bounds.
  __device__ int64_t key(const ConcatSource& source, int64_t entry) const {
    int64_t result = 0;
    for (int d = 0; d < dims; ++d) {
      const int64_t coordinate = multiply_add(
          source.indices.at(entry, d), 1, d == axis ? source.offset : 0);
      result = multiply_add(coordinate, strides[d], result);
    }
    return result;
  }
};

// The source in [low, high] that holds the place.
__device__ __forceinline__ int find_source(
    const ConcatSource* sources, int64_t place, int low, int high) {
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (sources[middle].start <= place) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// A run of places and the sources that it may touch: mostly one.
struct SourceRange {
  int low;
  int high;

  __device__ SourceRange(
      const ConcatSources& sources, int64_t first, int64_t last)
      : low(find_source(sources.data(), first, 0, sources.count - 1)),
        high(find_source(sources.data(), last, low, sources.count - 1)) {}
};

// ---- Filling the table ----

// Index matrices that differ in their address and number of entries alone.
struct ConcatLayout {
  int64_t row_stride;
  int64_t dim_stride;  // 0: the number of entries, torch's layout
};

struct CompactSource {
  const int64_t* indices;
  char* values;
  uint32_t start;
  uint32_t offset;
};

constexpr int kUploadBytes = 4032;

template <typename Source>
struct ConcatUpload {
  static constexpr int kCount = kUploadBytes / sizeof(Source);

  ConcatSource* table = nullptr;
  int64_t end = 0;  // place after the last entry of these sources
  ConcatLayout layout{};
  int count = 0;
  Source sources[kCount];
};

template <typename Source>
static __global__ void __launch_bounds__(kThreads)
    concat_upload_kernel(const __grid_constant__ ConcatUpload<Source> upload) {
  for (int64_t i = grid_index(); i < upload.count; i += grid_stride()) {
    const Source& source = upload.sources[i];
    if constexpr (sizeof(Source) == sizeof(ConcatSource)) {
      upload.table[i] = source;
    } else {
      const ConcatLayout layout = upload.layout;
      const int64_t end =
          i + 1 < upload.count ? upload.sources[i + 1].start : upload.end;
      upload.table[i] = {
          {source.indices, layout.row_stride,
           layout.dim_stride ? layout.dim_stride : end - source.start},
          source.values,
          source.start,
          source.offset};
    }
  }
}

inline CompactSource compact(const ConcatSource& source) {
  return {
      source.indices.data, source.values, static_cast<uint32_t>(source.start),
      static_cast<uint32_t>(source.offset)};
}

// The layout that all sources share, if they do and their numbers fit.
inline bool shared_layout(
    const ConcatSource* sources,
    int64_t count,
    int64_t total,
    int64_t rank,
    ConcatLayout* layout) {
  constexpr int64_t kLimit = int64_t{1} << 32;
  const auto fits = [&](const ConcatLayout& wanted) {
    for (int64_t i = 0; i < count; ++i) {
      const IndexView& view = sources[i].indices;
      const int64_t nnz =
          (i + 1 < count ? sources[i + 1].start : total) - sources[i].start;
      const int64_t dim_stride = wanted.dim_stride ? wanted.dim_stride : nnz;
      if (nnz > 0 && ((nnz > 1 && view.row_stride != wanted.row_stride) ||
                      (rank > 1 && view.dim_stride != dim_stride))) {
        return false;
      }
    }
    return true;
  };
  if (total >= kLimit || sources[count - 1].offset >= kLimit) {
    return false;
  }
  for (const ConcatLayout& wanted : {ConcatLayout{1, 0}, {rank, 1}}) {
    if (fits(wanted)) {
      *layout = wanted;
      return true;
    }
  }
  return false;
}

template <typename Source, typename Narrow>
void upload_sources(
    const ConcatSource* sources,
    int64_t count,
    int64_t total,
    const ConcatLayout& layout,
    ConcatSource* table,
    const Narrow& narrow,
    cudaStream_t stream) {
  using Upload = ConcatUpload<Source>;
  for (int64_t first = 0; first < count; first += Upload::kCount) {
    const int64_t last =
        first + Upload::kCount < count ? first + Upload::kCount : count;
    Upload upload;
    upload.table = table + first;
    upload.end = last < count ? sources[last].start : total;
    upload.layout = layout;
    upload.count = static_cast<int>(last - first);
    for (int64_t i = first; i < last; ++i) {
      upload.sources[i - first] = narrow(sources[i]);
    }
    launch(
        stream, upload.count, kThreads, concat_upload_kernel<Source>, upload);
  }
}

// `table` has room for `count` sources and is used if they are many.
inline ConcatSources make_sources(
    const ConcatSource* sources,
    int64_t count,
    int64_t total,
    int64_t rank,
    ConcatSource* table,
    cudaStream_t stream) {
  ConcatSources result;
  result.total = total;
  result.count = static_cast<int>(count);
  if (count <= kFewSources) {
    for (int64_t i = 0; i < count; ++i) {
      result.few[i] = sources[i];
    }
    return result;
  }
  result.table = table;
  ConcatLayout layout{};
  if (shared_layout(sources, count, total, rank, &layout)) {
    upload_sources<CompactSource>(
        sources, count, total, layout, table, compact, stream);
  } else {
    upload_sources<ConcatSource>(
        sources, count, total, layout, table,
        [](const ConcatSource& source) { return source; }, stream);
  }
  return result;
}

}  // namespace tso
