// Blocks of one dimension's coordinates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../common/index_math.h"

namespace tso {

// Few enough for the blocks of all dimensions to stay in the first-level cache.
constexpr int64_t kColumnBlock = 512;

// Coordinates `dim` of entries [begin, begin + count), count <= kColumnBlock:
// where they lie if they are neighbours, else copied to `scratch`.
inline const int64_t* column(
    const IndexView& view,
    int64_t dim,
    int64_t begin,
    int64_t count,
    int64_t* scratch) {
  const int64_t* base = view.data + dim * view.dim_stride;
  if (view.row_stride == 1) {
    return base + begin;
  }
  for (int64_t i = 0; i < count; ++i) {
    scratch[i] = base[(begin + i) * view.row_stride];
  }
  return scratch;
}

// The first place of the entry, among `count` of them, that has a coordinate
// outside the shape, and the dimension; entry is -1 if there is none.
struct BadCoordinate {
  int64_t entry = -1;
  int64_t dim = 0;
};

inline BadCoordinate find_bad_coordinate(
    const IndexView& view, int64_t count, const int64_t* shape, int64_t rank) {
  for (int64_t entry = 0; entry < count; ++entry) {
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (out_of_range(view.at(entry, dim), shape[dim])) {
        return {entry, dim};
      }
    }
  }
  return {};
}

}  // namespace tso
