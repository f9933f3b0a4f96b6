// What a thread needs to do a block of sparse_concat, and how it reads one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "inspect.h"

namespace tso {

// Entries of one input, next to each other, with one prefix.
struct ConcatRun {
  uint32_t at;      // of its first entry among the block's, input by input
  uint32_t length;
  uint32_t input;
  uint32_t number;  // among the runs as stored
};

// Grows only, so that it is filled once and not at every block.
struct ConcatScratch {
  std::vector<int64_t> columns;   // copies of coordinates not stored in columns
  std::vector<int64_t> prefixes;  // of a few entries
  std::vector<uint32_t> counts;
  std::vector<uint32_t> bins;     // by entry or run
  std::vector<uint64_t> keys;     // by entry or run: prefix, less the block's
  std::vector<uint32_t> order;
  std::vector<uint32_t> starts;   // of the runs as stored, and where they end
  std::vector<uint32_t> bounds;   // of each input's runs among them
  std::vector<ConcatRun> runs;    // in the order of the result
  Findings findings;
};

template <typename T>
void grow(std::vector<T>& vector, int64_t size) {
  if (static_cast<int64_t>(vector.size()) < size) {
    vector.resize(size);
  }
}

// Checks entries [place, place + count) of a source, count <= kColumnBlock,
// and returns their prefixes; meaningless if the axis is 0.
inline const int64_t* inspect_entries(
    const ConcatJob& job,
    const ConcatSource& source,
    int64_t place,
    int64_t count,
    ConcatScratch& scratch) {
  const int64_t* columns[kMaxRank];
  int64_t before[kMaxRank];
  grow(scratch.columns, source.direct() ? 0 : job.rank * kColumnBlock);
  for (int64_t d = 0; d < job.rank; ++d) {
    columns[d] = column(
        source.indices, source.order, d, place, count,
        scratch.columns.data() + d * kColumnBlock);
    if (place > 0) {
      before[d] = source.indices.at(source.entry(place - 1), d);
    }
  }
  inspect(
      columns, place > 0 ? before : nullptr, source.shape, job.rank, count,
      scratch.findings);
  const int64_t* prefixes = columns[0];
  grow(scratch.prefixes, kColumnBlock);
  int64_t* out = scratch.prefixes.data();
  for (int64_t d = 1; d < job.axis; ++d) {
    const int64_t multiplier = job.out_shape[d];
    for (int64_t i = 0; i < count; ++i) {
      out[i] = multiply_add(prefixes[i], multiplier, columns[d][i]);
    }
    prefixes = out;
  }
  return prefixes;
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

// Turns counts of bins into where they begin.
inline void begin_bins(std::vector<uint32_t>& counts) {
  uint32_t begin = 0;
  for (uint32_t& count : counts) {
    const uint32_t size = count;
    count = begin;
    begin += size;
  }
}

// Sorts [begin, end) of each bin by `before`, stably; `ends` says where the
// bins end. A bin holds about one thing unless the prefixes crowd.
template <typename T, typename Before>
void sort_bins(
    const std::vector<uint32_t>& ends, T* things, const Before& before) {
  constexpr uint32_t kFew = 16;
  uint32_t begin = 0;
  for (const uint32_t end : ends) {
    if (end - begin > kFew) {
      std::stable_sort(things + begin, things + end, before);
    } else {
      for (uint32_t slot = begin + 1; slot < end; ++slot) {
        const T thing = things[slot];
        uint32_t to = slot;
        for (; to > begin && before(thing, things[to - 1]); --to) {
          things[to] = things[to - 1];
        }
        things[to] = thing;
      }
    }
    begin = end;
  }
}

}  // namespace tso
