// The checks and sizes of sparse_concat, the same on every device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "checks.h"
#include "compat.h"
#include "index_math.h"

namespace tso {

struct ConcatInput {
  Meta index_matrix;
  Meta values;  // where the operator has some
  IndexView indices;
  int64_t nnz;
  int64_t offset;        // along the axis
  const int64_t* shape;  // sparse sizes
};

// Borrows the tensors and the shapes.
struct ConcatPlan {
  int64_t rank = 0;  // sparse dimensions
  int64_t axis = 0;
  int64_t total = 0;                // entries of the result
  std::vector<ConcatInput> inputs;  // at least one
  int64_t out_shape[kMaxRank];      // sparse sizes of the result

  int64_t count() const {
    return static_cast<int64_t>(inputs.size());
  }
};

namespace concat_detail {

// Asking torch about a tensor costs tens of nanoseconds, and there may be
// thousands: everything is asked once.
inline void read_inputs(
    const char* op,
    const TensorList& indices,
    const TensorList* values,
    ConcatPlan& plan) {
  if (indices.empty()) {
    fail_value(op, ": at least one input is required (got an empty list)");
  }
  if (values != nullptr && values->size() != indices.size()) {
    fail_value(
        op, ": indices and values must have the same length (got ",
        indices.size(), " and ", values->size(), ")");
  }
  plan.inputs.resize(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    plan.inputs[i].index_matrix = Meta(indices[i]);
    if (values != nullptr) {
      plan.inputs[i].values = Meta((*values)[i]);
    }
  }
}

inline void check_devices(
    const char* op, bool has_values, const ConcatPlan& plan) {
  const Meta& first = plan.inputs[0].index_matrix;
  const auto check = [&](const Meta& meta, int64_t i) {
    if (!meta.same_device(first)) {
      fail_value(
          op, ": all tensors must be on one device (got ", device_name(first),
          " for input 0, ", device_name(meta), " for input ", i, ")");
    }
  };
  for (int64_t i = 0; i < plan.count(); ++i) {
    check(plan.inputs[i].index_matrix, i);
    if (has_values) {
      check(plan.inputs[i].values, i);
    }
  }
}

inline void check_indices(
    const char* op, IndexLayout layout, ConcatPlan& plan) {
  const bool by_entries = layout == IndexLayout::kEntries;
  const int rank_dim = by_entries ? 1 : 0;
  const Meta& first = plan.inputs[0].index_matrix;
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Meta& meta = plan.inputs[i].index_matrix;
    if (meta.dim != 2) {
      fail_value(
          op, ": indices must be of shape ",
          by_entries ? "[nnz, rank]" : "[rank, nnz]", " (got shape ",
          shape_of(meta), " for input ", i, ")");
    }
    if (meta.sizes[rank_dim] != first.sizes[rank_dim]) {
      fail_value(
          op, ": inputs must have the same number of sparse dimensions (got ",
          first.sizes[rank_dim], " for input 0, ", meta.sizes[rank_dim],
          " for input ", i, ")");
    }
  }
  plan.rank = first.sizes[rank_dim];
  if (plan.rank == 0) {
    fail_value(
        op, ": at least one sparse dimension is required (got 0 for input 0)");
  }
  check_rank(op, plan.rank);
}

inline void check_index_dtypes(
    const char* op,
    const TensorList& indices,
    IndexLayout layout,
    ConcatPlan& plan) {
  const int entry_dim = layout == IndexLayout::kEntries ? 0 : 1;
  const int32_t int64 = aoti_torch_dtype_int64();
  for (int64_t i = 0; i < plan.count(); ++i) {
    ConcatInput& input = plan.inputs[i];
    const Meta& meta = input.index_matrix;
    if (meta.dtype != int64) {
      fail_value(
          op, ": indices must be int64 (got ", dtype_name(meta.dtype),
          " for input ", i, ")");
    }
    input.indices = {
        const_data<int64_t>(indices[i]), meta.strides[entry_dim],
        meta.strides[1 - entry_dim]};
    input.nnz = meta.sizes[entry_dim];
    plan.total += input.nnz;
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
    const char* op, int64_t concat_dim, bool expand, ConcatPlan& plan) {
  const int64_t rank = plan.rank;
  if (concat_dim < -rank || concat_dim >= rank) {
    fail_index(
        op, ": axis must be in [", -rank, ", ", rank, ") (got ", concat_dim,
        ")");
  }
  plan.axis = concat_dim < 0 ? concat_dim + rank : concat_dim;
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Ints shape{plan.inputs[i].shape, rank};
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
  std::copy_n(plan.inputs[0].shape, rank, plan.out_shape);
  for (int64_t i = 1; i < plan.count(); ++i) {
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = plan.inputs[i].shape[d];
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
  for (ConcatInput& input : plan.inputs) {
    input.offset = static_cast<int64_t>(along);
    along += static_cast<uint64_t>(input.shape[plan.axis]);
  }
  plan.out_shape[plan.axis] = static_cast<int64_t>(along);
  int64_t elements = 0;
  if (along >= (static_cast<unsigned __int128>(1) << 63) ||
      !volume(plan.out_shape, rank, &elements)) {
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
  for (int64_t i = 0; i < plan.count(); ++i) {
    const ConcatInput& input = plan.inputs[i];
    int64_t elements = 0;
    volume(input.shape, plan.rank, &elements);
    if (elements == 0 && input.nnz > 0) {
      fail_index(
          op, ": an empty shape cannot have entries (got ", input.nnz,
          " entries, shape ", Ints{input.shape, plan.rank}, " for input ", i,
          ")");
    }
  }
}

inline void split_shapes(
    const char* op, const std::vector<int64_t>& shapes, ConcatPlan& plan) {
  if (static_cast<int64_t>(shapes.size()) != plan.count() * plan.rank) {
    fail_value(
        op, ": shapes must hold ", plan.rank, " sizes for each of the ",
        plan.count(), " inputs (got ", shapes.size(), ")");
  }
  for (int64_t i = 0; i < plan.count(); ++i) {
    plan.inputs[i].shape = shapes.data() + i * plan.rank;
  }
}

inline void check_values(const char* op, const ConcatPlan& plan) {
  const Meta& first = plan.inputs[0].values;
  for (int64_t i = 0; i < plan.count(); ++i) {
    const Meta& meta = plan.inputs[i].values;
    const int64_t nnz = plan.inputs[i].nnz;
    if (meta.dim < 1 || meta.sizes[0] != nnz) {
      fail_value(
          op, ": values must have one row for each of the ", nnz,
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

}  // namespace concat_detail

// Every check that needs no look at the entries, and the sizes that follow.
// `values` is null for the operators that have none.
inline ConcatPlan plan_concat(
    const char* op,
    const TensorList& indices,
    IndexLayout layout,
    const TensorList* values,
    const std::vector<int64_t>& shapes,
    int64_t concat_dim,
    bool expand) {
  using namespace concat_detail;
  ConcatPlan plan;
  read_inputs(op, indices, values, plan);
  check_devices(op, values != nullptr, plan);
  check_indices(op, layout, plan);
  split_shapes(op, shapes, plan);
  check_index_dtypes(op, indices, layout, plan);
  if (values != nullptr) {
    check_values(op, plan);
  }
  check_shapes(op, concat_dim, expand, plan);
  check_empty_shapes(op, plan);
  return plan;
}

// What the transpose asks of its gradient.
inline void check_grad_values(
    const char* op, const ConcatPlan& plan, const Meta& grad) {
  const Meta& indices = plan.inputs[0].index_matrix;
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
