// The checks and sizes of sparse_concat, the same on every device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checks.h"
#include "compat.h"
#include "index_math.h"

namespace tso {

struct ConcatPlan {
  int64_t count = 0;  // inputs
  int64_t rank = 0;   // sparse dimensions
  int64_t axis = 0;
  int64_t total = 0;  // entries of the result
  std::vector<IndexView> indices;
  std::vector<Meta> values;  // of the operators that have some
  std::vector<int64_t> nnz;
  std::vector<int64_t> offsets;    // of each input along the axis
  std::vector<int64_t> shapes;     // sparse sizes of the inputs, end to end
  std::vector<int64_t> out_shape;  // sparse sizes of the result

  const int64_t* shape(int64_t input) const {
    return shapes.data() + input * rank;
  }
};

namespace concat_detail {

// Asking torch about a tensor costs tens of nanoseconds, and there may be
// thousands: everything is asked once.
inline std::vector<Meta> read_metas(const std::vector<Tensor>& tensors) {
  std::vector<Meta> metas;
  metas.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    metas.emplace_back(tensor);
  }
  return metas;
}

inline void check_indices(
    const char* op, const std::vector<Meta>& indices, ConcatPlan& plan) {
  if (indices.empty()) {
    fail_value(op, ": at least one input is required (got an empty list)");
  }
  const Meta& first = indices[0];
  plan.count = static_cast<int64_t>(indices.size());
  for (int64_t i = 0; i < plan.count; ++i) {
    const Meta& meta = indices[i];
    if (!meta.same_device(first)) {
      fail_value(
          op, ": all tensors must be on one device (got ", device_name(first),
          " for input 0, ", device_name(meta), " for input ", i, ")");
    }
    if (meta.dim != 2) {
      fail_value(
          op, ": indices must be of shape [nnz, rank] (got shape ",
          shape_of(meta), " for input ", i, ")");
    }
    if (meta.sizes[1] != first.sizes[1]) {
      fail_value(
          op, ": inputs must have the same number of sparse dimensions (got ",
          first.sizes[1], " for input 0, ", meta.sizes[1], " for input ", i,
          ")");
    }
  }
  plan.rank = first.sizes[1];
  if (plan.rank == 0) {
    fail_value(
        op, ": at least one sparse dimension is required (got 0 for input 0)");
  }
  check_rank(op, plan.rank);
}

inline void check_index_dtypes(
    const char* op,
    const std::vector<Tensor>& indices,
    const std::vector<Meta>& metas,
    ConcatPlan& plan) {
  plan.indices.reserve(indices.size());
  plan.nnz.reserve(indices.size());
  for (int64_t i = 0; i < plan.count; ++i) {
    const Meta& meta = metas[i];
    if (meta.dtype != aoti_torch_dtype_int64()) {
      fail_value(
          op, ": indices must be int64 (got ", dtype_name(meta.dtype),
          " for input ", i, ")");
    }
    plan.indices.push_back(
        {const_data<int64_t>(indices[i]), meta.strides[0], meta.strides[1]});
    plan.nnz.push_back(meta.sizes[0]);
    plan.total += meta.sizes[0];
  }
}

// One size of 2^63 or more, printed exactly.
inline std::string wide(unsigned __int128 value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + int(value % 10)));
    value /= 10;
  } while (value > 0);
  return digits;
}

inline void check_shapes(
    const char* op,
    const std::vector<int64_t>& shapes,
    int64_t concat_dim,
    bool expand,
    ConcatPlan& plan) {
  const int64_t rank = plan.rank;
  if (concat_dim < -rank || concat_dim >= rank) {
    fail_index(
        op, ": axis must be in [", -rank, ", ", rank, ") (got ", concat_dim,
        ")");
  }
  plan.axis = concat_dim < 0 ? concat_dim + rank : concat_dim;
  plan.shapes = shapes;
  for (int64_t i = 0; i < plan.count; ++i) {
    const Ints shape{plan.shape(i), rank};
    int64_t elements = 0;
    for (int64_t d = 0; d < rank; ++d) {
      if (shape.data[d] < 0) {
        fail_value(
            op, ": sizes must not be negative (got shape ", shape,
            " for input ", i, ")");
      }
    }
    if (!volume(shape.data, rank, &elements)) {
      fail_value(
          op, ": a shape must have fewer than 2**63 elements (got ", shape,
          " for input ", i, ")");
    }
  }
  plan.out_shape.assign(plan.shape(0), plan.shape(0) + rank);
  for (int64_t i = 1; i < plan.count; ++i) {
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = plan.shape(i)[d];
      if (d == plan.axis || size == plan.out_shape[d]) {
        continue;
      }
      if (!expand) {
        fail_value(
            op,
            ": inputs must agree in every dimension except axis=", plan.axis,
            " (got size ", plan.out_shape[d], " in dimension ", d,
            " of input 0, size ", size, " in input ", i,
            "; expand_nonconcat_dims=True takes the largest)");
      }
      plan.out_shape[d] = size > plan.out_shape[d] ? size : plan.out_shape[d];
    }
  }
  unsigned __int128 along = 0;
  plan.offsets.reserve(plan.nnz.size());
  for (int64_t i = 0; i < plan.count; ++i) {
    plan.offsets.push_back(static_cast<int64_t>(along));
    along += static_cast<uint64_t>(plan.shape(i)[plan.axis]);
  }
  plan.out_shape[plan.axis] = static_cast<int64_t>(along);
  int64_t elements = 0;
  if (along >= (static_cast<unsigned __int128>(1) << 63) ||
      !volume(plan.out_shape.data(), rank, &elements)) {
    std::string shown = "[";
    for (int64_t d = 0; d < rank; ++d) {
      shown += d ? ", " : "";
      shown += d == plan.axis ? wide(along) : std::to_string(plan.out_shape[d]);
    }
    fail_value(
        op, ": a shape must have fewer than 2**63 elements (got ", shown,
        "] for the result)");
  }
}

inline void check_empty_shapes(const char* op, const ConcatPlan& plan) {
  for (int64_t i = 0; i < plan.count; ++i) {
    int64_t elements = 0;
    volume(plan.shape(i), plan.rank, &elements);
    if (elements == 0 && plan.nnz[i] > 0) {
      fail_index(
          op, ": an empty shape cannot have entries (got ", plan.nnz[i],
          " entries, shape ", Ints{plan.shape(i), plan.rank}, " for input ", i,
          ")");
    }
  }
}

inline void check_shape_count(
    const char* op,
    const std::vector<int64_t>& shapes,
    const ConcatPlan& plan) {
  if (static_cast<int64_t>(shapes.size()) != plan.count * plan.rank) {
    fail_value(
        op, ": shapes must hold ", plan.rank, " sizes for each of the ",
        plan.count, " inputs (got ", shapes.size(), ")");
  }
}

inline void check_values(const char* op, const ConcatPlan& plan) {
  const Meta& first = plan.values[0];
  for (int64_t i = 0; i < plan.count; ++i) {
    const Meta& meta = plan.values[i];
    if (meta.dim < 1 || meta.sizes[0] != plan.nnz[i]) {
      fail_value(
          op, ": values must have one row for each of the ", plan.nnz[i],
          " entries (got shape ", shape_of(meta), " for input ", i, ")");
    }
    if (meta.dtype != first.dtype) {
      fail_value(
          op, ": inputs must have the same dtype (got ",
          dtype_name(first.dtype), " for input 0, ", dtype_name(meta.dtype),
          " for input ", i, ")");
    }
    const Ints dense{meta.sizes + 1, meta.dim - 1};
    const Ints wanted{first.sizes + 1, first.dim - 1};
    bool same = dense.count == wanted.count;
    for (int64_t d = 0; same && d < dense.count; ++d) {
      same = dense.data[d] == wanted.data[d];
    }
    if (!same) {
      fail_value(
          op, ": inputs must agree in their dense dimensions (got ", wanted,
          " for input 0, ", dense, " for input ", i, ")");
    }
  }
}

inline void check_devices(
    const char* op,
    const std::vector<Meta>& indices,
    const std::vector<Meta>& values) {
  const Meta& first = indices[0];
  for (size_t i = 0; i < values.size(); ++i) {
    for (const Meta* meta : {&indices[i], &values[i]}) {
      if (!meta->same_device(first)) {
        fail_value(
            op, ": all tensors must be on one device (got ", device_name(first),
            " for input 0, ", device_name(*meta), " for input ", i, ")");
      }
    }
  }
}

}  // namespace concat_detail

// Every check that needs no look at the entries, and the sizes that follow.
// `values` is null for the operators that have none.
inline ConcatPlan plan_concat(
    const char* op,
    const std::vector<Tensor>& indices,
    const std::vector<Tensor>* values,
    const std::vector<int64_t>& shapes,
    int64_t concat_dim,
    bool expand) {
  using namespace concat_detail;
  ConcatPlan plan;
  const std::vector<Meta> metas = read_metas(indices);
  if (values != nullptr && !indices.empty()) {
    if (values->size() != indices.size()) {
      fail_value(
          op, ": indices and values must have the same length (got ",
          indices.size(), " and ", values->size(), ")");
    }
    plan.values = read_metas(*values);
    check_devices(op, metas, plan.values);
  }
  check_indices(op, metas, plan);
  check_shape_count(op, shapes, plan);
  check_index_dtypes(op, indices, metas, plan);
  if (values != nullptr) {
    check_values(op, plan);
  }
  check_shapes(op, shapes, concat_dim, expand, plan);
  check_empty_shapes(op, plan);
  return plan;
}

// What the transpose asks of its gradient.
inline void check_grad_values(
    const char* op,
    const ConcatPlan& plan,
    const Meta& grad,
    const Meta& indices) {
  if (!grad.same_device(indices)) {
    fail_value(
        op, ": all tensors must be on one device (got ", device_name(grad),
        " for grad_values, ", device_name(indices), " for input 0)");
  }
  if (grad.dim < 1 || grad.sizes[0] != plan.total) {
    fail_value(
        op, ": grad_values must have one row for each of the ", plan.total,
        " entries (got shape ", shape_of(grad), ")");
  }
}

}  // namespace tso
