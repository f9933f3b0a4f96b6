"""The public functions, on sparse COO tensors, SparseTensors and dense tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from torch import Tensor

from torch_sparse_ops import _calls, _checks
from torch_sparse_ops._checks.common import integer, shape_sizes, show_kind
from torch_sparse_ops.sparse_tensor import SparseTensor

__all__ = [
    "sparse_concat",
    "sparse_reshape",
    "tensor_scatter_update",
    "tensor_scatter_update_",
    "concat_shape",
    "reshape_shape",
]

Sparse = TypeVar("Sparse", Tensor, SparseTensor)


def sparse_concat(
    sp_inputs: Sequence[Sparse],
    axis: int,
    *,
    expand_nonconcat_dims: bool = False,
    inputs_sorted: bool = False,
) -> Sparse:
    """Joins sparse tensors along a dimension, with the entries in row-major order.

    Entry ``(c0, ..., ck)`` of input ``i`` becomes the entry
    ``(c0, ..., c_axis + offset_i, ..., ck)`` of the result, where ``offset_i`` is the
    sum of the sizes of inputs ``0`` to ``i - 1`` along ``axis``. The result is sorted
    whatever the order of the inputs. Entries with equal coordinates stay apart, in
    the order of the inputs and of their places in them. The inputs are not modified
    and share no memory with the result.

    TensorFlow: ``tf.sparse.concat``, ``tf.compat.v1.sparse_concat``.

    Args:
        sp_inputs: a list or tuple of ``torch.sparse_coo`` tensors, or of
            `SparseTensor`, of one dtype and device. They have the same number of
            sparse dimensions, and the same dense (trailing) dimensions if any.
        axis: the sparse dimension to join along. Counts from the end if negative; the
            dense dimensions are counted too.
        expand_nonconcat_dims: lets the other sparse sizes differ; the result has the
            largest of each. Otherwise they must agree.
        inputs_sorted: promises that each input is in row-major order, which spares a
            sort on CUDA. Coalesced COO tensors need no promise, and the CPU sees for
            itself. A false promise on CUDA gives entries out of order.

    Returns:
        A sparse tensor of the kind of the inputs, with as many entries as they have
        together. A COO result is flagged coalesced when all inputs were, or when it
        has fewer than two entries.

    Gradient:
        Each entry gets the gradient of its place in the result. COO inputs get COO
        gradients of their own sparsity, and the gradient of a COO result may be dense
        or COO with any coordinates. Differentiable any number of times, in forward
        mode (SparseTensor), and under ``torch.func``.

    Deterministic: equal bit for bit on every device and in every run. Values are
    moved, never computed with: any dtype that is not quantised will do.

    Raises:
        TypeError: not a list or tuple, an element of another kind, mixed kinds, mixed
            dtypes of values, indices that are not int64.
        ValueError: no input; ranks, dense dimensions, devices or sizes that do not
            agree; a dense ``axis``; a negative size; an input or a result of 2**63
            elements or more.
        IndexError: ``axis`` out of range; an entry out of the bounds of its input
            (checked on the CPU, and on CUDA by eager calls while
            ``torch.sparse.check_sparse_tensor_invariants`` is on); an entry in an
            empty shape.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import sparse_concat
        >>> a = torch.tensor([[0, 0, 1], [2, 3, 0]]).to_sparse()
        >>> b = torch.tensor([[0, 4, 5, 0], [0, 0, 0, 0]]).to_sparse()
        >>> c = sparse_concat([a, b], axis=1)
        >>> c.is_coalesced(), c.shape
        (True, torch.Size([2, 7]))
        >>> c.indices()
        tensor([[0, 0, 0, 1, 1],
                [2, 4, 5, 0, 1]])
        >>> c.values()
        tensor([1, 4, 5, 2, 3])
    """
    op = "sparse_concat"
    if not isinstance(sp_inputs, (list, tuple)):
        raise TypeError(
            f"{op}: sp_inputs must be a list or tuple of sparse COO tensors or "
            f"SparseTensors (got {type(sp_inputs).__name__})"
        )
    _checks.concat.check_some(op, sp_inputs)
    if type(axis) is not int:
        axis = integer(op, "axis", axis)
    args = op, sp_inputs, axis, bool(expand_nonconcat_dims), bool(inputs_sorted)
    if isinstance(sp_inputs[0], SparseTensor):
        return _calls.concat_triples(*args)  # type: ignore[return-value]
    return _calls.concat_coo(*args)  # type: ignore[return-value]


def sparse_reshape(sp_input: Sparse, shape: Sequence[int] | Tensor) -> Sparse:
    """Gives a sparse tensor another shape with as many elements.

    An entry keeps its row-major number: coordinates ``c`` in sizes ``s`` become the
    coordinates ``c'`` in sizes ``s'`` with ``ravel(c, s) == ravel(c', s')``. Nothing
    dense is made: memory follows the number of entries. The entries stay in order.

    TensorFlow: ``tf.sparse.reshape``.

    Args:
        sp_input: a ``torch.sparse_coo`` tensor or a `SparseTensor`.
        shape: the full new shape, a sequence of ints or a 1-D int32 or int64 tensor.
            It ends in the dense sizes of the input, which stay. One sparse size may
            be -1 and follows from the others. No sparse size at all (rank 0) holds
            one element.

    Returns:
        A sparse tensor of the kind of the input. Its values are those of the input,
        not a copy, as in :meth:`torch.Tensor.view`; its indices are new. A COO result
        is flagged coalesced when the input is.

    Gradient:
        The identity on the values. COO inputs get COO gradients of their own
        sparsity, and the gradient of a COO result may be dense or COO with any
        coordinates.

    Deterministic, with any dtype of values.

    Raises:
        TypeError: ``sp_input`` of another kind, indices that are not int64, a
            ``shape`` of another form.
        ValueError: more than one -1, another negative size, a number of elements that
            differs or does not divide, -1 beside a size of 0, dense sizes that
            differ, 2**63 elements or more.
        IndexError: an entry out of bounds (checked on the CPU, and on CUDA by eager
            calls while ``torch.sparse.check_sparse_tensor_invariants`` is on); an
            entry in an empty shape.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import sparse_reshape
        >>> x = torch.tensor([[0, 7, 0], [0, 0, 8]]).to_sparse()
        >>> sparse_reshape(x, (3, -1)).to_dense()
        tensor([[0, 7],
                [0, 0],
                [0, 8]])
    """
    op = "sparse_reshape"
    if isinstance(sp_input, SparseTensor):
        return _calls.reshape_triple(op, sp_input, shape_sizes(op, "shape", shape))
    if not _calls.kind(sp_input):
        raise TypeError(
            f"{op}: sp_input must be a sparse COO tensor or a SparseTensor "
            f"(got {show_kind(sp_input)})"
        )
    return _calls.reshape_coo(op, sp_input, shape_sizes(op, "shape", shape))


def tensor_scatter_update(
    tensor: Tensor, indices: Tensor, updates: Tensor, *, bad_indices_policy: str = ""
) -> Tensor:
    """Writes slices into a copy of a tensor; where rows repeat, the last one wins.

    With ``K = indices.shape[-1]`` and rows ``r`` of the batch ``indices.shape[:-1]``
    counted in row-major order::

        result = tensor.clone()
        for r in rows:
            result[indices[r]] = updates[r]   # result[i_1, ..., i_K, ...]

    A slice is written whole: all of it comes from the last row that names it. A row
    with any coordinate outside ``[0, size)`` is out of bounds; negative coordinates
    do not count from the end.

    TensorFlow: ``tf.tensor_scatter_nd_update``.

    Args:
        tensor: a dense tensor of rank 1 or more, with any strides.
        indices: int32 or int64, of shape ``[*batch, K]`` with at least one batch
            dimension and ``1 <= K <= tensor.dim()``.
        updates: of the dtype of ``tensor`` and of shape
            ``[*batch, *tensor.shape[K:]]``. Nothing is broadcast.
        bad_indices_policy: what to do about rows out of bounds. ``"IGNORE"`` skips
            them. ``"ERROR"`` raises IndexError, which costs a wait for the device on
            CUDA. ``""`` and ``"DEFAULT"`` raise on the CPU and skip on CUDA.

    Returns:
        A new contiguous tensor of the shape of ``tensor``, sharing no memory with the
        arguments.

    Gradient:
        That of ``tensor`` is zero where a row was written; that of ``updates`` is the
        written slice for rows that won it and zero for the others. Differentiable any
        number of times, in forward mode and under ``torch.func``.

    Deterministic: equal bit for bit on every device and in every run, with any dtype
    that is not quantised.

    Raises:
        TypeError: an argument that is not a dense tensor, another dtype of indices,
            ``updates`` of another dtype than ``tensor``.
        ValueError: shapes that do not fit, devices that differ, an unknown policy.
        IndexError: a row out of bounds, where the policy says so. Names the first.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import tensor_scatter_update
        >>> rows = torch.tensor([[0], [2], [0]])
        >>> tensor_scatter_update(torch.zeros(4), rows, torch.tensor([5.0, 6.0, 7.0]))
        tensor([7., 0., 6., 0.])
    """
    return _calls.scatter(tensor, indices, updates, bad_indices_policy)


def tensor_scatter_update_(
    tensor: Tensor, indices: Tensor, updates: Tensor, *, bad_indices_policy: str = ""
) -> Tensor:
    """`tensor_scatter_update` in place: writes the slices into ``tensor`` itself.

    The rules, arguments, errors and gradients are those of `tensor_scatter_update`.
    Nothing is written when an error is raised. ``indices`` and ``updates`` may share
    memory with ``tensor``: they count as they were before the call.

    Args:
        tensor: as there. It may have any strides that do not make elements overlap.
        indices: as there.
        updates: as there.
        bad_indices_policy: as there.

    Returns:
        ``tensor``.

    Raises:
        ValueError: two elements of ``tensor`` share memory; and as there.
        RuntimeError: ``tensor`` is a leaf that requires grad, as for any operation in
            place.

    Example:
        >>> import torch
        >>> from torch_sparse_ops import tensor_scatter_update_
        >>> memory = torch.zeros(2, 2)
        >>> rows, new = torch.tensor([[1]]), torch.tensor([[5.0, 6.0]])
        >>> tensor_scatter_update_(memory, rows, new)
        tensor([[0., 0.],
                [5., 6.]])
    """
    return _calls.scatter_in_place(tensor, indices, updates, bad_indices_policy)


def concat_shape(
    shapes: Sequence[Sequence[int]], axis: int, *, expand_nonconcat_dims: bool = False
) -> tuple[int, ...]:
    """The shape that `sparse_concat` of inputs with these sparse shapes has.

    Args:
        shapes: the shapes of the inputs, of one length.
        axis: the dimension to join along; counts from the end if negative.
        expand_nonconcat_dims: lets the other sizes differ and takes the largest.

    Raises:
        TypeError, ValueError, IndexError: as `sparse_concat`.

    Example:
        >>> from torch_sparse_ops import concat_shape
        >>> concat_shape([(2, 3), (2, 4)], axis=1)
        (2, 7)
    """
    op = "concat_shape"
    if isinstance(shapes, (str, bytes, Tensor)) or not isinstance(shapes, Sequence):
        raise TypeError(
            f"{op}: shapes must be a sequence of shapes (got {show_kind(shapes)})"
        )
    sizes = [shape_sizes(op, f"shapes[{i}]", shape) for i, shape in enumerate(shapes)]
    _checks.concat.check_some(op, sizes)
    rank = len(sizes[0])
    for i, shape in enumerate(sizes):
        _checks.concat.check_same_rank(op, rank, len(shape), i)
    _checks.concat.check_some_rank(op, rank)
    place = _checks.concat.check_axis(op, integer(op, "axis", axis), rank)
    return _checks.concat.check_sizes(op, sizes, place, expand_nonconcat_dims)


def reshape_shape(
    shape: Sequence[int] | Tensor, new_shape: Sequence[int] | Tensor
) -> tuple[int, ...]:
    """The sparse shape that `sparse_reshape` gives, with no -1 left.

    Args:
        shape: the sparse sizes of the input.
        new_shape: the sparse sizes to give it; one may be -1.

    Raises:
        TypeError, ValueError: as `sparse_reshape`.

    Example:
        >>> from torch_sparse_ops import reshape_shape
        >>> reshape_shape((4, 6), (3, -1))
        (3, 8)
    """
    op = "reshape_shape"
    sizes = shape_sizes(op, "shape", shape)
    target = shape_sizes(op, "new_shape", new_shape)
    return _checks.reshape.check_sizes(op, sizes, target)
