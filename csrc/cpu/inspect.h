// Bounds and order of a block of entries.
#pragma once

#include <cstdint>
#include <limits>

#include "../common/index_math.h"
#include "columns.h"

namespace tso {

// Sign bits, gathered from all entries.
struct Findings {
  int64_t bad = 0;      // out of bounds, or out of row-major order
  int64_t repeats = 0;  // an entry equal to the one before it

  void add(const Findings& other) {
    bad |= other.bad;
    repeats |= other.repeats;
  }
};

inline int64_t wrapping_minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(
      static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// The loops below only add, subtract and combine bits, of which the sign alone
// matters, so that they vectorise on every processor.

// Compares each entry with the one before it, the first with `before` if given.
inline void inspect_order(
    const int64_t* keys,
    const int64_t* before,
    int64_t count,
    Findings& findings) {
  int64_t bad = 0;
  int64_t repeats = 0;
  const auto compare = [&](int64_t key, int64_t previous) {
    const int64_t step = wrapping_minus(key, previous);
    bad |= step;
    repeats |= wrapping_minus(step, 1);
  };
  if (before != nullptr) {
    compare(keys[0], *before);
  }
  for (int64_t i = 1; i < count; ++i) {
    compare(keys[i], keys[i - 1]);
  }
  findings.bad |= bad;
  findings.repeats |= repeats;
}

// The same for entries of two coordinates, and their bounds.
inline void inspect_pairs(
    const int64_t* leads,
    const int64_t* lasts,
    const int64_t* before,
    int64_t lead_size,
    int64_t last_size,
    int64_t count,
    Findings& findings) {
  int64_t bad = 0;
  int64_t repeats = 0;
  const auto compare = [&](int64_t lead, int64_t last, int64_t lead_before,
                           int64_t last_before) {
    const int64_t lead_step = wrapping_minus(lead, lead_before);
    const int64_t last_step = wrapping_minus(last, last_before);
    // Negative if lead_step is 0; if it is negative, the entry is bad.
    const int64_t stays = wrapping_minus(lead_step, 1);
    bad |= lead_step | (stays & last_step);
    repeats |= stays & wrapping_minus(last_step, 1);
  };
  if (before != nullptr) {
    compare(leads[0], lasts[0], before[0], before[1]);
  }
  bad |= range_sign(leads[0], lead_size) | range_sign(lasts[0], last_size);
  for (int64_t i = 1; i < count; ++i) {
    compare(leads[i], lasts[i], leads[i - 1], lasts[i - 1]);
    bad |= range_sign(leads[i], lead_size) | range_sign(lasts[i], last_size);
  }
  findings.bad |= bad;
  findings.repeats |= repeats;
}

inline void inspect_bounds(
    const int64_t* coordinates,
    int64_t size,
    int64_t count,
    Findings& findings) {
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    bad |= range_sign(coordinates[i], size);
  }
  findings.bad |= bad;
}

// Checks entries as inspect does and copies them, `add` added to the first
// coordinate, in one pass. Entries are compared with the one before them in
// memory; the first has none if `is_first`.
template <int kRank>
void inspect_and_copy(
    const int64_t* const* columns,
    const int64_t* sizes,
    bool is_first,
    int64_t count,
    int64_t add,
    int64_t* const* outs,
    Findings& findings) {
  int64_t bad = 0;
  int64_t repeats = 0;
  const int64_t* in[kRank];
  int64_t* out[kRank];
  int64_t size[kRank];
  for (int d = 0; d < kRank; ++d) {
    in[d] = columns[d];
    out[d] = outs[d];
    size[d] = sizes[d];
    if (is_first) {
      bad |= range_sign(in[d][0], size[d]);
      out[d][0] = multiply_add(in[d][0], 1, d == 0 ? add : 0);
    }
  }
#pragma GCC ivdep
  for (int64_t i = is_first ? 1 : 0; i < count; ++i) {
    int64_t wrong = 0;
    int64_t same = -1;  // sign: no coordinate so far is above the one before
    for (int d = 0; d < kRank; ++d) {
      const int64_t coordinate = in[d][i];
      const int64_t step = wrapping_minus(coordinate, in[d][i - 1]);
      wrong |= range_sign(coordinate, size[d]) | (same & step);
      same &= wrapping_minus(step, 1);
      out[d][i] = multiply_add(coordinate, 1, d == 0 ? add : 0);
    }
    bad |= wrong;
    repeats |= same;
  }
  findings.bad |= bad;
  findings.repeats |= repeats;
}

// At most kColumnBlock entries of one input.
struct InspectedEntries {
  const int64_t* const* columns;  // one per dimension
  const int64_t* before;  // see inspect; null: nothing comes before them
  const int64_t* sizes;
  const int64_t* out_sizes;
  int64_t rank;
  int64_t axis;
  int64_t count;
  int64_t* numbers;  // room for 2 * kColumnBlock if there are more than 2 dims
};

// Returns the numbers of the coordinates before the axis. Entries are compared
// by the number of all coordinates but the last, and by the last: `before`
// holds these two of the entry before.
inline const int64_t* inspect(
    const InspectedEntries& entries, Findings& findings) {
  const int64_t* const* columns = entries.columns;
  const int64_t count = entries.count;
  const int64_t rank = entries.rank;
  const int64_t* leads = columns[0];
  const int64_t* prefixes = leads;
  if (rank == 1) {
    inspect_bounds(leads, entries.sizes[0], count, findings);
    inspect_order(leads, entries.before, count, findings);
    return prefixes;
  }
  int64_t lead_size = entries.sizes[0];
  for (int64_t d = 1; d < rank - 1; ++d) {
    int64_t* numbers = entries.numbers + (d < entries.axis ? 0 : kColumnBlock);
    const int64_t multiplier = entries.out_sizes[d];
    inspect_bounds(columns[d], entries.sizes[d], count, findings);
    if (d == 1) {
      inspect_bounds(leads, lead_size, count, findings);
    }
    for (int64_t i = 0; i < count; ++i) {
      numbers[i] = multiply_add(leads[i], multiplier, columns[d][i]);
    }
    leads = numbers;
    lead_size = std::numeric_limits<int64_t>::max();  // follows from the rest
    prefixes = d < entries.axis ? numbers : prefixes;
  }
  inspect_pairs(
      leads, columns[rank - 1], entries.before, lead_size,
      entries.sizes[rank - 1], count, findings);
  return prefixes;
}

}  // namespace tso
