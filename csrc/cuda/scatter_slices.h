// Where the slices of a tensor of any strides lie, in units that the kernels
// move at once.
#pragma once

#include <cstdint>

#include "common/compat.h"
#include "common/scatter_plan.h"
#include "cuda/tensor_scatter_update_kernel.cuh"

namespace tso {

struct ScatterSlices {
  SliceStrides strides;  // of the leading dimensions
  StridedPieces pieces;  // of one slice; dims == 0: a single run of units
  int unit = kMaxUnit;

  // `rows` is the other side of the move, or null.
  ScatterSlices(
      const ScatterPlan& plan,
      const Meta& tensor,
      const void* data,
      const void* rows) {
    Alignment alignment;
    alignment.add(data).add(rows);
    const int64_t element_bytes = tensor.element_size();
    for (int64_t d = 0; d < plan.depth; ++d) {
      strides.bytes[d] = tensor.strides[d] * element_bytes;
      alignment.add(tensor.sizes[d] > 1 ? strides.bytes[d] : int64_t{0});
    }
    // The trailing dimensions that make up one run.
    int64_t run = element_bytes;
    int64_t last = tensor.dim;
    while (last > plan.depth &&
           (tensor.sizes[last - 1] == 1 ||
            tensor.strides[last - 1] * element_bytes == run)) {
      run *= tensor.sizes[--last];
    }
    alignment.add(run);
    for (int64_t d = plan.depth; d < last; ++d) {
      alignment.add(tensor.strides[d] * element_bytes);
    }
    unit = alignment.unit();
    for (int64_t d = plan.depth; d < last; ++d) {
      if (tensor.sizes[d] > 1) {
        add_dim(tensor.sizes[d], tensor.strides[d] * element_bytes);
      }
    }
    if (pieces.dims > 0 && run > unit) {
      add_dim(run / unit, unit);
    }
  }

 private:
  void add_dim(int64_t size, int64_t stride) {
    const int last = pieces.dims - 1;
    if (last >= 0 && pieces.strides[last] == stride * size) {
      pieces.sizes[last] = make_divider(pieces.sizes[last].divisor * size);
      pieces.strides[last] = stride;
    } else {
      pieces.sizes[pieces.dims] = make_divider(size);
      pieces.strides[pieces.dims++] = stride;
    }
  }
};

}  // namespace tso
