// The kernels of sparse_concat and its transpose on CUDA.
//
// Inputs that stay whole are copied, one after another. Otherwise the places of
// all entries are put in order of their keys, by a stable sort or a merge, and
// entries are gathered in that order. Whatever the inputs hold, each place comes
// up once: a false promise gives unsorted output, never a bad access.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/index_math.h"
#include "cuda/concat_sources.cuh"
#include "cuda/launch.cuh"
#include "cuda/unit.cuh"

namespace tso {

enum class ConcatDirection { kForward, kTranspose };

// Where entries go. The transpose moves rows of out_values back into the
// inputs' values and has no indices.
struct ConcatTarget {
  int64_t* indices;  // one row of `total` per dimension
  int64_t rank;
  int64_t axis;
  char* values;
  int64_t row_bytes;
};

// ---- Keys ----

// Writes keys[place] and places[place] = place.
template <typename Key, typename Place>
static __global__ void __launch_bounds__(kThreads) concat_keys_kernel(
    const __grid_constant__ ConcatSources sources,
    const __grid_constant__ ConcatKeys shape,
    Key* __restrict__ keys,
    Place* __restrict__ places) {
  const ConcatSource* table = sources.data();
  const int64_t total = sources.total;
  for (int64_t tile = blockIdx.x; tile * kTile < total; tile += gridDim.x) {
    const int64_t first = tile * kTile;
    const int64_t end = first + kTile < total ? first + kTile : total;
    const SourceRange range(sources, first, end - 1);
    for (int64_t place = first + threadIdx.x; place < end; place += kThreads) {
      const ConcatSource& source =
          table[find_source(table, place, range.low, range.high)];
      keys[place] = static_cast<Key>(shape.key(source, place - source.start));
      places[place] = static_cast<Place>(place);
    }
  }
}

// ---- Runs that stay whole ----

constexpr int64_t kRunBytes = int64_t{kTile} * kMaxUnit;
constexpr int64_t kColumnTile = kRunBytes / int64_t{sizeof(int64_t)};

// Coordinates `dim` of places [first, end).
__device__ __forceinline__ void copy_column(
    const ConcatSources& sources,
    const ConcatTarget& target,
    int64_t dim,
    int64_t first,
    int64_t end) {
  const ConcatSource* table = sources.data();
  const SourceRange range(sources, first, end - 1);
  int64_t* out = target.indices + dim * sources.total;
  const ConcatSource& one = table[range.low];
  if (range.low == range.high && one.indices.row_stride == 1 &&
      (dim != target.axis || one.offset == 0)) {
    const int64_t* in =
        one.indices.data + first - one.start + dim * one.indices.dim_stride;
    copy_run<sizeof(int64_t)>(
        reinterpret_cast<char*>(out + first), reinterpret_cast<const char*>(in),
        (end - first) * int64_t{sizeof(int64_t)});
    return;
  }
  for (int64_t tile = first + threadIdx.x; tile < end; tile += kTile) {
    int64_t held[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      const int64_t place = tile + k * kThreads;
      if (place < end) {
        const ConcatSource& source =
            table[find_source(table, place, range.low, range.high)];
        held[k] = multiply_add(
            source.indices.at(place - source.start, dim), 1,
            dim == target.axis ? source.offset : 0);
      }
    }
    for (int k = 0; k < kItems; ++k) {
      const int64_t place = tile + k * kThreads;
      if (place < end) {
        out[place] = held[k];
      }
    }
  }
}

// Units [first, end) of the values, counted over all places.
template <int kUnit, ConcatDirection kDirection>
__device__ __forceinline__ void copy_values(
    const ConcatSources& sources,
    const ConcatTarget& target,
    const Divider& row_units,
    int64_t first,
    int64_t end) {
  constexpr bool kForward = kDirection == ConcatDirection::kForward;
  const ConcatSource* table = sources.data();
  const SourceRange range(
      sources, row_units.quotient(first), row_units.quotient(end - 1));
  if (range.low == range.high) {
    const ConcatSource& one = table[range.low];
    char* input = one.values + first * kUnit - one.start * target.row_bytes;
    char* output = target.values + first * kUnit;
    copy_run<kUnit>(
        kForward ? output : input, kForward ? input : output,
        (end - first) * kUnit);
    return;
  }
  for (int64_t unit = first + threadIdx.x; unit < end; unit += kThreads) {
    const ConcatSource& source = table[find_source(
        table, row_units.quotient(unit), range.low, range.high)];
    auto* input = reinterpret_cast<Unit<kUnit>*>(
        source.values + unit * kUnit - source.start * target.row_bytes);
    auto* output = reinterpret_cast<Unit<kUnit>*>(target.values + unit * kUnit);
    *(kForward ? output : input) = *(kForward ? input : output);
  }
}

// Copies the inputs one after another. Blocks take a stretch of one column, or
// of the values, at a time; neighbours take the same stretch of all columns.
template <int kUnit, ConcatDirection kDirection>
static __global__ void __launch_bounds__(kThreads, 2) concat_copy_kernel(
    const __grid_constant__ ConcatSources sources,
    const ConcatTarget target,
    const Divider ranks,
    const Divider row_units) {
  const int64_t total = sources.total;
  const int64_t column_tiles =
      target.indices != nullptr
          ? (total + kColumnTile - 1) / kColumnTile * target.rank
          : 0;
  const int64_t units = total * row_units.divisor;
  constexpr int64_t kUnits = kRunBytes / kUnit;
  const int64_t tiles = target.row_bytes > 0
                            ? column_tiles + (units + kUnits - 1) / kUnits
                            : column_tiles;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    if (tile < column_tiles) {
      const int64_t stretch = ranks.quotient(tile);
      const int64_t first = stretch * kColumnTile;
      const int64_t end =
          first + kColumnTile < total ? first + kColumnTile : total;
      copy_column(sources, target, tile - stretch * target.rank, first, end);
    } else {
      const int64_t first = (tile - column_tiles) * kUnits;
      const int64_t end = first + kUnits < units ? first + kUnits : units;
      copy_values<kUnit, kDirection>(sources, target, row_units, first, end);
    }
  }
}

// ---- Entries in sorted order ----

// Output j is the entry at places[j], with its row of values if that is one
// unit; kUnit == 0 moves indices alone.
template <int kUnit, typename Place>
static __global__ void __launch_bounds__(kThreads) concat_gather_kernel(
    const __grid_constant__ ConcatSources sources,
    const ConcatTarget target,
    const Place* __restrict__ places) {
  const ConcatSource* table = sources.data();
  const int64_t total = sources.total;
  const int last = sources.count - 1;
  for (int64_t tile = blockIdx.x; tile * kTile < total; tile += gridDim.x) {
    const int64_t first = tile * kTile + threadIdx.x;
    const int64_t* entry[kItems] = {};
    int64_t dim_stride[kItems] = {};
    int64_t offset[kItems] = {};
    const char* row[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      const int64_t j = first + k * kThreads;
      if (j < total) {
        const int64_t place = static_cast<int64_t>(places[j]);
        const ConcatSource& source = table[find_source(table, place, 0, last)];
        const int64_t number = place - source.start;
        entry[k] = source.indices.data + number * source.indices.row_stride;
        dim_stride[k] = source.indices.dim_stride;
        offset[k] = source.offset;
        row[k] = source.values + number * kUnit;
      }
    }
    if constexpr (kUnit > 0) {
      Unit<kUnit> held[kItems] = {};
      for (int k = 0; k < kItems; ++k) {
        if (first + k * kThreads < total) {
          held[k] = *reinterpret_cast<const Unit<kUnit>*>(row[k]);
        }
      }
      for (int k = 0; k < kItems; ++k) {
        const int64_t j = first + k * kThreads;
        if (j < total) {
          reinterpret_cast<Unit<kUnit>*>(target.values)[j] = held[k];
        }
      }
    }
    int64_t* out = target.indices + first;
    for (int64_t d = 0; d < target.rank; ++d, out += total) {
      int64_t held[kItems] = {};
      for (int k = 0; k < kItems; ++k) {
        if (first + k * kThreads < total) {
          held[k] =
              multiply_add(*entry[k], 1, d == target.axis ? offset[k] : 0);
          entry[k] += dim_stride[k];
        }
      }
      for (int k = 0; k < kItems; ++k) {
        if (first + k * kThreads < total) {
          out[k * kThreads] = held[k];
        }
      }
    }
  }
}

// Rows of values between output j and the entry at places[j], unit by unit.
template <int kUnit, typename Place, ConcatDirection kDirection>
static __global__ void __launch_bounds__(kThreads) concat_move_kernel(
    const __grid_constant__ ConcatSources sources,
    const ConcatTarget target,
    const Divider row_units,
    const Place* __restrict__ places) {
  constexpr bool kForward = kDirection == ConcatDirection::kForward;
  const ConcatSource* table = sources.data();
  const int64_t units = sources.total * row_units.divisor;
  const int last = sources.count - 1;
  for (int64_t tile = blockIdx.x; tile * kTile < units; tile += gridDim.x) {
    const int64_t first = tile * kTile + threadIdx.x;
    Unit<kUnit>* input[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      const int64_t unit = first + k * kThreads;
      if (unit < units) {
        const int64_t j = row_units.quotient(unit);
        const int64_t place = static_cast<int64_t>(places[j]);
        const ConcatSource& source = table[find_source(table, place, 0, last)];
        input[k] =
            reinterpret_cast<Unit<kUnit>*>(
                source.values + (place - source.start) * target.row_bytes) +
            (unit - j * row_units.divisor);
      }
    }
    auto* output = reinterpret_cast<Unit<kUnit>*>(target.values) + first;
    Unit<kUnit> held[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      if (first + k * kThreads < units) {
        held[k] = kForward ? *input[k] : output[k * kThreads];
      }
    }
    for (int k = 0; k < kItems; ++k) {
      if (first + k * kThreads < units) {
        *(kForward ? output + k * kThreads : input[k]) = held[k];
      }
    }
  }
}

// ---- Launchers ----

template <int kUnit>
Divider row_units(const ConcatTarget& target) {
  return make_divider(target.row_bytes > 0 ? target.row_bytes / kUnit : 1);
}

template <typename Key, typename Place>
void launch_concat_keys(
    const ConcatSources& sources,
    const ConcatKeys& shape,
    Key* keys,
    Place* places,
    cudaStream_t stream) {
  launch(
      stream, sources.total, kTile, concat_keys_kernel<Key, Place>, sources,
      shape, keys, places);
}

template <ConcatDirection kDirection>
void launch_concat_copy(
    const ConcatSources& sources,
    const ConcatTarget& target,
    int unit,
    cudaStream_t stream) {
  dispatch_unit(unit, [&](auto width) {
    constexpr int kUnit = decltype(width)::value;
    const int64_t columns = target.indices != nullptr ? target.rank : 0;
    const int64_t bytes = columns * int64_t{sizeof(int64_t)} + target.row_bytes;
    // A tile more for each column and the values, as none fills its last one.
    launch(
        stream, sources.total * bytes + (columns + 1) * kRunBytes, kRunBytes,
        concat_copy_kernel<kUnit, kDirection>, sources, target,
        make_divider(target.rank), row_units<kUnit>(target));
  });
}

template <typename Place, ConcatDirection kDirection>
void launch_concat_gather(
    const ConcatSources& sources,
    const ConcatTarget& target,
    int unit,
    const Place* places,
    cudaStream_t stream) {
  const bool one_unit = unit == target.row_bytes;
  dispatch_unit(unit, [&](auto width) {
    constexpr int kUnit = decltype(width)::value;
    if constexpr (kDirection == ConcatDirection::kForward) {
      launch(
          stream, sources.total, kTile,
          one_unit ? concat_gather_kernel<kUnit, Place>
                   : concat_gather_kernel<0, Place>,
          sources, target, places);
      if (one_unit) {
        return;
      }
    }
    launch(
        stream, sources.total * (target.row_bytes / kUnit), kTile,
        concat_move_kernel<kUnit, Place, kDirection>, sources, target,
        row_units<kUnit>(target), places);
  });
}

}  // namespace tso
