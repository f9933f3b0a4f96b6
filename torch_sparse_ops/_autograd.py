"""Derivatives of the raw operators.

The operators are linear in their values. A tangent goes through the operator itself,
a gradient through its transpose, which is an operator too, and the transpose of that
is the operator again. So one autograd.Function for each operator answers for every
mode: its backward, jvp and vmap call raw operators, which have derivatives in turn.

`torch.library.register_autograd` would not do: it drops tangents without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_sparse_ops import _vmap
from torch_sparse_ops._function import Function
from torch_sparse_ops._modes import is_plain

ops = torch.ops.torch_sparse_ops
below_autograd = torch._C._AutoDispatchBelowAutograd


def save(ctx: Any, *tensors: Tensor) -> None:
    """Keep tensors for jvp, which runs at once, and for a backward if one can come."""
    ctx.save_for_forward(*tensors)
    if any(ctx.needs_input_grad):
        ctx.save_for_backward(*tensors)


# ---------------------------------------------------------- sparse_concat
# Autograd does not look into lists: the tensors are the last arguments.

CONCAT_ARGS = 4  # shapes, concat_dim, expand_nonconcat_dims, inputs_sorted


def halves(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    middle = len(items) // 2
    return list(items[:middle]), list(items[middle:])


def concat_values(
    ctx: Any, indices: Sequence[Tensor], values: Sequence[Tensor | None]
) -> Tensor | None:
    """The values of the concat; those of an input that has none are zero."""
    some = next((v for v in values if v is not None), None)
    if some is None:
        return None
    filled = [
        torch.zeros(shape, dtype=some.dtype, device=some.device) if v is None else v
        for v, shape in zip(values, ctx.value_shapes, strict=True)
    ]
    return ops.sparse_concat(indices, filled, *ctx.args)[0]


def concat_gradients(
    ctx: Any, indices: Sequence[Tensor], grad: Tensor | None
) -> tuple[Tensor | None, ...]:
    """One for each argument of Concat."""
    constants = (None,) * (CONCAT_ARGS + len(indices))
    if grad is None:
        return constants + (None,) * len(indices)
    return constants + tuple(ops._sparse_concat_grad_values(grad, indices, *ctx.args))


class Concat(Function):
    @classmethod
    def call(
        cls,
        indices: Sequence[Tensor],
        values: Sequence[Tensor],
        shapes: list[int],
        concat_dim: int,
        expand: bool = False,
        inputs_sorted: bool = False,
    ) -> tuple[Tensor, Tensor]:
        args = shapes, concat_dim, expand, inputs_sorted
        return super().call(*args, *indices, *values)

    @staticmethod
    def forward(
        shapes: list[int],
        concat_dim: int,
        expand: bool,
        inputs_sorted: bool,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        with below_autograd():
            return ops.sparse_concat(
                *halves(tensors), shapes, concat_dim, expand, inputs_sorted
            )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        indices, values = halves(inputs[CONCAT_ARGS:])
        ctx.args = inputs[:CONCAT_ARGS]
        ctx.value_shapes = [v.shape for v in values]
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(output[1])
        save(ctx, *indices)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        return concat_gradients(ctx, ctx.saved_tensors, grad)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor | None, None]:
        _, values = halves(tangents[CONCAT_ARGS:])
        return concat_values(ctx, ctx.saved_tensors, values), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> Any:
        indices, values = halves(inputs[CONCAT_ARGS:])
        dims = in_dims[CONCAT_ARGS:]
        return _vmap.concat(info, dims, indices, values, *inputs[:CONCAT_ARGS])


class ConcatCoo(Concat):
    """The same for COO tensors, whose indices are [rank, nnz]: also tells whether the
    result is coalesced."""

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, bool]:  # type: ignore[override]
        tensors, args = inputs[CONCAT_ARGS:], inputs[:CONCAT_ARGS]
        with below_autograd():
            return ops._sparse_concat_coo(*halves(tensors), *args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        Concat.setup_context(ctx, inputs, output)
        strictly_increasing, concat_dim = output[2], inputs[1]
        ctx.is_stacked = strictly_increasing and concat_dim == 0

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
        if ctx.is_stacked and grad is not None:
            # One input after the other: views, as of torch.cat.
            grads = grad.split([shape[0] for shape in ctx.value_shapes])
            return (None,) * (CONCAT_ARGS + len(grads)) + grads
        return concat_gradients(ctx, [x.t() for x in ctx.saved_tensors], grad)


class ConcatGradValues(Function):
    @classmethod
    def call(
        cls, grad_values: Tensor, indices: Sequence[Tensor], *args: Any
    ) -> list[Tensor]:
        return list(super().call(*args, grad_values, *indices))

    @staticmethod
    def forward(
        shapes: list[int],
        concat_dim: int,
        expand: bool,
        inputs_sorted: bool,
        grad_values: Tensor,
        *indices: Tensor,
    ) -> tuple[Tensor, ...]:
        args = shapes, concat_dim, expand, inputs_sorted
        with below_autograd():
            return tuple(ops._sparse_concat_grad_values(grad_values, indices, *args))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.args = inputs[:CONCAT_ARGS]
        ctx.value_shapes = [g.shape for g in output]
        ctx.set_materialize_grads(False)
        save(ctx, *inputs[CONCAT_ARGS + 1 :])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        grad = concat_values(ctx, ctx.saved_tensors, grads)
        return (None,) * CONCAT_ARGS + (grad,) + (None,) * len(grads)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor, ...]:
        tangent = tangents[CONCAT_ARGS]
        indices = ctx.saved_tensors
        return tuple(ops._sparse_concat_grad_values(tangent, indices, *ctx.args))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> Any:
        args, (grad, *indices) = inputs[:CONCAT_ARGS], inputs[CONCAT_ARGS:]
        return _vmap.concat_grad(info, in_dims[CONCAT_ARGS:], grad, indices, *args)


# --------------------------------------------------------- sparse_reshape


class Reshape(Function):
    """Indices to indices: nothing to differentiate, but batches to go through."""

    @staticmethod
    def forward(indices: Tensor, shape: list[int], new_shape: list[int]) -> Tensor:
        with below_autograd():
            return ops.sparse_reshape(indices, shape, new_shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, _: Any) -> tuple[None, None, None]:
        return None, None, None

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> None:
        return None

    vmap = staticmethod(_vmap.reshape)


# -------------------------------------------------- tensor_scatter_update


class Scatter(Function):
    @staticmethod
    def forward(
        tensor: Tensor, indices: Tensor, updates: Tensor, policy: str = ""
    ) -> Tensor:
        with below_autograd():
            return ops.tensor_scatter_update(tensor, indices, updates, policy)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.shape = inputs[0].shape
        ctx.set_materialize_grads(False)
        save(ctx, inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
        to_tensor = to_updates = None
        if grad is not None:
            (indices,) = ctx.saved_tensors
            both = ctx.needs_input_grad[0] and ctx.needs_input_grad[2]
            if both and is_plain(grad):
                with below_autograd():
                    to_tensor, to_updates = ops._tensor_scatter_update_grads(
                        grad, indices
                    )
                return to_tensor, None, to_updates, None
            if ctx.needs_input_grad[0]:
                to_tensor = ops._tensor_scatter_update_grad_tensor(grad, indices)
            if ctx.needs_input_grad[2]:
                to_updates = ops._tensor_scatter_update_grad_updates(grad, indices)
        return to_tensor, None, to_updates, None

    @staticmethod
    def jvp(
        ctx: Any, tensor: Tensor | None, _: Any, updates: Tensor | None, __: Any
    ) -> Tensor | None:
        (indices,) = ctx.saved_tensors
        if updates is None:
            if tensor is None:
                return None
            return ops._tensor_scatter_update_grad_tensor(tensor, indices)
        if tensor is None:
            return scatter_into_zeros(updates, indices, ctx.shape)
        return ops.tensor_scatter_update(tensor, indices, updates, "IGNORE")

    vmap = staticmethod(_vmap.scatter)


class ScatterInPlace(Function):
    """tensor_scatter_update_ of the public functions, in reverse mode."""

    @staticmethod
    def forward(
        tensor: Tensor, indices: Tensor, updates: Tensor, policy: str
    ) -> Tensor:
        with below_autograd():
            ops.tensor_scatter_update_(tensor, indices, updates, policy)
        return tensor

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_dirty(inputs[0])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(inputs[1])

    backward = Scatter.backward


def scatter_grad(name: str, transpose: Callable[..., Tensor]) -> type[Function]:
    """A Function for the operator `name`, of a gradient and indices. Its own gradient
    is transpose(gradient, indices, shape of what it was given)."""
    op = getattr(ops, name)

    class ScatterGrad(Function):
        @staticmethod
        def forward(grad: Tensor, indices: Tensor) -> Tensor:
            with below_autograd():
                return op(grad, indices)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            ctx.shape = inputs[0].shape
            save(ctx, inputs[1])

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
            (indices,) = ctx.saved_tensors
            return transpose(grad, indices, ctx.shape), None

        @staticmethod
        def jvp(ctx: Any, tangent: Tensor, _: Any) -> Tensor:
            (indices,) = ctx.saved_tensors
            return op(tangent, indices)

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], *args: Tensor) -> Any:
            return _vmap.scatter_grad(op, info, in_dims, *args)

    return ScatterGrad


def scatter_into_zeros(updates: Tensor, indices: Tensor, shape: torch.Size) -> Tensor:
    zeros = torch.zeros(shape, dtype=updates.dtype, device=updates.device)
    return ops.tensor_scatter_update(zeros, indices, updates, "IGNORE")


ScatterGradTensor = scatter_grad(
    "_tensor_scatter_update_grad_tensor",
    lambda grad, indices, _: ops._tensor_scatter_update_grad_tensor(grad, indices),
)
ScatterGradUpdates = scatter_grad(
    "_tensor_scatter_update_grad_updates", scatter_into_zeros
)
