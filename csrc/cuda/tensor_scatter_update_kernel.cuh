// The kernels of tensor_scatter_update and its transposes on CUDA: once the
// winners are known, one pass writes.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "common/index_math.h"
#include "cuda/launch.cuh"
#include "cuda/scatter_winners.cuh"
#include "cuda/unit.cuh"

namespace tso {

// A new tensor and what it is made of. All three are contiguous.
struct ScatterTarget {
  char* out;
  const char* tensor;
  const char* updates;  // null: zeros
  int64_t slices;
  int64_t slice_bytes;
};

// ---- Whole tensor, from a dense table ----

// Slices of kBytes, 16 bytes of them at a time. Requires tensor to be a
// multiple of 16 and updates of kBytes.
template <int kBytes, typename Word>
static __global__ void __launch_bounds__(kThreads, 4) scatter_fill_pack_kernel(
    const ScatterTarget target, const Word* __restrict__ winners) {
  using Slice = Unit<kBytes>;
  constexpr int kCount = kMaxUnit / kBytes;
  constexpr int kWords = kMaxUnit / static_cast<int>(sizeof(Word));
  constexpr int kTogether = kWords < kCount ? kWords : kCount;
  using Slices = Pack<Slice, kCount>;
  using Words = Pack<Word, kTogether>;
  const auto* tensor = reinterpret_cast<const Slices*>(target.tensor);
  const auto* words = reinterpret_cast<const Words*>(winners);
  const auto* updates = reinterpret_cast<const Slice*>(target.updates);
  auto* out = reinterpret_cast<Slices*>(target.out);
  const int64_t packs = target.slices / kCount;
  for (int64_t i = grid_index(); i < packs; i += grid_stride()) {
    Slices held = tensor[i];
    for (int w = 0; w < kCount / kTogether; ++w) {
      const Words rows = words[i * (kCount / kTogether) + w];
      for (int k = 0; k < kTogether; ++k) {
        if (rows.at[k] > 0) {
          held.at[w * kTogether + k] =
              updates != nullptr ? updates[rows.at[k] - 1] : Slice{};
        }
      }
    }
    out[i] = held;
  }
  const int64_t slice = packs * kCount + grid_index();
  if (slice < target.slices) {
    const Word row = winners[slice];
    const Slice before = reinterpret_cast<const Slice*>(target.tensor)[slice];
    reinterpret_cast<Slice*>(target.out)[slice] = row == 0 ? before
                                                  : updates != nullptr
                                                      ? updates[row - 1]
                                                      : Slice{};
  }
}

// Slices of any number of units.
template <int kUnit, typename Word>
static __global__ void __launch_bounds__(kThreads) scatter_fill_kernel(
    const ScatterTarget target,
    const Divider slice_units,
    const Word* __restrict__ winners) {
  using Piece = Unit<kUnit>;
  const auto* tensor = reinterpret_cast<const Piece*>(target.tensor);
  const auto* updates = reinterpret_cast<const Piece*>(target.updates);
  auto* out = reinterpret_cast<Piece*>(target.out);
  const int64_t per_slice = slice_units.divisor;
  const int64_t units = target.slices * per_slice;
  for (int64_t tile = blockIdx.x; tile * kTile < units; tile += gridDim.x) {
    const int64_t first = tile * kTile + threadIdx.x;
    const Piece* from[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      const int64_t unit = first + k * kThreads;
      if (unit < units) {
        const int64_t slice = slice_units.quotient(unit);
        const int64_t row = static_cast<int64_t>(winners[slice]) - 1;
        const Piece* update =
            updates != nullptr
                ? updates + row * per_slice + (unit - slice * per_slice)
                : nullptr;
        from[k] = row < 0 ? tensor + unit : update;
      }
    }
    Piece held[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      if (from[k] != nullptr) {
        held[k] = *from[k];
      }
    }
    for (int k = 0; k < kItems; ++k) {
      if (first + k * kThreads < units) {
        out[first + k * kThreads] = held[k];
      }
    }
  }
}

// ---- Row by row ----

// The pieces of a slice: units next to one another, or single elements at any
// strides.
struct DensePieces {
  int64_t bytes;  // of one unit

  __device__ int64_t place(int64_t piece) const {
    return piece * bytes;
  }
};

struct StridedPieces {
  int dims = 0;
  Divider sizes[kMaxRank];
  int64_t strides[kMaxRank];  // in bytes

  __device__ int64_t place(int64_t piece) const {
    int64_t result = 0;
    for (int d = dims - 1; d >= 0; --d) {
      const int64_t quotient = sizes[d].quotient(piece);
      result += (piece - quotient * sizes[d].divisor) * strides[d];
      piece = quotient;
    }
    return result;
  }
};

// kToTensor writes the rows that win, kToRows fills every row: from the slice
// it wins, with zeros if it wins none.
enum class ScatterDirection { kToTensor, kToRows };

// Moves slices between a tensor and rows, which are contiguous; null rows are
// zeros. places[row] is where the row's slice begins, or -1.
template <int kUnit, typename Pieces, ScatterDirection kDirection>
static __global__ void __launch_bounds__(kThreads) scatter_move_kernel(
    char* tensor,
    char* rows,
    int64_t count,
    const Divider slice_units,
    const __grid_constant__ Pieces pieces,
    const int64_t* __restrict__ places) {
  using Piece = Unit<kUnit>;
  auto* const row_pieces = reinterpret_cast<Piece*>(rows);
  const int64_t units = count * slice_units.divisor;
  for (int64_t tile = blockIdx.x; tile * kTile < units; tile += gridDim.x) {
    const int64_t first = tile * kTile + threadIdx.x;
    Piece* at[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      const int64_t unit = first + k * kThreads;
      if (unit < units) {
        const int64_t row = slice_units.quotient(unit);
        const int64_t place = places[row];
        if (place >= 0) {
          at[k] = reinterpret_cast<Piece*>(
              tensor + place + pieces.place(unit - row * slice_units.divisor));
        }
      }
    }
    Piece held[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      if (at[k] != nullptr) {
        if constexpr (kDirection == ScatterDirection::kToRows) {
          held[k] = *at[k];
        } else if (row_pieces != nullptr) {
          held[k] = row_pieces[first + k * kThreads];
        }
      }
    }
    for (int k = 0; k < kItems; ++k) {
      if constexpr (kDirection == ScatterDirection::kToRows) {
        if (first + k * kThreads < units) {
          row_pieces[first + k * kThreads] = held[k];
        }
      } else if (at[k] != nullptr) {
        *at[k] = held[k];
      }
    }
  }
}

// ---- Launchers ----

// Whether slices of this size go through scatter_fill_pack_kernel.
inline bool packs_slices(const ScatterTarget& target) {
  const int64_t bytes = target.slice_bytes;
  return bytes <= 8 && (bytes & (bytes - 1)) == 0 &&
         Alignment().add(target.tensor).unit() == kMaxUnit &&
         Alignment().add(target.updates).unit() >= bytes;
}

template <typename Word>
void launch_scatter_fill(
    const ScatterTarget& target, const Word* winners, cudaStream_t stream) {
  if (packs_slices(target)) {
    dispatch_unit(static_cast<int>(target.slice_bytes), [&](auto width) {
      constexpr int kBytes = decltype(width)::value;
      if constexpr (kBytes <= 8) {
        constexpr int64_t kCount = kMaxUnit / kBytes;
        launch(
            stream, target.slices, kCount * kThreads,
            scatter_fill_pack_kernel<kBytes, Word>, target, winners);
      }
    });
    return;
  }
  const int unit = Alignment()
                       .add(target.slice_bytes)
                       .add(target.tensor)
                       .add(target.updates)
                       .unit();
  dispatch_unit(unit, [&](auto width) {
    constexpr int kUnit = decltype(width)::value;
    launch(
        stream, target.slices * (target.slice_bytes / kUnit), kTile,
        scatter_fill_kernel<kUnit, Word>, target,
        make_divider(target.slice_bytes / kUnit), winners);
  });
}

// `unit` is one element for StridedPieces.
template <ScatterDirection kDirection, typename Pieces>
void launch_scatter_move(
    char* tensor,
    char* rows,
    int64_t count,
    int64_t slice_bytes,
    int unit,
    const Pieces& pieces,
    const int64_t* places,
    cudaStream_t stream) {
  dispatch_unit(unit, [&](auto width) {
    constexpr int kUnit = decltype(width)::value;
    launch(
        stream, count * (slice_bytes / kUnit), kTile,
        scatter_move_kernel<kUnit, Pieces, kDirection>, tensor, rows, count,
        make_divider(slice_bytes / kUnit), pieces, places);
  });
}

}  // namespace tso
