"""The data of workloads, made of random numbers.

Coordinates are kept as torch, NumPy and pydata/sparse keep them: int64 of shape
[rank, nnz], one row per dimension. The size in a name is the number of entries of the
inputs together or, for a scatter, of the tensor's elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

Shape = tuple[int, ...]


class Coo(NamedTuple):
    indices: np.ndarray  # [rank, nnz]
    values: np.ndarray  # [nnz, *dense]
    shape: Shape  # sparse sizes only

    @property
    def nbytes(self) -> int:
        return self.indices.nbytes + self.values.nbytes


@dataclass(frozen=True)
class Concat:
    inputs: list[Coo]
    axis: int
    in_order: bool = True
    grad: np.ndarray | None = None  # of the values of the result

    @property
    def shape(self) -> Shape:
        shape = list(self.inputs[0].shape)
        shape[self.axis] = sum(x.shape[self.axis] for x in self.inputs)
        return tuple(shape)


@dataclass(frozen=True)
class Reshape:
    input: Coo
    shape: Shape
    grad: np.ndarray | None = None


@dataclass(frozen=True)
class Scatter:
    tensor: np.ndarray
    indices: np.ndarray  # [rows, depth]
    updates: np.ndarray
    unique: bool  # no two rows name one slice
    grad: np.ndarray | None = None


Data = Concat | Reshape | Scatter


# ------------------------------------------------------------------ entries


def sorted_keys(rng: Generator, count: int, total: int) -> np.ndarray:
    """Different int64 in [0, total), ascending, spread over all of it."""
    if count < 5000 or 2 * count > total:
        return np.sort(rng.choice(total, count, replace=False)).astype(np.int64)
    # Gaps of total / count on average, less a margin so that the sum stays below.
    gaps = rng.integers(1, max(2, int(1.9 * total / count)), count)
    return np.cumsum(gaps, out=gaps) - 1


def unravel(keys: np.ndarray, shape: Shape) -> np.ndarray:
    out = np.empty((len(shape), len(keys)), np.int64)
    for d in range(len(shape) - 1, 0, -1):
        keys, out[d] = np.divmod(keys, shape[d])
    out[0] = keys
    return out


def floats(rng: Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def coo(rng: Generator, nnz: int, shape: Shape, dense: Shape = ()) -> Coo:
    indices = unravel(sorted_keys(rng, nnz, math.prod(shape)), shape)
    return Coo(indices, floats(rng, nnz, *dense), shape)


def gradient(data: Data) -> np.ndarray:
    rng = np.random.default_rng(1)
    if isinstance(data, Concat):
        nnz = sum(len(x.values) for x in data.inputs)
        return floats(rng, nnz, *data.inputs[0].values.shape[1:])
    if isinstance(data, Reshape):
        return floats(rng, *data.input.values.shape)
    return floats(rng, *data.tensor.shape)


# ------------------------------------------------------------------- concat


def rows(
    rng: Generator, size: int, inputs: int, axis: int, dense: Shape = ()
) -> Concat:
    """Matrices whose concat along the columns has 16 entries a row."""
    shape = max(1, size // 16), 100_000
    each = size // inputs
    return Concat([coo(rng, each, shape, dense) for _ in range(inputs)], axis)


def cubes(rng: Generator, size: int, inputs: int, axis: int, sides: Shape) -> Concat:
    return Concat([coo(rng, size // inputs, sides) for _ in range(inputs)], axis)


def shuffled(rng: Generator, size: int) -> Concat:
    def shuffle(x: Coo) -> Coo:
        order = rng.permutation(len(x.values))
        return Coo(np.ascontiguousarray(x.indices[:, order]), x.values[order], x.shape)

    data = rows(rng, size, 2, 1)
    return Concat([shuffle(x) for x in data.inputs], 1, in_order=False)


def skewed(rng: Generator, size: int) -> Concat:
    """Row r has a share of 1 / (r + 1): a few rows hold much of everything."""

    def one(nnz: int) -> Coo:
        weights = 1 / np.arange(1, max(2, size // 16) + 1)
        counts = np.floor(weights * (nnz / weights.sum())).astype(np.int64)
        counts[0] += nnz - counts.sum()
        row = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(nnz) - np.repeat(np.cumsum(counts) - counts, counts)
        column = place * 4 + rng.integers(0, 4, nnz)
        return Coo(np.stack([row, column]), floats(rng, nnz), (len(counts), 4 * size))

    return Concat([one(size // 2) for _ in range(2)], 1)


def uneven(rng: Generator, size: int) -> Concat:
    """One input with nine tenths of the entries, and 63 that share the rest."""
    small = max(1, size // 630)
    counts = [size - 63 * small] + [small] * 63
    shape = max(1, size // 16), 100_000
    return Concat([coo(rng, count, shape) for count in counts], 1)


def graphs(rng: Generator, size: int, axis: int) -> Concat:
    """Adjacency matrices of 20 to 80 nodes with 4 edges a node, to be one batch."""
    nodes = rng.integers(20, 81, max(1, size // 200))
    nodes = [int(n) for n in nodes]
    across = 80 if axis else sum(nodes)
    shapes = [(80, n) if axis else (n, across) for n in nodes]
    inputs = [coo(rng, 4 * n, shape) for n, shape in zip(nodes, shapes, strict=True)]
    return Concat(inputs, axis)


# ------------------------------------------------------- reshape and scatter


def reshape(rng: Generator, size: int, shape: Shape, target: Shape) -> Reshape:
    return Reshape(coo(rng, size, shape), target)


def scatter(
    rng: Generator,
    size: int,
    slice_: int = 1,
    share: float = 0.1,
    depth: int = 1,
    duplicates: float = 0,
    dtype: str = "float32",
) -> Scatter:
    """Updates for a `share` of the slices. A share `duplicates` of the rows name slices
    that others name too or, from 0.9 up, all name one."""
    slices = max(2, size // slice_)
    side = math.isqrt(slices)
    lead = (side, side) if depth == 2 else (slices,)
    tail = (slice_,) if slice_ > 1 else ()
    count = max(1, int(math.prod(lead) * share))
    keys = rng.choice(math.prod(lead), count, replace=False)
    repeats = int(count * duplicates)
    if repeats:
        others = keys[: count - repeats]
        keys[count - repeats :] = (
            keys[0] if duplicates >= 0.9 else rng.choice(others, repeats)
        )
        rng.shuffle(keys)

    def numbers(*shape: int) -> np.ndarray:
        if dtype == "float32":
            return floats(rng, *shape)
        return rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)

    indices = np.ascontiguousarray(unravel(keys.astype(np.int64), lead).T)
    return Scatter(
        numbers(*lead, *tail), indices, numbers(count, *tail), unique=not repeats
    )
