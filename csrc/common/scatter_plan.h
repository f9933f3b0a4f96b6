// The checks and sizes of tensor_scatter_update and its transposes, the same
// on every device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checks.h"
#include "compat.h"
#include "index_math.h"

namespace tso {

enum class BadIndices { kDefault, kError, kIgnore };

struct ScatterPlan {
  int64_t depth = 0;        // K, coordinates of a row
  int64_t rows = 0;         // rows of indices
  int64_t slices = 0;       // slices of the tensor that a row can name
  int64_t slice_numel = 0;  // elements of a slice
  int64_t slice_bytes = 0;
  BadIndices policy = BadIndices::kDefault;
  std::vector<int64_t> sizes;  // of the tensor
};

inline BadIndices parse_policy(const char* op, const std::string& policy) {
  if (policy.empty() || policy == "DEFAULT") {
    return BadIndices::kDefault;
  }
  if (policy == "ERROR") {
    return BadIndices::kError;
  }
  if (policy == "IGNORE") {
    return BadIndices::kIgnore;
  }
  fail_value(
      op,
      ": bad_indices_policy must be one of \"\", \"DEFAULT\", \"ERROR\", "
      "\"IGNORE\" (got \"",
      policy, "\")");
}

// The shape of the updates of rows that name slices of `tensor` by `depth`
// coordinates.
inline std::vector<int64_t> updates_shape(
    const Meta& tensor, const Meta& indices, int64_t depth) {
  std::vector<int64_t> shape(indices.sizes, indices.sizes + indices.dim - 1);
  shape.insert(shape.end(), tensor.sizes + depth, tensor.sizes + tensor.dim);
  return shape;
}

// `updates` is null for the transposes, which have none.
inline ScatterPlan plan_scatter(
    const char* op,
    const Meta& tensor,
    const Meta& indices,
    const Meta* updates,
    const std::string& policy = "IGNORE") {
  const auto same_device = [&](const Meta& other, const char* name) {
    if (!other.same_device(tensor)) {
      fail_value(
          op, ": all tensors must be on one device (got ", device_name(tensor),
          " for tensor, ", device_name(other), " for ", name, ")");
    }
  };
  same_device(indices, "indices");
  if (updates != nullptr) {
    same_device(*updates, "updates");
  }
  if (indices.dtype != aoti_torch_dtype_int64() &&
      indices.dtype != aoti_torch_dtype_int32()) {
    fail_value(
        op, ": indices must be int32 or int64 (got ", dtype_name(indices.dtype),
        ")");
  }
  if (updates != nullptr && updates->dtype != tensor.dtype) {
    fail_value(
        op, ": updates must have the dtype of tensor (got ",
        dtype_name(tensor.dtype), " for tensor, ", dtype_name(updates->dtype),
        " for updates)");
  }
  if (indices.dim < 2) {
    fail_value(
        op, ": indices must have at least 2 dimensions (got shape ",
        shape_of(indices), ")");
  }
  ScatterPlan plan;
  plan.depth = indices.sizes[indices.dim - 1];
  if (plan.depth < 1 || plan.depth > tensor.dim) {
    fail_value(
        op,
        ": indices.shape[-1] must be from 1 to the rank of tensor (got "
        "indices of shape ",
        shape_of(indices), ", tensor of shape ", shape_of(tensor), ")");
  }
  if (updates != nullptr) {
    const std::vector<int64_t> wanted =
        updates_shape(tensor, indices, plan.depth);
    const std::vector<int64_t> given(
        updates->sizes, updates->sizes + updates->dim);
    if (given != wanted) {
      fail_value(
          op, ": updates.shape must be indices.shape[:-1] + tensor.shape[",
          plan.depth,
          ":] = ", Ints{wanted.data(), static_cast<int64_t>(wanted.size())},
          " (got ", shape_of(*updates), ")");
    }
  }
  plan.policy = parse_policy(op, policy);
  plan.sizes.assign(tensor.sizes, tensor.sizes + tensor.dim);
  plan.rows = 1;
  for (int64_t d = 0; d < indices.dim - 1; ++d) {
    plan.rows *= indices.sizes[d];
  }
  plan.slices = 1;
  plan.slice_numel = 1;
  for (int64_t d = 0; d < tensor.dim; ++d) {
    (d < plan.depth ? plan.slices : plan.slice_numel) *= tensor.sizes[d];
  }
  plan.slice_bytes = plan.slice_numel * tensor.element_size();
  return plan;
}

// Calls f(data, row_stride, dim_stride) with indices, [..., K] of any strides
// and int32 or int64, as a matrix [rows, K]; copies them where the batch
// dimensions do not fold into one stride.
template <typename F>
void with_index_matrix(const Tensor& indices, const F& f) {
  const Meta meta(indices);
  const int64_t last = meta.dim - 1;
  int64_t row_stride = 0;
  int64_t rows = 1;
  bool folds = true;
  for (int64_t d = last - 1; d >= 0; --d) {
    if (meta.sizes[d] == 1) {
      continue;
    }
    folds &= rows == 1 || meta.strides[d] == row_stride * rows;
    row_stride = rows == 1 ? meta.strides[d] : row_stride;
    rows *= meta.sizes[d];
  }
  const Tensor matrix = folds ? indices : torch::stable::contiguous(indices);
  const int64_t dim_stride = folds ? meta.strides[last] : 1;
  row_stride = folds ? row_stride : meta.sizes[last];
  if (meta.dtype == aoti_torch_dtype_int64()) {
    f(const_data<int64_t>(matrix), row_stride, dim_stride);
  } else {
    f(const_data<int32_t>(matrix), row_stride, dim_stride);
  }
}

[[noreturn]] inline void fail_row(
    const char* op,
    const ScatterPlan& plan,
    const std::vector<int64_t>& coordinates,
    int64_t row) {
  fail_index(
      op, ": indices must be within tensor (got ",
      Ints{coordinates.data(), plan.depth}, " in row ", row,
      ", tensor of shape ",
      Ints{plan.sizes.data(), static_cast<int64_t>(plan.sizes.size())}, ")");
}

}  // namespace tso
