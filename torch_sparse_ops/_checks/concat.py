"""sparse_concat: its checks and the shape of its result."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_sparse_ops._checks import sparse
from torch_sparse_ops._checks.common import (
    Sizes,
    check_not_negative,
    check_rank,
    check_room,
    check_volume,
    known,
    require,
    same_sizes,
    show,
    show_dtype,
)


def check_some(op: str, inputs: Sequence[object]) -> None:
    if not inputs:
        raise ValueError(f"{op}: at least one input is required (got an empty list)")


def check_same_rank(op: str, first: int, rank: int, i: int) -> None:
    if rank != first:
        raise ValueError(
            f"{op}: inputs must have the same number of sparse dimensions "
            f"(got {first} for input 0, {rank} for input {i})"
        )


def check_some_rank(op: str, rank: int) -> None:
    if rank == 0:
        raise ValueError(
            f"{op}: at least one sparse dimension is required (got 0 for input 0)"
        )
    check_rank(op, rank)


def check_axis(op: str, axis: int, rank: int, dense_dim: int = 0) -> int:
    """The axis counted from 0; it may count from the end over all dimensions."""
    full = rank + dense_dim
    if not -full <= axis < full:
        raise IndexError(f"{op}: axis must be in [-{full}, {full}) (got {axis})")
    if axis % full >= rank:
        raise ValueError(
            f"{op}: axis must be a sparse dimension, below {rank} "
            f"(got {axis}, a dense dimension)"
        )
    return axis % full


def check_sizes(
    op: str, shapes: Sequence[Sizes], axis: int, expand: bool
) -> tuple[int, ...]:
    """The sparse sizes of the result, from those of the inputs. `axis` >= 0."""
    for i, shape in enumerate(shapes):
        check_not_negative(op, shape, f" for input {i}")
        check_volume(op, shape, f" for input {i}")
    first = shapes[0]
    for i, shape in enumerate(shapes):
        for d, size in enumerate(shape):
            if d != axis and size != first[d] and not expand:
                raise ValueError(
                    f"{op}: inputs must agree in every dimension except axis={axis} "
                    f"(got size {first[d]} in dimension {d} of input 0, "
                    f"size {size} in input {i}; "
                    "expand_nonconcat_dims=True takes the largest)"
                )
    sizes = result_sizes(shapes, axis, expand)
    check_volume(op, sizes, " for the result")
    return sizes


def result_sizes(shapes: Sequence[Sizes], axis: int, expand: bool) -> tuple[int, ...]:
    """The sizes of the result where the operator itself checks the inputs."""
    sizes = list(shapes[0])
    for shape in shapes[1:]:
        sizes[axis] += shape[axis]
        if expand:
            for d, size in enumerate(shape):
                if d != axis:
                    # max() would guard on the order of symbolic sizes.
                    sizes[d] = torch.sym_max(sizes[d], size)
    return tuple(sizes)


def check(
    op: str,
    indices: Sequence[Tensor],
    values: Sequence[Tensor] | None,
    shapes: Sizes,
    axis: int,
    expand: bool,
) -> None:
    """The checks of the raw operator, and of its transpose, which has no values.

    `shapes` are the sparse sizes of the inputs, end to end.
    """
    rank = _check_tensors(op, indices, values)
    if len(shapes) != rank * len(indices):
        raise ValueError(
            f"{op}: shapes must hold {rank} sizes for each of the {len(indices)} "
            f"inputs (got {len(shapes)})"
        )
    split = [shapes[i * rank : (i + 1) * rank] for i in range(len(indices))]
    _check_rest(op, indices, values, split, axis, 0, expand, ValueError)


def check_grad_values(op: str, grad: Tensor, indices: Sequence[Tensor]) -> None:
    if grad.device != indices[0].device:
        raise ValueError(
            f"{op}: all tensors must be on one device (got {grad.device} for "
            f"grad_values, {indices[0].device} for input 0)"
        )
    total = sum(x.shape[0] for x in indices)
    require(
        grad.dim() > 0 and grad.shape[0] == total,
        ValueError,
        lambda: (
            f"{op}: grad_values must have one row for each of the {total} entries "
            f"(got shape {show(grad.shape)})"
        ),
    )


def check_triples(
    op: str,
    indices: Sequence[Tensor],
    values: Sequence[Tensor],
    shapes: Sequence[Sizes],
    axis: int,
    expand: bool,
) -> None:
    """The checks of the public function; `shapes` and `axis` count dense sizes too."""
    rank = _check_tensors(op, indices, values)
    split = []
    for i, (v, shape) in enumerate(zip(values, shapes, strict=True)):
        sparse.check_dense_shape(op, rank, v, shape, f" for input {i}")
        split.append(shape[:rank])
    dense_dim = len(shapes[0]) - rank
    _check_rest(op, indices, values, split, axis, dense_dim, expand, TypeError)


def _check_tensors(
    op: str, indices: Sequence[Tensor], values: Sequence[Tensor] | None
) -> int:
    """The number of sparse dimensions."""
    check_some(op, indices)
    if values is not None and len(values) != len(indices):
        raise ValueError(
            f"{op}: indices and values must have the same length "
            f"(got {len(indices)} and {len(values)})"
        )
    device = indices[0].device
    for i, pair in enumerate(zip(indices, values or indices, strict=True)):
        for tensor in pair:
            if tensor.device != device:
                raise ValueError(
                    f"{op}: all tensors must be on one device "
                    f"(got {device} for input 0, {tensor.device} for input {i})"
                )
    for i, x in enumerate(indices):
        if x.dim() != 2:
            raise ValueError(
                f"{op}: indices must be of shape [nnz, rank] "
                f"(got shape {show(x.shape)} for input {i})"
            )
        check_same_rank(op, int(indices[0].shape[1]), int(x.shape[1]), i)
    rank = int(indices[0].shape[1])
    check_some_rank(op, rank)
    return rank


def _check_dense(op: str, first: Tensor, values: Tensor, i: int) -> None:
    require(
        same_sizes(values.shape[1:], first.shape[1:]),
        ValueError,
        lambda: (
            f"{op}: inputs must agree in their dense dimensions (got "
            f"{show(first.shape[1:])} for input 0, {show(values.shape[1:])} for "
            f"input {i})"
        ),
    )


def _check_rest(
    op: str,
    indices: Sequence[Tensor],
    values: Sequence[Tensor] | None,
    shapes: Sequence[Sizes],
    axis: int,
    dense_dim: int,
    expand: bool,
    dtype_error: type[Exception],
) -> None:
    for i, x in enumerate(indices):
        if x.dtype != torch.int64:
            raise dtype_error(
                f"{op}: indices must be int64 (got {show_dtype(x.dtype)} for input {i})"
            )
    for i, v in enumerate(values or ()):
        first = values[0]  # type: ignore[index]
        sparse.check_rows(op, indices[i], v, f" for input {i}")
        if v.dtype != first.dtype:
            raise dtype_error(
                f"{op}: inputs must have the same dtype (got "
                f"{show_dtype(first.dtype)} for input 0, {show_dtype(v.dtype)} for "
                f"input {i})"
            )
        _check_dense(op, first, v, i)
    axis = check_axis(op, axis, len(shapes[0]), dense_dim)
    if not all(map(known, shapes)):
        return
    check_sizes(op, shapes, axis, expand)
    for i, (x, shape) in enumerate(zip(indices, shapes, strict=True)):
        check_room(op, x.shape[0], shape, f" for input {i}")
