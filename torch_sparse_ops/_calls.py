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
from torch_sparse_ops._modes import below_autograd, is_plain
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


def is_whole(x: SparseTensor) -> bool:
    """Whether the parts still fit together, which a transform may have changed."""
    return (
        x.indices.dim() == 2
        and x.dense_shape[x.indices.shape[1] :] == x.values.shape[1:]
    )


def bounds_are_due_on_cuda(indices: Tensor) -> bool:
    """Whether the user asks for the check that CUDA kernels leave out."""
    return indices.is_cuda and _coo.bounds_are_due(indices)


def check_bounds(op: str, indices: Sequence[Tensor], shapes: Sequence[Any]) -> None:
    for i, (x, shape) in enumerate(zip(indices, shapes, strict=True)):
        check_entries(op, x, shape[: x.shape[1]], f" of input {i}")


def rows(indices: Sequence[Tensor], stored: bool) -> Sequence[Tensor]:
    """Index matrices with one row per entry."""
    return [x.t() for x in indices] if stored else indices


def concat_triples(
    op: str, inputs: Sequence[Any], axis: int, expand: bool, inputs_sorted: bool
) -> SparseTensor:
    check_inputs(op, inputs)
    indices = [x.indices for x in inputs]
    values = [x.values for x in inputs]
    shapes = [x.dense_shape for x in inputs]
    if not all(map(is_whole, inputs)):
        _checks.concat.check_triples(op, indices, values, shapes, axis, expand)
    args = op, indices, values, shapes, axis, expand, inputs_sorted
    if is_plain(*values):
        with below_autograd():
            result, shape = concat(ops.sparse_concat, *args)
    else:
        result, shape = concat(ops.sparse_concat, *args)
    out_values, out_indices = result
    return of_parts(out_indices, out_values, shape)


def concat_coo(
    op: str, inputs: Sequence[Any], axis: int, expand: bool, inputs_sorted: bool
) -> Tensor:
    args = op, inputs, axis, expand, inputs_sorted
    if is_plain(*inputs):
        with below_autograd():
            return concat_coo_with(
                stored_values, ops._sparse_concat_coo, _coo.new_coo, *args
            )
    return concat_coo_with(
        _coo.Values.call, _autograd.ConcatCoo.call, _coo.Join.call, *args
    )


def stored_values(*coos: Tensor) -> list[Tensor]:
    return [*map(Tensor._values, coos)]


def concat_coo_with(
    values_of: Callable[..., Sequence[Tensor]],
    call: Callable[..., Any],
    join: Callable[..., Tensor],
    op: str,
    inputs: Sequence[Any],
    axis: int,
    expand: bool,
    inputs_sorted: bool,
) -> Tensor:
    try:
        indices = [*map(Tensor._indices, inputs)]
        values = values_of(*inputs)
        coalesced = all(map(Tensor.is_coalesced, inputs))
    except Exception:
        check_inputs(op, inputs)
        raise
    shapes = [x.shape for x in inputs]
    is_sorted = inputs_sorted or coalesced
    args = op, indices, values, shapes, axis, expand, is_sorted
    result, shape = concat(call, *args, stored=True)
    out_values, out_indices, strictly_increasing = result
    is_coalesced = coalesced and strictly_increasing
    return join(out_values, out_indices, shape, is_coalesced)


def concat(
    call: Callable[..., Any],
    op: str,
    indices: Sequence[Tensor],
    values: Sequence[Tensor],
    shapes: Sequence[Any],
    axis: int,
    expand: bool,
    inputs_sorted: bool,
    stored: bool = False,
) -> tuple[Any, tuple[int, ...]]:
    """What the operator `call` makes of the inputs, and the shape of the result.
    `shapes` and `axis` count the dense dimensions too. `indices` are [nnz, rank] or,
    as COO tensors have them stored, [rank, nnz]."""
    try:
        rank, full = indices[0].shape[0 if stored else 1], len(shapes[0])
        place = axis + full if axis < 0 else axis
        if not 0 <= place < rank:
            raise IndexError("axis")
        if bounds_are_due_on_cuda(indices[0]):
            check_bounds(op, rows(indices, stored), shapes)
        sizes: list[int] = []
        for shape in shapes:
            sizes += shape if full == rank else shape[:rank]
        result = call(indices, values, sizes, place, expand, inputs_sorted)
    except Exception as failure:
        check = _checks.concat.check_triples
        args = op, rows(indices, stored), values, shapes, axis, expand
        raise clearer(failure, check, *args) from None
    return result, _checks.concat.result_sizes(shapes, place, expand)


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
        if bounds_are_due_on_cuda(indices):
            check_entries(op, indices, sizes)
        out_indices = ops.sparse_reshape(indices, sizes, target[:split])
    except Exception as failure:
        check = _checks.reshape.check_triple
        raise clearer(failure, check, op, indices, values, shape, target) from None
    return out_indices, _checks.reshape.result_sizes(sizes, target[:split]) + dense


def reshape_triple(op: str, x: SparseTensor, target: tuple[int, ...]) -> SparseTensor:
    args = op, x.indices, x.values, x.dense_shape, target
    if is_plain():
        with below_autograd():
            indices, shape = reshape(*args)
    else:
        indices, shape = reshape(*args)
    return of_parts(indices, x.values, shape)


def reshape_coo(op: str, x: Tensor, target: tuple[int, ...]) -> Tensor:
    if is_plain(x):
        with below_autograd():
            return reshape_coo_with(Tensor._values, _coo.new_coo, op, x, target)
    return reshape_coo_with(_coo.differentiable_values, _coo.Join.call, op, x, target)


def reshape_coo_with(
    values_of: Callable[..., Tensor],
    join: Callable[..., Tensor],
    op: str,
    x: Tensor,
    target: tuple[int, ...],
) -> Tensor:
    values = values_of(x)
    indices, shape = reshape(op, x._indices().t(), values, tuple(x.shape), target)
    return join(values, indices.t(), shape, x.is_coalesced())


# -------------------------------------------------- tensor_scatter_update


def scatter(tensor: Tensor, indices: Tensor, updates: Tensor, policy: str) -> Tensor:
    try:
        return ops.tensor_scatter_update(tensor, indices, updates, policy)
    except Exception as failure:
        op, check = "tensor_scatter_update", _checks.scatter.check_call
        raise clearer(failure, check, op, tensor, indices, updates, policy) from None


def is_differentiated_here(tensor: Tensor, updates: Tensor) -> bool:
    """Whether the raw operator in place, which has no derivative, will not do."""
    if not torch.compiler.is_compiling():
        return not is_plain(tensor, updates)
    # The same in words that the compiler knows.
    return (
        (torch.is_grad_enabled() and (tensor.requires_grad or updates.requires_grad))
        or forward_ad._current_level >= 0
        or torch._C._are_functorch_transforms_active()
    )


def is_plain_reverse(tensor: Tensor) -> bool:
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
        if not is_differentiated_here(tensor, updates):
            ops.tensor_scatter_update_(*args)
            return tensor
        if is_plain_reverse(tensor):
            return _autograd.ScatterInPlace.call(*args)
    except Exception as failure:
        check = _checks.scatter.check_call
        raise clearer(failure, check, op, *args) from None
    _checks.scatter.check_call(op, *args)
    if not torch.compiler.is_compiling():
        _checks.scatter.check_separate(op, tensor)
    return tensor.copy_(ops.tensor_scatter_update(*args))
