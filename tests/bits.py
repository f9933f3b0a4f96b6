"""Tensors of every dtype and layout, and their comparison bit for bit."""

import math

import torch

from torch_sparse_ops._reference import as_bytes, from_bytes

# Every dtype this torch has, except the quantised ones.
DTYPES = sorted(
    {
        dtype
        for dtype in vars(torch).values()
        if isinstance(dtype, torch.dtype) and "torch.q" not in str(dtype)
    },
    key=str,
)
# Dtypes that can carry a gradient and that torch computes with in full.
GRAD_DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
]


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def same_bits(a, b):
    """Equal in shape, dtype, device and every byte (NaN payloads, -0.0)."""
    return (
        a.dtype == b.dtype
        and a.shape == b.shape
        and a.device == b.device
        and torch.equal(as_bytes(a), as_bytes(b))
    )


def duplicate(t):
    """A copy with the same strides and gaps, of any dtype."""
    storage = t.untyped_storage().clone()
    empty = torch.empty(0, dtype=t.dtype, device=t.device)
    return empty.set_(storage, t.storage_offset(), t.shape, t.stride())


def shares_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() != 0


def random_bits(generator, dtype, *shape):
    """Random bytes as `dtype`: NaNs with payloads, infinities and -0.0 included."""
    if dtype == torch.bool:
        b = torch.tensor(
            [generator.randrange(2) for _ in range(math.prod(shape))], dtype=torch.uint8
        )
        return b.reshape(shape).bool()
    raw = generator.randbytes(math.prod(shape) * dtype.itemsize)
    b = torch.tensor(list(raw), dtype=torch.uint8).reshape(*shape, dtype.itemsize)
    return from_bytes(b, dtype)


def numbers(generator, dtype, *shape):
    """Small numbers exact in every float dtype."""
    data = [generator.randrange(-32, 33) / 4 for _ in range(math.prod(shape))]
    return torch.tensor(data, dtype=torch.float64).reshape(shape).to(dtype)


def coordinates(generator, shape, nnz, order="any"):
    """[nnz, rank] in-bounds coordinates; `order` is any, sorted or strict."""
    rows = [[generator.randrange(size) for size in shape] for _ in range(nnz)]
    if order == "strict":
        rows = [list(row) for row in {tuple(row) for row in rows}]
    if order != "any":
        rows.sort()
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), len(shape))


# ------------------------------------------------------------------- strides


def column_major(t):
    """The same tensor, its last dimension outermost in memory."""
    last_first = t.movedim(-1, 0).contiguous()
    return last_first.movedim(0, -1)


def spaced(t):
    """The same tensor with gaps between the elements and before the first."""
    wide = torch.zeros(
        [2 * size + 1 for size in t.shape], dtype=t.dtype, device=t.device
    )
    view = wide[tuple(slice(1, None, 2) for _ in t.shape)]
    view.copy_(t)
    return view


def expanded(t):
    """Row 0 of the tensor repeated without a copy: stride 0."""
    return t[:1].expand(t.shape)


LAYOUTS = {"column_major": column_major, "spaced": spaced, "expanded": expanded}
