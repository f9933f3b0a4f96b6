// Every operator's schema, and what a call meets when no kernel takes it.
#include <stdexcept>
#include <string>
#include <vector>

#include "common/checks.h"
#include "common/compat.h"

#define TSO_DEFINE(ns) TSO_LIBRARY(ns, m)
TSO_DEFINE(TSO_NAMESPACE) {
  m.def(
      "sparse_concat(Tensor[] indices, Tensor[] values, SymInt[] shapes, "
      "int concat_dim, bool expand_nonconcat_dims=False, "
      "bool inputs_sorted=False) "
      "-> (Tensor output_values, Tensor output_indices)");
  m.def(
      "sparse_reshape(Tensor input_indices, SymInt[] input_shape, "
      "SymInt[] new_shape) -> Tensor output_indices");
  m.def(
      "tensor_scatter_update(Tensor tensor, Tensor indices, Tensor updates, "
      "str bad_indices_policy=\"\") -> Tensor");
  m.def(
      "tensor_scatter_update_(Tensor(a!) tensor, Tensor indices, "
      "Tensor updates, str bad_indices_policy=\"\") -> ()");

  // sparse_concat of index matrices as COO tensors store them, [rank, nnz], and
  // whether each input was strictly increasing and with it the result is
  // coalesced. CUDA takes the caller's word. Each symbolic int would cost more
  // to pass than a tensor, and no COO tensor has one.
  m.def(
      "_sparse_concat_coo(Tensor[] indices, Tensor[] values, "
      "int[] shapes, int concat_dim, bool expand_nonconcat_dims, "
      "bool inputs_sorted) "
      "-> (Tensor output_values, Tensor output_indices, bool coalesced)");
  // Transposes.
  m.def(
      "_sparse_concat_grad_values(Tensor grad_values, Tensor[] indices, "
      "SymInt[] shapes, int concat_dim, bool expand_nonconcat_dims, "
      "bool inputs_sorted) -> Tensor[]");
  m.def(
      "_tensor_scatter_update_grad_tensor(Tensor grad, Tensor indices) "
      "-> Tensor");
  m.def(
      "_tensor_scatter_update_grad_updates(Tensor grad, Tensor indices) "
      "-> Tensor");
  // Both at once. It has no derivative.
  m.def(
      "_tensor_scatter_update_grads(Tensor grad, Tensor indices) "
      "-> (Tensor grad_tensor, Tensor grad_updates)");
}

// A call whose arguments no kernel takes (an empty list, a layout or a backend
// without one) would be refused by the dispatcher in words that do not help.
namespace tso {
namespace {

struct Argument {
  AtenTensorHandle tensor;
  std::string name;
};

std::string layout_name(int32_t layout) {
  struct Name {
    int32_t (*code)();
    const char* name;
  };
  static const Name names[] = {
      {aoti_torch_layout_sparse_coo, "sparse_coo"},
      {aoti_torch_layout_sparse_csr, "sparse_csr"},
      {aoti_torch_layout_sparse_csc, "sparse_csc"},
      {aoti_torch_layout_sparse_bsr, "sparse_bsr"},
      {aoti_torch_layout_sparse_bsc, "sparse_bsc"},
      {aoti_torch_layout__mkldnn, "mkldnn"},
      {aoti_torch_layout_jagged, "jagged"},
  };
  for (const Name& entry : names) {
    if (entry.code() == layout) {
      return entry.name;
    }
  }
  return "another layout's";
}

// The first argument that is not strided speaks for all; else the first.
[[noreturn]] void fail_unsupported(
    const char* op, const std::vector<Argument>& arguments) {
  std::string got;
  for (const Argument& argument : arguments) {
    int32_t layout = 0;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_layout(argument.tensor, &layout));
    if (layout != aoti_torch_layout_strided()) {
      got = text("a ", layout_name(layout), " tensor for ", argument.name);
      break;
    }
    if (got.empty()) {
      const Meta meta(argument.tensor);
      got = text(
          "a tensor of ", dtype_name(meta.dtype), " on ", device_name(meta),
          " for ", argument.name);
    }
  }
  fail_value(
      op, ": strided tensors on CPU or CUDA are required (got ", got, ")");
}

void add_inputs(const TensorList& tensors, std::vector<Argument>& arguments) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    arguments.push_back({tensors[i], text("input ", i)});
  }
}

void check_not_empty(const char* op, const TensorList& indices) {
  if (indices.empty()) {
    fail_value(op, ": at least one input is required (got an empty list)");
  }
}

[[noreturn]] void fail_concat(
    StableListHandle index_list, StableListHandle value_list) {
  const TensorList indices(index_list);
  const TensorList values(value_list);
  check_not_empty("sparse_concat", indices);
  std::vector<Argument> arguments;
  add_inputs(indices, arguments);
  add_inputs(values, arguments);
  fail_unsupported("sparse_concat", arguments);
}

std::tuple<Tensor, Tensor> concat_fallback(
    StableListHandle indices,
    StableListHandle values,
    std::vector<int64_t>,
    int64_t,
    bool,
    bool) {
  fail_concat(indices, values);
}

std::tuple<Tensor, Tensor, bool> concat_coo_fallback(
    StableListHandle indices,
    StableListHandle values,
    std::vector<int64_t>,
    int64_t,
    bool,
    bool) {
  fail_concat(indices, values);
}

std::vector<Tensor> concat_grad_values_fallback(
    const Tensor& grad_values,
    StableListHandle index_list,
    std::vector<int64_t>,
    int64_t,
    bool,
    bool) {
  constexpr const char* kName = "_sparse_concat_grad_values";
  const TensorList indices(index_list);
  check_not_empty(kName, indices);
  std::vector<Argument> arguments;
  add_inputs(indices, arguments);
  arguments.push_back({grad_values.get(), "grad_values"});
  fail_unsupported(kName, arguments);
}

Tensor reshape_fallback(
    const Tensor& indices, std::vector<int64_t>, std::vector<int64_t>) {
  fail_unsupported("sparse_reshape", {{indices.get(), "input_indices"}});
}

Tensor scatter_fallback(
    const Tensor& tensor,
    const Tensor& indices,
    const Tensor& updates,
    const std::string&) {
  fail_unsupported(
      "tensor_scatter_update", {{tensor.get(), "tensor"},
                                {indices.get(), "indices"},
                                {updates.get(), "updates"}});
}

void scatter_inplace_fallback(
    const Tensor& tensor,
    const Tensor& indices,
    const Tensor& updates,
    const std::string&) {
  fail_unsupported(
      "tensor_scatter_update_", {{tensor.get(), "tensor"},
                                 {indices.get(), "indices"},
                                 {updates.get(), "updates"}});
}

Tensor scatter_grad_tensor_fallback(const Tensor& grad, const Tensor& indices) {
  fail_unsupported(
      "_tensor_scatter_update_grad_tensor",
      {{grad.get(), "grad"}, {indices.get(), "indices"}});
}

Tensor scatter_grad_updates_fallback(
    const Tensor& grad, const Tensor& indices) {
  fail_unsupported(
      "_tensor_scatter_update_grad_updates",
      {{grad.get(), "grad"}, {indices.get(), "indices"}});
}

std::tuple<Tensor, Tensor> scatter_grads_fallback(
    const Tensor& grad, const Tensor& indices) {
  fail_unsupported(
      "_tensor_scatter_update_grads",
      {{grad.get(), "grad"}, {indices.get(), "indices"}});
}

}  // namespace
}  // namespace tso

#define TSO_FALLBACK(ns) TSO_LIBRARY_IMPL(ns, CompositeExplicitAutograd, m)
TSO_FALLBACK(TSO_NAMESPACE) {
  m.impl("sparse_concat", TORCH_BOX(&tso::concat_fallback));
  m.impl("_sparse_concat_coo", TORCH_BOX(&tso::concat_coo_fallback));
  m.impl(
      "_sparse_concat_grad_values",
      TORCH_BOX(&tso::concat_grad_values_fallback));
  m.impl("sparse_reshape", TORCH_BOX(&tso::reshape_fallback));
  m.impl("tensor_scatter_update", TORCH_BOX(&tso::scatter_fallback));
  m.impl("tensor_scatter_update_", TORCH_BOX(&tso::scatter_inplace_fallback));
  m.impl(
      "_tensor_scatter_update_grad_tensor",
      TORCH_BOX(&tso::scatter_grad_tensor_fallback));
  m.impl(
      "_tensor_scatter_update_grad_updates",
      TORCH_BOX(&tso::scatter_grad_updates_fallback));
  m.impl(
      "_tensor_scatter_update_grads", TORCH_BOX(&tso::scatter_grads_fallback));
}
