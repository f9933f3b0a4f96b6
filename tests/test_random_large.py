"""Random calls large enough for the ways the CPU kernels take with many entries.

The small ones of test_random.py are compared with loops over Python ints; these, with
whole-tensor operations of torch. tests/instrumented/line_coverage.py shows that
between them they run every line of the kernels.
"""

import math
import random

import pytest
import torch
from bits import column_major, same_bits, spaced

ops = torch.ops.torch_sparse_ops
LAYOUTS = [torch.clone, column_major, spaced]
WIDTHS = [
    (torch.uint8, ()),
    (torch.int16, ()),
    (torch.float32, ()),
    (torch.int64, ()),
    (torch.complex128, ()),
    (torch.uint8, (3,)),
    (torch.float32, (16,)),
]


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def seeds(count):
    return pytest.mark.parametrize("seed", range(count))


def generators(seed):
    g = random.Random(seed)
    return g, torch.Generator().manual_seed(g.getrandbits(32))


def log_uniform(g, low, high):
    return round(math.exp(g.uniform(math.log(low), math.log(high))))


def values_of(g, t, *shape):
    dtype, dense = g.choice(WIDTHS)
    size = (*shape, *dense)
    raw = torch.randint(0, 256, (*size, dtype.itemsize), dtype=torch.uint8, generator=t)
    return raw.view(dtype).squeeze(-1)


def below(t, size, count, power=1):
    """Numbers below `size`, small ones more often if `power` is above 1."""
    part = torch.rand(count, dtype=torch.float64, generator=t) ** power
    return (part * size).long().clamp_(max=size - 1)


def sorted_order(columns):
    """The order that sorts rows, stable; the first column weighs most."""
    order = torch.arange(len(columns[0]))
    for column in reversed(columns):
        order = order[column[order].argsort(stable=True)]
    return order


# ------------------------------------------------------------- sparse_concat

PREFIXES = ["one", "few", "runs", "pairs", "singles", "sparse", "huge"]


def sizes_before(g, kind, total, inputs, dims):
    """Sizes of the dimensions before the axis: so many prefixes of `kind`."""
    if dims == 0:
        return []
    count = {
        "one": 1,
        "few": 3,
        "runs": total // (8 * inputs),
        "pairs": total // (2 * inputs),
        "singles": total // inputs,
        "sparse": 40 * total,
        "huge": 2**46,
    }[kind]
    first = log_uniform(g, 1, max(count, 1)) if dims > 1 else max(count, 1)
    rest = [1] * (dims - 2) + [max(count // first, 1)] if dims > 1 else []
    return [first, *rest]


def concat_call(g, t, kind):
    huge = kind == "huge"
    inputs = g.choice([1, 2, 2, 3, 8, 40, 300])
    total = log_uniform(g, 1000, 80000)
    rank = g.randint(1 if kind == "one" else 2, 5)
    axis = g.randrange(rank) if kind == "one" else g.randint(1, rank - 1)
    before = sizes_before(g, kind, total, inputs, axis)
    after = [g.randint(1, 2 if huge else 8) for _ in range(rank - axis - 1)]
    counts = [total // inputs] * inputs
    if g.random() < 0.3:  # one input has nearly everything
        counts = [3] * inputs
        counts[g.randrange(inputs)] = total
    skew = g.choice([1, 1, 4, 30])
    order = g.choice(["sorted"] * 6 + ["any", "reversed", "halves swapped"])
    turned = g.randrange(inputs) if g.random() < 0.2 else -1
    layout = g.choice(LAYOUTS)
    whole = values_of(g, t, sum(counts))
    indices, values, shapes = [], [], []
    for i, (count, value) in enumerate(zip(counts, whole.split(counts), strict=True)):
        along = g.choice([1, 7] if huge else [1, 7, 1000])
        shape = [*before, along, *after]
        columns = [
            below(t, size, count, skew if d == 0 else 1) for d, size in enumerate(shape)
        ]
        found = torch.stack(columns, 1)
        if order != "any":
            found = found[sorted_order(columns)]
        if order == "reversed" or i == turned:
            found = found.flip(0)
        if order == "halves swapped":
            found = found.roll(count // 2, 0)
        indices.append(layout(found))
        values.append(g.choice(LAYOUTS)(value))
        shapes.append(shape)
    return indices, values, shapes, axis


def concat_by_torch(indices, values, shapes, axis):
    moved, offset = [], 0
    for matrix, shape in zip(indices, shapes, strict=True):
        matrix = matrix.clone()
        matrix[:, axis] += offset
        offset += shape[axis]
        moved.append(matrix)
    found = torch.cat(moved)
    order = sorted_order(found.unbind(1))
    return torch.cat(values)[order], found[order]


@pytest.mark.parametrize("kind", PREFIXES)
@seeds(20)
def test_concat(kind, seed, threads):
    g, t = generators(f"{kind}{seed}")
    indices, values, shapes, axis = concat_call(g, t, kind)
    flat = [size for shape in shapes for size in shape]
    want_values, want_indices = concat_by_torch(indices, values, shapes, axis)
    got_values, got_indices = ops.sparse_concat(indices, values, flat, axis)
    assert torch.equal(got_indices, want_indices)
    assert same_bits(got_values, want_values)

    stored = [x.t() for x in indices]
    coo = ops._sparse_concat_coo(stored, values, flat, axis, False, False)
    assert torch.equal(coo[1].t(), want_indices)
    assert same_bits(coo[0], want_values)

    back = ops._sparse_concat_grad_values(
        want_values, indices, flat, axis, False, False
    )
    for grad, value in zip(back, values, strict=True):
        assert same_bits(grad, value)


def test_concat_of_very_many_inputs():
    t = torch.Generator().manual_seed(0)
    count, each = 20000, 12
    keys = torch.randint(0, 3000, (count, each), generator=t).sort().values
    found = torch.stack([keys // 3, keys % 3], -1)
    values = torch.arange(count * each).view(count, each)
    want = concat_by_torch(found, list(values), [(1000, 3)] * count, 1)
    indices = list(found.mT.contiguous().mT)
    got = ops.sparse_concat(indices, list(values), [1000, 3] * count, 1)
    assert torch.equal(got[0], want[0])
    assert torch.equal(got[1], want[1])


@pytest.mark.parametrize("kind", PREFIXES)
def test_concat_refuses_an_entry_out_of_bounds(kind, threads):
    g, t = generators(kind)
    indices, values, shapes, axis = concat_call(g, t, kind)
    i = g.choice([i for i, matrix in enumerate(indices) if len(matrix)])
    entry = g.randrange(len(indices[i]))
    indices[i][entry, axis] = shapes[i][axis]
    flat = [size for shape in shapes for size in shape]
    said = f"in dimension {axis} of entry {entry} of input {i},"
    with pytest.raises(IndexError, match=said):
        ops.sparse_concat(indices, values, flat, axis)


# ------------------------------------------------------------ sparse_reshape


def factors(g, powers):
    """A random way to write a product of prime powers as sizes."""
    sizes = [1] * g.randint(1, 5)
    for prime, power in powers.items():
        for _ in range(power):
            sizes[g.randrange(len(sizes))] *= prime
    return sizes


def reshape_call(g, t):
    bits = g.choice([20, 33, 50, 61])  # of the number of elements
    powers = dict.fromkeys(g.sample([3, 5, 7, 11, 10007], g.randint(0, 4)), 1)
    room = bits - math.log2(math.prod(powers))
    powers[2] = max(int(room), 0)
    count = log_uniform(g, 1000, 60000)
    shape, target = factors(g, powers), factors(g, powers)
    if g.random() < 0.3:  # the first dimensions stay
        target = [shape[0], math.prod(shape[1:])]
    found = torch.stack([below(t, size, count) for size in shape], 1)
    return g.choice(LAYOUTS)(found), shape, target


def ravel(indices, shape):
    number = torch.zeros(len(indices), dtype=torch.int64)
    for column, size in zip(indices.unbind(1), shape, strict=True):
        number = number * size + column
    return number


@seeds(40)
def test_reshape(seed, threads):
    g, t = generators(f"reshape{seed}")
    indices, shape, target = reshape_call(g, t)
    got = ops.sparse_reshape(indices, shape, target)
    for column, size in zip(got.unbind(1), target, strict=True):
        assert bool(((column >= 0) & (column < size)).all())
    assert torch.equal(ravel(got, target), ravel(indices, shape))

    entry, dim = g.randrange(len(indices)), g.randrange(len(shape))
    indices[entry, dim] = shape[dim]
    with pytest.raises(IndexError, match=f"dimension {dim} of entry {entry},"):
        ops.sparse_reshape(indices, shape, target)


# ----------------------------------------------------- tensor_scatter_update


def scatter_call(g, t):
    slices = log_uniform(g, 20, g.choice([2000, 2000000]))
    depth = g.randint(1, 3)
    sizes = [1] * (depth - 1) + [slices]
    for d in range(depth - 1):
        sizes[d] = g.randint(1, 5)
    sizes[-1] = max(slices // math.prod(sizes[:-1]), 1)
    tensor = values_of(g, t, *sizes)
    rows = log_uniform(g, 1, 80000)
    skew = g.choice([1, 1, 5, 60, 5000])
    columns = [below(t, size, rows, skew) for size in sizes]
    indices = torch.stack(columns, 1).to(g.choice([torch.int32, torch.int64]))
    if g.random() < 0.3:
        indices = indices.flip(0)
    raw = torch.randint(
        0,
        256,
        (rows, *tensor.shape[depth:], tensor.dtype.itemsize),
        dtype=torch.uint8,
        generator=t,
    )
    updates = raw.view(tensor.dtype).squeeze(-1)
    return tensor, g.choice(LAYOUTS)(indices), g.choice(LAYOUTS)(updates)


def scatter_by_torch(tensor, indices, updates):
    """The result, and both gradients of it with the result for a gradient."""
    depth = indices.shape[1]
    sizes = tensor.shape[:depth]
    columns = indices.long().unbind(1)
    number = torch.zeros(len(indices), dtype=torch.int64)
    inside = torch.ones(len(indices), dtype=torch.bool)
    for column, size in zip(columns, sizes, strict=True):
        number = number * size + column
        inside &= (column >= 0) & (column < size)
    rows = torch.arange(len(indices))[inside]
    winner = torch.full((math.prod(sizes),), -1)
    winner.scatter_reduce_(0, number[inside], rows, "amax")
    named = winner >= 0
    out = tensor.clone().view(-1, *tensor.shape[depth:])
    out[named] = updates[winner[named]]
    grad_tensor = out.clone()
    grad_tensor[named] = 0
    grad_updates = torch.zeros_like(updates, memory_format=torch.contiguous_format)
    grad_updates[winner[named]] = out[named]
    return out.view_as(tensor), grad_tensor.view_as(tensor), grad_updates


@seeds(100)
def test_scatter(seed, threads):
    g, t = generators(f"scatter{seed}")
    tensor, indices, updates = scatter_call(g, t)
    args = indices, updates
    policy = ""
    if g.random() < 0.3:
        policy = "IGNORE"
        indices[below(t, len(indices), 5)] = -1
    want, grad_tensor, grad_updates = scatter_by_torch(tensor, *args)
    assert same_bits(ops.tensor_scatter_update(tensor, *args, policy), want)
    given = g.choice(LAYOUTS)(tensor)
    assert same_bits(ops.tensor_scatter_update(given, *args, policy), want)
    ops.tensor_scatter_update_(given, *args, policy)
    assert same_bits(given, want)
    found = ops._tensor_scatter_update_grad_tensor(want, indices)
    assert same_bits(found, grad_tensor)
    found = ops._tensor_scatter_update_grad_updates(want, indices)
    assert same_bits(found, grad_updates)
    found = ops._tensor_scatter_update_grads(want, indices)
    assert same_bits(found[0], grad_tensor)
    assert same_bits(found[1], grad_updates)

    row = g.randrange(len(indices))
    indices.clamp_(min=0)
    indices[row, -1] = tensor.shape[indices.shape[1] - 1]
    before = given.clone()
    for call in (ops.tensor_scatter_update, ops.tensor_scatter_update_):
        with pytest.raises(IndexError, match=rf"row {row}\b"):
            call(given, *args)
    assert same_bits(given, before)
