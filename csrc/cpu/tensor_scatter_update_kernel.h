// The loops of tensor_scatter_update and its transposes on the CPU.
//
// Rows are dealt out by destination: a stable partition sorts them into blocks
// of neighbouring slices, and one thread does a whole block, rows in their
// order. So the last row to name a slice wins with no lock and no atomic, and
// what a block writes stays in the second-level cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../common/element.h"
#include "../common/index_math.h"
#include "columns.h"

namespace tso {

// The rows of indices, [rows, depth] of any strides. Index is int32_t or
// int64_t.
template <typename Index>
struct ScatterRows {
  const Index* data;
  int64_t row_stride;
  int64_t dim_stride;
  int64_t depth;
  const int64_t* sizes;    // leading sizes of the tensor
  const int64_t* strides;  // their row-major strides, in slices

  // The number of the slice the row names, or -1 if it is out of bounds.
  int64_t slice(int64_t row) const {
    const Index* at = data + row * row_stride;
    int64_t number = 0;
    bool bad = false;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t coordinate = at[d * dim_stride];
      bad |= out_of_range(coordinate, sizes[d]);
      number = multiply_add(coordinate, strides[d], number);
    }
    return bad ? -1 : number;
  }

  // Writes the slices that rows [begin, begin + count) name, count <=
  // kColumnBlock, and `outside` for rows out of bounds. Returns whether there
  // are any. One dimension at a time and without branches, which for columns
  // that lie together vectorises.
  bool slices(
      int64_t begin, int64_t count, int64_t outside, int64_t* out) const {
    int64_t signs[kColumnBlock];
    const Index* at = data + begin * row_stride;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = at[i * row_stride];
      signs[i] = range_sign(out[i], sizes[0]);
    }
    for (int64_t d = 1; d < depth; ++d) {
      at += dim_stride;
      const int64_t size = sizes[d];
      for (int64_t i = 0; i < count; ++i) {
        const int64_t coordinate = at[i * row_stride];
        signs[i] |= range_sign(coordinate, size);
        out[i] = multiply_add(out[i], size, coordinate);
      }
    }
    int64_t any = 0;
    for (int64_t i = 0; i < count; ++i) {
      any |= signs[i];
      out[i] = signs[i] < 0 ? outside : out[i];
    }
    return any < 0;
  }
};

// Rows sorted by the block their slice lies in, and in their order within a
// block. Rows out of bounds stand after the last block. Position is uint32_t
// where that holds every row.
template <typename Position>
struct ScatterPartition {
  struct Entry {
    Position row;
    Position slice;  // less the block's first slice
  };

  int shift = 0;                     // log2 of the slices in a block
  int64_t blocks = 0;                // at least 1
  std::vector<int64_t> starts;       // blocks + 1
  std::unique_ptr<Entry[]> entries;  // not zeroed first, unlike a vector
  int64_t first_bad = -1;            // row, or -1

  const Entry* begin(int64_t block) const {
    return entries.get() + starts[block];
  }
  const Entry* end(int64_t block) const {
    return entries.get() + starts[block + 1];
  }
};

// Blocks of about this many bytes of the tensor, few enough for their write
// positions to be cached.
constexpr int64_t kScatterBlockBytes = int64_t{1} << 18;
constexpr int64_t kMaxScatterBlocks = 2048;

// log2 of the slices in a block.
inline int scatter_block_shift(int64_t slices, int64_t slice_bytes) {
  int shift = 0;
  while ((slice_bytes << (shift + 1)) <= kScatterBlockBytes) {
    ++shift;
  }
  while ((slices - 1) >> shift >= kMaxScatterBlocks) {
    ++shift;
  }
  return shift;
}

// Stable; linear in count.
template <typename Position, typename Index, typename Parallel>
ScatterPartition<Position> partition_rows(
    const Parallel& parallel,
    const ScatterRows<Index>& rows,
    int64_t count,
    int64_t slices,
    int shift) {
  ScatterPartition<Position> partition;
  partition.shift = shift;
  partition.blocks = slices > 0 ? ((slices - 1) >> shift) + 1 : 1;
  const int64_t threads = parallel.threads;
  const int64_t blocks = partition.blocks;
  const int64_t share = (count + threads - 1) / threads;
  const int64_t outside = blocks << shift;
  // One row of counts per thread; the last one counts rows out of bounds.
  std::vector<int64_t> positions(threads * (blocks + 1), 0);
  std::vector<int64_t> bad(threads, -1);
  partition.entries.reset(new
                          typename ScatterPartition<Position>::Entry[count]);
  parallel.each_thread([&](int64_t thread) {
    int64_t* counts = positions.data() + thread * (blocks + 1);
    const int64_t end = std::min(count, share * (thread + 1));
    for (int64_t row = share * thread; row < end; row += kColumnBlock) {
      int64_t slices[kColumnBlock];
      const int64_t some = std::min(kColumnBlock, end - row);
      if (rows.slices(row, some, outside, slices) && bad[thread] < 0) {
        bad[thread] =
            row + (std::find(slices, slices + some, outside) - slices);
      }
#pragma GCC unroll 4
      for (int64_t i = 0; i < some; ++i) {
        ++counts[slices[i] >> shift];
      }
    }
  });
  for (int64_t thread = threads; thread-- > 0;) {
    partition.first_bad = bad[thread] < 0 ? partition.first_bad : bad[thread];
  }
  partition.starts.resize(blocks + 1);
  int64_t position = 0;
  for (int64_t block = 0; block <= blocks; ++block) {
    partition.starts[block] = position;
    for (int64_t thread = 0; thread < threads; ++thread) {
      int64_t& cell = positions[thread * (blocks + 1) + block];
      std::swap(cell, position);
      position += cell;
    }
  }
  const int64_t mask = (int64_t{1} << shift) - 1;
  parallel.each_thread([&](int64_t thread) {
    int64_t* next = positions.data() + thread * (blocks + 1);
    auto* entries = partition.entries.get();
    const int64_t end = std::min(count, share * (thread + 1));
    for (int64_t row = share * thread; row < end; row += kColumnBlock) {
      int64_t slices[kColumnBlock];
      const int64_t some = std::min(kColumnBlock, end - row);
      rows.slices(row, some, outside, slices);
#pragma GCC unroll 4
      for (int64_t i = 0; i < some; ++i) {
        entries[next[slices[i] >> shift]++] = {
            static_cast<Position>(row + i),
            static_cast<Position>(slices[i] & mask)};
      }
    }
  });
  return partition;
}

// The first row out of bounds among all of them, or -1.
template <typename Index>
int64_t find_bad_row(const ScatterRows<Index>& rows, int64_t count) {
  for (int64_t row = 0; row < count; ++row) {
    if (rows.slice(row) < 0) {
      return row;
    }
  }
  return -1;
}

// Where updates go. Slices are neighbours in memory.
struct ScatterTarget {
  const char* tensor;  // what the slices hold before, or null if out does
  char* out;
  const char* updates;  // null: zeros
  int64_t slices;
  int64_t slice_bytes;
};

template <int kBytes>
inline void write_slice(
    const ScatterTarget& target, char* out, int64_t slice, int64_t row) {
  if (target.updates != nullptr) {
    move_element<kBytes>(out, slice, target.updates, row, target.slice_bytes);
  } else if constexpr (kBytes > 0) {
    std::memset(out + slice * kBytes, 0, kBytes);
  } else {
    std::memset(out + slice * target.slice_bytes, 0, target.slice_bytes);
  }
}

// Writes the slices of one block: those of the tensor, then the rows in order.
template <int kBytes, typename Position>
void update_block(
    const ScatterPartition<Position>& partition,
    int64_t block,
    const ScatterTarget& target) {
  const int64_t base = block << partition.shift;
  const int64_t count =
      std::min(int64_t{1} << partition.shift, target.slices - base);
  char* out = target.out + base * target.slice_bytes;
  if (target.tensor != nullptr) {
    std::memcpy(
        out, target.tensor + base * target.slice_bytes,
        count * target.slice_bytes);
  }
  // Local, so that the stores below cannot change it.
  const ScatterTarget local = target;
  const auto* end = partition.end(block);
  for (const auto* entry = partition.begin(block); entry < end; ++entry) {
    write_slice<kBytes>(local, out, entry->slice, entry->row);
  }
}

// The same for few rows, which a partition would cost more than it saves.
template <int kBytes, typename Index>
void update_rows(
    const ScatterRows<Index>& rows,
    int64_t count,
    const ScatterTarget& target) {
  for (int64_t row = 0; row < count; ++row) {
    const int64_t slice = rows.slice(row);
    if (slice >= 0) {
      write_slice<kBytes>(target, target.out, slice, row);
    }
  }
}

// Slices of a tensor whose elements lie at any strides: the leading dimensions
// are indexed, the trailing ones make up the slice.
struct StridedTarget {
  char* out;
  int64_t rank;
  int64_t element_bytes;
  const int64_t* sizes;
  const int64_t* strides;  // in elements
};

template <typename Index>
void update_strided(
    const ScatterRows<Index>& rows,
    int64_t count,
    const char* updates,
    int64_t slice_numel,
    const StridedTarget& target) {
  const int64_t depth = rows.depth;
  std::vector<int64_t> position(target.rank);
  for (int64_t row = 0; row < count; ++row) {
    if (rows.slice(row) < 0) {
      continue;
    }
    int64_t offset = 0;
    for (int64_t d = 0; d < depth; ++d) {
      offset += target.strides[d] *
                rows.data[row * rows.row_stride + d * rows.dim_stride];
    }
    std::fill(position.begin(), position.end(), 0);
    for (int64_t element = 0; element < slice_numel; ++element) {
      move_element<0>(
          target.out, offset, updates, row * slice_numel + element,
          target.element_bytes);
      for (int64_t d = target.rank - 1; d >= depth; --d) {
        offset += target.strides[d];
        if (++position[d] < target.sizes[d]) {
          break;
        }
        offset -= target.strides[d] * target.sizes[d];
        position[d] = 0;
      }
    }
  }
}

// For the rows of one block, from the last to the first: a row whose slice no
// later row names gets it, the others get zeros. `named` is scratch.
template <int kBytes, typename Position>
void take_block(
    const ScatterPartition<Position>& partition,
    int64_t block,
    const char* grad,
    char* out,
    int64_t slice_bytes,
    std::vector<uint64_t>& named) {
  const auto* begin = partition.begin(block);
  const auto* entry = partition.end(block);
  if (begin == entry) {
    return;
  }
  const ScatterTarget rows{nullptr, out, grad, 0, slice_bytes};
  const ScatterTarget zeros{nullptr, out, nullptr, 0, slice_bytes};
  const int64_t base = block << partition.shift;
  named.assign(((int64_t{1} << partition.shift) + 63) / 64, 0);
  while (entry != begin) {
    --entry;
    uint64_t& word = named[entry->slice / 64];
    const uint64_t bit = uint64_t{1} << (entry->slice % 64);
    write_slice<kBytes>(
        word & bit ? zeros : rows, out, entry->row, base + entry->slice);
    word |= bit;
  }
}

}  // namespace tso
