#include <atomic>
#include <vector>

#include "../common/reshape_plan.h"
#include "parallel.h"
#include "sparse_reshape_kernel.h"

namespace tso {
namespace {

constexpr const char* kName = "sparse_reshape";

ReshapeKernel make_kernel(const ReshapePlan& plan, int64_t* out) {
  ReshapeKernel kernel;
  kernel.indices = plan.indices;
  kernel.out = out;
  kernel.nnz = plan.nnz;
  for (const ReshapeGroup& group : plan.groups) {
    ReshapeStep step;
    for (int64_t dim : group.in) {
      step.in.push_back({dim, plan.shape[dim]});
    }
    for (int64_t dim : group.out) {
      step.out.push_back({dim, make_divider(plan.target[dim])});
    }
    step.choose_width();
    kernel.steps.push_back(std::move(step));
  }
  for (size_t dim = 0; dim < plan.shape.size(); ++dim) {
    if (plan.shape[dim] == 1) {
      kernel.ones.push_back({static_cast<int64_t>(dim), 1});
    }
  }
  for (size_t dim = 0; dim < plan.target.size(); ++dim) {
    if (plan.target[dim] == 1) {
      kernel.zero_dims.push_back(static_cast<int64_t>(dim));
    }
  }
  return kernel;
}

Tensor sparse_reshape_cpu(
    const Tensor& input_indices,
    std::vector<int64_t> input_shape,
    std::vector<int64_t> new_shape) {
  const ReshapePlan plan =
      plan_reshape(kName, input_indices, input_shape, new_shape);
  const int64_t rank = static_cast<int64_t>(plan.shape.size());
  const int64_t out_rank = static_cast<int64_t>(plan.target.size());
  Tensor out = allocate_indices(Meta(input_indices), plan.nnz, out_rank);
  if (plan.nnz == 0) {
    return out;
  }
  const ReshapeKernel kernel = make_kernel(plan, mutable_data<int64_t>(out));
  std::atomic<int64_t> bad{0};
  Parallel::for_bytes(plan.nnz * 8 * (rank + out_rank))
      .each_range(plan.nnz, [&](int64_t begin, int64_t end) {
        bad |= kernel.run(begin, end);
      });
  if (bad < 0) {
    const BadCoordinate at =
        find_bad_coordinate(plan.indices, plan.nnz, plan.shape.data(), rank);
    fail_index(
        kName, ": indices must be within the shape (got ",
        plan.indices.at(at.entry, at.dim), " in dimension ", at.dim,
        " of entry ", at.entry, ", shape ", Ints{plan.shape.data(), rank}, ")");
  }
  return out;
}

}  // namespace
}  // namespace tso

#define TSO_REGISTER(ns) TSO_LIBRARY_IMPL(ns, CPU, m)
TSO_REGISTER(TSO_NAMESPACE) {
  m.impl("sparse_reshape", TORCH_BOX(&tso::sparse_reshape_cpu));
}
