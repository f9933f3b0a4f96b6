"""TensorFlow's ``tf.compat.v1``, with the arguments that TensorFlow 2 dropped."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor

from torch_sparse_ops.functional import Sparse
from torch_sparse_ops.functional import sparse_concat as _sparse_concat
from torch_sparse_ops.functional import tensor_scatter_update as _scatter
from torch_sparse_ops.tf._convert import scatter_arguments
from torch_sparse_ops.tf.sparse import reshape as sparse_reshape

__all__ = [
    "sparse",
    "sparse_concat",
    "sparse_reshape",
    "tensor_scatter_nd_update",
    "tensor_scatter_update",
]

T = TypeVar("T")


def sparse_concat(
    axis: int | None,
    sp_inputs: Sequence[Sparse],
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> Sparse:
    """`torch_sparse_ops.sparse_concat`, with TensorFlow 1's arguments.

    ``concat_dim`` (with ``axis=None``) is the old name of ``axis``, and
    ``expand_nonconcat_dim`` that of ``expand_nonconcat_dims``: both work, with a
    DeprecationWarning.

    Raises:
        ValueError: two names of one argument that disagree; and as
            `torch_sparse_ops.sparse_concat`.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import tf
        >>> eye = torch.eye(2).to_sparse()
        >>> tf.compat.v1.sparse_concat(1, [eye, eye]).shape
        torch.Size([2, 4])
    """
    axis = _renamed("axis", axis, "concat_dim", concat_dim)
    expand = _renamed(
        "expand_nonconcat_dims",
        expand_nonconcat_dims,
        "expand_nonconcat_dim",
        # The default, which the new name overrides.
        expand_nonconcat_dim or None,
    )
    return _sparse_concat(
        sp_inputs,
        axis,  # type: ignore[arg-type] # None is refused there
        expand_nonconcat_dims=bool(expand),
    )


def _renamed(name: str, value: T | None, old_name: str, old: T | None) -> T | None:
    if old is None:
        return value
    warnings.warn(
        f"sparse_concat: {old_name} is deprecated, use {name}",
        DeprecationWarning,
        stacklevel=3,
    )
    if value is not None and value != old:
        raise ValueError(
            f"sparse_concat: {name} and {old_name} must agree "
            f"(got {name}={value}, {old_name}={old})"
        )
    return old


def tensor_scatter_nd_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """As `torch_sparse_ops.tf.tensor_scatter_nd_update`."""
    return _scatter(*scatter_arguments(tensor, indices, updates))


tensor_scatter_update = tensor_scatter_nd_update

# Its functions are those above.
from torch_sparse_ops.tf.compat.v1 import sparse  # noqa: E402
