// What the in-place operator asks of memory, the same on every device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "checks.h"
#include "compat.h"

namespace tso {

// Throws where two elements of the tensor may lie at one address: a row that
// wins one of them would be seen in the other. Sorted by stride, each stride
// must step over all that the smaller ones reach; views that interleave
// without meeting are refused with the rest.
inline void check_no_overlap(const char* op, const Meta& tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // (stride, size)
  for (int64_t d = 0; d < tensor.dim; ++d) {
    if (tensor.sizes[d] == 0) {
      return;
    }
    if (tensor.sizes[d] > 1) {
      dims.emplace_back(tensor.strides[d], tensor.sizes[d]);
    }
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) {
      fail_value(
          op, ": tensor must not overlap itself (got shape ", shape_of(tensor),
          ", strides ", Ints{tensor.strides, tensor.dim}, ")");
    }
    reach += stride * (size - 1);
  }
}

// [begin, end) of the addresses a tensor's elements span.
inline std::pair<const char*, const char*> address_range(
    const Tensor& tensor, const Meta& meta) {
  const char* begin = const_data<char>(tensor);
  int64_t last = 0;
  for (int64_t d = 0; d < meta.dim; ++d) {
    if (meta.sizes[d] == 0) {
      return {begin, begin};
    }
    last += meta.strides[d] * (meta.sizes[d] - 1);
  }
  return {begin, begin + (last + 1) * meta.element_size()};
}

// The argument itself, or a copy of it where it may share memory with the
// tensor that is about to be written.
inline Tensor without_sharing(
    const Tensor& argument,
    const Meta& meta,
    const Tensor& written,
    const Meta& written_meta) {
  const auto [begin, end] = address_range(argument, meta);
  const auto [out_begin, out_end] = address_range(written, written_meta);
  return begin < out_end && out_begin < end ? torch::stable::clone(argument)
                                            : argument;
}

// The same, and contiguous.
inline Tensor contiguous_without_sharing(
    const Tensor& argument,
    const Meta& meta,
    const Tensor& written,
    const Meta& written_meta) {
  const Tensor own = without_sharing(argument, meta, written, written_meta);
  return contiguous(own, Meta(own));
}

}  // namespace tso
