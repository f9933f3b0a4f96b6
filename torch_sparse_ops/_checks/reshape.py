"""sparse_reshape: its checks and the shape of its result."""

from __future__ import annotations

import math

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
)


def check(op: str, indices: Tensor, shape: Sizes, target: Sizes) -> None:
    """The checks of the raw operator: sparse sizes only."""
    rank = sparse.check_matrix(op, indices)
    sparse.check_int64(op, indices, ValueError)
    check_rank(op, rank)
    check_rank(op, len(target))
    check_count(op, rank, shape)
    if known(shape) and known(target):
        check_sizes(op, shape, target)
        check_room(op, indices.shape[0], shape)


def check_count(op: str, rank: int, shape: Sizes) -> None:
    if len(shape) != rank:
        raise ValueError(
            f"{op}: the shape must have {rank} sizes, one for each sparse dimension "
            f"(got {show(shape)})"
        )


def check_source(op: str, shape: Sizes) -> int:
    """The number of elements of the input."""
    check_not_negative(op, shape)
    return check_volume(op, shape)


def check_sizes(op: str, shape: Sizes, target: Sizes) -> tuple[int, ...]:
    """The target with its -1 filled in."""
    elements = check_source(op, shape)

    def need(condition: bool, what: str) -> None:
        if not condition:
            raise ValueError(
                f"{op}: {what} (got {elements} elements in {show(shape)}, "
                f"target {show(target)})"
            )

    need(
        min(target, default=0) >= -1,
        "target sizes must not be negative, except for one -1",
    )
    inferred = target.count(-1)
    need(inferred < 2, "at most one target size may be -1")
    product = math.prod([size for size in target if size != -1])
    if not inferred:
        need(product == elements, "the target must have as many elements as the input")
        return tuple(target)
    need(product != 0, "-1 cannot be inferred beside a size of 0")
    need(elements % product == 0, "the target sizes must divide the number of elements")
    return tuple(elements // product if size == -1 else size for size in target)


def result_sizes(shape: Sizes, target: Sizes) -> tuple[int, ...]:
    """The target with its -1 filled in where the operator itself checks the rest."""

    def unknown(size: int) -> bool:
        return isinstance(size, int) and size == -1

    product = math.prod([size for size in target if not unknown(size)])
    return tuple(
        math.prod(shape) // product if unknown(size) else size for size in target
    )


def check_triple(
    op: str, indices: Tensor, values: Tensor, shape: Sizes, target: Sizes
) -> None:
    """The checks of the public function; `shape` and `target` hold dense sizes too."""
    rank = sparse.check_matrix(op, indices)
    sparse.check_int64(op, indices, TypeError)
    check_rank(op, rank)
    sparse.check_rows(op, indices, values)
    split = len(shape) - values.dim() + 1
    check_rank(op, len(target) - values.dim() + 1)
    check_count(op, rank, shape[: max(split, 0)])
    sparse.check_dense_shape(op, rank, values, shape)
    sizes, dense = shape[:rank], shape[rank:]
    if known(sizes):
        check_source(op, sizes)
    split = len(target) - len(dense)
    require(
        split >= 0 and same_sizes(target[split:], dense),
        ValueError,
        lambda: (
            f"{op}: the target must end in the dense sizes {show(dense)} "
            f"(got target {show(target)})"
        ),
    )
    check(op, indices, sizes, target[:split])
