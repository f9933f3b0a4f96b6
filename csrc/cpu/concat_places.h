// The way for blocks whose inputs bring about one entry of a prefix each: find
// where in the result every entry goes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "concat_scratch.h"

namespace tso {

// Checks the entries of block b, writes the bin of each to `bins` and counts
// them. If bins hold several prefixes (shift > 0), `keys` gets the prefixes.
template <bool kShared>
void count_entries(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    int shift,
    ConcatScratch& scratch) {
  const int64_t* first = blocks.places_of(b);
  const int64_t* last = blocks.places_of(b + 1);
  const uint64_t low = blocks.first_prefix[b];
  const uint64_t prefixes = blocks.first_prefix[b + 1] - low;
  grow(scratch.bins, blocks.size(b));
  grow(scratch.keys, kShared ? blocks.size(b) : 0);
  scratch.counts.assign(((prefixes - 1) >> shift) + 1, 0);
  uint32_t* counts = scratch.counts.data();
  uint32_t* bins = scratch.bins.data();
  uint64_t* keys = scratch.keys.data();
  uint64_t beyond = 0;
  for (int64_t i = 0; i < job.inputs(); ++i) {
    for (int64_t place = first[i]; place < last[i]; place += kColumnBlock) {
      const int64_t some = std::min(kColumnBlock, last[i] - place);
      const int64_t* in =
          inspect_entries(job, job.sources[i], place, some, scratch);
      for (int64_t j = 0; j < some; ++j) {
        // Only an input out of order can have a prefix that is not the block's.
        uint64_t key = static_cast<uint64_t>(in[j]) - low;
        beyond |= key >= prefixes;
        key = key < prefixes ? key : 0;
        if constexpr (kShared) {
          keys[j] = key;
          key >>= shift;
        }
        bins[j] = static_cast<uint32_t>(key);
        ++counts[key];
      }
      bins += some;
      keys += kShared ? some : 0;
    }
  }
  scratch.findings.bad |= beyond != 0 ? -1 : 0;
}

// Replaces `bins` by the entries' places in the block's result.
inline void place_entries(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    ConcatScratch& scratch) {
  const int64_t count = blocks.size(b);
  const uint64_t prefixes = blocks.first_prefix[b + 1] - blocks.first_prefix[b];
  const int shift = bin_shift(prefixes, count);
  if (shift > 0) {
    count_entries<true>(job, blocks, b, shift, scratch);
  } else {
    count_entries<false>(job, blocks, b, shift, scratch);
  }
  begin_bins(scratch.counts);
  uint32_t* places = scratch.bins.data();
  uint32_t* counts = scratch.counts.data();
  for (int64_t n = 0; n < count; ++n) {
    places[n] = counts[places[n]]++;
  }
  if (shift == 0) {
    return;
  }
  const uint64_t* keys = scratch.keys.data();
  grow(scratch.order, count);
  uint32_t* order = scratch.order.data();
  for (int64_t n = 0; n < count; ++n) {
    order[places[n]] = static_cast<uint32_t>(n);
  }
  sort_bins(scratch.counts, order, [keys](uint32_t a, uint32_t b) {
    return keys[a] < keys[b];
  });
  for (int64_t n = 0; n < count; ++n) {
    places[order[n]] = static_cast<uint32_t>(n);
  }
}

}  // namespace tso
