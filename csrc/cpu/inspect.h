// Bounds and order of a block of entries.
#pragma once

#include <cstdint>

#include "../common/index_math.h"
#include "columns.h"

namespace tso {

// Sign bits, gathered from all entries.
struct Findings {
  int64_t bad = 0;      // out of bounds, or out of row-major order
  int64_t repeats = 0;  // an entry equal to the one before it, or bad

  void add(const Findings& other) {
    bad |= other.bad;
    repeats |= other.repeats;
  }
};

namespace inspect_detail {

// The sign of the row-major comparison of two entries, one dimension at a time
// from the last: what this dimension says unless it says nothing.
TSO_HOST_DEVICE int64_t compare(int64_t difference, int64_t later_dims) {
  const int64_t differs =
      (difference | multiply_add(difference, -1, 0)) >> 63;
  return difference | (~differs & later_dims);
}

TSO_HOST_DEVICE int64_t minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(
      static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace inspect_detail

// Looks at `count` <= kColumnBlock entries, given as columns, one per
// dimension, and at the entry before them, if there is one. Comparing needs no
// multiplications, so that the loops vectorise on every processor.
inline void inspect(
    const int64_t* const* columns,
    const int64_t* before,
    const int64_t* sizes,
    int64_t rank,
    int64_t count,
    Findings& findings) {
  using inspect_detail::compare;
  using inspect_detail::minus;
  int64_t bad = 0;
  int64_t repeats = 0;
  if (before != nullptr) {
    int64_t order = 0;
    for (int64_t d = rank; d-- > 0;) {
      order = compare(minus(columns[d][0], before[d]), order);
    }
    bad |= order;
    repeats |= minus(order, 1);
  }
  for (int64_t d = 0; d < rank; ++d) {
    bad |= range_sign(columns[d][0], sizes[d]);
  }
  if (rank == 1) {
    const int64_t* last = columns[0];
    for (int64_t i = 1; i < count; ++i) {
      const int64_t order = minus(last[i], last[i - 1]);
      bad |= order | range_sign(last[i], sizes[0]);
      repeats |= minus(order, 1);
    }
  } else if (rank == 2) {
    const int64_t* first = columns[0];
    const int64_t* last = columns[1];
    for (int64_t i = 1; i < count; ++i) {
      const int64_t order = compare(
          minus(first[i], first[i - 1]), minus(last[i], last[i - 1]));
      bad |= order | range_sign(first[i], sizes[0]) |
          range_sign(last[i], sizes[1]);
      repeats |= minus(order, 1);
    }
  } else {
    int64_t orders[kColumnBlock];
    const int64_t* last = columns[rank - 1];
    for (int64_t i = 1; i < count; ++i) {
      orders[i] = minus(last[i], last[i - 1]);
      bad |= range_sign(last[i], sizes[rank - 1]);
    }
    for (int64_t d = rank - 1; d-- > 0;) {
      const int64_t* column = columns[d];
      for (int64_t i = 1; i < count; ++i) {
        orders[i] = compare(minus(column[i], column[i - 1]), orders[i]);
        bad |= range_sign(column[i], sizes[d]);
      }
    }
    for (int64_t i = 1; i < count; ++i) {
      bad |= orders[i];
      repeats |= minus(orders[i], 1);
    }
  }
  findings.bad |= bad;
  findings.repeats |= repeats;
}

}  // namespace tso
