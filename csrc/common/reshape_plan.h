// The checks and sizes of sparse_reshape and how the target's coordinates
// follow from the input's, the same on every device.
#pragma once

#include <cstdint>
#include <vector>

#include "checks.h"
#include "compat.h"
#include "index_math.h"

namespace tso {

// Dimensions [in_begin, in_end) of the input hold as many elements as
// dimensions [out_begin, out_end) of the target, and no part of either does
// so alone: the coordinates of one follow from those of the other and from
// nothing else. Dimensions of size 1 belong to no group.
struct ReshapeGroup {
  std::vector<int64_t> in;   // dimensions of the input
  std::vector<int64_t> out;  // dimensions of the target
};

struct ReshapePlan {
  int64_t nnz = 0;
  IndexView indices{};
  std::vector<int64_t> shape;
  std::vector<int64_t> target;
  std::vector<ReshapeGroup> groups;
};

namespace reshape_detail {

inline void resolve_target(
    const char* op, const std::vector<int64_t>& target, ReshapePlan& plan) {
  const int64_t rank = static_cast<int64_t>(plan.shape.size());
  const Ints shape{plan.shape.data(), rank};
  for (int64_t size : plan.shape) {
    if (size < 0) {
      fail_value(op, ": sizes must not be negative (got shape ", shape, ")");
    }
  }
  int64_t elements = 0;
  if (!volume(shape.data, rank, &elements)) {
    fail_value(
        op, ": a shape must have fewer than 2**63 elements (got ", shape, ")");
  }
  const std::string got = text(
      " (got ", elements, " elements in ", shape, ", target ",
      Ints{target.data(), static_cast<int64_t>(target.size())}, ")");
  std::vector<int64_t> known;
  int64_t inferred = -1;
  for (int64_t size : target) {
    if (size < -1) {
      fail_value(
          op, ": target sizes must not be negative, except for one -1", got);
    }
  }
  for (size_t d = 0; d < target.size(); ++d) {
    if (target[d] != -1) {
      known.push_back(target[d]);
    } else if (inferred >= 0) {
      fail_value(op, ": at most one target size may be -1", got);
    } else {
      inferred = static_cast<int64_t>(d);
    }
  }
  int64_t product = 0;
  const bool fits =
      volume(known.data(), static_cast<int64_t>(known.size()), &product);
  plan.target = target;
  if (inferred < 0) {
    if (!fits || product != elements) {
      fail_value(
          op, ": the target must have as many elements as the input", got);
    }
    return;
  }
  if (fits && product == 0) {
    fail_value(op, ": -1 cannot be inferred beside a size of 0", got);
  }
  if (elements != 0 && (!fits || elements % product != 0)) {
    fail_value(
        op, ": the target sizes must divide the number of elements", got);
  }
  plan.target[inferred] = elements == 0 ? 0 : elements / product;
}

inline std::vector<ReshapeGroup> group_dims(
    const std::vector<int64_t>& shape, const std::vector<int64_t>& target) {
  std::vector<ReshapeGroup> groups;
  const size_t in_rank = shape.size();
  const size_t out_rank = target.size();
  size_t i = 0;
  size_t o = 0;
  while (true) {
    while (i < in_rank && shape[i] == 1) {
      ++i;
    }
    while (o < out_rank && target[o] == 1) {
      ++o;
    }
    if (i == in_rank || o == out_rank) {
      return groups;
    }
    ReshapeGroup group;
    // Neither product exceeds the volume, so neither overflows.
    int64_t in_product = 1;
    int64_t out_product = 1;
    do {
      const bool from_input = in_product <= out_product;
      const size_t dim = from_input ? i++ : o++;
      const int64_t size = from_input ? shape[dim] : target[dim];
      (from_input ? in_product : out_product) *= size;
      if (size != 1) {
        (from_input ? group.in : group.out)
            .push_back(static_cast<int64_t>(dim));
      }
    } while (in_product != out_product);
    groups.push_back(group);
  }
}

}  // namespace reshape_detail

// The target with its -1 resolved; every check that needs no look at the
// entries.
inline ReshapePlan plan_reshape(
    const char* op,
    const Tensor& indices,
    const std::vector<int64_t>& shape,
    const std::vector<int64_t>& target) {
  const Meta meta(indices);
  ReshapePlan plan;
  if (meta.dim != 2) {
    fail_value(
        op, ": indices must be of shape [nnz, rank] (got shape ",
        shape_of(meta), ")");
  }
  if (meta.dtype != aoti_torch_dtype_int64()) {
    fail_value(
        op, ": indices must be int64 (got ", dtype_name(meta.dtype), ")");
  }
  const int64_t rank = meta.sizes[1];
  check_rank(op, rank);
  check_rank(op, static_cast<int64_t>(target.size()));
  if (static_cast<int64_t>(shape.size()) != rank) {
    fail_value(
        op, ": the shape must have ", rank,
        " sizes, one for each sparse dimension (got ",
        Ints{shape.data(), static_cast<int64_t>(shape.size())}, ")");
  }
  plan.nnz = meta.sizes[0];
  plan.indices = {
      const_data<int64_t>(indices), meta.strides[0], meta.strides[1]};
  plan.shape = shape;
  reshape_detail::resolve_target(op, target, plan);
  int64_t elements = 0;
  volume(plan.shape.data(), rank, &elements);
  if (elements == 0) {
    if (plan.nnz > 0) {
      fail_index(
          op, ": an empty shape cannot have entries (got ", plan.nnz,
          " entries, shape ", Ints{shape.data(), rank}, ")");
    }
    return plan;
  }
  plan.groups = reshape_detail::group_dims(plan.shape, plan.target);
  return plan;
}

}  // namespace tso
