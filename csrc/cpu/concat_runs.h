// The way for blocks whose inputs bring several entries of a prefix each: find
// where the runs end, and copy run after run to the result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "concat_blocks.h"
#include "concat_move.h"
#include "concat_scratch.h"
#include "simd.h"

namespace tso {

// Checks the entries of block b and writes down, for each input, where the run
// of each prefix ends among its entries in the block; 0 if there is none.
// False if the result is void.
inline bool find_runs(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    ConcatScratch& scratch) {
  const int64_t* first = blocks.places_of(b);
  const uint64_t low = blocks.first_prefix[b];
  const uint64_t prefixes = blocks.first_prefix[b + 1] - low;
  scratch.ends.assign(prefixes * job.inputs(), 0);
  uint32_t* const all_ends = scratch.ends.data();
  return each_inspected(
      job, blocks, b, scratch,
      [=](int64_t i, int64_t place, const int64_t* found, int64_t some) {
        uint32_t* ends = all_ends + i * prefixes;
        // Every entry is the last of its prefix so far.
        const uint32_t next = static_cast<uint32_t>(place - first[i]) + 1;
#pragma GCC unroll 4
        for (int64_t j = 0; j < some; ++j) {
          ends[static_cast<uint64_t>(found[j]) - low] =
              next + static_cast<uint32_t>(j);
        }
      });
}

// Moves of fixed size, by vectors that become as many of the processor's as
// they need, aligned or not.
typedef int64_t Vector __attribute__((vector_size(32), aligned(1), may_alias));

template <int kCount>
inline void add_burst(int64_t* out, const int64_t* in, int64_t offset) {
  for (int at = 0; at < kCount; at += 4) {
    *reinterpret_cast<Vector*>(out + at) =
        *reinterpret_cast<const Vector*>(in + at) + offset;
  }
}

template <int kBytes>
inline void copy_burst(char* out, const char* in) {
  if constexpr (kBytes % sizeof(Vector) == 0) {
    for (size_t at = 0; at < kBytes; at += sizeof(Vector)) {
      *reinterpret_cast<Vector*>(out + at) =
          *reinterpret_cast<const Vector*>(in + at);
    }
  } else {
    std::memcpy(out, in, kBytes);
  }
}

inline void begin_runs(
    const ConcatJob& job,
    const ConcatBlocks& blocks,
    int64_t b,
    bool forward,
    int64_t burst,
    ConcatScratch& scratch) {
  const int64_t* first = blocks.places_of(b);
  const int64_t* last = blocks.places_of(b + 1);
  const uint64_t prefixes = blocks.first_prefix[b + 1] - blocks.first_prefix[b];
  grow(scratch.cursors, job.inputs());
  for (int64_t i = 0; i < job.inputs(); ++i) {
    const ConcatSource& source = job.sources[i];
    // What is read may be any of the input's, what is written must be the
    // block's.
    const int64_t room = (forward ? source.nnz : last[i]) - first[i] - burst;
    scratch.cursors[i] = {
        scratch.ends.data() + i * prefixes,
        0,
        static_cast<uint32_t>(
            source.direct() ? std::clamp<int64_t>(room, 0, ~uint32_t{0}) : 0),
        first[i],
        source.indices.data + first[i],
        source.values + first[i] * job.width,
        source.indices.dim_stride,
        source.offset};
  }
}

// Copies the runs. A burst of fixed size that holds most runs whole costs less
// than a loop that ends anywhere; what it copies too much is written over by
// the runs that follow, or belongs to nobody yet. kRank is 2 or, for any, 0;
// of two dimensions the last is the axis, since there is a prefix.
template <int kBurst, int kRank, int kBytes, ConcatDirection kDirection>
void merge_runs(
    const ConcatMove<kBytes, kDirection>& move,
    const ConcatBlocks& blocks,
    int64_t b,
    ConcatScratch& scratch) {
  constexpr bool kForward = kDirection == ConcatDirection::kForward;
  // Local, so that the stores below cannot change them.
  const ConcatJob& job = move.job;
  const int64_t rank = kRank > 0 ? kRank : move.moves_indices() ? job.rank : 0;
  const int64_t axis = kRank == 2 ? 1 : job.axis;
  const int64_t total = job.total;
  const int64_t inputs = job.inputs();
  const int64_t width = kBytes > 0 ? kBytes : job.width;
  const int64_t prefixes =
      static_cast<int64_t>(blocks.first_prefix[b + 1] - blocks.first_prefix[b]);
  int64_t* const out_indices = job.out_indices;
  char* const out_values = job.out_values;
  ConcatCursor* const cursors = scratch.cursors.data();
  const int64_t burst_end = (kForward ? blocks.starts[b + 1] : total) - kBurst;
  int64_t output = blocks.starts[b];
  for (int64_t p = 0; p < prefixes; ++p) {
    for (int64_t i = 0; i < inputs; ++i) {
      ConcatCursor& cursor = cursors[i];
      const uint32_t at = cursor.at;
      // Without a branch: whether there is a run is not to be foreseen.
      const int32_t run = static_cast<int32_t>(cursor.ends[p] - at);
      const uint32_t length = static_cast<uint32_t>(run & ~(run >> 31));
      const uint32_t end = at + length;
      cursor.at = end;
      if (end >= cursor.burst_end || output + length > burst_end) {
        move.run(job.sources[i], cursor.place + at, output, length, scratch);
        output += length;
        continue;
      }
      const int64_t* in = cursor.coordinates + at;
      int64_t* out = out_indices + output;
      for (int64_t d = 0; d < rank; ++d) {
        add_burst<kBurst>(out, in, d == axis ? cursor.offset : 0);
        in += cursor.dim_stride;
        out += total;
      }
      char* const in_values = cursor.values + at * width;
      char* const values = out_values + output * width;
      if constexpr (kBytes == 0) {
        const int64_t some = std::min<int64_t>(length, kBurst) * width;
        std::memcpy(
            kForward ? values : in_values, kForward ? in_values : values, some);
      } else {
        copy_burst<kBurst * kBytes>(
            kForward ? values : in_values, kForward ? in_values : values);
      }
      if (length > kBurst) {
        move.run(
            job.sources[i], cursor.place + at + kBurst, output + kBurst,
            length - kBurst, scratch);
      }
      output += length;
    }
  }
}

template <int kBytes, ConcatDirection kDirection>
void do_long_runs(
    const ConcatMove<kBytes, kDirection>& move,
    const ConcatBlocks& blocks,
    int64_t b,
    ConcatScratch& scratch) {
  const ConcatJob& job = move.job;
  if (!find_runs(job, blocks, b, scratch)) {
    return;
  }
  const int64_t cells = static_cast<int64_t>(
      (blocks.first_prefix[b + 1] - blocks.first_prefix[b]) * job.inputs());
  // Runs that come at random are rarely twice as long as the mean.
  const int64_t length = 2 * blocks.size(b) / cells;
  const int64_t burst = length <= 4 ? 4 : length <= 8 ? 8 : 16;
  begin_runs(
      job, blocks, b, kDirection == ConcatDirection::kForward, burst, scratch);
  const auto merge = [&](auto rank) {
    switch (burst) {
      case 4:
        return merge_runs<4, rank()>(move, blocks, b, scratch);
      case 8:
        return merge_runs<8, rank()>(move, blocks, b, scratch);
      default:
        return merge_runs<16, rank()>(move, blocks, b, scratch);
    }
  };
  call_simd([&] {
    if (move.moves_indices() && job.rank == 2) {
      merge(std::integral_constant<int, 2>{});
    } else {
      merge(std::integral_constant<int, 0>{});
    }
  });
}

}  // namespace tso
