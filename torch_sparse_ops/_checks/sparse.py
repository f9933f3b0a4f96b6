"""What makes indices, values and dense_shape one sparse tensor."""

from __future__ import annotations

import torch
from torch import Tensor

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


def check_matrix(op: str, indices: Tensor) -> int:
    """The number of sparse dimensions."""
    if indices.dim() != 2:
        raise ValueError(
            f"{op}: indices must be of shape [nnz, rank] "
            f"(got shape {show(indices.shape)})"
        )
    return int(indices.shape[1])


def check_int64(op: str, indices: Tensor, dtype_error: type[Exception]) -> None:
    if indices.dtype != torch.int64:
        raise dtype_error(
            f"{op}: indices must be int64 (got {show_dtype(indices.dtype)})"
        )


def check_rows(op: str, indices: Tensor, values: Tensor, where: str = "") -> None:
    nnz = indices.shape[0]
    require(
        values.dim() > 0 and values.shape[0] == nnz,
        ValueError,
        lambda: (
            f"{op}: values must have one row for each of the {nnz} entries "
            f"(got shape {show(values.shape)}{where})"
        ),
    )


def check_dense_shape(
    op: str, rank: int, values: Tensor, shape: Sizes, where: str = ""
) -> None:
    dense = values.shape[1:]
    require(
        len(shape) == rank + len(dense) and same_sizes(shape[rank:], dense),
        ValueError,
        lambda: (
            f"{op}: dense_shape must hold {rank} sparse sizes, then the dense sizes "
            f"{show(dense)} (got {show(shape)}{where})"
        ),
    )


def check(op: str, indices: Tensor, values: Tensor, shape: Sizes) -> int:
    """Everything about a triple but its coordinates; its number of sparse sizes."""
    if values.device != indices.device:
        raise ValueError(
            f"{op}: all tensors must be on one device "
            f"(got {indices.device} for indices, {values.device} for values)"
        )
    rank = check_matrix(op, indices)
    check_int64(op, indices, TypeError)
    check_rank(op, rank)
    check_rows(op, indices, values)
    check_dense_shape(op, rank, values, shape)
    sizes = shape[:rank]
    if known(sizes):
        check_not_negative(op, sizes)
        check_volume(op, sizes)
        check_room(op, indices.shape[0], sizes)
    return rank
