// The loops of sparse_concat and its transpose on the CPU.
//
// Every entry is read once: bounds and order are checked in the pass that moves
// it. Where a check fails the result is void, and the caller finds out what is
// wrong, or sorts, and runs again. No input, however wrong, makes these loops
// touch memory they should not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "../common/element.h"
#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"

namespace tso {

// Sign bits, gathered from all entries.
struct ConcatFindings {
  int64_t bad = 0;      // out of bounds, or out of order
  int64_t repeats = 0;  // an entry equal to the one before it, or bad

  void add(const ConcatFindings& other) {
    bad |= other.bad;
    repeats |= other.repeats;
  }
};

struct ConcatScratch {
  std::vector<uint64_t> keys;
  std::vector<uint32_t> targets;
  std::vector<uint32_t> sources;
  std::vector<uint32_t> counts;
  ConcatFindings findings;
};

enum class ConcatDirection { kForward, kTranspose };

template <int kBytes, ConcatDirection kDirection>
struct ConcatKernel {
  const ConcatJob& job;
  const ConcatBlocks& blocks;
  bool single_prefix;

  static constexpr bool kForward = kDirection == ConcatDirection::kForward;

  // Does outputs [begin, end) of block b. Only a block of one prefix may be
  // done in parts.
  void run(int64_t b, int64_t begin, int64_t end, ConcatScratch& scratch)
      const {
    const uint64_t prefixes =
        blocks.first_prefix[b + 1] - blocks.first_prefix[b];
    if (begin == end) {
      return;
    }
    if (single_prefix || prefixes == 1) {
      copy_runs(b, begin, end, scratch);
    } else {
      merge(b, prefixes, scratch);
    }
  }

 private:
  const int64_t* places(int64_t b) const {
    return blocks.places.data() + b * job.sources.size();
  }

  // Checks entries [place, place + count) of a source, count <= kColumnBlock,
  // and writes their prefixes unless there is but one.
  void inspect(
      const ConcatSource& source,
      int64_t place,
      int64_t count,
      uint64_t* prefixes,
      ConcatFindings& findings) const {
    // keys[0] is the key before the first.
    int64_t keys[kColumnBlock + 1];
    int64_t scratch[kColumnBlock];
    int64_t bad = 0;
    keys[0] = place > 0 ? key_at(source, place - 1) : -1;
    for (int64_t d = 0; d < job.rank; ++d) {
      const int64_t* in =
          column(source.indices, source.order, d, place, count, scratch);
      const int64_t size = source.shape[d];
      const int64_t multiplier = job.out_shape[d];
      if (d == job.axis && prefixes != nullptr) {
        std::memcpy(prefixes, keys + 1, count * sizeof(int64_t));
      }
      if (d == 0) {
        for (int64_t i = 0; i < count; ++i) {
          bad |= range_sign(in[i], size);
          keys[i + 1] = in[i];
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          bad |= range_sign(in[i], size);
          keys[i + 1] = multiply_add(keys[i + 1], multiplier, in[i]);
        }
      }
    }
    int64_t repeats = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t step = multiply_add(keys[i], -1, keys[i + 1]);
      bad |= step;
      repeats |= multiply_add(step, 1, -1);
    }
    findings.bad |= bad;
    findings.repeats |= repeats;
  }

  // The linear number of an entry's coordinates in the shape of the result.
  int64_t key_at(const ConcatSource& source, int64_t place) const {
    const int64_t entry = entry_at(source, place);
    int64_t key = 0;
    for (int64_t d = 0; d < job.rank; ++d) {
      key = multiply_add(
          key, job.out_shape[d], source.indices.at(entry, d));
    }
    return key;
  }

  static int64_t entry_at(const ConcatSource& source, int64_t place) {
    return source.order != nullptr ? source.order[place] : place;
  }

  void move_value(
      const ConcatSource& source, int64_t place, int64_t output) const {
    const int64_t entry = entry_at(source, place);
    if constexpr (kForward) {
      move_element<kBytes>(
          job.out_values, output, source.values, entry, job.width);
    } else {
      move_element<kBytes>(
          source.values, entry, job.out_values, output, job.width);
    }
  }

  // One prefix: the runs of the inputs one after another.
  void copy_runs(
      int64_t b, int64_t begin, int64_t end, ConcatScratch& scratch) const {
    const int64_t inputs = static_cast<int64_t>(job.sources.size());
    const int64_t* first = places(b);
    const int64_t* last = places(b + 1);
    int64_t run_begin = blocks.starts[b];
    for (int64_t i = 0; i < inputs && run_begin < end; ++i) {
      const int64_t run_end = run_begin + last[i] - first[i];
      const int64_t from = std::max(begin, run_begin);
      const int64_t to = std::min(end, run_end);
      for (int64_t output = from; output < to; output += kColumnBlock) {
        copy_run(
            job.sources[i], first[i] + output - run_begin, output,
            std::min(kColumnBlock, to - output), blocks.first_prefix[b],
            scratch.findings);
      }
      run_begin = run_end;
    }
  }

  void copy_run(
      const ConcatSource& source,
      int64_t place,
      int64_t output,
      int64_t count,
      uint64_t prefix,
      ConcatFindings& findings) const {
    uint64_t prefixes[kColumnBlock];
    inspect(
        source, place, count, single_prefix ? nullptr : prefixes, findings);
    if (!single_prefix) {
      uint64_t differs = 0;
      for (int64_t i = 0; i < count; ++i) {
        differs |= prefixes[i] ^ prefix;
      }
      findings.bad |= differs != 0 ? -1 : 0;
    }
    if (job.out_indices != nullptr) {
      int64_t scratch[kColumnBlock];
      for (int64_t d = 0; d < job.rank; ++d) {
        const int64_t* in =
            column(source.indices, source.order, d, place, count, scratch);
        int64_t* out = job.out_indices + d * job.total + output;
        const int64_t offset = d == job.axis ? source.offset : 0;
        for (int64_t i = 0; i < count; ++i) {
          out[i] = multiply_add(in[i], 1, offset);
        }
      }
    }
    if (source.order == nullptr) {
      char* in = source.values + place * job.width;
      char* out = job.out_values + output * job.width;
      std::memcpy(kForward ? out : in, kForward ? in : out, count * job.width);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        move_value(source, place + i, output + i);
      }
    }
  }

  // Many prefixes: count the entries of each, then deal the inputs out in
  // order. Prefixes far more numerous than entries share a bin, and the few
  // entries of a bin are sorted afterwards.
  void merge(int64_t b, uint64_t prefixes, ConcatScratch& scratch) const {
    const int64_t inputs = static_cast<int64_t>(job.sources.size());
    const int64_t* first = places(b);
    const int64_t* last = places(b + 1);
    const int64_t count = blocks.starts[b + 1] - blocks.starts[b];
    const uint64_t low = blocks.first_prefix[b];
    if (count > std::numeric_limits<uint32_t>::max()) {
      scratch.findings.bad = -1;  // blocks are far smaller unless out of order
      return;
    }
    int shift = 0;
    while ((prefixes - 1) >> shift > static_cast<uint64_t>(2 * count)) {
      ++shift;
    }
    scratch.keys.resize(count);
    scratch.targets.resize(count);
    scratch.counts.assign(((prefixes - 1) >> shift) + 2, 0);
    uint64_t* keys = scratch.keys.data();
    uint32_t* counts = scratch.counts.data();
    uint64_t beyond = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t place = first[i]; place < last[i]; place += kColumnBlock) {
        const int64_t some = std::min(kColumnBlock, last[i] - place);
        inspect(job.sources[i], place, some, keys + at, scratch.findings);
        for (int64_t j = at; j < at + some; ++j) {
          const uint64_t key = keys[j] - low;
          beyond |= key >= prefixes;
          keys[j] = key < prefixes ? key : 0;
          ++counts[(keys[j] >> shift) + 1];
        }
        at += some;
      }
    }
    scratch.findings.bad |= beyond != 0 ? -1 : 0;
    for (uint64_t bin = 1; bin <= (prefixes - 1) >> shift; ++bin) {
      counts[bin] += counts[bin - 1];
    }
    uint32_t* targets = scratch.targets.data();
    for (int64_t j = 0; j < count; ++j) {
      targets[j] = counts[keys[j] >> shift]++;
    }
    if (shift > 0) {
      sort_bins(count, scratch);
    }
    place_entries(b, targets);
  }

  // Targets are sorted by the high bits of the keys, those that choose the bin;
  // sorts the entries of each bin by the rest, stably.
  static void sort_bins(int64_t count, ConcatScratch& scratch) {
    constexpr int64_t kFew = 16;
    scratch.sources.resize(count);
    uint32_t* sources = scratch.sources.data();
    const uint64_t* keys = scratch.keys.data();
    for (int64_t j = 0; j < count; ++j) {
      sources[scratch.targets[j]] = static_cast<uint32_t>(j);
    }
    // counts[bin] is by now where the bin ends.
    int64_t begin = 0;
    for (const uint32_t bin_end : scratch.counts) {
      const int64_t end = std::max<int64_t>(begin, bin_end);
      if (end - begin > kFew) {
        std::stable_sort(
            sources + begin, sources + end,
            [keys](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
      } else {
        for (int64_t slot = begin + 1; slot < end; ++slot) {
          const uint32_t source = sources[slot];
          int64_t to = slot;
          for (; to > begin && keys[sources[to - 1]] > keys[source]; --to) {
            sources[to] = sources[to - 1];
          }
          sources[to] = source;
        }
      }
      begin = end;
    }
    for (int64_t slot = 0; slot < count; ++slot) {
      scratch.targets[sources[slot]] = static_cast<uint32_t>(slot);
    }
  }

  // Moves the entries of a block, in their order, to their targets.
  void place_entries(int64_t b, const uint32_t* targets) const {
    const int64_t inputs = static_cast<int64_t>(job.sources.size());
    const int64_t* first = places(b);
    const int64_t* last = places(b + 1);
    const int64_t start = blocks.starts[b];
    for (int64_t i = 0; i < inputs; ++i) {
      const ConcatSource& source = job.sources[i];
      for (int64_t place = first[i]; place < last[i]; place += kColumnBlock) {
        const int64_t some = std::min(kColumnBlock, last[i] - place);
        if (job.out_indices != nullptr) {
          int64_t scratch[kColumnBlock];
          for (int64_t d = 0; d < job.rank; ++d) {
            const int64_t* in =
                column(source.indices, source.order, d, place, some, scratch);
            int64_t* out = job.out_indices + d * job.total + start;
            const int64_t offset = d == job.axis ? source.offset : 0;
            for (int64_t j = 0; j < some; ++j) {
              out[targets[j]] = multiply_add(in[j], 1, offset);
            }
          }
        }
        for (int64_t j = 0; j < some; ++j) {
          move_value(source, place + j, start + targets[j]);
        }
        targets += some;
      }
    }
  }
};

}  // namespace tso
