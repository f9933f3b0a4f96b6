"""A sparse tensor as three parts, which every torch transform can carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from torch_sparse_ops import _checks, _coo
from torch_sparse_ops._checks.common import (
    check_entries,
    check_strided,
    shape_sizes,
    show_kind,
)


class SparseTensor:
    """Coordinates, values and shape of a sparse tensor.

    ``torch.compile(fullgraph=True)``, ``torch.export`` and ``torch.func.vmap`` refuse
    ``torch.sparse_coo`` tensors; they take this. It is immutable, unpacks like a
    tuple (``indices, values, dense_shape = x``), and is a pytree node whose leaves are
    ``indices`` and ``values``, so it may stand among the arguments and results of
    transformed, compiled and exported functions.

    The parts are kept, not copied. That they fit together is checked here; that the
    coordinates are within the shape, by the functions that read them.

    Args:
        indices: coordinates, int64 of shape ``[nnz, rank]``, one row for each entry,
            in any order and with any strides.
        values: the entries, of shape ``[nnz, *dense]``.
        dense_shape: the full shape, as ``torch.Tensor.shape`` is: ``rank`` sparse
            sizes, then the sizes of ``dense``. A sequence of ints or a 1-D integer
            tensor.

    ``indices`` and ``values`` may both be ``None`` or an int, which makes an entry of
    ``in_dims`` for :func:`torch.func.vmap`:
    ``in_dims=(SparseTensor(None, 0, x.dense_shape),)``.

    Raises:
        TypeError: indices that are not int64, parts that are not dense tensors, a
            ``dense_shape`` of another form.
        ValueError: sizes, ranks, counts or devices of the parts that do not agree, a
            negative size, 2**63 elements or more.
        IndexError: entries in an empty shape.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import SparseTensor
        >>> indices = torch.tensor([[0, 2], [1, 0]])
        >>> x = SparseTensor(indices, torch.tensor([1.0, 2.0]), (2, 3))
        >>> x.to_dense()
        tensor([[0., 0., 1.],
                [2., 0., 0.]])
    """

    __slots__ = ("indices", "values", "dense_shape")

    indices: Tensor
    values: Tensor
    dense_shape: tuple[int, ...]

    def __init__(
        self, indices: Tensor, values: Tensor, dense_shape: Sequence[int] | Tensor
    ) -> None:
        sizes = shape_sizes("SparseTensor", "dense_shape", dense_shape)
        if not (_is_dim(indices) and _is_dim(values)):
            check_strided("SparseTensor", "indices", indices)
            check_strided("SparseTensor", "values", values)
            _checks.sparse.check("SparseTensor", indices, values, sizes)
        _fill(self, indices, values, sizes)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"SparseTensor is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"SparseTensor is immutable: cannot delete {name!r}")

    def __iter__(self) -> Iterator[Any]:
        yield self.indices
        yield self.values
        yield self.dense_shape

    def __reduce__(self) -> tuple[Any, ...]:
        return SparseTensor, (self.indices, self.values, self.dense_shape)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )

    @staticmethod
    def from_torch(coo: Tensor) -> SparseTensor:
        """The parts of a ``torch.sparse_coo`` tensor, in the order stored.

        Nothing is copied: ``indices`` is a transposed view of the tensor's own, and
        ``values`` are its values. The tensor need not be coalesced.

        Differentiable. The gradient of ``coo`` is a COO tensor of its sparsity. Where
        entries of an uncoalesced tensor share a coordinate, they have one gradient
        between them, as everywhere in torch; a loss that gives them different ones
        raises RuntimeError in its backward.

        Raises:
            TypeError: ``coo`` is not a COO tensor.

        Example:
            >>> import torch
            >>> from torch_sparse_ops import SparseTensor
            >>> SparseTensor.from_torch(torch.tensor([[0, 7], [5, 0]]).to_sparse())
            SparseTensor(indices=tensor([[0, 1],
                    [1, 0]]), values=tensor([7, 5]), dense_shape=(2, 2))
        """
        if not (isinstance(coo, Tensor) and coo.layout == torch.sparse_coo):
            raise TypeError(
                "SparseTensor.from_torch: a sparse COO tensor is required "
                f"(got {show_kind(coo)})"
            )
        indices, values = _coo.parts(coo)
        return of_parts(indices, values, tuple(coo.shape))

    def to_torch(self, is_coalesced: bool = False) -> Tensor:
        """A ``torch.sparse_coo`` tensor of the same entries in the same order.

        Nothing is copied, except indices that are not stored one row per dimension.
        Differentiable: ``values`` get the gradient at their coordinates.

        Args:
            is_coalesced: promises that the coordinates are sorted and unique, as
                `sparse_concat` of coalesced tensors leaves them.

        Raises:
            TypeError: ``indices`` are not int64.
            ValueError: the parts do not fit together.
            IndexError: a coordinate is out of bounds (checked on the CPU, and on CUDA
                when ``torch.sparse.check_sparse_tensor_invariants`` is on), or an
                empty shape has entries.

        Example:
            >>> import torch
            >>> from torch_sparse_ops import SparseTensor
            >>> x = SparseTensor(torch.tensor([[1], [0]]), torch.tensor([5, 7]), (2,))
            >>> x.to_torch().coalesce().values()
            tensor([7, 5])
        """
        rank = self._check("to_torch")
        self._check_entries("to_torch", rank)
        return _coo.join(
            self.indices, self.values, self.dense_shape, bool(is_coalesced)
        )

    def to_dense(self) -> Tensor:
        """A dense tensor; entries that share a coordinate are summed.

        Differentiable, and works inside compiled, exported and vmapped functions.

        Raises:
            TypeError, ValueError, IndexError: as `to_torch`.

        Example:
            >>> import torch
            >>> from torch_sparse_ops import SparseTensor
            >>> twice = torch.tensor([[1], [1]])
            >>> SparseTensor(twice, torch.tensor([5, 7]), (3,)).to_dense()
            tensor([ 0, 12,  0])
        """
        rank = self._check("to_dense")
        self._check_entries("to_dense", rank)
        zeros = self.values.new_zeros(self.dense_shape)
        if rank == 0:
            return zeros + self.values.sum(0, dtype=self.values.dtype)
        places = self.indices.unbind(1)
        return zeros.index_put(places, self.values, accumulate=True)

    def _check(self, method: str) -> int:
        """The number of sparse dimensions."""
        return _checks.sparse.check(f"SparseTensor.{method}", *self)

    def _check_entries(self, method: str, rank: int) -> None:
        if _coo.bounds_are_due(self.indices):
            sizes = self.dense_shape[:rank]
            check_entries(f"SparseTensor.{method}", self.indices, sizes)


def _is_dim(x: object) -> bool:
    return x is None or isinstance(x, int)


def _fill(
    x: SparseTensor, indices: Any, values: Any, dense_shape: tuple[int, ...]
) -> None:
    object.__setattr__(x, "indices", indices)
    object.__setattr__(x, "values", values)
    object.__setattr__(x, "dense_shape", dense_shape)


def of_parts(indices: Any, values: Any, dense_shape: tuple[int, ...]) -> SparseTensor:
    """A SparseTensor of parts that need no check."""
    x = object.__new__(SparseTensor)
    _fill(x, indices, values, dense_shape)
    return x


# ------------------------------------------------------------------ pytree
# Leaves may be anything while a transform has them in hand: nothing is checked.


def _flatten(x: SparseTensor) -> tuple[list[Any], tuple[int, ...]]:
    return [x.indices, x.values], x.dense_shape


def _flatten_with_keys(x: SparseTensor) -> tuple[list[Any], tuple[int, ...]]:
    keys = pytree.GetAttrKey("indices"), pytree.GetAttrKey("values")
    return list(zip(keys, (x.indices, x.values), strict=True)), x.dense_shape


def _unflatten(leaves: Iterable[Any], dense_shape: tuple[int, ...]) -> SparseTensor:
    indices, values = leaves
    return of_parts(indices, values, dense_shape)


pytree.register_pytree_node(
    SparseTensor,
    _flatten,
    _unflatten,
    flatten_with_keys_fn=_flatten_with_keys,
    serialized_type_name="torch_sparse_ops.SparseTensor",
    to_dumpable_context=list,
    from_dumpable_context=tuple,
)
torch.serialization.add_safe_globals([SparseTensor])
