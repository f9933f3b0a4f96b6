"""What the checks of all operators share."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Sizes = Sequence[int]

MAX_RANK = 64
LIMIT = 2**63
INDEX_DTYPES = (torch.int64, torch.int32)

_SYMBOLIC = {
    ValueError: torch._check_value,
    IndexError: torch._check_index,
}


def require(condition: Any, error: type[Exception], text: Callable[[], str]) -> None:
    if isinstance(condition, torch.SymBool):
        _SYMBOLIC[error](condition, text)
    elif not condition:
        raise error(text())


def show(sizes: Sizes) -> str:
    return "[" + ", ".join(map(str, sizes)) + "]"


def show_dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def show_kind(x: object) -> str:
    """What an argument is, where the text says what it should have been."""
    if x is None:
        return "None"
    if isinstance(x, Tensor):
        return f"a {str(x.layout).removeprefix('torch.')} Tensor"
    if isinstance(x, (bool, int, float, complex, str)):
        return f"{type(x).__name__} {x!r}"
    return type(x).__name__


def known(sizes: Sizes) -> bool:
    """Whether no size is symbolic."""
    return all(isinstance(size, int) for size in sizes)


def same_sizes(a: Sizes, b: Sizes) -> Any:
    """Whether two shapes are equal; a SymBool where that depends on symbols."""
    if len(a) != len(b):
        return False
    equal: Any = True
    for x, y in zip(a, b, strict=True):
        same = x == y
        if isinstance(same, torch.SymBool):
            equal = same if equal is True else equal & same
        elif not same:
            return False
    return equal


def volume(sizes: Sizes) -> int | None:
    """The number of elements, or None when it reaches 2**63."""
    elements = math.prod(sizes)
    return elements if elements < LIMIT else None


def check_rank(op: str, rank: int) -> None:
    if rank > MAX_RANK:
        raise ValueError(
            f"{op}: at most {MAX_RANK} sparse dimensions are supported (got {rank})"
        )


def check_not_negative(op: str, sizes: Sizes, where: str = "") -> None:
    if min(sizes, default=0) < 0:
        raise ValueError(
            f"{op}: sizes must not be negative (got shape {show(sizes)}{where})"
        )


def check_volume(op: str, sizes: Sizes, where: str = "") -> int:
    """The number of elements, which int64 can count."""
    elements = volume(sizes)
    if elements is None or max(sizes, default=0) >= LIMIT:
        raise ValueError(
            f"{op}: a shape must have fewer than 2**63 elements "
            f"(got {show(sizes)}{where})"
        )
    return elements


def check_room(op: str, nnz: int, sizes: Sizes, where: str = "") -> None:
    """An empty shape has no entries."""
    if volume(sizes) == 0:
        require(
            nnz == 0,
            IndexError,
            lambda: (
                f"{op}: an empty shape cannot have entries "
                f"(got {nnz} entries, shape {show(sizes)}{where})"
            ),
        )


def check_entries(op: str, indices: Tensor, sizes: Sizes, where: str = "") -> None:
    """Every coordinate is within the shape. Reads `indices`, [nnz, rank]."""
    if indices.numel() == 0:
        return
    limits = torch.tensor(sizes, dtype=torch.int64, device=indices.device)
    low, high = indices.aminmax(dim=0)
    if bool(((low < 0) | (high >= limits)).any()):
        bad = ((indices < 0) | (indices >= limits)).nonzero()
        entry, dim = bad[0].tolist()
        raise IndexError(
            f"{op}: indices must be within the shape (got {int(indices[entry, dim])} "
            f"in dimension {dim} of entry {entry}{where}, shape {show(sizes)})"
        )


def check_strided(op: str, name: str, x: object) -> None:
    """The argument is a tensor of the ordinary kind."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{op}: {name} must be a Tensor (got {show_kind(x)})")
    if x.layout != torch.strided or x.is_quantized:
        got = "a quantized Tensor" if x.is_quantized else show_kind(x)
        raise TypeError(f"{op}: {name} must be a strided Tensor (got {got})")


def integer(op: str, name: str, x: object) -> int:
    try:
        return operator.index(x)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{op}: {name} must be an int (got {show_kind(x)})") from None


def shape_sizes(op: str, name: str, shape: object) -> tuple[int, ...]:
    """A shape given as a sequence of ints or as a 1-D tensor, as a tuple."""

    def wrong(got: str) -> TypeError:
        return TypeError(
            f"{op}: {name} must be a sequence of ints or a 1-D integer tensor "
            f"(got {got})"
        )

    if isinstance(shape, (tuple, list)) and {*map(type, shape)} == {int}:
        return tuple(shape)
    if isinstance(shape, Tensor):
        if shape.dim() != 1 or shape.dtype not in INDEX_DTYPES:
            raise wrong(f"a {shape.dim()}-D {show_dtype(shape.dtype)} Tensor")
        return tuple(shape.tolist())
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise wrong(show_kind(shape))
    sizes = []
    for place, size in enumerate(shape):
        # Symbolic sizes stay so: operator.index() would fix them.
        if not isinstance(size, (int, torch.SymInt)):
            try:
                size = operator.index(size)
            except (TypeError, ValueError):
                raise wrong(f"{show_kind(size)} at position {place}") from None
        sizes.append(size)
    return tuple(sizes)
