// The way for blocks whose inputs bring about one entry of a prefix each, or
// less: put references to the entries into the order of the result, and fetch
// them one after another. Fetching touches as many places at a time as there
// are inputs; putting each entry where it belongs would touch the whole block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "concat_blocks.h"
#include "concat_move.h"
#include "concat_scratch.h"

namespace tso {

// How an entry of a block is referred to: its input, and its place among the
// entries that the input has in the block.
struct ConcatReference {
  int place_bits;
  int input_bits;

  ConcatReference(int64_t inputs, int64_t size)
      : place_bits(bits(size - 1)), input_bits(bits(inputs - 1)) {}

  int width() const {
    return place_bits + input_bits;
  }
};

// Turns counts of bins into where they begin; returns the largest count.
inline uint32_t begin_bins(std::vector<uint32_t>& counts) {
  uint32_t begin = 0;
  uint32_t most = 0;
  for (uint32_t& count : counts) {
    const uint32_t size = count;
    most = std::max(most, size);
    count = begin;
    begin += size;
  }
  return most;
}

// Writes slots of references in the order of the prefixes, if there are few
// enough of these for each to have a bin. False if the result is void.
template <typename Slot>
bool place_entries(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    const ConcatReference& reference,
    ConcatScratch& scratch,
    std::vector<Slot>& slots) {
  const int64_t* first = blocks.places_of(b);
  const int64_t* last = blocks.places_of(b + 1);
  const uint64_t low = blocks.first_prefix[b];
  scratch.counts.assign(blocks.first_prefix[b + 1] - low, 0);
  grow(scratch.bins, blocks.size(b));
  grow(slots, blocks.size(b));
  uint32_t* counts = scratch.counts.data();
  uint32_t* bins = scratch.bins.data();
  const auto count = [&](int64_t, int64_t, const int64_t* prefixes,
                         int64_t some) {
    for (int64_t j = 0; j < some; ++j) {
      bins[j] = static_cast<uint32_t>(static_cast<uint64_t>(prefixes[j]) - low);
    }
#pragma GCC unroll 4
    for (int64_t j = 0; j < some; ++j) {
      ++counts[bins[j]];
    }
    bins += some;
  };
  if (!each_inspected(job, blocks, b, scratch, count)) {
    return false;
  }
  begin_bins(scratch.counts);
  bins = scratch.bins.data();
  Slot* placed = slots.data();
  for (int64_t i = 0; i < job.inputs(); ++i) {
    const Slot input = static_cast<Slot>(i) << reference.place_bits;
    const int64_t count = last[i] - first[i];
#pragma GCC unroll 4
    for (int64_t j = 0; j < count; ++j) {
      placed[counts[bins[j]]++] = input + static_cast<Slot>(j);
    }
    bins += count;
  }
  return true;
}

// Puts slots into order. Bins have done most of it: unless many entries crowd
// into one, an entry moves past a few others at most.
template <typename Slot>
void finish_order(
    Slot* slots, const std::vector<uint32_t>& ends, uint32_t most) {
  constexpr uint32_t kCrowd = 16;
  if (most > kCrowd) {
    uint32_t begin = 0;
    for (const uint32_t end : ends) {
      if (end - begin > kCrowd) {
        std::sort(slots + begin, slots + end);
      }
      begin = end;
    }
  }
  for (uint32_t slot = 1; slot < ends.back(); ++slot) {
    const Slot moving = slots[slot];
    uint32_t to = slot;
    for (; to > 0 && moving < slots[to - 1]; --to) {
      slots[to] = slots[to - 1];
    }
    slots[to] = moving;
  }
}

// The same where prefixes are much sparser than entries: 2^shift of them share
// a bin. A slot holds the prefix above the reference, so that no two slots are
// equal and sorting them keeps entries of one prefix in their order.
template <typename Slot>
bool place_sparse_entries(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    int shift,
    const ConcatReference& reference,
    ConcatScratch& scratch,
    std::vector<Slot>& slots) {
  const int64_t* first = blocks.places_of(b);
  const int64_t* last = blocks.places_of(b + 1);
  const uint64_t low = blocks.first_prefix[b];
  const uint64_t prefixes = blocks.first_prefix[b + 1] - low;
  scratch.counts.assign(((prefixes - 1) >> shift) + 1, 0);
  grow(scratch.keys, blocks.size(b));
  grow(slots, blocks.size(b));
  uint32_t* counts = scratch.counts.data();
  uint64_t* keys = scratch.keys.data();
  const auto count = [&](int64_t, int64_t, const int64_t* found, int64_t some) {
    for (int64_t j = 0; j < some; ++j) {
      keys[j] = static_cast<uint64_t>(found[j]) - low;
      ++counts[keys[j] >> shift];
    }
    keys += some;
  };
  if (!each_inspected(job, blocks, b, scratch, count)) {
    return false;
  }
  const uint32_t most = begin_bins(scratch.counts);
  keys = scratch.keys.data();
  for (int64_t i = 0; i < job.inputs(); ++i) {
    const Slot input = static_cast<Slot>(i) << reference.place_bits;
    const int64_t count = last[i] - first[i];
    for (int64_t j = 0; j < count; ++j) {
      slots[counts[keys[j] >> shift]++] =
          (static_cast<Slot>(keys[j]) << reference.width()) + input +
          static_cast<Slot>(j);
    }
    keys += count;
  }
  finish_order(slots.data(), scratch.counts, most);
  return true;
}

// Moves the entries that slots refer to, in their order.
template <typename Slot, int kBytes, ConcatDirection kDirection>
struct ConcatFetch {
  const ConcatMove<kBytes, kDirection>& move;
  const ConcatBlocks& blocks;
  int64_t b;
  ConcatReference reference;
  const Slot* slots;

  static constexpr bool kForward = kDirection == ConcatDirection::kForward;

  void run() const {
    const ConcatJob& job = move.job;
    bool direct = true;
    for (const ConcatSource& source : job.sources) {
      direct &= source.direct();
    }
    if (direct && move.moves_indices() && job.rank == 2) {
      fetch_whole<2>();
    } else if (direct && move.moves_indices() && job.rank == 3) {
      fetch_whole<3>();
    } else {
      for (int64_t d = 0; move.moves_indices() && d < job.rank; ++d) {
        fetch_column(d);
      }
      fetch_values();
    }
  }

 private:
  struct Entry {
    int64_t input;
    int64_t place;
  };

  Entry entry(Slot slot) const {
    const uint64_t low = static_cast<uint64_t>(slot);
    return {
        static_cast<int64_t>(
            (low >> reference.place_bits) &
            ((uint64_t{1} << reference.input_bits) - 1)),
        static_cast<int64_t>(
            low & ((uint64_t{1} << reference.place_bits) - 1))};
  }

  // Coordinates and values at once, for the ranks that are common.
  template <int kRank>
  void fetch_whole() const {
    struct Columns {
      const int64_t* coordinates[kRank];
      int64_t offsets[kRank];
      const char* values;
    };
    const ConcatJob& job = move.job;
    const int64_t* first = blocks.places_of(b);
    std::vector<Columns> columns(job.sources.size());
    for (int64_t i = 0; i < job.inputs(); ++i) {
      const ConcatSource& source = job.sources[i];
      for (int d = 0; d < kRank; ++d) {
        columns[i].coordinates[d] =
            source.indices.data + d * source.indices.dim_stride + first[i];
        columns[i].offsets[d] = move.offset(source, d);
      }
      columns[i].values = source.values + first[i] * job.width;
    }
    // Local, so that the stores below cannot change them.
    const Columns* const sources = columns.data();
    const ConcatFetch fetch = *this;
    const int64_t width = job.width;
    const int64_t size = blocks.size(b);
    int64_t* out[kRank];
    for (int d = 0; d < kRank; ++d) {
      out[d] = move.out_column(d) + blocks.starts[b];
    }
    char* const out_values = job.out_values + blocks.starts[b] * width;
    for (int64_t n = 0; n < size; ++n) {
      const auto [input, place] = fetch.entry(fetch.slots[n]);
      const Columns& source = sources[input];
      for (int d = 0; d < kRank; ++d) {
        out[d][n] =
            multiply_add(source.coordinates[d][place], 1, source.offsets[d]);
      }
      move_element<kBytes>(out_values, n, source.values, place, width);
    }
  }

  void fetch_column(int64_t d) const {
    const ConcatJob& job = move.job;
    const int64_t* first = blocks.places_of(b);
    const int64_t size = blocks.size(b);
    int64_t* out = move.out_column(d) + blocks.starts[b];
    for (int64_t n = 0; n < size; ++n) {
      const auto [input, place] = entry(slots[n]);
      const ConcatSource& source = job.sources[input];
      out[n] = multiply_add(
          source.indices.at(first[input] + place, d), 1,
          move.offset(source, d));
    }
  }

  void fetch_values() const {
    const ConcatJob& job = move.job;
    const int64_t* first = blocks.places_of(b);
    const int64_t size = blocks.size(b);
    const int64_t start = blocks.starts[b];
    for (int64_t n = 0; n < size; ++n) {
      const auto [input, place] = entry(slots[n]);
      const ConcatSource& source = job.sources[input];
      move.value(source, first[input] + place, start + n);
    }
  }
};

template <typename Slot, int kBytes, ConcatDirection kDirection>
void do_short_runs(
    const ConcatMove<kBytes, kDirection>& move,
    const ConcatBlocks& blocks,
    int64_t b,
    const ConcatReference& reference,
    ConcatScratch& scratch,
    std::vector<Slot>& slots) {
  if (place_entries(move.job, blocks, b, reference, scratch, slots)) {
    ConcatFetch<Slot, kBytes, kDirection>{
        move, blocks, b, reference, slots.data()}
        .run();
  }
}

template <typename Slot, int kBytes, ConcatDirection kDirection>
void do_sparse_prefixes(
    const ConcatMove<kBytes, kDirection>& move,
    const ConcatBlocks& blocks,
    int64_t b,
    int shift,
    const ConcatReference& reference,
    ConcatScratch& scratch,
    std::vector<Slot>& slots) {
  if (place_sparse_entries(
          move.job, blocks, b, shift, reference, scratch, slots)) {
    ConcatFetch<Slot, kBytes, kDirection>{
        move, blocks, b, reference, slots.data()}
        .run();
  }
}

}  // namespace tso
