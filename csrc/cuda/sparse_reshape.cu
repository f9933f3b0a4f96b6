#include <vector>

#include "common/reshape_plan.h"
#include "cuda/sparse_reshape_kernel.cuh"
#include "cuda/stream.h"

namespace tso {
namespace {

ReshapeKernel make_kernel(const ReshapePlan& plan, int64_t* out) {
  ReshapeKernel kernel;
  kernel.indices = plan.indices;
  kernel.out = out;
  kernel.nnz = plan.nnz;
  int in = 0;
  int outs = 0;
  for (const ReshapeGroup& group : plan.groups) {
    for (int64_t dim : group.in) {
      kernel.in_sizes[in] = plan.shape[dim];
      kernel.in_dims[in++] = static_cast<uint8_t>(dim);
    }
    for (int64_t dim : group.out) {
      kernel.out_dividers[outs] = make_divider(plan.target[dim]);
      kernel.out_dims[outs++] = static_cast<uint8_t>(dim);
    }
    kernel.in_ends[kernel.steps] = static_cast<uint8_t>(in);
    kernel.out_ends[kernel.steps++] = static_cast<uint8_t>(outs);
  }
  for (size_t dim = 0; dim < plan.target.size(); ++dim) {
    if (plan.target[dim] == 1) {
      kernel.zero_dims[kernel.zeros++] = static_cast<uint8_t>(dim);
    }
  }
  return kernel;
}

Tensor sparse_reshape_cuda(
    const Tensor& input_indices,
    std::vector<int64_t> input_shape,
    std::vector<int64_t> new_shape) {
  const ReshapePlan plan =
      plan_reshape("sparse_reshape", input_indices, input_shape, new_shape);
  const Meta meta(input_indices);
  const DeviceScope device(meta.device_index);
  Tensor out = allocate_indices(
      meta, plan.nnz, static_cast<int64_t>(plan.target.size()));
  if (plan.nnz > 0) {
    launch_sparse_reshape(
        make_kernel(plan, mutable_data<int64_t>(out)), device.stream());
  }
  return out;
}

}  // namespace
}  // namespace tso

#define TSO_REGISTER(ns, key) TSO_LIBRARY_IMPL(ns, key, m)
TSO_REGISTER(TSO_NAMESPACE, TSO_DEVICE_KEY) {
  m.impl("sparse_reshape", TORCH_BOX(&tso::sparse_reshape_cuda));
}
