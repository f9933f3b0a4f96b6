// The rows of indices of tensor_scatter_update: which slice each one names.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../common/index_math.h"
#include "columns.h"
#include "simd.h"

namespace tso {

// The rows of indices, [rows, depth] of any strides. Index is int32_t or
// int64_t.
template <typename Index>
struct ScatterRows {
  const Index* data;
  int64_t row_stride;
  int64_t dim_stride;
  int64_t depth;
  const int64_t* sizes;    // leading sizes of the tensor
  const int64_t* strides;  // their row-major strides, in slices

  // The number of the slice the row names, or -1 if it is out of bounds.
  int64_t slice(int64_t row) const {
    const Index* at = data + row * row_stride;
    int64_t number = 0;
    bool bad = false;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t coordinate = at[d * dim_stride];
      bad |= out_of_range(coordinate, sizes[d]);
      number = multiply_add(coordinate, strides[d], number);
    }
    return bad ? -1 : number;
  }

  // Writes the slices that rows [begin, begin + count) name, count <=
  // kColumnBlock, and `outside` for rows out of bounds. Returns whether there
  // are any.
  bool slices(
      int64_t begin, int64_t count, int64_t outside, int64_t* out) const {
    bool bad = false;
    // Strides known to the compiler let it load rows that lie together.
    call_simd([&] {
      bad = row_stride == 1   ? number<1>(begin, count, out)
            : row_stride == 2 ? number<2>(begin, count, out)
                              : number<0>(begin, count, out);
    });
    for (int64_t i = 0; bad && i < count; ++i) {
      const int64_t number = slice(begin + i);
      out[i] = number < 0 ? outside : number;
    }
    return bad;
  }

 private:
  // One dimension at a time and without branches, so that it vectorises.
  template <int kRowStride>
  bool number(int64_t begin, int64_t count, int64_t* out) const {
    const int64_t stride = kRowStride > 0 ? kRowStride : row_stride;
    const Index* at = data + begin * stride;
    int64_t signs = 0;
    for (int64_t d = 0; d < depth; ++d, at += dim_stride) {
      const int64_t size = sizes[d];
      if (d == 0) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t coordinate = at[i * stride];
          signs |= range_sign(coordinate, size);
          out[i] = coordinate;
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t coordinate = at[i * stride];
          signs |= range_sign(coordinate, size);
          out[i] = multiply_add(out[i], size, coordinate);
        }
      }
    }
    return signs < 0;
  }
};

// Calls f(row, count, slices, bad) for rows [begin, end) some at a time, with
// the slices they name, `outside` for those out of bounds and whether there are
// any. Returns the first of these, or -1.
template <typename Index, typename F>
int64_t each_slices(
    const ScatterRows<Index>& rows,
    int64_t begin,
    int64_t end,
    int64_t outside,
    const F& f) {
  int64_t first_bad = -1;
  int64_t slices[kColumnBlock];
  for (int64_t row = begin; row < end; row += kColumnBlock) {
    const int64_t count = std::min(kColumnBlock, end - row);
    const bool bad = rows.slices(row, count, outside, slices);
    if (bad && first_bad < 0) {
      first_bad = row + (std::find(slices, slices + count, outside) - slices);
    }
    f(row, count, slices, bad);
  }
  return first_bad;
}

// The first row out of bounds among all of them, or -1.
template <typename Index>
int64_t find_bad_row(const ScatterRows<Index>& rows, int64_t count) {
  return each_slices(
      rows, 0, count, -1, [](int64_t, int64_t, const int64_t*, bool) {});
}

}  // namespace tso
