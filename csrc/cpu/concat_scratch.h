// What a thread needs to do a block of sparse_concat, and how it reads one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "inspect.h"
#include "simd.h"

namespace tso {

// How far the runs of one input have been moved.
struct ConcatCursor {
  const uint32_t* ends;  // by prefix, of the input's entries in the block
  uint32_t at;           // the next entry, counted from the block's first
  uint32_t burst_end;    // before it, a burst stays within what may be touched
  // Of the block's first entry.
  int64_t place;
  const int64_t* coordinates;
  char* values;

  int64_t dim_stride;
  int64_t offset;
};

// Room that is not filled: zeroes would cost as much as a pass of the merge.
template <typename T>
class Room {
 public:
  T* data() const {
    return data_.get();
  }

  void grow(int64_t size) {
    if (size_ < size) {
      data_.reset(new T[size]);
      size_ = size;
    }
  }

 private:
  std::unique_ptr<T[]> data_;
  int64_t size_ = 0;
};

// Grows only, so that it is filled once and not at every block.
struct ConcatScratch {
  std::vector<int64_t> columns;  // copies of coordinates not stored in columns
  std::vector<int64_t> numbers;  // of a few entries: see inspect_entries
  std::vector<uint32_t> counts;
  std::vector<uint32_t> bins;  // by entry
  std::vector<uint64_t> keys;  // by entry: prefix, less the block's
  std::vector<uint32_t> ends;  // by input and prefix
  // References to entries in the order of the result, prefixes above them
  // where these are sparse.
  std::vector<uint32_t> narrow_slots;
  std::vector<uint64_t> slots;
  std::vector<unsigned __int128> wide_slots;
  std::vector<ConcatCursor> cursors;
  Room<int64_t> packed;  // see ConcatPack
  Room<char> packed_values;
  Room<uint64_t> words;  // see do_merged_inputs
  Room<uint64_t> merged;
  std::vector<int64_t> ends_of_rows;
  Findings findings;
};

template <typename T>
void grow(std::vector<T>& vector, int64_t size) {
  if (static_cast<int64_t>(vector.size()) < size) {
    vector.resize(size);
  }
}

// Checks entries [place, place + count) of a source, count <= kColumnBlock,
// and returns their prefixes, meaningless if the axis is 0; null if the entries
// are not all in bounds and in order. The prefixes returned never decrease.
inline const int64_t* inspect_entries(
    const ConcatJob& job,
    const ConcatSource& source,
    int64_t place,
    int64_t count,
    ConcatScratch& scratch) {
  const int64_t rank = job.rank;
  const int64_t* columns[kMaxRank];
  grow(scratch.columns, source.direct() ? 0 : rank * kColumnBlock);
  for (int64_t d = 0; d < rank; ++d) {
    columns[d] = column(
        source.indices, d, place, count,
        scratch.columns.data() + d * kColumnBlock);
  }
  int64_t before[2];
  if (place > 0) {
    before[0] =
        job.number(source.indices, place - 1, std::max<int64_t>(rank - 1, 1));
    before[1] = source.indices.at(place - 1, rank - 1);
  }
  grow(scratch.numbers, rank > 2 ? 2 * kColumnBlock : 0);
  const InspectedEntries entries{columns,      place > 0 ? before : nullptr,
                                 source.shape, job.out_shape,
                                 rank,         job.axis,
                                 count,        scratch.numbers.data()};
  const int64_t* prefixes = nullptr;
  call_simd([&] { prefixes = inspect(entries, scratch.findings); });
  return scratch.findings.bad >= 0 ? prefixes : nullptr;
}

// The same for entries of block b, null also if a prefix is not the block's.
inline const int64_t* inspect_block(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    const ConcatSource& source,
    int64_t place,
    int64_t count,
    ConcatScratch& scratch) {
  const int64_t* prefixes = inspect_entries(job, source, place, count, scratch);
  if (prefixes == nullptr) {
    return nullptr;
  }
  const uint64_t low = blocks.first_prefix[b];
  const uint64_t high = blocks.first_prefix[b + 1];
  if (static_cast<uint64_t>(prefixes[0]) < low ||
      static_cast<uint64_t>(prefixes[count - 1]) >= high) {
    scratch.findings.bad = -1;
    return nullptr;
  }
  return prefixes;
}

// Calls take(input, place, prefixes, count) for all entries of block b, input
// after input, some at a time, with the first one's place and their checked
// prefixes. False if the result is void.
template <typename Take>
bool each_inspected(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    ConcatScratch& scratch,
    const Take& take) {
  const int64_t* first = blocks.places_of(b);
  const int64_t* last = blocks.places_of(b + 1);
  for (int64_t i = 0; i < job.inputs(); ++i) {
    for (int64_t place = first[i]; place < last[i]; place += kColumnBlock) {
      const int64_t some = std::min(kColumnBlock, last[i] - place);
      const int64_t* prefixes =
          inspect_block(job, blocks, b, job.sources[i], place, some, scratch);
      if (prefixes == nullptr) {
        return false;
      }
      take(i, place, prefixes, some);
    }
  }
  return true;
}

// log2 of how many prefixes share a bin, so that there are not many more bins
// than things to put in them.
inline int bin_shift(uint64_t prefixes, int64_t things) {
  int shift = 0;
  while ((prefixes - 1) >> shift > 2 * static_cast<uint64_t>(things)) {
    ++shift;
  }
  return shift;
}

}  // namespace tso
