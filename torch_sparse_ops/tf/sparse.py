"""TensorFlow's ``tf.sparse``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_sparse_ops.functional import Sparse, sparse_concat, sparse_reshape
from torch_sparse_ops.tf._convert import shape_argument

__all__ = ["concat", "reshape"]


def concat(
    axis: int,
    sp_inputs: Sequence[Sparse],
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> Sparse:
    """`torch_sparse_ops.sparse_concat`, with TensorFlow's order of arguments.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import tf
        >>> eye = torch.eye(2).to_sparse()
        >>> tf.sparse.concat(1, [eye, eye]).to_dense()
        tensor([[1., 0., 1., 0.],
                [0., 1., 0., 1.]])
    """
    return sparse_concat(sp_inputs, axis, expand_nonconcat_dims=expand_nonconcat_dims)


def reshape(sp_input: Sparse, shape: Any, name: str | None = None) -> Sparse:
    """`torch_sparse_ops.sparse_reshape`; ``shape`` may also be an array.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import tf
        >>> tf.sparse.reshape(torch.eye(2).to_sparse(), [-1]).to_dense()
        tensor([1., 0., 0., 1.])
    """
    return sparse_reshape(sp_input, shape_argument(shape))
