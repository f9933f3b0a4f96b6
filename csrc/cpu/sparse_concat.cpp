#include <tuple>
#include <vector>

#include "../common/concat_plan.h"
#include "parallel.h"
#include "sparse_concat_kernel.h"
#include "stable_order.h"

namespace tso {
namespace {

// Throws for the first coordinate out of bounds.
void check_bounds(const char* op, const ConcatPlan& plan) {
  for (int64_t i = 0; i < plan.count; ++i) {
    const IndexView& indices = plan.indices[i];
    const BadCoordinate bad =
        find_bad_coordinate(indices, plan.nnz[i], plan.shape(i), plan.rank);
    if (bad.entry >= 0) {
      fail_index(
          op, ": indices must be within the shape (got ",
          indices.at(bad.entry, bad.dim), " in dimension ", bad.dim,
          " of entry ", bad.entry, " of input ", i, ", shape ",
          Ints{plan.shape(i), plan.rank}, ")");
    }
  }
}

// The order that sorts an input whose coordinates are in bounds; empty if it
// is sorted.
std::vector<int64_t> sorting_order(const ConcatPlan& plan, int64_t input) {
  const int64_t nnz = plan.nnz[input];
  std::vector<uint64_t> keys(nnz);
  bool sorted = true;
  for (int64_t entry = 0; entry < nnz; ++entry) {
    int64_t key = 0;
    for (int64_t d = 0; d < plan.rank; ++d) {
      key = multiply_add(
          key, plan.shape(input)[d], plan.indices[input].at(entry, d));
    }
    keys[entry] = static_cast<uint64_t>(key);
    sorted &= entry == 0 || keys[entry - 1] <= keys[entry];
  }
  return sorted ? std::vector<int64_t>{}
                : stable_order(Parallel::for_bytes(nnz * 64), std::move(keys));
}

// Runs the job; values of the inputs are `values`, null where there are no
// entries. Returns whether every input was strictly increasing.
template <ConcatDirection kDirection>
bool concat(
    const char* op,
    const ConcatPlan& plan,
    const std::vector<char*>& values,
    char* out_values,
    int64_t* out_indices,
    int64_t width) {
  if (plan.total == 0) {
    return true;
  }
  ConcatJob job{plan.rank, plan.axis,   plan.total, plan.out_shape.data(),
                {},        out_indices, out_values, width};
  job.sources.reserve(plan.count);
  for (int64_t i = 0; i < plan.count; ++i) {
    job.sources.push_back(
        {plan.indices[i], nullptr, plan.nnz[i], plan.offsets[i], plan.shape(i),
         values[i]});
  }
  const Parallel parallel =
      Parallel::for_bytes(2 * plan.total * (8 * plan.rank + width));
  Findings findings = run_concat<kDirection>(parallel, job);
  const bool in_order = findings.bad >= 0;
  if (!in_order) {
    check_bounds(op, plan);
    std::vector<std::vector<int64_t>> orders(plan.count);
    for (int64_t i = 0; i < plan.count; ++i) {
      orders[i] = sorting_order(plan, i);
      job.sources[i].order = orders[i].empty() ? nullptr : orders[i].data();
    }
    findings = run_concat<kDirection>(parallel, job);
    STD_TORCH_CHECK(findings.bad >= 0, op, ": inputs changed while being read");
  }
  return in_order && findings.repeats >= 0;
}

std::tuple<Tensor, Tensor, bool> concat_forward(
    const char* op,
    const std::vector<Tensor>& indices,
    const std::vector<Tensor>& values,
    const std::vector<int64_t>& shapes,
    int64_t concat_dim,
    bool expand) {
  const ConcatPlan plan =
      plan_concat(op, indices, &values, shapes, concat_dim, expand);
  const Meta& like = plan.values[0];
  std::vector<int64_t> sizes(like.sizes, like.sizes + like.dim);
  sizes[0] = plan.total;
  int64_t width = like.element_size();
  for (int64_t d = 1; d < like.dim; ++d) {
    width *= sizes[d];
  }
  const Tensor out_values = allocate(like, like.dtype, sizes);
  const Tensor out_indices = allocate_indices(like, plan.total, plan.rank);
  std::vector<Tensor> packed;
  std::vector<char*> pointers;
  pointers.reserve(values.size());
  for (int64_t i = 0; i < plan.count; ++i) {
    const Tensor* value = &values[i];
    if (!plan.values[i].contiguous()) {
      packed.push_back(torch::stable::contiguous(*value));
      value = &packed.back();
    }
    pointers.push_back(const_cast<char*>(const_data<char>(*value)));
  }
  const bool strict = concat<ConcatDirection::kForward>(
      op, plan, pointers, mutable_data<char>(out_values),
      mutable_data<int64_t>(out_indices), width);
  return {out_values, out_indices, strict};
}

std::tuple<Tensor, Tensor> sparse_concat_cpu(
    const std::vector<Tensor>& indices,
    const std::vector<Tensor>& values,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool /*inputs_sorted: found out while reading*/) {
  const auto [out_values, out_indices, strict] = concat_forward(
      "sparse_concat", indices, values, shapes, concat_dim,
      expand_nonconcat_dims);
  return {out_values, out_indices};
}

std::tuple<Tensor, Tensor, bool> sparse_concat_coo_cpu(
    const std::vector<Tensor>& indices,
    const std::vector<Tensor>& values,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool /*inputs_sorted*/) {
  return concat_forward(
      "sparse_concat", indices, values, shapes, concat_dim,
      expand_nonconcat_dims);
}

std::vector<Tensor> sparse_concat_grad_values_cpu(
    const Tensor& grad_values,
    const std::vector<Tensor>& indices,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool /*inputs_sorted*/) {
  constexpr const char* kName = "_sparse_concat_grad_values";
  const ConcatPlan plan = plan_concat(
      kName, indices, nullptr, shapes, concat_dim, expand_nonconcat_dims);
  const Meta meta(grad_values);
  check_grad_values(kName, plan, meta, Meta(indices[0]));
  const Tensor grad = contiguous(grad_values, meta);
  std::vector<int64_t> sizes(meta.sizes, meta.sizes + meta.dim);
  int64_t width = meta.element_size();
  for (int64_t d = 1; d < meta.dim; ++d) {
    width *= sizes[d];
  }
  std::vector<Tensor> grads;
  std::vector<char*> pointers;
  for (int64_t i = 0; i < plan.count; ++i) {
    sizes[0] = plan.nnz[i];
    grads.push_back(allocate(meta, meta.dtype, sizes));
    pointers.push_back(mutable_data<char>(grads.back()));
  }
  concat<ConcatDirection::kTranspose>(
      kName, plan, pointers, const_cast<char*>(const_data<char>(grad)), nullptr,
      width);
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
