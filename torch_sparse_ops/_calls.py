"""What the public functions do: kinds of arguments, raw operators, kinds of results.

A good call is not checked twice: the operators check their arguments, and only a call
that failed goes through the checks in Python, which can tell a wrong kind or dtype
from a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from torch_sparse_ops import _autograd, _checks, _coo
from torch_sparse_ops._checks.common import check_entries, show_kind
from torch_sparse_ops.sparse_tensor import SparseTensor, of_parts

ops = torch.ops.torch_sparse_ops


def clearer(failure: Exception, check: Callable[..., object], *args: Any) -> Exception:
    """What the checks say of a call that failed, or else the failure itself."""
    try:
        check(*args)
    except Exception as found:
        return found
    return failure


def kind(x: object) -> str:
    """SparseTensor, COO, or what else it is."""
    if isinstance(x, SparseTensor):
        return "SparseTensor"
    if isinstance(x, Tensor) and x.layout == torch.sparse_coo:
        return "sparse COO tensor"
    return ""


# ---------------------------------------------------------- sparse_concat


def check_inputs(op: str, inputs: Sequence[Any]) -> None:
    """All inputs are of one of the two kinds."""
    for i, x in enumerate(inputs):
        if not kind(x):
            raise TypeError(
                f"{op}: input {i} must be a sparse COO tensor or a SparseTensor "
                f"(got {show_kind(x)})"
            )
        if kind(x) != kind(inputs[0]):
            raise TypeError(
                f"{op}: inputs must be all COO tensors or all SparseTensors (got a "
                f"{kind(inputs[0])} for input 0, a {kind(x)} for input {i})"
            )


def check_bounds(op: str, indices: Sequence[Tensor], shapes: Sequence[Any]) -> None:
    """The check that CUDA kernels leave out, where the user asks for it."""
    if indices[0].is_cuda and _coo.bounds_are_due(indices[0]):
        for i, (x, shape) in enumerate(zip(indices, shapes, strict=True)):
            check_entries(op, x, shape[: x.shape[1]], f" of input {i}")


def sparse_axis(axis: int, rank: int, full: int) -> int:
    """The axis, counted from 0 in a shape of `full` sizes, `rank` of them sparse."""
    place = axis + full if axis < 0 else axis
    if not 0 <= place < rank:
        raise IndexError("axis")
    return place


def concat_triples(
    op: str, inputs: Sequence[Any], axis: int, expand: bool, inputs_sorted: bool
) -> SparseTensor:
    check_inputs(op, inputs)
    indices = [x.indices for x in inputs]
    values = [x.values for x in inputs]
    shapes = [x.dense_shape for x in inputs]
    try:
        rank = indices[0].shape[1]
        place = sparse_axis(axis, rank, len(shapes[0]))
        sizes: list[int] = []
        for v, shape in zip(values, shapes, strict=True):
            if shape[rank:] != v.shape[1:]:
                raise ValueError("dense_shape")
            sizes += shape[:rank]
        check_bounds(op, indices, shapes)
        out_values, out_indices = ops.sparse_concat(
            indices, values, sizes, place, expand, inputs_sorted
        )
    except Exception as failure:
        check = _checks.concat.check_triples
        raise clearer(
            failure, check, op, indices, values, shapes, axis, expand
        ) from None
    out_shape = _checks.concat.result_sizes(shapes, place, expand)
    return of_parts(out_indices, out_values, out_shape)


def concat_coo(
    op: str, inputs: Sequence[Any], axis: int, expand: bool, inputs_sorted: bool
) -> Tensor:
    differentiable = _coo.derivatives_are_due(*inputs)
    try:
        stored = [*map(Tensor._indices, inputs)]
        values = [*map(_coo.Values.apply if differentiable else Tensor._values, inputs)]
        coalesced = all(map(Tensor.is_coalesced, inputs))
    except Exception:
        check_inputs(op, inputs)
        raise
    indices = [x.t() for x in stored]
    shapes = [x.shape for x in inputs]
    try:
        rank = len(stored[0])
        place = sparse_axis(axis, rank, len(shapes[0]))
        check_bounds(op, indices, shapes)
        sizes: list[int] = []
        for shape in shapes:
            sizes += shape[:rank]
        args = sizes, place, expand, inputs_sorted or coalesced
        if differentiable:
            result = _autograd.ConcatCoo.apply(*args, *indices, *values)
        else:
            result = ops._sparse_concat_coo(indices, values, *args)
    except Exception as failure:
        check = _checks.concat.check_triples
        raise clearer(
            failure, check, op, indices, values, shapes, axis, expand
        ) from None
    out_values, out_indices, strictly_increasing = result
    out_shape = _checks.concat.result_sizes(shapes, place, expand)
    return _coo.join(
        out_indices, out_values, out_shape, coalesced and strictly_increasing
    )


# --------------------------------------------------------- sparse_reshape


def reshape(
    op: str,
    indices: Tensor,
    values: Tensor,
    shape: tuple[int, ...],
    target: tuple[int, ...],
) -> tuple[Tensor, tuple[int, ...]]:
    """Indices and full shape of the result."""
    dense = tuple(values.shape[1:])
    split = len(target) - len(dense)
    sizes = shape[: len(shape) - len(dense)]
    try:
        if (
            values.shape[0] != indices.shape[0]
            or shape[len(sizes) :] != dense
            or split < 0
            or target[split:] != dense
        ):
            raise ValueError("values")
        if indices.is_cuda and _coo.bounds_are_due(indices):
            check_entries(op, indices, sizes)
        out_indices = ops.sparse_reshape(indices, sizes, target[:split])
    except Exception as failure:
        check = _checks.reshape.check_triple
        raise clearer(failure, check, op, indices, values, shape, target) from None
    return out_indices, _checks.reshape.result_sizes(sizes, target[:split]) + dense


def reshape_triple(op: str, x: SparseTensor, target: tuple[int, ...]) -> SparseTensor:
    indices, shape = reshape(op, x.indices, x.values, x.dense_shape, target)
    return of_parts(indices, x.values, shape)


def reshape_coo(op: str, x: Tensor, target: tuple[int, ...]) -> Tensor:
    indices, values = _coo.parts(x)
    indices, shape = reshape(op, indices, values, tuple(x.shape), target)
    return _coo.join(indices, values, shape, x.is_coalesced())


# -------------------------------------------------- tensor_scatter_update


def scatter(tensor: Tensor, indices: Tensor, updates: Tensor, policy: str) -> Tensor:
    try:
        return ops.tensor_scatter_update(tensor, indices, updates, policy)
    except Exception as failure:
        op, check = "tensor_scatter_update", _checks.scatter.check_call
        raise clearer(failure, check, op, tensor, indices, updates, policy) from None


def in_place_needs_derivative(tensor: Tensor, updates: Tensor) -> bool:
    if torch.compiler.is_compiling():
        # In words that the compiler knows.
        return (
            (
                torch.is_grad_enabled()
                and (tensor.requires_grad or updates.requires_grad)
            )
            or forward_ad._current_level >= 0
            or torch._C._are_functorch_transforms_active()
        )
    return _coo.derivatives_are_due(tensor, updates)


def in_place_is_plain_reverse(tensor: Tensor) -> bool:
    """Whether ScatterInPlace can write to the tensor. Where torch would refuse to
    change it in place, it does so before anything is written."""
    if (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or tensor._is_view()
    ):
        return False
    if tensor.requires_grad and tensor.is_leaf:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    return True


def scatter_in_place(
    tensor: Tensor, indices: Tensor, updates: Tensor, policy: str
) -> Tensor:
    args = tensor, indices, updates, policy
    op = "tensor_scatter_update_"
    try:
        if not in_place_needs_derivative(tensor, updates):
            ops.tensor_scatter_update_(*args)
            return tensor
        if in_place_is_plain_reverse(tensor):
            return _autograd.ScatterInPlace.apply(*args)
    except Exception as failure:
        check = _checks.scatter.check_call
        raise clearer(failure, check, op, *args) from None
    _checks.scatter.check_call(op, *args)
    if not torch.compiler.is_compiling():
        _checks.scatter.check_separate(op, tensor)
    return tensor.copy_(ops.tensor_scatter_update(*args))
