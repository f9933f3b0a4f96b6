"""Fake kernels: the sizes, strides and errors of the operators without data.

Only what depends on the entries themselves is left to the real kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_sparse_ops._checks import raw


def fake_kernel(result: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function, after the checks, for the operator of its name."""
    name = result.__name__
    check = getattr(raw, name)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return result(*args, **kwargs)

    torch.library.register_fake(f"torch_sparse_ops::{name}", kernel)
    return result


def new_indices(like: Tensor, nnz: int, rank: int) -> Tensor:
    """Stored one row per dimension, as the kernels do."""
    return like.new_empty((rank, nnz)).t()


@fake_kernel
def sparse_concat(
    indices: list[Tensor], values: list[Tensor], *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    nnz = sum(x.shape[0] for x in indices)
    return (
        values[0].new_empty((nnz, *values[0].shape[1:])),
        new_indices(indices[0], nnz, indices[0].shape[1]),
    )


@fake_kernel
def _sparse_concat_coo(
    indices: list[Tensor], values: list[Tensor], *args: Any
) -> tuple[Tensor, Tensor, bool]:
    nnz = sum(x.shape[1] for x in indices)
    return (
        values[0].new_empty((nnz, *values[0].shape[1:])),
        indices[0].new_empty((indices[0].shape[0], nnz)),
        False,  # of entries that are not there, nothing can be promised
    )


@fake_kernel
def _sparse_concat_grad_values(
    grad_values: Tensor, indices: list[Tensor], *args: Any
) -> list[Tensor]:
    dense = grad_values.shape[1:]
    return [grad_values.new_empty((x.shape[0], *dense)) for x in indices]


@fake_kernel
def sparse_reshape(
    input_indices: Tensor, input_shape: list[int], new_shape: list[int]
) -> Tensor:
    return new_indices(input_indices, input_indices.shape[0], len(new_shape))


@fake_kernel
def tensor_scatter_update(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return tensor.new_empty(tensor.shape)


@fake_kernel
def tensor_scatter_update_(*args: Any, **kwargs: Any) -> None:
    return None


@fake_kernel
def _tensor_scatter_update_grad_tensor(grad: Tensor, indices: Tensor) -> Tensor:
    return grad.new_empty(grad.shape)


@fake_kernel
def _tensor_scatter_update_grad_updates(grad: Tensor, indices: Tensor) -> Tensor:
    depth = int(indices.shape[-1])
    return grad.new_empty((*indices.shape[:-1], *grad.shape[depth:]))


@fake_kernel
def _tensor_scatter_update_grads(
    grad: Tensor, indices: Tensor
) -> tuple[Tensor, Tensor]:
    return (
        _tensor_scatter_update_grad_tensor(grad, indices),
        _tensor_scatter_update_grad_updates(grad, indices),
    )
