// The way for blocks with far more prefixes than entries, of a few inputs: merge
// the inputs two by two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "concat_blocks.h"
#include "concat_move.h"
#include "concat_pack.h"
#include "concat_places.h"
#include "concat_scratch.h"

namespace tso {

// What is left of two increasing rows of words, none of which are equal.
struct Merge {
  const uint64_t* a;
  const uint64_t* a_end;
  const uint64_t* b;
  const uint64_t* b_end;
  uint64_t* out;

  // How many steps there are at least before one row ends.
  int64_t steps() const {
    return std::min(a_end - a, b_end - b);
  }

  // Without a branch: which row comes next is not to be foreseen.
  void step() {
    const uint64_t x = *a;
    const uint64_t y = *b;
    const int64_t second = y < x;
    *out++ = x ^ ((x ^ y) & -static_cast<uint64_t>(second));
    b += second;
    a += 1 - second;
  }

  void finish() {
    while (a < a_end && b < b_end) {
      step();
    }
    out = std::copy(a, a_end, out);
    std::copy(b, b_end, out);
  }

  // How many of the first `count` words of the result come from a.
  int64_t from_a(int64_t count) const {
    int64_t low = std::max<int64_t>(0, count - (b_end - b));
    int64_t high = std::min<int64_t>(count, a_end - a);
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (a[middle] < b[count - middle - 1]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // Cuts off the first `count` words of the result.
  Merge cut(int64_t count) {
    const int64_t from = from_a(count);
    const Merge part{a, a + from, b, b + (count - from), out};
    a = part.a_end;
    b = part.b_end;
    out += count;
    return part;
  }
};

// Each step waits for the one before it: four merges at a time keep the
// processor busy.
inline void merge(Merge all) {
  const int64_t quarter = ((all.a_end - all.a) + (all.b_end - all.b)) / 4;
  if (quarter >= 16) {
    Merge first = all.cut(quarter);
    Merge second = all.cut(quarter);
    Merge third = all.cut(quarter);
    for (;;) {
      const int64_t steps = std::min(
          std::min(first.steps(), second.steps()),
          std::min(third.steps(), all.steps()));
      if (steps == 0) {
        break;
      }
      for (int64_t n = 0; n < steps; ++n) {
        first.step();
        second.step();
        third.step();
        all.step();
      }
    }
    first.finish();
    second.finish();
    third.finish();
  }
  all.finish();
}

// Merges the increasing rows that end at `ends`; returns where the result is.
inline const uint64_t* merge_rows(
    std::vector<int64_t>& ends, uint64_t* words, uint64_t* room) {
  while (ends.size() > 1) {
    int64_t begin = 0;
    size_t merged = 0;
    for (size_t row = 0; row < ends.size(); row += 2) {
      const int64_t middle = ends[row];
      const int64_t end = row + 1 < ends.size() ? ends[row + 1] : middle;
      merge(
          {words + begin, words + middle, words + middle, words + end,
           room + begin});
      ends[merged++] = end;
      begin = end;
    }
    ends.resize(merged);
    std::swap(words, room);
  }
  return words;
}

// A merge of all takes log2(inputs) passes: 0.6 of the time that sorting by bins
// takes for two inputs, 0.75 for eight, and more for 64.
constexpr int64_t kMergedInputs = 8;

inline bool can_merge_inputs(int64_t inputs, uint64_t prefixes, int64_t size) {
  return inputs <= kMergedInputs && bits(prefixes - 1) + bits(size - 1) <= 64;
}

template <int kBytes, ConcatDirection kDirection>
void do_merged_inputs(
    const ConcatMove<kBytes, kDirection>& move,
    const ConcatBlocks& blocks,
    int64_t b,
    ConcatScratch& scratch) {
  const uint64_t low = blocks.first_prefix[b];
  const int64_t* first = blocks.places_of(b);
  const int64_t* last = blocks.places_of(b + 1);
  const int64_t size = blocks.size(b);
  scratch.words.grow(size);
  scratch.merged.grow(size);
  uint64_t* const words = scratch.words.data();
  // The prefix above the place among the block's entries.
  const int shift = bits(size - 1);
  int64_t packed = 0;
  const ConcatPack<kBytes, kDirection> pack{move, blocks, b, scratch};
  const bool valid = pack.run([&](const int64_t* prefixes, int64_t some) {
    uint64_t* out = words + packed;
    for (int64_t j = 0; j < some; ++j) {
      out[j] = ((static_cast<uint64_t>(prefixes[j]) - low) << shift) +
               static_cast<uint64_t>(packed + j);
    }
    packed += some;
  });
  if (!valid) {
    return;
  }
  scratch.ends_of_rows.clear();
  int64_t end = 0;
  for (int64_t i = 0; i < move.job.inputs(); ++i) {
    if (last[i] > first[i]) {
      end += last[i] - first[i];
      scratch.ends_of_rows.push_back(end);
    }
  }
  const uint64_t* merged =
      merge_rows(scratch.ends_of_rows, words, scratch.merged.data());
  const uint64_t mask = (uint64_t{1} << shift) - 1;
  pack.fetch([=](int64_t n) { return static_cast<int64_t>(merged[n] & mask); });
}

}  // namespace tso
