#include <string>
#include <tuple>

#include "../common/overlap.h"
#include "../common/scatter_plan.h"
#include "scatter_ways.h"

namespace tso {
namespace {

Tensor tensor_scatter_update_cpu(
    const Tensor& tensor,
    const Tensor& indices,
    const Tensor& updates,
    const std::string& policy) {
  constexpr const char* kName = "tensor_scatter_update";
  const Meta meta(tensor);
  const Meta updates_meta(updates);
  const ScatterPlan plan =
      plan_scatter(kName, meta, Meta(indices), &updates_meta, policy);
  const Tensor rows_of_updates = contiguous(updates, updates_meta);
  const bool direct = meta.contiguous();
  const Tensor out = direct ? allocate(meta, meta.dtype, plan.sizes)
                            : torch::stable::contiguous(tensor);
  const ScatterTarget target{
      direct ? const_data<char>(tensor) : nullptr, mutable_data<char>(out),
      const_data<char>(rows_of_updates), plan.slices, plan.slice_bytes};
  with_rows(plan, indices, [&](const auto& rows) {
    update(kName, plan, rows, target, meta);
  });
  return out;
}

void tensor_scatter_update_inplace_cpu(
    const Tensor& tensor,
    const Tensor& indices,
    const Tensor& updates,
    const std::string& policy) {
  constexpr const char* kName = "tensor_scatter_update_";
  const Meta meta(tensor);
  const Meta indices_meta(indices);
  const Meta updates_meta(updates);
  const ScatterPlan plan =
      plan_scatter(kName, meta, indices_meta, &updates_meta, policy);
  check_no_overlap(kName, meta);
  const Tensor own_indices =
      without_sharing(indices, indices_meta, tensor, meta);
  const Tensor own_updates =
      contiguous_without_sharing(updates, updates_meta, tensor, meta);
  with_rows(plan, own_indices, [&](const auto& rows) {
    if (meta.contiguous()) {
      update(
          kName, plan, rows,
          {nullptr, mutable_data<char>(tensor), const_data<char>(own_updates),
           plan.slices, plan.slice_bytes},
          meta);
    } else {
      check_rows(kName, plan, rows);
      update_strided(
          rows, plan.rows, const_data<char>(own_updates), plan.slice_numel,
          {mutable_data<char>(tensor), meta.dim, meta.element_size(),
           meta.sizes, meta.strides});
    }
  });
}

Tensor tensor_scatter_update_grad_tensor_cpu(
    const Tensor& grad, const Tensor& indices) {
  constexpr const char* kName = "_tensor_scatter_update_grad_tensor";
  const Meta meta(grad);
  const ScatterPlan plan = plan_scatter(kName, meta, Meta(indices), nullptr);
  const bool direct = meta.contiguous();
  const Tensor out = direct ? allocate(meta, meta.dtype, plan.sizes)
                            : torch::stable::contiguous(grad);
  with_rows(plan, indices, [&](const auto& rows) {
    update(
        kName, plan, rows,
        {direct ? const_data<char>(grad) : nullptr, mutable_data<char>(out),
         nullptr, plan.slices, plan.slice_bytes},
        meta);
  });
  return out;
}

Tensor tensor_scatter_update_grad_updates_cpu(
    const Tensor& grad, const Tensor& indices) {
  constexpr const char* kName = "_tensor_scatter_update_grad_updates";
  const Meta meta(grad);
  const Meta indices_meta(indices);
  const ScatterPlan plan = plan_scatter(kName, meta, indices_meta, nullptr);
  const Tensor source = contiguous(grad, meta);
  const Tensor out =
      allocate(meta, meta.dtype, updates_shape(meta, indices_meta, plan.depth));
  with_rows(plan, indices, [&](const auto& rows) {
    transpose(
        kName, plan, rows, const_data<char>(source), mutable_data<char>(out),
        ScatterTarget{}, meta);
  });
  return out;
}

std::tuple<Tensor, Tensor> tensor_scatter_update_grads_cpu(
    const Tensor& grad, const Tensor& indices) {
  constexpr const char* kName = "_tensor_scatter_update_grads";
  const Meta meta(grad);
  const Meta indices_meta(indices);
  const ScatterPlan plan = plan_scatter(kName, meta, indices_meta, nullptr);
  const Tensor source = contiguous(grad, meta);
  const Tensor rest = allocate(meta, meta.dtype, plan.sizes);
  const Tensor out =
      allocate(meta, meta.dtype, updates_shape(meta, indices_meta, plan.depth));
  with_rows(plan, indices, [&](const auto& rows) {
    transpose(
        kName, plan, rows, const_data<char>(source), mutable_data<char>(out),
        {const_data<char>(source), mutable_data<char>(rest), nullptr,
         plan.slices, plan.slice_bytes},
        meta);
  });
  return {rest, out};
}

}  // namespace
}  // namespace tso

#define TSO_REGISTER(ns) TSO_LIBRARY_IMPL(ns, CPU, m)
TSO_REGISTER(TSO_NAMESPACE) {
  m.impl("tensor_scatter_update", TORCH_BOX(&tso::tensor_scatter_update_cpu));
  m.impl(
      "tensor_scatter_update_",
      TORCH_BOX(&tso::tensor_scatter_update_inplace_cpu));
  m.impl(
      "_tensor_scatter_update_grad_tensor",
      TORCH_BOX(&tso::tensor_scatter_update_grad_tensor_cpu));
  m.impl(
      "_tensor_scatter_update_grad_updates",
      TORCH_BOX(&tso::tensor_scatter_update_grad_updates_cpu));
  m.impl(
      "_tensor_scatter_update_grads",
      TORCH_BOX(&tso::tensor_scatter_update_grads_cpu));
}
