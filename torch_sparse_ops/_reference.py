"""The three operators and their gradients, slowly: loops over Python ints.

The tests compare the library with these functions. They follow the written rules
and share no code with the kernels or the argument checks: one entry at a time,
exact integers, values carried as bytes. Sparse sizes only, as in the raw operators.
A fault raises the documented class, IndexError or ValueError, with a short text of
its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

Shape = Sequence[int]
POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")
LIMIT = 2**63


def as_bytes(t: Tensor) -> Tensor:
    """The bytes of each element of `t`, as a new last dimension."""
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    return t.unsqueeze(-1).view(torch.uint8)


def from_bytes(b: Tensor, dtype: torch.dtype) -> Tensor:
    return b.contiguous().view(dtype).squeeze(-1)


def volume(shape: Shape) -> int:
    if any(size < 0 for size in shape):
        raise ValueError(f"negative size in {list(shape)}")
    count = math.prod(shape)
    if count >= LIMIT:
        raise ValueError(f"too many elements in {list(shape)}")
    return count


def check_entries(rows: list[list[int]], shape: Shape) -> None:
    for row in rows:
        if not all(0 <= x < size for x, size in zip(row, shape, strict=True)):
            raise IndexError(f"{row} is not within {list(shape)}")


# ---------------------------------------------------------------- sparse_concat


def concat_shape(
    shapes: Sequence[Shape], axis: int, expand_nonconcat_dims: bool = False
) -> tuple[int, ...]:
    if not shapes:
        raise ValueError("no inputs")
    rank = len(shapes[0])
    if rank == 0 or any(len(shape) != rank for shape in shapes):
        raise ValueError("ranks")
    if not -rank <= axis < rank:
        raise IndexError("axis")
    axis %= rank
    for shape in shapes:
        volume(shape)
    result = []
    for d in range(rank):
        sizes = [shape[d] for shape in shapes]
        if d == axis:
            result.append(sum(sizes))
        elif expand_nonconcat_dims or len(set(sizes)) == 1:
            result.append(max(sizes))
        else:
            raise ValueError(f"sizes differ in dimension {d}")
    # A size must fit an int64 by itself, even beside a size of 0.
    if max(result) >= LIMIT:
        raise ValueError("too large")
    volume(result)
    return tuple(result)


def concat_order(
    indices: Sequence[Tensor], shapes: Sequence[Shape], axis: int
) -> list[tuple[list[int], int, int]]:
    """(coordinates in the result, input, entry) for each entry of the result."""
    entries = []
    offset = 0
    axis %= len(shapes[0])
    for i, (index, shape) in enumerate(zip(indices, shapes, strict=True)):
        for j, row in enumerate(index.tolist()):
            row[axis] += offset
            entries.append((row, i, j))
        offset += shape[axis]
    return sorted(entries)


def sparse_concat(
    indices: Sequence[Tensor],
    values: Sequence[Tensor],
    shapes: Sequence[Shape],
    axis: int,
    expand_nonconcat_dims: bool = False,
) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Values, indices and shape of the result."""
    if not len(indices) == len(values) == len(shapes):
        raise ValueError("list lengths")
    for index, value, shape in zip(indices, values, shapes, strict=True):
        if index.dim() != 2 or index.shape[1] != len(shape):
            raise ValueError("indices must be [nnz, rank]")
        if index.dtype != torch.int64:
            raise ValueError("indices must be int64")
        if value.dim() == 0 or value.shape[0] != index.shape[0]:
            raise ValueError("one row of values for each entry")
        if value.dtype != values[0].dtype or value.shape[1:] != values[0].shape[1:]:
            raise ValueError("values differ in dtype or dense sizes")
    result = concat_shape(shapes, axis, expand_nonconcat_dims)
    for index, shape in zip(indices, shapes, strict=True):
        check_entries(index.tolist(), shape)

    order = concat_order(indices, shapes, axis)
    rows = [row for row, _, _ in order]
    out_indices = torch.tensor(rows, dtype=torch.int64).reshape(len(rows), len(result))
    value_bytes = [as_bytes(value) for value in values]
    moved = [value_bytes[i][j] for _, i, j in order]
    out_bytes = torch.stack(moved) if moved else value_bytes[0][:0]
    out_values = from_bytes(out_bytes, values[0].dtype)
    return out_values, out_indices, result


def sparse_concat_grad_values(
    grad_values: Tensor, indices: Sequence[Tensor], shapes: Sequence[Shape], axis: int
) -> list[Tensor]:
    """The gradient of each input's values: every entry is followed back."""
    grad_bytes = as_bytes(grad_values)
    dense = grad_bytes.shape[1:]
    grads = [grad_bytes.new_zeros(index.shape[0], *dense) for index in indices]
    for place, (_, i, j) in enumerate(concat_order(indices, shapes, axis)):
        grads[i][j] = grad_bytes[place]
    return [from_bytes(grad, grad_values.dtype) for grad in grads]


# --------------------------------------------------------------- sparse_reshape


def reshape_shape(shape: Shape, new_shape: Shape) -> tuple[int, ...]:
    count = volume(shape)
    new_shape = list(new_shape)
    if any(size < -1 for size in new_shape):
        raise ValueError("negative target")
    unknown = [d for d, size in enumerate(new_shape) if size == -1]
    if len(unknown) > 1:
        raise ValueError("two unknown sizes")
    if unknown:
        known = math.prod(size for size in new_shape if size != -1)
        if known == 0 or count % known != 0:
            raise ValueError("cannot infer")
        new_shape[unknown[0]] = count // known
    if math.prod(new_shape) != count:
        raise ValueError("number of elements")
    return tuple(new_shape)


def sparse_reshape(
    indices: Tensor, shape: Shape, new_shape: Shape
) -> tuple[Tensor, tuple[int, ...]]:
    """Indices and shape of the result."""
    if indices.dim() != 2 or indices.shape[1] != len(shape):
        raise ValueError("indices must be [nnz, rank]")
    if indices.dtype != torch.int64:
        raise ValueError("indices must be int64")
    result = reshape_shape(shape, new_shape)
    rows = indices.tolist()
    if rows and math.prod(shape) == 0:
        raise IndexError("an empty shape cannot have entries")
    check_entries(rows, shape)
    out = []
    for row in rows:
        place = 0
        for x, size in zip(row, shape, strict=True):
            place = place * size + x
        new_row = []
        for size in reversed(result):
            new_row.insert(0, place % size)
            place //= size
        out.append(new_row)
    out_indices = torch.tensor(out, dtype=torch.int64).reshape(len(rows), len(result))
    return out_indices, result


# -------------------------------------------------------- tensor_scatter_update


def scatter_targets(shape: Shape, indices: Tensor) -> list[tuple[int, ...] | None]:
    """The slice that each row of `indices` names, None where it is out of bounds."""
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth).tolist()
    sizes = shape[:depth]
    return [
        tuple(row)
        if all(0 <= x < size for x, size in zip(row, sizes, strict=True))
        else None
        for row in rows
    ]


def tensor_scatter_update(
    tensor: Tensor, indices: Tensor, updates: Tensor, bad_indices_policy: str = ""
) -> Tensor:
    if indices.dtype not in (torch.int32, torch.int64):
        raise ValueError("indices must be int32 or int64")
    if updates.dtype != tensor.dtype:
        raise ValueError("updates must have the dtype of tensor")
    if indices.dim() < 2 or not 1 <= indices.shape[-1] <= tensor.dim():
        raise ValueError("shape of indices")
    depth = indices.shape[-1]
    if updates.shape != indices.shape[:-1] + tensor.shape[depth:]:
        raise ValueError("shape of updates")
    if bad_indices_policy not in POLICIES:
        raise ValueError("bad_indices_policy")
    targets = scatter_targets(tensor.shape, indices)
    if bad_indices_policy != "IGNORE" and None in targets:
        raise IndexError(f"row {targets.index(None)} is out of bounds")

    out = as_bytes(tensor).clone()
    rows = as_bytes(updates).reshape(len(targets), *out.shape[depth:])
    for target, row in zip(targets, rows, strict=True):
        if target is not None:
            out[target] = row
    return from_bytes(out, tensor.dtype)


def tensor_scatter_update_grad_tensor(grad: Tensor, indices: Tensor) -> Tensor:
    """`grad` where nothing was written, zero elsewhere."""
    out = as_bytes(grad).clone()
    for target in scatter_targets(grad.shape, indices):
        if target is not None:
            out[target] = 0
    return from_bytes(out, grad.dtype)


def tensor_scatter_update_grad_updates(grad: Tensor, indices: Tensor) -> Tensor:
    """The gradient of the rows that survived, zero for all other rows."""
    depth = indices.shape[-1]
    targets = scatter_targets(grad.shape, indices)
    winners = {target: row for row, target in enumerate(targets)}
    grad_bytes = as_bytes(grad)
    out = grad_bytes.new_zeros(len(targets), *grad_bytes.shape[depth:])
    for target, row in winners.items():
        if target is not None:
            out[row] = grad_bytes[target]
    out = out.reshape(*indices.shape[:-1], *grad_bytes.shape[depth:])
    return from_bytes(out, grad.dtype)


# ------------------------------------------------------------------------ dense


def to_dense(indices: Tensor, values: Tensor, shape: Shape) -> Tensor:
    """What a sparse tensor means: entries with equal coordinates add up."""
    dense = values.new_zeros(*shape, *values.shape[1:])
    for row, value in zip(indices.tolist(), values, strict=True):
        dense[tuple(row)] += value
    return dense
