"""torch_sparse_ops, through each of its layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from data import Concat, Reshape, Scatter

from peers import torch_forms as forms
from peers.base import Peer, Task


class Ours(Peer):
    name = "torch_sparse_ops"
    packages = ("torch", "torch_sparse_ops")
    ours = True

    def concat(self, data: Concat) -> Task:
        """sparse_concat of COO tensors"""
        from torch_sparse_ops import sparse_concat

        inputs = forms.coos(data)
        return Task(lambda: sparse_concat(inputs, data.axis), forms.read_coo)

    def reshape(self, data: Reshape) -> Task:
        """sparse_reshape of a COO tensor"""
        from torch_sparse_ops import sparse_reshape

        x = forms.coo(data.input)
        return Task(lambda: sparse_reshape(x, data.shape), forms.read_coo)

    def scatter(self, data: Scatter) -> Task:
        """tensor_scatter_update"""
        from torch_sparse_ops import tensor_scatter_update

        args = forms.scatter_args(data)
        return Task(lambda: tensor_scatter_update(*args), forms.read_dense)

    def scatter_(self, data: Scatter) -> Task:
        """tensor_scatter_update_"""
        from torch_sparse_ops import tensor_scatter_update_

        args = forms.scatter_args(data, in_place=True)
        return Task(lambda: tensor_scatter_update_(*args), forms.read_dense)

    def backward_concat(self, data: Concat) -> Task:
        """the backward of sparse_concat, from COO gradient to COO gradients"""
        from torch_sparse_ops import sparse_concat

        inputs = [x.requires_grad_() for x in forms.coos(data)]
        return forms.coo_backward(sparse_concat(inputs, data.axis), inputs, data)

    def backward_reshape(self, data: Reshape) -> Task:
        """the backward of sparse_reshape, from COO gradient to COO gradient"""
        from torch_sparse_ops import sparse_reshape

        x = forms.coo(data.input).requires_grad_()
        return forms.coo_backward(sparse_reshape(x, data.shape), [x], data)

    def backward_scatter(self, data: Scatter) -> Task:
        """the backward of tensor_scatter_update, to tensor and updates"""
        from torch_sparse_ops import tensor_scatter_update

        return forms.scatter_backward(tensor_scatter_update, data)


class OursRaw(Peer):
    name = "torch_sparse_ops (raw)"
    packages = ("torch", "torch_sparse_ops")
    ours = True

    def raw(self, op: str) -> Callable[..., Any]:
        import torch

        import torch_sparse_ops  # noqa: F401  registers the operators

        return getattr(torch.ops.torch_sparse_ops, op).default

    def concat(self, data: Concat) -> Task:
        """the raw operator sparse_concat, on plain tensors"""
        args = forms.raw_concat_args(data)
        op = self.raw("sparse_concat")
        return Task(lambda: op(*args), forms.read_raw_concat)

    def reshape(self, data: Reshape) -> Task:
        """the raw operator sparse_reshape, on a plain tensor"""
        op = self.raw("sparse_reshape")
        indices = forms.tensor(data.input.indices).t()
        args = indices, list(data.input.shape), list(data.shape)
        return Task(
            lambda: op(*args), lambda result: [result.t().numpy(), data.input.values]
        )

    def scatter(self, data: Scatter) -> Task:
        """the raw operator tensor_scatter_update"""
        args = forms.scatter_args(data)
        op = self.raw("tensor_scatter_update")
        return Task(lambda: op(*args), forms.read_dense)

    def scatter_(self, data: Scatter) -> Task:
        """the raw operator tensor_scatter_update_"""
        args = forms.scatter_args(data, in_place=True)
        op = self.raw("tensor_scatter_update_")
        return Task(lambda: op(*args), lambda _: forms.read_dense(args[0]))

    def backward_concat(self, data: Concat) -> Task:
        """the backward of the raw operator sparse_concat, on plain tensors"""
        indices, values, *rest = forms.raw_concat_args(data)
        values = [v.requires_grad_() for v in values]
        result, _ = self.raw("sparse_concat")(indices, values, *rest)
        return forms.backward(result, values, forms.tensor(data.grad))

    def backward_scatter(self, data: Scatter) -> Task:
        """the backward of the raw operator tensor_scatter_update"""
        return forms.scatter_backward(self.raw("tensor_scatter_update"), data)


class OursOneThread(Ours):
    """Shows what more threads are worth."""

    name = "torch_sparse_ops (1 thread)"
    extra = True

    def prepare(self, op: str, data: Any) -> Task | None:
        task = super().prepare(op, data)
        if task is None:
            return None

        def run() -> Any:
            with one_thread():
                return task.run()

        return Task(run, task.read)


@contextmanager
def one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


PEERS = (Ours, OursRaw, OursOneThread)
