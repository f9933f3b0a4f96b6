"""Puts derivatives and batching rules on the dispatch keys of the raw operators.

Autograd answers for reverse mode and torch.autograd.forward_ad, FuncTorchDynamic-
LayerFrontMode for torch.func, and Batched for the older vmap behind
`torch.autograd.grad(is_grads_batched=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor

from torch_sparse_ops import _autograd
from torch_sparse_ops._checks import raw
from torch_sparse_ops._modes import below_autograd, has_tangent, is_differentiated

ops = torch.ops.torch_sparse_ops
library = torch.library.Library("torch_sparse_ops", "IMPL")

after_autograd = torch._C._after_autograd_keyset
after_in_place = torch._C._after_ADInplaceOrView_keyset


def install(name: str, call: Callable[..., Any]) -> None:
    """`call` takes the operator's arguments through its autograd.Function."""
    redispatch = getattr(ops, name).default.redispatch
    check = getattr(raw, name)

    def autograd(keyset: Any, *args: Any) -> Any:
        if is_differentiated(*args):
            return call(*args)
        return redispatch(keyset & after_autograd, *args)

    def transform(*args: Any) -> Any:
        # A batching rule would find the faults of the folded arguments instead.
        check(*args)
        return call(*args)

    library.impl(name, autograd, "Autograd", with_keyset=True)
    library.impl(name, transform, "FuncTorchDynamicLayerFrontMode")


install("sparse_concat", _autograd.Concat.call)
install("_sparse_concat_grad_values", _autograd.ConcatGradValues.call)
install("tensor_scatter_update", _autograd.Scatter.call)
install("_tensor_scatter_update_grad_tensor", _autograd.ScatterGradTensor.call)
install("_tensor_scatter_update_grad_updates", _autograd.ScatterGradUpdates.call)


def transform_reshape(*args: Any) -> Tensor:
    raw.sparse_reshape(*args)
    return _autograd.Reshape.call(*args)


# Indices have no derivative, but may come in batches.
library.impl("sparse_reshape", transform_reshape, "FuncTorchDynamicLayerFrontMode")


# ---------------------------------------------------- the older vmap's lists
# It loops over the operators it does not know, but not over those that take lists:
# they become torch.cat, split and index_select, with the row numbers for values.


def row_numbers(indices: Sequence[Tensor]) -> list[Tensor]:
    if any(map(is_legacy_batchedtensor, indices)):
        raise NotImplementedError(
            "sparse_concat: only values can be batched by is_grads_batched=True; "
            "torch.func.vmap takes batches of indices too"
        )
    counts = [x.shape[0] for x in indices]
    rows = torch.arange(sum(counts), device=indices[0].device)
    return list(rows.split(counts))


def batched_concat(
    indices: list[Tensor], values: list[Tensor], *args: Any
) -> tuple[Tensor, Tensor]:
    order, out_indices = ops.sparse_concat(indices, row_numbers(indices), *args)
    return torch.cat(values).index_select(0, order), out_indices


def batched_concat_grad(
    grad_values: Tensor, indices: list[Tensor], *args: Any
) -> list[Tensor]:
    rows = torch.cat(row_numbers(indices))
    places = ops._sparse_concat_grad_values(rows, indices, *args)
    return [grad_values.index_select(0, place) for place in places]


library.impl("sparse_concat", batched_concat, "Batched")
library.impl("_sparse_concat_grad_values", batched_concat_grad, "Batched")


# ------------------------------------------------- tensor_scatter_update_


def refuse(*_: Any) -> None:
    raise NotImplementedError(
        "tensor_scatter_update_: the raw operator has no gradient; call "
        "torch_sparse_ops.tensor_scatter_update_ instead"
    )


redispatch_in_place = ops.tensor_scatter_update_.default.redispatch


def autograd_in_place(keyset: Any, tensor: Tensor, *args: Any) -> None:
    if torch.is_grad_enabled() and torch._C._any_requires_grad(tensor, *args):
        refuse()
    if is_differentiated(tensor, *args) and has_tangent(tensor, *args):
        refuse()
    write(keyset, tensor, *args)


def write(keyset: Any, tensor: Tensor, *args: Any) -> None:
    """What is left to do in place, for autograd to know that something changed."""
    redispatch_in_place(keyset & after_in_place, tensor, *args)
    torch.autograd.graph.increment_version(tensor)


for key, kernel in (("Autograd", autograd_in_place), ("ADInplaceOrView", write)):
    library.impl("tensor_scatter_update_", kernel, key, with_keyset=True)
library.impl("tensor_scatter_update_", refuse, "FuncTorchDynamicLayerFrontMode")


# torch's own fallbacks for lazily conjugated and negated tensors want an in-place
# operator to return its tensor. Here the updates are flipped instead.


def on_conjugate(tensor: Tensor, indices: Tensor, updates: Tensor, *args: Any) -> None:
    if tensor.is_conj():
        tensor, updates = tensor.conj(), updates.conj()
    with below_autograd():
        ops.tensor_scatter_update_(tensor, indices, updates.resolve_conj(), *args)


def on_negative(tensor: Tensor, indices: Tensor, updates: Tensor, *args: Any) -> None:
    if tensor.is_neg():
        tensor, updates = torch._neg_view(tensor), torch._neg_view(updates)
    with below_autograd():
        ops.tensor_scatter_update_(tensor, indices, updates.resolve_neg(), *args)


library.impl("tensor_scatter_update_", on_conjugate, "Conjugate")
library.impl("tensor_scatter_update_", on_negative, "Negative")
