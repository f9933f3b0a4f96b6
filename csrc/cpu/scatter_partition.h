// Rows of tensor_scatter_update sorted by destination.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "scatter_rows.h"

namespace tso {

// What a partition keeps of a row. Slices count from their block's first.
struct NamedSlice {
  static constexpr int kMaxShift = 32;

  uint32_t slice;
};

// The row's update itself, as an unsigned integer of its width: the block that
// writes it need not look it up.
template <typename Value>
struct CarriedUpdate {
  static constexpr int kMaxShift = 32;

  Value value;
  uint32_t slice;
};

// One byte fits beside the slice: half the memory to move, 1.1 times as fast.
template <>
struct CarriedUpdate<uint8_t> {
  static constexpr int kMaxShift = 24;

  uint32_t value : 8;
  uint32_t slice : 24;
};

// Position is uint32_t where that holds every row.
template <typename Position>
struct NumberedRow {
  static constexpr int kMaxShift = 32;

  Position row;
  uint32_t slice;
};

// Blocks of at most this many bytes of the tensor, which the second-level cache
// holds, or nearly: smaller ones are more places to deal rows out to, which
// costs more than it saves.
constexpr int64_t kScatterBlockBytes = int64_t{1} << 20;
constexpr int kScatterBlockShift = 18;
// Few enough for their write positions to be cached.
constexpr int64_t kMaxScatterBlocks = 2048;

// log2 of the slices in a block.
inline int scatter_block_shift(
    int64_t slices, int64_t slice_bytes, int max_shift) {
  int shift = 0;
  while (shift < kScatterBlockShift &&
         (slice_bytes << (shift + 1)) <= kScatterBlockBytes) {
    ++shift;
  }
  while (shift < max_shift && (slices - 1) >> shift >= kMaxScatterBlocks) {
    ++shift;
  }
  return shift;
}

// Rows sorted by the block their slice lies in, and in their order within a
// block. Rows out of bounds stand after the last block.
template <typename Entry>
struct ScatterPartition {
  Entry* entries = nullptr;
  int shift = 0;       // log2 of the slices in a block
  int64_t blocks = 1;  // at least 1
  int64_t share = 0;   // rows that one thread has dealt out
  // By thread and block, where its rows begin. One thread more than there are
  // says where the last one's end.
  std::vector<int64_t> starts;
  int64_t pitch = 0;       // of starts
  int64_t threads = 0;     // that have dealt out rows
  int64_t first_bad = -1;  // row, or -1

  Entry* begin(int64_t block) const {
    return entries + starts[block];
  }
  Entry* end(int64_t block) const {
    return entries + starts[threads * pitch + block];
  }
};

// Stable; linear in count. Row `row` becomes make(row, slice), at one of the
// `count` places of `entries`.
template <typename Entry, typename Index, typename Parallel, typename Make>
ScatterPartition<Entry> partition_rows(
    const Parallel& parallel,
    const ScatterRows<Index>& rows,
    int64_t count,
    int64_t slices,
    int64_t slice_bytes,
    Entry* entries,
    const Make& make) {
  ScatterPartition<Entry> partition;
  const int shift = scatter_block_shift(slices, slice_bytes, Entry::kMaxShift);
  const int64_t threads = parallel.threads;
  const int64_t blocks = slices > 0 ? ((slices - 1) >> shift) + 1 : 1;
  const int64_t share = (count + threads - 1) / threads;
  const int64_t outside = blocks << shift;
  // The last count is of rows out of bounds. The gap keeps threads from
  // writing to one cache line.
  const int64_t pitch = blocks + 1 + 8;
  std::vector<int64_t> next((threads + 1) * pitch, 0);
  std::vector<int64_t> bad(threads, -1);
  parallel.each_thread([&](int64_t thread) {
    int64_t* counts = next.data() + thread * pitch;
    bad[thread] = each_slices(
        rows, share * thread, std::min(count, share * (thread + 1)), outside,
        [&](int64_t, int64_t some, const int64_t* named, bool) {
#pragma GCC unroll 4
          for (int64_t i = 0; i < some; ++i) {
            ++counts[named[i] >> shift];
          }
        });
  });
  int64_t position = 0;
  for (int64_t block = 0; block <= blocks; ++block) {
    for (int64_t thread = 0; thread < threads; ++thread) {
      int64_t& cell = next[thread * pitch + block];
      std::swap(cell, position);
      position += cell;
    }
    next[threads * pitch + block] = position;
  }
  for (int64_t thread = threads; thread-- > 0;) {
    partition.first_bad = bad[thread] < 0 ? partition.first_bad : bad[thread];
  }
  partition.entries = entries;
  partition.shift = shift;
  partition.blocks = blocks;
  partition.share = share;
  partition.starts = next;
  partition.pitch = pitch;
  partition.threads = threads;
  const int64_t mask = (int64_t{1} << shift) - 1;
  parallel.each_thread([&](int64_t thread) {
    int64_t* places = next.data() + thread * pitch;
    each_slices(
        rows, share * thread, std::min(count, share * (thread + 1)), outside,
        [&](int64_t row, int64_t some, const int64_t* named, bool) {
#pragma GCC unroll 4
          for (int64_t i = 0; i < some; ++i) {
            const int64_t slice = named[i];
            entries[places[slice >> shift]++] =
                make(row + i, static_cast<uint32_t>(slice & mask));
          }
        });
  });
  return partition;
}

}  // namespace tso
