"""Batching rules: each operator over a batch is one call of the same operator.

Indices that are the same for the whole batch leave it a trailing slice or dense
dimension. Indices of their own give every example a leading coordinate of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_sparse_ops import _checks
from torch_sparse_ops._checks.common import LIMIT, known

ops = torch.ops.torch_sparse_ops

Dim = int | None


def to_front(x: Tensor, dim: Dim, batch: int) -> Tensor:
    """The batch as the first dimension, by repetition where there is none."""
    return x.expand(batch, *x.shape) if dim is None else x.movedim(dim, 0)


def to_back(x: Tensor, dim: Dim, batch: int) -> Tensor:
    if dim is None:
        return x.unsqueeze(-1).expand(*x.shape, batch)
    return x.movedim(dim, -1)


def numbered(indices: Tensor) -> Tensor:
    """[batch, ..., K] with the number of the example put before each row."""
    example = torch.arange(
        indices.shape[0], dtype=indices.dtype, device=indices.device
    ).view(-1, *[1] * (indices.dim() - 1))
    return torch.cat([example.expand(*indices.shape[:-1], 1), indices], -1)


# ---------------------------------------------------------------- scatter


def scatter(
    info: Any,
    in_dims: Sequence[Dim],
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    policy: str,
) -> tuple[Tensor, int]:
    batch = info.batch_size
    if in_dims[1] is None:
        out = ops.tensor_scatter_update(
            to_back(tensor, in_dims[0], batch),
            indices,
            to_back(updates, in_dims[2], batch),
            policy,
        )
        return out, out.dim() - 1
    out = ops.tensor_scatter_update(
        to_front(tensor, in_dims[0], batch),
        numbered(to_front(indices, in_dims[1], batch)),
        to_front(updates, in_dims[2], batch),
        policy,
    )
    return out, 0


def scatter_grad(
    op: Callable[[Tensor, Tensor], Tensor],
    info: Any,
    in_dims: Sequence[Dim],
    grad: Tensor,
    indices: Tensor,
) -> tuple[Tensor, int]:
    """The rule of either transpose of scatter, `op`."""
    batch = info.batch_size
    if in_dims[1] is None:
        out = op(to_back(grad, in_dims[0], batch), indices)
        return out, out.dim() - 1
    rows = numbered(to_front(indices, in_dims[1], batch))
    return op(to_front(grad, in_dims[0], batch), rows), 0


# ---------------------------------------------------------------- reshape


def reshape(
    info: Any,
    in_dims: Sequence[Dim],
    indices: Tensor,
    shape: Sequence[int],
    target: Sequence[int],
) -> tuple[Tensor, int]:
    rows = to_front(indices, in_dims[0], info.batch_size)
    batch, nnz, rank = rows.shape
    out = ops.sparse_reshape(rows.reshape(batch * nnz, rank), shape, target)
    return out.view(batch, nnz, len(target)), 0


# ----------------------------------------------------------------- concat


def concat(
    info: Any,
    in_dims: Sequence[Dim],
    indices: Sequence[Tensor],
    values: Sequence[Tensor],
    *args: Any,
) -> tuple[tuple[Tensor, Tensor], tuple[int, Dim]]:
    """`in_dims` are those of the indices and then of the values."""
    batch, count = info.batch_size, len(indices)
    index_dims, value_dims = in_dims[:count], in_dims[count:]
    if _all_none(index_dims):
        columns = _to(to_back, values, value_dims, batch)
        out_values, out_indices = ops.sparse_concat(indices, columns, *args)
        return (out_values, out_indices), (out_values.dim() - 1, None)
    indices = _to(to_front, indices, index_dims, batch)
    values = _to(to_front, values, value_dims, batch)
    folded = _folded_args(batch, count, *args)
    if folded is None:
        results = [
            ops.sparse_concat([x[b] for x in indices], [v[b] for v in values], *args)
            for b in range(batch)
        ]
        out_values, out_indices = map(torch.stack, zip(*results, strict=True))
        return (out_values, out_indices), (0, 0)
    out_values, out_indices = ops.sparse_concat(
        _folded_rows(indices), [v.flatten(0, 1) for v in values], *folded
    )
    nnz = sum(x.shape[1] for x in indices)
    return (
        out_values.unflatten(0, (batch, nnz)),
        out_indices[:, 1:].unflatten(0, (batch, nnz)),
    ), (0, 0)


def concat_grad(
    info: Any,
    in_dims: Sequence[Dim],
    grad: Tensor,
    indices: Sequence[Tensor],
    *args: Any,
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """`in_dims` are that of the gradient and then those of the indices."""
    batch, count = info.batch_size, len(indices)
    op = ops._sparse_concat_grad_values
    if _all_none(in_dims[1:]):
        grads = op(to_back(grad, in_dims[0], batch), indices, *args)
        return tuple(grads), (grad.dim() - 1,) * count
    grad = to_front(grad, in_dims[0], batch)
    indices = _to(to_front, indices, in_dims[1:], batch)
    folded = _folded_args(batch, count, *args)
    if folded is None:
        results = [op(grad[b], [x[b] for x in indices], *args) for b in range(batch)]
        grads = map(torch.stack, zip(*results, strict=True))
    else:
        rows = op(grad.flatten(0, 1), _folded_rows(indices), *folded)
        grads = (
            g.unflatten(0, (batch, x.shape[1]))
            for g, x in zip(rows, indices, strict=True)
        )
    return tuple(grads), (0,) * count


def _all_none(dims: Sequence[Dim]) -> bool:
    return all(dim is None for dim in dims)


def _to(
    move: Callable[[Tensor, Dim, int], Tensor],
    tensors: Sequence[Tensor],
    dims: Sequence[Dim],
    batch: int,
) -> list[Tensor]:
    return [move(x, dim, batch) for x, dim in zip(tensors, dims, strict=True)]


def _folded_rows(indices: Sequence[Tensor]) -> list[Tensor]:
    return [numbered(x).flatten(0, 1) for x in indices]


def _folded_args(
    batch: int, count: int, shapes: Sequence[int], axis: int, *flags: bool
) -> tuple[Any, ...] | None:
    """The arguments of a concat whose leading sparse dimension counts the examples;
    None where its volume, unlike that of an example, reaches 2**63."""
    rank = len(shapes) // count
    sizes = [(batch, *shapes[i * rank : (i + 1) * rank]) for i in range(count)]
    result = _checks.concat.result_sizes(sizes, axis % rank + 1, expand=True)
    if known(result) and math.prod(result) >= LIMIT:
        return None
    return (sum(sizes, ()), axis % rank + 1, *flags)
