"""TensorFlow and JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from answers import Answer
from data import Concat, Coo, Reshape, Scatter

from peers.base import Peer, Task


class TensorFlow(Peer):
    name = "tensorflow"
    packages = ("tensorflow",)

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    @staticmethod
    def sparse(x: Coo) -> Any:
        import tensorflow as tf

        return tf.SparseTensor(np.ascontiguousarray(x.indices.T), x.values, x.shape)

    @staticmethod
    def read_sparse(result: Any) -> Answer:
        return [result.indices.numpy().T, result.values.numpy()]

    @staticmethod
    def read_gradients(result: Sequence[Any]) -> Answer:
        return [g.numpy() for g in result]

    def concat(self, data: Concat) -> Task | None:
        """tf.sparse.concat"""
        import tensorflow as tf

        if data.inputs[0].values.ndim > 1:
            return None
        inputs = [self.sparse(x) for x in data.inputs]
        op = self.function(lambda *xs: tf.sparse.concat(data.axis, list(xs)))
        return Task(lambda: op(*inputs), self.read_sparse)

    def reshape(self, data: Reshape) -> Task:
        """tf.sparse.reshape"""
        import tensorflow as tf

        x = self.sparse(data.input)
        op = self.function(lambda x: tf.sparse.reshape(x, list(data.shape)))
        return Task(lambda: op(x), self.read_sparse)

    def scatter(self, data: Scatter) -> Task:
        """tf.tensor_scatter_nd_update"""
        import tensorflow as tf

        args = [tf.constant(x) for x in (data.tensor, data.indices, data.updates)]
        op = self.function(tf.tensor_scatter_nd_update)
        return Task(lambda: op(*args), lambda result: [result.numpy()])

    def backward_scatter(self, data: Scatter) -> Task:
        """the gradient of tf.tensor_scatter_nd_update"""
        import tensorflow as tf

        target, indices, updates, grad = (
            tf.constant(x) for x in (data.tensor, data.indices, data.updates, data.grad)
        )
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([target, updates])
            output = tf.tensor_scatter_nd_update(target, indices, updates)
        return Task(
            lambda: tape.gradient(output, [target, updates], grad), self.read_gradients
        )


class TensorFlowFunction(TensorFlow):
    """The same in a tf.function, forward only."""

    name = "tensorflow (function)"
    backward_scatter = None  # type: ignore[assignment]

    def function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import tensorflow as tf

        return tf.function(function)


class Jax(Peer):
    name = "jax"
    packages = ("jax",)
    any_duplicate = True
    compiles = True

    @staticmethod
    @functools.cache
    def jax() -> Any:
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax

    def sparse(self, x: Coo, in_order: bool = True) -> Any:
        from jax.experimental.sparse import BCOO

        asarray = self.jax().numpy.asarray
        shape = (*x.shape, *x.values.shape[1:])
        parts = asarray(x.values), asarray(np.ascontiguousarray(x.indices.T))
        return BCOO(parts, shape=shape, indices_sorted=in_order, unique_indices=True)

    @staticmethod
    def read_sparse(result: Any) -> Answer:
        return [np.asarray(result.indices).T, np.asarray(result.data)]

    def run(self, function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
        jax = self.jax()
        op = jax.jit(function)
        return lambda: jax.block_until_ready(op(*args))

    def concat(self, data: Concat) -> Task | None:
        """bcoo_concatenate, sort_indices (axis 0 needs no sort), under jit"""
        from jax.experimental.sparse import bcoo_concatenate

        if len(data.inputs) > 64:
            return None  # minutes to compile

        def op(*xs: Any) -> Any:
            out = bcoo_concatenate(xs, dimension=data.axis)
            return out if data.axis == 0 and data.in_order else out.sort_indices()

        inputs = [self.sparse(x, data.in_order) for x in data.inputs]
        return Task(self.run(op, *inputs), self.read_sparse)

    def reshape(self, data: Reshape) -> Task:
        """BCOO.reshape under jit"""
        x = self.sparse(data.input)
        return Task(self.run(lambda x: x.reshape(data.shape), x), self.read_sparse)

    def update(self, data: Scatter) -> tuple[Callable[..., Any], list[Any]]:
        def op(target: Any, updates: Any, indices: Any) -> Any:
            index = tuple(indices[:, d] for d in range(indices.shape[1]))
            return target.at[index].set(updates, unique_indices=data.unique)

        parts = data.tensor, data.updates, data.indices
        return op, [self.jax().numpy.asarray(x) for x in parts]

    def scatter(self, data: Scatter) -> Task:
        """x.at[slices].set under jit"""
        op, args = self.update(data)
        return Task(self.run(op, *args), lambda result: [np.asarray(result)])

    def backward_scatter(self, data: Scatter) -> Task:
        """the vjp of x.at[slices].set under jit"""
        op, (target, updates, indices) = self.update(data)
        jax = self.jax()
        grad = jax.numpy.asarray(data.grad)

        def pull(target: Any, updates: Any, indices: Any, grad: Any) -> Any:
            return jax.vjp(lambda t, u: op(t, u, indices), target, updates)[1](grad)

        return Task(
            self.run(pull, target, updates, indices, grad),
            lambda result: [np.asarray(g) for g in result],
        )


PEERS = (TensorFlow, TensorFlowFunction, Jax)
