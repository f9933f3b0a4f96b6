"""The functions under TensorFlow's names, with its signatures.

``from torch_sparse_ops import tf`` and calls like ``tf.sparse.concat(1, [a, b])`` do
what they do in TensorFlow, on PyTorch's tensors. ``name`` is accepted and ignored.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torch_sparse_ops.functional import tensor_scatter_update
from torch_sparse_ops.tf import compat, sparse
from torch_sparse_ops.tf._convert import scatter_arguments

__all__ = ["compat", "sparse", "tensor_scatter_nd_update"]


def tensor_scatter_nd_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None
) -> Tensor:
    """`torch_sparse_ops.tensor_scatter_update`, on anything `torch.as_tensor` takes.

    What is not a tensor or array yet, as a list of numbers, follows the others:
    ``updates`` take the dtype of ``tensor`` where that loses nothing in kind.

    Raises:
        TypeError: strings, and as `torch_sparse_ops.tensor_scatter_update`.

    Example:
        >>> from torch_sparse_ops import tf
        >>> tf.tensor_scatter_nd_update([0.0, 0.0, 0.0], [[2], [0]], [5, 7])
        tensor([7., 0., 5.])
    """
    return tensor_scatter_update(*scatter_arguments(tensor, indices, updates))
