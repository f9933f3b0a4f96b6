"""The data of workloads as torch tensors, and torch's results as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from answers import Answer
from data import Concat, Coo, Data, Reshape, Scatter

from peers.base import Task

if TYPE_CHECKING:
    from torch import Tensor


def tensor(array: np.ndarray) -> Tensor:
    """Shares memory with the array."""
    import torch

    return torch.from_numpy(array)


def new_coo(
    indices: Tensor, values: Tensor, shape: Sequence[int], in_order: bool
) -> Tensor:
    """`shape` has the sparse sizes only."""
    import torch

    return torch.sparse_coo_tensor(
        indices,
        values,
        (*shape, *values.shape[1:]),
        is_coalesced=in_order,
        check_invariants=False,
    )


def coo(x: Coo, in_order: bool = True) -> Tensor:
    return new_coo(tensor(x.indices), tensor(x.values), x.shape, in_order)


def coos(data: Concat) -> list[Tensor]:
    return [coo(x, data.in_order) for x in data.inputs]


def raw_concat_args(data: Concat) -> tuple[Any, ...]:
    return (
        [tensor(x.indices).t() for x in data.inputs],
        [tensor(x.values) for x in data.inputs],
        [size for x in data.inputs for size in x.shape],
        data.axis,
        False,
        data.in_order,
    )


def scatter_args(data: Scatter, in_place: bool = False) -> tuple[Tensor, ...]:
    target = data.tensor.copy() if in_place else data.tensor
    return tensor(target), tensor(data.indices), tensor(data.updates)


def read_coo(result: Tensor) -> Answer:
    return [result._indices().numpy(), result._values().detach().numpy()]


def read_raw_concat(result: tuple[Tensor, Tensor]) -> Answer:
    values, indices = result
    return [indices.t().numpy(), values.numpy()]


def read_parts(result: tuple[Tensor, Tensor]) -> Answer:
    indices, values = result
    return [indices.numpy(), values.numpy()]


def read_dense(result: Tensor) -> Answer:
    return [result.numpy()]


def read_gradients(result: Sequence[Tensor]) -> Answer:
    return [(g._values() if g.is_sparse else g).numpy() for g in result]


# ----------------------------------------------------------------- backward


def backward(output: Tensor, inputs: Sequence[Tensor], grad: Tensor) -> Task:
    import torch

    def run() -> tuple[Tensor, ...]:
        return torch.autograd.grad(output, inputs, grad, retain_graph=True)

    return Task(run, read_gradients)


def coo_backward(
    output: Tensor, inputs: Sequence[Tensor], data: Concat | Reshape
) -> Task:
    """The gradient is a COO tensor of the coordinates of the output."""
    grad = new_coo(output._indices(), tensor(data.grad), data.shape, in_order=True)
    return backward(output, inputs, grad)


def scatter_backward(op: Callable[..., Tensor], data: Data) -> Task:
    target, indices, updates = scatter_args(data)
    inputs = [target.requires_grad_(), updates.requires_grad_()]
    return backward(op(target, indices, updates), inputs, tensor(data.grad))
