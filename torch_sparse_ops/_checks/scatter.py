"""tensor_scatter_update: its checks."""

from __future__ import annotations

from torch import Tensor

from torch_sparse_ops._checks.common import (
    INDEX_DTYPES,
    check_strided,
    known,
    require,
    same_sizes,
    show,
    show_dtype,
)

POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")


def check(
    op: str,
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor | None,
    policy: str = "",
    dtype_error: type[Exception] = ValueError,
) -> None:
    """Everything but the coordinates. The transposes have no updates."""
    for name, other in (("indices", indices), ("updates", updates)):
        if other is not None and other.device != tensor.device:
            raise ValueError(
                f"{op}: all tensors must be on one device (got {tensor.device} for "
                f"tensor, {other.device} for {name})"
            )
    if indices.dtype not in INDEX_DTYPES:
        raise dtype_error(
            f"{op}: indices must be int32 or int64 (got {show_dtype(indices.dtype)})"
        )
    if updates is not None and updates.dtype != tensor.dtype:
        raise dtype_error(
            f"{op}: updates must have the dtype of tensor (got "
            f"{show_dtype(tensor.dtype)} for tensor, {show_dtype(updates.dtype)} for "
            "updates)"
        )
    if indices.dim() < 2:
        raise ValueError(
            f"{op}: indices must have at least 2 dimensions "
            f"(got shape {show(indices.shape)})"
        )
    depth = int(indices.shape[-1])
    if not 1 <= depth <= tensor.dim():
        raise ValueError(
            f"{op}: indices.shape[-1] must be from 1 to the rank of tensor (got "
            f"indices of shape {show(indices.shape)}, tensor of shape "
            f"{show(tensor.shape)})"
        )
    if updates is not None:
        want = (*indices.shape[:-1], *tensor.shape[depth:])
        require(
            same_sizes(updates.shape, want),
            ValueError,
            lambda: (
                f"{op}: updates.shape must be indices.shape[:-1] + "
                f"tensor.shape[{depth}:] = {show(want)} (got {show(updates.shape)})"
            ),
        )
    if policy not in POLICIES:
        raise ValueError(
            f'{op}: bad_indices_policy must be one of "", "DEFAULT", "ERROR", '
            f'"IGNORE" (got "{policy}")'
        )


def check_call(
    op: str, tensor: object, indices: object, updates: object, policy: str
) -> None:
    """The checks of the public functions."""
    for name, x in (("tensor", tensor), ("indices", indices), ("updates", updates)):
        check_strided(op, name, x)
    check(op, tensor, indices, updates, policy, TypeError)  # type: ignore[arg-type]


def check_separate(op: str, tensor: Tensor) -> None:
    """No two elements of a tensor that is written in place share memory.

    Sorted by stride, each stride must step over all that the smaller ones reach.
    """
    sizes, strides = tensor.shape, tensor.stride()
    if not (known(sizes) and known(strides)) or 0 in sizes:
        return
    reach = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size == 1:
            continue
        if stride <= reach:
            raise ValueError(
                f"{op}: tensor must not overlap itself "
                f"(got shape {show(sizes)}, strides {show(strides)})"
            )
        reach += stride * (size - 1)
