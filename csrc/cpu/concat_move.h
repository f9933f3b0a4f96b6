// Moving entries from an input to the result, or their values back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../common/element.h"
#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "concat_scratch.h"

namespace tso {

enum class ConcatDirection { kForward, kTranspose };

template <int kBytes, ConcatDirection kDirection>
struct ConcatMove {
  const ConcatJob& job;

  static constexpr bool kForward = kDirection == ConcatDirection::kForward;

  bool moves_indices() const {
    return kForward && job.out_indices != nullptr;
  }

  int64_t* out_column(int64_t dim) const {
    return job.out_indices + dim * job.total;
  }

  int64_t offset(const ConcatSource& source, int64_t dim) const {
    return dim == job.axis ? source.offset : 0;
  }

  // Entries that are neighbours in the source and in the result.
  [[gnu::noinline]] void run(
      const ConcatSource& source,
      int64_t place,
      int64_t output,
      int64_t length,
      ConcatScratch& scratch) const {
    if (length == 0) {
      return;
    }
    for (int64_t d = 0; moves_indices() && d < job.rank; ++d) {
      int64_t* out = out_column(d) + output;
      const int64_t add = offset(source, d);
      for (int64_t at = 0; at < length; at += kColumnBlock) {
        const int64_t some = std::min(kColumnBlock, length - at);
        const int64_t* in =
            column(source.indices, d, place + at, some, scratch.columns.data());
        for (int64_t i = 0; i < some; ++i) {
          out[at + i] = multiply_add(in[i], 1, add);
        }
      }
    }
    values(source, place, output, length);
  }

  void values(
      const ConcatSource& source,
      int64_t place,
      int64_t output,
      int64_t length) const {
    char* in = source.values + place * job.width;
    char* out = job.out_values + output * job.width;
    std::memcpy(kForward ? out : in, kForward ? in : out, length * job.width);
  }

  void value(const ConcatSource& source, int64_t entry, int64_t output) const {
    if constexpr (kForward) {
      move_element<kBytes>(
          job.out_values, output, source.values, entry, job.width);
    } else {
      move_element<kBytes>(
          source.values, entry, job.out_values, output, job.width);
    }
  }
};

}  // namespace tso
