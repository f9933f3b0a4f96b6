// The loops of tensor_scatter_update and its transposes on the CPU.
//
// Few rows, or those of a tensor that the second-level cache holds, are written
// in their order. Others are dealt out by destination: a stable partition
// sorts them into blocks of neighbouring slices, and one thread does a whole
// block, rows in their order. So the last row to name a slice wins with no lock
// and no atomic, and what a block writes stays in the second-level cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../common/element.h"
#include "../common/index_math.h"
#include "columns.h"
#include "scatter_in_order.h"
#include "scatter_partition.h"
#include "scatter_rows.h"

namespace tso {

// An unsigned integer that carries an update of that many bytes.
template <int kBytes>
using Carrier = std::conditional_t<
    kBytes == 1,
    uint8_t,
    std::conditional_t<
        kBytes == 2,
        uint16_t,
        std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

// Whether an update is as small as the number of its row.
constexpr bool carried(int bytes) {
  return bytes >= 1 && bytes <= 8;
}

// Calls write(entry) for entries [entry, end), asking for slices ahead.
template <typename Entry, typename F>
inline void each_entry(
    const Entry* entry,
    const Entry* end,
    const char* out,
    int64_t slice_bytes,
    const F& write) {
  for (; end - entry > kFetchAhead; ++entry) {
    fetch(out, entry[kFetchAhead].slice, slice_bytes);
    write(*entry);
  }
  for (; entry < end; ++entry) {
    write(*entry);
  }
}

// Slices that rows have named, of a block.
class NamedSlices {
 public:
  void reset(int64_t slices) {
    words_.assign((slices + 63) / 64, 0);
  }

  // Whether the slice has been named before.
  bool name(int64_t slice) {
    uint64_t& word = words_[slice / 64];
    const uint64_t bit = uint64_t{1} << (slice % 64);
    const bool named = word & bit;
    word |= bit;
    return named;
  }

 private:
  std::vector<uint64_t> words_;
};

// Clears the slices that entries name.
template <int kBytes, typename Entry>
void clear_slices(
    const Entry* entry, const Entry* end, char* out, int64_t slice_bytes) {
  each_entry(entry, end, out, slice_bytes, [=](const Entry& named) {
    clear_slice<kBytes>(out, named.slice, slice_bytes);
  });
}

template <int kBytes>
void write_block(
    const NamedSlice* begin,
    const NamedSlice* end,
    const ScatterTarget& target,
    char* out,
    NamedSlices&) {
  clear_slices<kBytes>(begin, end, out, target.slice_bytes);
}

template <int kBytes>
void write_block(
    const CarriedUpdate<Carrier<kBytes>>* entry,
    const CarriedUpdate<Carrier<kBytes>>* end,
    const ScatterTarget&,
    char* out,
    NamedSlices&) {
  each_entry(entry, end, out, kBytes, [=](const auto& update) {
    const Carrier<kBytes> value = update.value;
    std::memcpy(out + int64_t{update.slice} * kBytes, &value, kBytes);
  });
}

// Updates that are long to write are written once: from the last to the first.
template <int kBytes, typename Position>
void write_block(
    const NumberedRow<Position>* begin,
    const NumberedRow<Position>* entry,
    const ScatterTarget& target,
    char* out,
    NamedSlices& named) {
  const ScatterTarget local = target;
  while (entry != begin) {
    --entry;
    if (!named.name(entry->slice)) {
      move_element<kBytes>(
          out, entry->slice, local.updates, entry->row, local.slice_bytes);
    }
  }
}

// The slices of a block in the result, with those of the tensor written there.
template <typename Entry>
char* copy_block(
    const ScatterPartition<Entry>& partition,
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
  return out;
}

// Writes the slices of one block: those of the tensor, then the rows in order.
// `named` is scratch.
template <int kBytes, typename Entry>
void update_block(
    const ScatterPartition<Entry>& partition,
    int64_t block,
    const ScatterTarget& target,
    NamedSlices& named) {
  char* out = copy_block(partition, block, target);
  const Entry* begin = partition.begin(block);
  const Entry* end = partition.end(block);
  if (!carried(kBytes) && begin != end) {
    named.reset(int64_t{1} << partition.shift);
  }
  write_block<kBytes>(begin, end, target, out, named);
}

// Writes the slices of one block that no row names, and zeros for the others.
template <int kBytes, typename Entry>
void clear_block(
    const ScatterPartition<Entry>& partition,
    int64_t block,
    const ScatterTarget& target) {
  char* out = copy_block(partition, block, target);
  clear_slices<kBytes, Entry>(
      partition.begin(block), partition.end(block), out, target.slice_bytes);
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

// Gives each row of `out` its slice of grad, or zeros if a later row names the
// slice or the row is out of bounds: from the last row to the first, for rows
// whose tensor has few slices.
template <int kBytes, typename Index>
void take_rows(
    const ScatterRows<Index>& rows,
    int64_t count,
    int64_t slices,
    const char* grad,
    char* out,
    int64_t slice_bytes) {
  NamedSlices named;
  named.reset(slices);
  int64_t numbers[kColumnBlock];
  for (int64_t end = count; end > 0;) {
    const int64_t begin = std::max<int64_t>(0, end - kColumnBlock);
    const bool bad = rows.slices(begin, end - begin, -1, numbers);
    while (end > begin) {
      const int64_t row = --end;
      const int64_t slice = numbers[row - begin];
      if constexpr (carried(kBytes)) {
        if (!bad) {
          // Loaded either way: which rows lose is nothing to predict.
          Carrier<kBytes> value;
          std::memcpy(&value, grad + slice * kBytes, kBytes);
          value = named.name(slice) ? 0 : value;
          std::memcpy(out + row * kBytes, &value, kBytes);
          continue;
        }
      }
      if ((bad && slice < 0) || named.name(slice)) {
        clear_slice<kBytes>(out, row, slice_bytes);
      } else {
        move_element<kBytes>(out, row, grad, slice, slice_bytes);
      }
    }
  }
}

// For the rows of one block, from the last to the first: a row whose slice no
// later row names gets it, the others get zeros. `named` is scratch.
template <int kBytes, typename Position>
void take_block(
    const ScatterPartition<NumberedRow<Position>>& partition,
    int64_t block,
    const char* grad,
    char* out,
    int64_t slice_bytes,
    NamedSlices& named) {
  const NumberedRow<Position>* begin = partition.begin(block);
  const NumberedRow<Position>* entry = partition.end(block);
  if (begin == entry) {
    return;
  }
  named.reset(int64_t{1} << partition.shift);
  const char* from = grad + (block << partition.shift) * slice_bytes;
  while (entry != begin) {
    --entry;
    if (named.name(entry->slice)) {
      clear_slice<kBytes>(out, entry->row, slice_bytes);
    } else {
      move_element<kBytes>(out, entry->row, from, entry->slice, slice_bytes);
    }
  }
}

// The same, but rows do not get it yet: their entries carry it.
template <int kBytes>
void carry_block(
    const ScatterPartition<CarriedUpdate<Carrier<kBytes>>>& partition,
    int64_t block,
    const char* grad,
    NamedSlices& named) {
  auto* begin = partition.begin(block);
  auto* entry = partition.end(block);
  if (begin == entry) {
    return;
  }
  named.reset(int64_t{1} << partition.shift);
  const char* from = grad + (block << partition.shift) * kBytes;
  while (entry != begin) {
    --entry;
    if (entry - begin > kFetchAhead) {
      fetch(from, entry[-kFetchAhead].slice, kBytes);
    }
    Carrier<kBytes> value;
    std::memcpy(&value, from + int64_t{entry->slice} * kBytes, kBytes);
    entry->value = named.name(entry->slice) ? 0 : value;
  }
}

// Hands what the entries carry to the rows that one thread has dealt out.
template <int kBytes, typename Index>
void deliver_rows(
    const ScatterPartition<CarriedUpdate<Carrier<kBytes>>>& partition,
    const ScatterRows<Index>& rows,
    int64_t count,
    int64_t thread,
    char* out) {
  const int shift = partition.shift;
  const auto* entries = partition.entries;
  const int64_t begin = partition.share * thread;
  std::vector<int64_t> places(
      partition.starts.begin() + thread * partition.pitch,
      partition.starts.begin() + (thread + 1) * partition.pitch);
  int64_t* next = places.data();
  each_slices(
      rows, begin, std::min(count, begin + partition.share),
      partition.blocks << shift,
      [&](int64_t row, int64_t some, const int64_t* slices, bool) {
        char* to = out + row * kBytes;
#pragma GCC unroll 4
        for (int64_t i = 0; i < some; ++i) {
          const auto* entry = entries + next[slices[i] >> shift]++;
          const Carrier<kBytes> value = entry->value;
          std::memcpy(to + i * kBytes, &value, kBytes);
        }
      });
}

}  // namespace tso
