"""What a workload must give, by plain NumPy, and the bytes that it has to move.

An answer is a list of arrays: the coordinates [rank, nnz] and the values of a sparse
result; the tensor of a scatter; the gradients of a backward, one per differentiable
input in the order of the arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from data import Concat, Data, Reshape, Scatter, unravel

Answer = list[np.ndarray]


def ravel(indices: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
    key = np.zeros(len(indices[0]), np.int64)
    for column, size in zip(indices, shape, strict=True):
        key *= size
        key += column
    return key


def concat_order(data: Concat) -> np.ndarray:
    """Where each entry of the result was in the inputs laid end to end."""
    axis = data.axis
    if data.in_order:
        # Inputs follow each other along the axis: what lies before it decides.
        prefix = np.concatenate(
            [ravel(x.indices[:axis], x.shape[:axis]) for x in data.inputs]
            if axis
            else [np.zeros(len(x.values), np.int64) for x in data.inputs]
        )
        return np.argsort(prefix, kind="stable")
    return np.argsort(ravel(moved_indices(data), data.shape), kind="stable")


def moved_indices(data: Concat) -> np.ndarray:
    """The inputs' coordinates end to end, each at its place along the axis."""
    moved = np.concatenate([x.indices for x in data.inputs], 1)
    sizes = [x.shape[data.axis] for x in data.inputs]
    counts = [len(x.values) for x in data.inputs]
    moved[data.axis] += np.repeat(np.cumsum([0, *sizes[:-1]]), counts)
    return moved


def scatter_winners(data: Scatter) -> tuple[np.ndarray, np.ndarray]:
    """The slice that each row names, and whether no later row names it."""
    lead = data.tensor.shape[: data.indices.shape[1]]
    slices = ravel(data.indices.T, lead)
    last = np.full(math.prod(lead), -1)
    np.maximum.at(last, slices, np.arange(len(slices)))
    return slices, last[slices] == np.arange(len(slices))


def concat_answer(data: Concat) -> Answer:
    order = concat_order(data)
    if data.grad is not None:
        grad = np.empty_like(data.grad)
        grad[order] = data.grad
        ends = np.cumsum([len(x.values) for x in data.inputs])
        return np.split(grad, ends[:-1])
    indices = moved_indices(data)
    for d in range(len(indices)):  # one column at a time, for the memory
        indices[d] = indices[d][order]
    return [indices, np.concatenate([x.values for x in data.inputs])[order]]


def reshape_answer(data: Reshape) -> Answer:
    if data.grad is not None:
        return [data.grad]
    key = ravel(data.input.indices, data.input.shape)
    return [unravel(key, data.shape), data.input.values]


def scatter_answer(data: Scatter) -> Answer:
    slices, wins = scatter_winners(data)
    tail = data.tensor.shape[data.indices.shape[1] :]
    if data.grad is None:
        out = data.tensor.copy()
        out.reshape(-1, *tail)[slices[wins]] = data.updates[wins]
        return [out]
    to_tensor = data.grad.copy()
    to_tensor.reshape(-1, *tail)[slices] = 0
    to_updates = data.grad.reshape(-1, *tail)[slices]
    to_updates[~wins] = 0
    return [to_tensor, to_updates]


def answer(data: Data) -> Answer:
    if isinstance(data, Concat):
        return concat_answer(data)
    if isinstance(data, Reshape):
        return reshape_answer(data)
    return scatter_answer(data)


def equal(got: Answer, want: Answer) -> bool:
    return len(got) == len(want) and all(
        g.dtype == w.dtype and np.array_equal(g, w)
        for g, w in zip(got, want, strict=True)
    )


def bytes_moved(op: str, data: Data) -> int:
    """The least to read and to write: inputs once, and outputs once."""
    if isinstance(data, Concat):
        if data.grad is not None:
            return 2 * data.grad.nbytes + sum(x.indices.nbytes for x in data.inputs)
        return 2 * sum(x.nbytes for x in data.inputs)
    if isinstance(data, Reshape):
        if data.grad is not None:
            return 0  # the gradient of the result is that of the input
        column = data.input.indices[0].nbytes
        return column * (len(data.input.shape) + len(data.shape))
    if op == "scatter_":
        return data.indices.nbytes + 2 * data.updates.nbytes
    return 2 * data.tensor.nbytes + data.indices.nbytes + data.updates.nbytes


def bytes_made(op: str, data: Data) -> int:
    """What the results hold."""
    if op == "scatter_":
        return 0
    if isinstance(data, Concat):
        if data.grad is not None:
            return data.grad.nbytes
        return sum(x.nbytes for x in data.inputs)
    if isinstance(data, Reshape):
        if data.grad is not None:
            return 0
        return data.input.indices[0].nbytes * len(data.shape)
    made = data.tensor.nbytes
    return made + data.updates.nbytes if data.grad is not None else made
