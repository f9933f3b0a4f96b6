// The entries of a block of sparse_concat, side by side: fetching them from there
// needs no look at which input they are from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "concat_blocks.h"
#include "concat_move.h"
#include "concat_scratch.h"

namespace tso {

template <int kBytes, ConcatDirection kDirection>
struct ConcatPack {
  const ConcatMove<kBytes, kDirection>& move;
  const ConcatBlocks& blocks;
  int64_t b;
  ConcatScratch& scratch;

  static constexpr bool kForward = kDirection == ConcatDirection::kForward;
  // Else a pointer to the value.
  static constexpr bool kPacksValues = kForward && kBytes > 0;
  using Value = std::conditional_t<kPacksValues, Width<kBytes>, Width<8>>;

  // Packs the block, all entries of input 0, then of input 1, and so on, and
  // calls take(prefixes, count) for some at a time; prefixes never decrease
  // within one input and are counted from the block's first. False if the
  // result is void.
  template <typename Take>
  bool run(const Take& take) const {
    const ConcatJob& job = move.job;
    const int64_t size = blocks.size(b);
    scratch.packed.grow(move.moves_indices() ? job.rank * size : 0);
    scratch.packed_values.grow(size * Value::value);
    int64_t packed = 0;
    const auto add_some = [&](int64_t i, int64_t place, const int64_t* prefixes,
                              int64_t some) {
      const ConcatSource& source = job.sources[i];
      take(prefixes, some);
      for (int64_t d = 0; move.moves_indices() && d < job.rank; ++d) {
        const int64_t* in =
            column(source.indices, d, place, some, scratch.columns.data());
        int64_t* out = scratch.packed.data() + d * size + packed;
        const int64_t add = move.offset(source, d);
        for (int64_t j = 0; j < some; ++j) {
          out[j] = multiply_add(in[j], 1, add);
        }
      }
      pack_values(source, place, some, packed);
      packed += some;
    };
    return each_inspected(job, blocks, b, scratch, add_some);
  }

  // Moves the entries to the result: the nth is the one packed at slot(n). One
  // column after another: together they take a seventh longer.
  template <typename Slot>
  void fetch(const Slot& slot) const {
    const ConcatJob& job = move.job;
    const int64_t size = blocks.size(b);
    for (int64_t d = 0; move.moves_indices() && d < job.rank; ++d) {
      const int64_t* in = scratch.packed.data() + d * size;
      int64_t* out = move.out_column(d) + blocks.starts[b];
#pragma GCC unroll 4
      for (int64_t n = 0; n < size; ++n) {
        out[n] = in[slot(n)];
      }
    }
    const int64_t width = kBytes > 0 ? kBytes : job.width;
    char* const out = job.out_values + blocks.starts[b] * width;
    const char* const in = scratch.packed_values.data();
#pragma GCC unroll 4
    for (int64_t n = 0; n < size; ++n) {
      const int64_t place = static_cast<int64_t>(slot(n));
      if constexpr (kPacksValues) {
        move_element<kBytes>(out, n, in, place, width);
      } else {
        char* value;
        std::memcpy(&value, in + place * sizeof(value), sizeof(value));
        move_element<kBytes>(
            kForward ? out : value, kForward ? n : 0, kForward ? value : out,
            kForward ? 0 : n, width);
      }
    }
  }

 private:
  void pack_values(
      const ConcatSource& source,
      int64_t place,
      int64_t some,
      int64_t packed) const {
    const int64_t width = move.job.width;
    char* out = scratch.packed_values.data() + packed * Value::value;
    char* value = source.values + place * width;
    if constexpr (kPacksValues) {
      std::memcpy(out, value, some * width);
    } else {
      for (int64_t j = 0; j < some; ++j, value += width) {
        std::memcpy(out + j * sizeof(value), &value, sizeof(value));
      }
    }
  }
};

}  // namespace tso
