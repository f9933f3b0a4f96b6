#include <tuple>
#include <utility>
#include <vector>

#include "../common/concat_plan.h"
#include "concat_sort.h"
#include "parallel.h"
#include "sparse_concat_kernel.h"

namespace tso {
namespace {

// Throws for the first coordinate out of bounds.
void check_bounds(const char* op, const ConcatPlan& plan) {
  for (int64_t i = 0; i < plan.count(); ++i) {
    const ConcatInput& input = plan.inputs[i];
    const BadCoordinate bad =
        find_bad_coordinate(input.indices, input.nnz, input.shape, plan.rank);
    if (bad.entry >= 0) {
      fail_index(
          op, ": indices must be within the shape (got ",
          input.indices.at(bad.entry, bad.dim), " in dimension ", bad.dim,
          " of entry ", bad.entry, " of input ", i, ", shape ",
          Ints{input.shape, plan.rank}, ")");
    }
  }
}

// Runs the job; source_values(i) are the values of input i. Returns whether
// every input was strictly increasing.
template <ConcatDirection kDirection, typename Values>
bool concat(
    const char* op,
    const ConcatPlan& plan,
    const Values& source_values,
    char* out_values,
    int64_t* out_indices,
    int64_t width) {
  if (plan.total == 0) {
    return true;
  }
  ConcatJob job{plan.rank, plan.axis,   plan.total, plan.out_shape,
                {},        out_indices, out_values, width};
  job.sources.reserve(plan.inputs.size());
  for (int64_t i = 0; i < plan.count(); ++i) {
    const ConcatInput& input = plan.inputs[i];
    job.sources.push_back(
        {input.indices, input.nnz, input.offset, input.shape,
         source_values(i)});
  }
  const Parallel parallel =
      Parallel::for_bytes(2 * plan.total * (8 * plan.rank + width));
  const Findings findings = run_concat<kDirection>(parallel, job);
  const bool in_order = findings.bad >= 0;
  if (!in_order) {
    const Parallel sorting = Parallel::for_bytes(plan.total * 64);
    const bool valid = concat_unsorted<kDirection>(sorting, job);
    if (!valid) {
      check_bounds(op, plan);
    }
    STD_TORCH_CHECK(valid, op, ": inputs changed while being read");
  }
  return in_order && findings.repeats >= 0;
}

// Values, indices, and whether every input was strictly increasing.
std::tuple<Tensor, Tensor, bool> concat_forward(
    StableListHandle index_list,
    StableListHandle value_list,
    IndexLayout layout,
    const std::vector<int64_t>& shapes,
    int64_t concat_dim,
    bool expand) {
  constexpr const char* kName = "sparse_concat";
  const TensorList indices(index_list);
  const TensorList values(value_list);
  const ConcatPlan plan =
      plan_concat(kName, indices, layout, &values, shapes, concat_dim, expand);
  const Meta& like = plan.inputs[0].values;
  std::vector<int64_t> sizes(like.sizes, like.sizes + like.dim);
  sizes[0] = plan.total;
  int64_t width = like.element_size();
  for (int64_t d = 1; d < like.dim; ++d) {
    width *= sizes[d];
  }
  const Tensor out_values = allocate(like, like.dtype, sizes);
  const Tensor out_indices =
      allocate_indices(like, plan.total, plan.rank, layout);
  std::vector<Tensor> packed;
  const auto source_values = [&](int64_t i) {
    if (plan.inputs[i].values.contiguous()) {
      return const_cast<char*>(const_data<char>(values[i]));
    }
    packed.push_back(torch::stable::contiguous(values.tensor(i)));
    return const_cast<char*>(const_data<char>(packed.back()));
  };
  const bool strict = concat<ConcatDirection::kForward>(
      kName, plan, source_values, mutable_data<char>(out_values),
      mutable_data<int64_t>(out_indices), width);
  return {out_values, out_indices, strict};
}

std::tuple<Tensor, Tensor> sparse_concat_cpu(
    StableListHandle indices,
    StableListHandle values,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool /*inputs_sorted: found out while reading*/) {
  const auto [out_values, out_indices, strict] = concat_forward(
      indices, values, IndexLayout::kEntries, shapes, concat_dim,
      expand_nonconcat_dims);
  return {out_values, out_indices};
}

std::tuple<Tensor, Tensor, bool> sparse_concat_coo_cpu(
    StableListHandle indices,
    StableListHandle values,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool /*inputs_sorted*/) {
  return concat_forward(
      indices, values, IndexLayout::kDimensions, shapes, concat_dim,
      expand_nonconcat_dims);
}

std::vector<Tensor> sparse_concat_grad_values_cpu(
    const Tensor& grad_values,
    StableListHandle index_list,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool /*inputs_sorted*/) {
  constexpr const char* kName = "_sparse_concat_grad_values";
  const TensorList indices(index_list);
  const ConcatPlan plan = plan_concat(
      kName, indices, IndexLayout::kEntries, nullptr, shapes, concat_dim,
      expand_nonconcat_dims);
  const Meta meta(grad_values);
  check_grad_values(kName, plan, meta);
  const Tensor grad = contiguous(grad_values, meta);
  std::vector<int64_t> sizes(meta.sizes, meta.sizes + meta.dim);
  int64_t width = meta.element_size();
  for (int64_t d = 1; d < meta.dim; ++d) {
    width *= sizes[d];
  }
  std::vector<Tensor> grads;
  grads.reserve(plan.inputs.size());
  for (const ConcatInput& input : plan.inputs) {
    sizes[0] = input.nnz;
    grads.push_back(allocate(meta, meta.dtype, sizes));
  }
  concat<ConcatDirection::kTranspose>(
      kName, plan, [&](int64_t i) { return mutable_data<char>(grads[i]); },
      const_cast<char*>(const_data<char>(grad)), nullptr, width);
  return grads;
}

}  // namespace
}  // namespace tso

#define TSO_REGISTER(ns) TSO_LIBRARY_IMPL(ns, CPU, m)
TSO_REGISTER(TSO_NAMESPACE) {
  m.impl("sparse_concat", TORCH_BOX(&tso::sparse_concat_cpu));
  m.impl("_sparse_concat_coo", TORCH_BOX(&tso::sparse_concat_coo_cpu));
  m.impl(
      "_sparse_concat_grad_values",
      TORCH_BOX(&tso::sparse_concat_grad_values_cpu));
}
