"""NumPy, SciPy and pydata/sparse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from answers import Answer, concat_order, moved_indices
from data import Concat, Coo, Reshape, Scatter

from peers.base import Peer, Task


def is_matrix(data: Concat) -> bool:
    x = data.inputs[0]
    return len(x.shape) == 2 and x.values.ndim == 1


class NumPy(Peer):
    name = "numpy"
    packages = ("numpy",)

    def concat(self, data: Concat) -> Task:
        """concatenate, stable argsort by the coordinates before the axis, take"""

        def run() -> Answer:
            indices = moved_indices(data)
            values = np.concatenate([x.values for x in data.inputs])
            if data.axis == 0 and data.in_order:
                return [indices, values]
            order = concat_order(data)
            return [np.take(indices, order, 1), values[order]]

        return Task(run, lambda result: result)

    def reshape(self, data: Reshape) -> Task:
        """ravel_multi_index, unravel_index"""
        x = data.input

        def run() -> Answer:
            key = np.ravel_multi_index(tuple(x.indices), x.shape)
            return [np.stack(np.unravel_index(key, data.shape)), x.values]

        return Task(run, lambda result: result)

    def scatter(self, data: Scatter) -> Task:
        """copy, assignment to the slices"""
        index = tuple(np.ascontiguousarray(data.indices.T))

        def run() -> np.ndarray:
            out = data.tensor.copy()
            out[index] = data.updates
            return out

        return Task(run, lambda result: [result])

    def scatter_(self, data: Scatter) -> Task:
        """assignment to the slices"""
        index = tuple(np.ascontiguousarray(data.indices.T))
        out = data.tensor.copy()

        def run() -> np.ndarray:
            out[index] = data.updates
            return out

        return Task(run, lambda result: [result])


class SciPy(Peer):
    name = "scipy (COO)"
    packages = ("scipy.sparse",)

    @staticmethod
    def array(x: Coo, in_order: bool = True) -> Any:
        from scipy.sparse import coo_array

        out = coo_array((x.values, tuple(x.indices)), shape=x.shape)
        out.has_canonical_format = in_order
        return out

    @staticmethod
    def read(result: Any) -> Answer:
        return [np.stack(result.coords).astype(np.int64), result.data]

    def concat(self, data: Concat) -> Task | None:
        """vstack, or hstack and a lexsort, of coo_array"""
        from scipy.sparse import hstack, vstack

        if not is_matrix(data):
            return None
        inputs = [self.array(x, data.in_order) for x in data.inputs]

        def run() -> Any:
            stack = hstack if data.axis else vstack
            out = stack(inputs, format="coo")
            if data.axis or not data.in_order:
                order = np.lexsort((out.col, out.row))
                out.coords = tuple(c[order] for c in out.coords)
                out.data = out.data[order]
            return out

        return Task(run, self.read)

    def reshape(self, data: Reshape) -> Task:
        """coo_array.reshape"""
        x = self.array(data.input)
        return Task(lambda: x.reshape(data.shape), self.read)


class SciPyRows(Peer):
    name = "scipy (CSR)"
    packages = ("scipy.sparse",)
    other_storage = True

    def concat(self, data: Concat) -> Task | None:
        """hstack or vstack of csr_array"""
        from scipy.sparse import hstack, vstack

        if not is_matrix(data) or max(x.shape[0] for x in data.inputs) > 10**8:
            return None
        inputs = [SciPy.array(x).tocsr() for x in data.inputs]
        for x in inputs:
            x.sort_indices()
        stack = hstack if data.axis else vstack
        return Task(
            lambda: stack(inputs, format="csr"),
            lambda result: SciPy.read(result.tocoo()),
        )


class PydataSparse(Peer):
    name = "pydata/sparse"
    packages = ("sparse",)

    @staticmethod
    def array(x: Coo, in_order: bool = True) -> Any:
        import sparse

        return sparse.COO(
            x.indices,
            x.values,
            shape=x.shape,
            sorted=in_order,
            has_duplicates=False,
        )

    @staticmethod
    def read(result: Any) -> Answer:
        return [result.coords.astype(np.int64), result.data]

    def concat(self, data: Concat) -> Task | None:
        """concatenate of COO"""
        import sparse

        if data.inputs[0].values.ndim > 1:
            return None
        if math.prod(data.shape) >= 2**63:
            return None
        inputs = [self.array(x, data.in_order) for x in data.inputs]
        return Task(lambda: sparse.concatenate(inputs, data.axis), self.read)

    def reshape(self, data: Reshape) -> Task:
        """COO.reshape"""
        x = self.array(data.input)
        return Task(lambda: x.reshape(data.shape), self.read)


PEERS = (NumPy, SciPy, SciPyRows, PydataSparse)
