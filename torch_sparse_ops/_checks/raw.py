"""The checks of each raw operator, under its name and with its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torch_sparse_ops._checks import concat, reshape, scatter
from torch_sparse_ops._checks.common import Sizes


def sparse_concat(
    indices: Sequence[Tensor],
    values: Sequence[Tensor],
    shapes: Sizes,
    concat_dim: int,
    expand_nonconcat_dims: bool = False,
    inputs_sorted: bool = False,
) -> None:
    op = "sparse_concat"
    concat.check(op, indices, values, shapes, concat_dim, expand_nonconcat_dims)


def _sparse_concat_coo(
    indices: Sequence[Tensor], values: Sequence[Tensor], *args: Any
) -> None:
    sparse_concat([x.t() for x in indices], values, *args)


def _sparse_concat_grad_values(
    grad_values: Tensor,
    indices: Sequence[Tensor],
    shapes: Sizes,
    concat_dim: int,
    expand_nonconcat_dims: bool,
    inputs_sorted: bool,
) -> None:
    op = "_sparse_concat_grad_values"
    concat.check(op, indices, None, shapes, concat_dim, expand_nonconcat_dims)
    concat.check_grad_values(op, grad_values, indices)


def sparse_reshape(input_indices: Tensor, input_shape: Sizes, new_shape: Sizes) -> None:
    reshape.check("sparse_reshape", input_indices, input_shape, new_shape)


def tensor_scatter_update(
    tensor: Tensor, indices: Tensor, updates: Tensor, bad_indices_policy: str = ""
) -> None:
    op = "tensor_scatter_update"
    scatter.check(op, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_update_(
    tensor: Tensor, indices: Tensor, updates: Tensor, bad_indices_policy: str = ""
) -> None:
    op = "tensor_scatter_update_"
    scatter.check(op, tensor, indices, updates, bad_indices_policy)
    scatter.check_separate(op, tensor)


def _tensor_scatter_update_grad_tensor(grad: Tensor, indices: Tensor) -> None:
    scatter.check("_tensor_scatter_update_grad_tensor", grad, indices, None)


def _tensor_scatter_update_grad_updates(grad: Tensor, indices: Tensor) -> None:
    scatter.check("_tensor_scatter_update_grad_updates", grad, indices, None)


def _tensor_scatter_update_grads(grad: Tensor, indices: Tensor) -> None:
    scatter.check("_tensor_scatter_update_grads", grad, indices, None)
