// The long way for blocks whose inputs bring several entries of a prefix each:
// find the runs, bring them into the order of the result, copy them whole.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "concat_scratch.h"

namespace tso {

// Checks the entries of block b and finds their runs. Branchless: every entry
// is written down as the start of a run, and stays if it is one.
inline void collect_runs(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    ConcatScratch& scratch) {
  const int64_t* first = blocks.places_of(b);
  const int64_t* last = blocks.places_of(b + 1);
  const uint64_t low = blocks.first_prefix[b];
  grow(scratch.bounds, job.inputs() + 1);
  grow(scratch.starts, blocks.size(b) + 1);
  grow(scratch.keys, blocks.size(b) + 1);
  uint32_t* starts = scratch.starts.data();
  uint64_t* keys = scratch.keys.data();
  uint32_t found = 0;
  uint32_t at = 0;
  for (int64_t i = 0; i < job.inputs(); ++i) {
    scratch.bounds[i] = found;
    for (int64_t place = first[i]; place < last[i]; place += kColumnBlock) {
      const int64_t some = std::min(kColumnBlock, last[i] - place);
      const int64_t* prefixes =
          inspect_entries(job, job.sources[i], place, some, scratch);
      uint64_t previous = place == first[i]
          ? ~static_cast<uint64_t>(prefixes[0])
          : keys[found - 1] + low;
      for (int64_t j = 0; j < some; ++j) {
        const uint64_t prefix = static_cast<uint64_t>(prefixes[j]);
        starts[found] = at + static_cast<uint32_t>(j);
        keys[found] = prefix - low;
        found += prefix != previous;
        previous = prefix;
      }
      at += static_cast<uint32_t>(some);
    }
  }
  scratch.bounds[job.inputs()] = found;
  starts[found] = at;
}

// Brings the runs into order: counts those of each prefix and deals the inputs
// out one after another.
inline void order_runs(
    int64_t inputs, uint64_t prefixes, ConcatScratch& scratch) {
  const uint32_t found = scratch.bounds[inputs];
  const int shift = bin_shift(prefixes, found);
  scratch.counts.assign(((prefixes - 1) >> shift) + 1, 0);
  grow(scratch.runs, found);
  uint64_t* keys = scratch.keys.data();
  uint32_t* counts = scratch.counts.data();
  uint64_t beyond = 0;
  for (uint32_t r = 0; r < found; ++r) {
    // Only an input out of order can have a prefix that is not the block's.
    beyond |= keys[r] >= prefixes;
    keys[r] = keys[r] < prefixes ? keys[r] : 0;
    ++counts[keys[r] >> shift];
  }
  scratch.findings.bad |= beyond != 0 ? -1 : 0;
  begin_bins(scratch.counts);
  ConcatRun* runs = scratch.runs.data();
  const uint32_t* starts = scratch.starts.data();
  for (int64_t i = 0; i < inputs; ++i) {
    for (uint32_t r = scratch.bounds[i]; r < scratch.bounds[i + 1]; ++r) {
      runs[counts[keys[r] >> shift]++] = {
          starts[r], starts[r + 1] - starts[r], static_cast<uint32_t>(i), r};
    }
  }
  if (shift > 0) {
    sort_bins(
        scratch.counts, runs, [keys](const ConcatRun& a, const ConcatRun& b) {
          return keys[a.number] < keys[b.number];
        });
  }
}

}  // namespace tso
