"""torch.sparse_coo tensors to and from their parts, with gradients.

A COO tensor stands for the sum of its entries, and so does a gradient that is one:
what it says of an entry is the sum over the entry's coordinate.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch._guards import detect_fake_mode

from torch_sparse_ops._checks.common import show_kind
from torch_sparse_ops._function import Function
from torch_sparse_ops._modes import is_plain

Sizes = tuple[int, ...]


def bounds_are_due(indices: Tensor) -> bool:
    """Whether to read all coordinates of a call in Python: never while they are not
    real numbers, always on the CPU, and on CUDA where the user asks for such checks."""
    if (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or type(indices) is not Tensor
        or indices.is_meta
        or (torch._C._len_torch_dispatch_stack() and detect_fake_mode() is not None)
    ):
        return False
    return (
        not indices.is_cuda or torch.sparse.check_sparse_tensor_invariants.is_enabled()
    )


def new_coo(
    values: Tensor, indices: Tensor, shape: Sizes, is_coalesced: bool
) -> Tensor:
    """A COO tensor of these very parts. `indices` is [rank, nnz]."""
    return torch.sparse_coo_tensor(
        indices,
        values,
        shape,
        is_coalesced=is_coalesced or values.shape[0] < 2,
        check_invariants=False,
    )


def parts(coo: Tensor) -> tuple[Tensor, Tensor]:
    """[nnz, rank] indices and values, in the order stored."""
    values = coo._values() if is_plain(coo) else differentiable_values(coo)
    return coo._indices().t(), values


def join(indices: Tensor, values: Tensor, shape: Sizes, is_coalesced: bool) -> Tensor:
    """The COO tensor of [nnz, rank] indices and of values."""
    new = new_coo if is_plain(values) else Join.call
    return new(values, indices.t(), tuple(shape), is_coalesced)


def differentiable_values(coo: Tensor) -> Tensor:
    (values,) = Values.call(coo)
    return values


class Values(Function):
    """The values of COO tensors."""

    @staticmethod
    def forward(*coos: Tensor) -> tuple[Tensor, ...]:
        return tuple(coo._values().detach() for coo in coos)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Any) -> None:
        ctx.facts = [(coo.shape, coo.is_coalesced()) for coo in inputs]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*map(Tensor._indices, inputs))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        each = zip(
            ctx.needs_input_grad, grads, ctx.saved_tensors, ctx.facts, strict=True
        )
        return tuple(
            coo_gradient(grad, indices, *facts) if needed and grad is not None else None
            for needed, grad, indices, facts in each
        )


def coo_gradient(
    grad: Tensor, indices: Tensor, shape: Sizes, is_coalesced: bool
) -> Tensor:
    """Of a COO tensor whose values have the gradient `grad`."""
    if not is_coalesced:
        first, leader = first_of_each(indices, shape)
        check_agreement(grad, first, leader)
        # One entry says it all; the others of its coordinate would add to it.
        grad = zero_unless(first, grad)
    return Join.call(grad, indices, shape, is_coalesced)


class Join(Function):
    """A COO tensor from values and [rank, nnz] indices."""

    @staticmethod
    def forward(
        values: Tensor, indices: Tensor, shape: Sizes, is_coalesced: bool
    ) -> Tensor:
        return new_coo(values, indices, shape, is_coalesced)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return None, None, None, None
        (indices,) = ctx.saved_tensors
        return Pick.call(grad, indices), None, None, None


class Pick(Function):
    """The elements of a dense or COO tensor at [rank, nnz] coordinates."""

    @staticmethod
    def forward(tensor: Tensor, indices: Tensor) -> Tensor:
        if tensor.layout == torch.strided:
            return pick_dense(tensor, indices)
        return pick_sparse(tensor, indices)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        tensor, indices = inputs
        ctx.shape, ctx.layout = tensor.shape, tensor.layout
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(indices)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, None]:
        if grad is None:
            return None, None
        (indices,) = ctx.saved_tensors
        coo = Join.call(grad, indices, ctx.shape, False)
        return (coo.to_dense() if ctx.layout == torch.strided else coo), None


def pick_dense(tensor: Tensor, indices: Tensor) -> Tensor:
    rank, nnz = indices.shape
    if rank == 0:
        return tensor.expand(nnz, *tensor.shape)
    if not indices.is_cuda:
        return tensor[indices.unbind(0)]
    # Coordinates are not checked on CUDA, where a bad one would be fatal here.
    inside = torch.ones_like(indices[0], dtype=torch.bool)
    for size, column in zip(tensor.shape, indices, strict=False):
        inside &= (column >= 0) & (column < size)
    picked = tensor[torch.where(inside, indices, 0).unbind(0)]
    return zero_unless(inside, picked)


def pick_sparse(tensor: Tensor, indices: Tensor) -> Tensor:
    """Also where `tensor` has more or fewer sparse dimensions than the coordinates."""
    if tensor.layout != torch.sparse_coo:
        raise TypeError(
            "the gradient of a sparse COO tensor must be a strided or a sparse COO "
            f"Tensor (got {show_kind(tensor)})"
        )
    tensor = tensor.coalesce()
    rank, nnz = indices.shape
    depth, shape, values = tensor.sparse_dim(), tensor.shape, tensor._values()
    if depth == rank and len(values) == nnz and is_same(tensor._indices(), indices):
        return values
    wanted = keys(indices[:depth], shape)
    if depth > rank:
        hidden = math.prod(shape[rank:depth])
        elements = torch.arange(hidden, device=wanted.device)
        wanted = (wanted.unsqueeze(1) * hidden + elements).flatten()
    stored = keys(tensor._indices(), shape)
    if len(stored) == 0:
        return values.new_zeros(nnz, *shape[rank:])
    place = torch.searchsorted(stored, wanted).clamp_(max=len(stored) - 1)
    rows = place.unsqueeze(0)
    if depth < rank:
        rows = torch.cat([rows, indices[depth:]])
    picked = pick_dense(values, rows)
    return zero_unless(stored[place] == wanted, picked).view(nnz, *shape[rank:])


def is_same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors of one shape are one piece of memory."""
    return a.data_ptr() == b.data_ptr() and a.stride() == b.stride()


def zero_unless(keep: Tensor, values: Tensor) -> Tensor:
    """The rows of `values` that `keep` keeps, zero elsewhere."""
    return torch.where(keep.view(-1, *[1] * (values.dim() - 1)), values, 0)


def keys(indices: Tensor, shape: Sizes) -> Tensor:
    """The row-major number of each of [rank, nnz] coordinates."""
    key = indices.new_zeros(indices.shape[1])
    for size, column in zip(shape, indices, strict=False):
        key = key * size + column
    return key


def first_of_each(indices: Tensor, shape: Sizes) -> tuple[Tensor, Tensor]:
    """Which entries are the first of their coordinate, in the order stored, and for
    every entry the number of that one."""
    ordered, order = keys(indices, shape).sort(stable=True)
    starts = torch.ones_like(ordered, dtype=torch.bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    places = torch.arange(len(order), device=order.device)
    latest = torch.where(starts, places, 0).cummax(0).values
    return (
        torch.empty_like(starts).scatter_(0, order, starts),
        torch.empty_like(order).scatter_(0, order, order[latest]),
    )


def check_agreement(grad: Tensor, first: Tensor, leader: Tensor) -> None:
    """Entries that share a coordinate have one gradient between them, which a loss that
    reads them one by one does not. Rounding is no difference."""
    if bool(first.all()):
        return
    wide = grad.to(torch.complex128 if grad.is_complex() else torch.float64)
    shared = wide[leader]
    if bool(((wide - shared).abs() > 1e-2 * (wide.abs() + shared.abs())).any()):
        raise RuntimeError(
            "torch_sparse_ops: entries of an uncoalesced sparse COO tensor that share "
            "a coordinate were given different gradients, which no gradient of that "
            "tensor can hold; coalesce it, or build the loss on a SparseTensor"
        )
