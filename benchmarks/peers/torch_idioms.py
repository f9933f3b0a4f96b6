"""What a user of torch writes without torch_sparse_ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from data import Concat, Reshape, Scatter, Shape

from peers import torch_forms as forms
from peers.base import Peer, Task

if TYPE_CHECKING:
    from torch import Tensor


def div_mod(indices: Tensor, shape: Shape, target: Shape) -> Tensor:
    """Coordinates [rank, nnz] in another shape."""
    import torch

    key = indices[0]
    for column, size in zip(indices[1:], shape[1:], strict=True):
        key = key * size + column
    columns = []
    for size in reversed(target[1:]):
        columns.append(key % size)
        key = torch.div(key, size, rounding_mode="floor")
    return torch.stack([key, *reversed(columns)])


def in_order(
    indices: Tensor, values: Tensor, lead: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Of sorted inputs laid end to end. They follow each other along the axis, so that
    a stable sort by the coordinates before it, of sizes `lead`, is enough."""
    import torch

    if not lead:
        return indices, values
    key = indices[0]
    for d, size in enumerate(lead[1:], 1):
        key = key * size + indices[d]
    if math.prod(lead) < 2**31:
        key = key.to(torch.int32)
    order = torch.sort(key, stable=True)[1]
    return indices.index_select(1, order), values.index_select(0, order)


def sorted_concat(
    indices: Sequence[Tensor], values: Sequence[Tensor], shapes: list[Shape], axis: int
) -> tuple[Tensor, Tensor]:
    import torch

    offset, moved = 0, []
    for x, shape in zip(indices, shapes, strict=True):
        moved.append(torch.cat([x[:axis], x[axis : axis + 1] + offset, x[axis + 1 :]]))
        offset += shape[axis]
    return in_order(torch.cat(moved, 1), torch.cat(list(values)), shapes[0][:axis])


def index_put(target: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return target.index_put(tuple(indices.unbind(-1)), updates)


class First(Peer):
    """What comes to mind first."""

    name = "torch"
    packages = ("torch",)
    any_duplicate = True

    def concat(self, data: Concat) -> Task:
        """torch.cat, coalesce"""
        import torch

        inputs = forms.coos(data)
        return Task(lambda: torch.cat(inputs, data.axis).coalesce(), forms.read_coo)

    def reshape(self, data: Reshape) -> Task:
        """div and mod of the coordinates"""
        x = forms.coo(data.input)

        def run() -> Tensor:
            indices = div_mod(x._indices(), data.input.shape, data.shape)
            return forms.new_coo(indices, x._values(), data.shape, in_order=True)

        return Task(run, forms.read_coo)

    def scatter(self, data: Scatter) -> Task:
        """clone, index_put_"""
        target, indices, updates = forms.scatter_args(data)

        def run() -> Tensor:
            return target.clone().index_put_(tuple(indices.unbind(-1)), updates)

        return Task(run, forms.read_dense)

    def scatter_(self, data: Scatter) -> Task:
        """index_put_"""
        target, indices, updates = forms.scatter_args(data, in_place=True)

        def run() -> Tensor:
            return target.index_put_(tuple(indices.unbind(-1)), updates)

        return Task(run, forms.read_dense)

    def backward_concat(self, data: Concat) -> Task:
        """the backward of torch.cat, coalesce"""
        import torch

        inputs = [x.requires_grad_() for x in forms.coos(data)]
        output = torch.cat(inputs, data.axis).coalesce()
        return forms.coo_backward(output, inputs, data)

    def backward_reshape(self, data: Reshape) -> Task:
        """the backward of sparse_coo_tensor(div and mod, values())"""
        import torch

        x = forms.coo(data.input).requires_grad_()
        indices = div_mod(x._indices(), data.input.shape, data.shape)
        output = torch.sparse_coo_tensor(
            indices, x.values(), data.shape, is_coalesced=True, check_invariants=False
        )
        return forms.coo_backward(output, [x], data)

    def backward_scatter(self, data: Scatter) -> Task:
        """the backward of index_put"""
        return forms.scatter_backward(index_put, data)


class Expert(Peer):
    """What somebody writes who measures."""

    name = "torch (expert)"
    packages = ("torch",)
    any_duplicate = True

    def concat(self, data: Concat) -> Task | None:
        """torch.cat, stable sort by the coordinates before the axis, index_select;
        torch.cat alone for axis 0"""
        import torch

        inputs, axis = forms.coos(data), data.axis
        if not data.in_order:
            return None
        if axis == 0:
            return Task(lambda: torch.cat(inputs, 0), forms.read_coo)
        lead = data.shape[:axis]

        def run() -> Tensor:
            joined = torch.cat(inputs, axis)
            parts = in_order(joined._indices(), joined._values(), lead)
            return forms.new_coo(*parts, data.shape, in_order=True)

        return Task(run, forms.read_coo)

    def scatter(self, data: Scatter) -> Task:
        """index_copy (rows) or scatter (scalars), by the number of the slice"""
        args = forms.scatter_args(data)
        return Task(lambda: self.by_number(*args), forms.read_dense)

    def scatter_(self, data: Scatter) -> Task | None:
        """index_copy_ (rows) or scatter_ (scalars), by the number of the slice"""
        target, indices, updates = forms.scatter_args(data, in_place=True)
        if indices.shape[1] > 1:
            return None

        def run() -> Tensor:
            slices = indices[:, 0]
            if target.dim() == 1:
                return target.scatter_(0, slices, updates)
            return target.index_copy_(0, slices, updates)

        return Task(run, forms.read_dense)

    def backward_concat(self, data: Concat) -> Task:
        """the backward of torch.cat of the values, index_select by the sorted order"""
        values = [forms.tensor(x.values).requires_grad_() for x in data.inputs]
        _, output = sorted_concat(
            [forms.tensor(x.indices) for x in data.inputs],
            values,
            [x.shape for x in data.inputs],
            data.axis,
        )
        return forms.backward(output, values, forms.tensor(data.grad))

    def backward_scatter(self, data: Scatter) -> Task:
        """the backward of index_copy (rows) or scatter (scalars)"""
        return forms.scatter_backward(self.by_number, data)

    @staticmethod
    def by_number(target: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
        depth = indices.shape[1]
        slices = indices[:, 0]
        for d in range(1, depth):
            slices = slices * target.shape[d] + indices[:, d]
        flat = target.reshape(-1, *target.shape[depth:])
        if flat.dim() == 1:
            return flat.scatter(0, slices, updates).reshape(target.shape)
        return flat.index_copy(0, slices, updates).reshape(target.shape)


class Deterministic(Peer):
    """The one way in torch to say which update of a slice wins: the last."""

    name = "torch (deterministic)"
    packages = ("torch",)

    def scatter(self, data: Scatter) -> Task | None:
        """clone, index_put_ under use_deterministic_algorithms"""
        import torch

        if data.unique:
            return None
        target, indices, updates = forms.scatter_args(data)

        def run() -> Tensor:
            torch.use_deterministic_algorithms(True)
            try:
                return target.clone().index_put_(tuple(indices.unbind(-1)), updates)
            finally:
                torch.use_deterministic_algorithms(False)

        return Task(run, forms.read_dense)


class Compiled(Peer):
    """The same under torch.compile, on plain tensors."""

    name = "torch.compile"
    packages = ("torch",)
    any_duplicate = True
    compiles = True

    @staticmethod
    def compile(function: Any) -> Any:
        import torch

        torch._dynamo.reset()
        return torch.compile(function, dynamic=False)

    def concat(self, data: Concat) -> Task | None:
        """torch.compile of: cat of the parts, stable sort, index_select"""
        if not data.in_order or len(data.inputs) > 8:
            return None  # the code grows with the inputs
        indices, values, *_ = forms.raw_concat_args(data)
        indices = [x.t() for x in indices]
        shapes = [x.shape for x in data.inputs]
        op = self.compile(sorted_concat)
        return Task(lambda: op(indices, values, shapes, data.axis), forms.read_parts)

    def reshape(self, data: Reshape) -> Task:
        """torch.compile of: div and mod of the coordinates"""
        indices, op = forms.tensor(data.input.indices), self.compile(div_mod)
        return Task(
            lambda: op(indices, data.input.shape, data.shape),
            lambda result: [result.numpy(), data.input.values],
        )

    def scatter(self, data: Scatter) -> Task:
        """torch.compile of: index_put"""
        args, op = forms.scatter_args(data), self.compile(index_put)
        return Task(lambda: op(*args), forms.read_dense)


PEERS = (First, Expert, Deterministic, Compiled)
