"""Random valid calls against the slow reference, the same ones in every run."""

import pytest
import torch
from bits import column_major, random_bits, same_bits, spaced

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor, _reference

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

ops = torch.ops.torch_sparse_ops

seeded = settings(
    derandomize=True, database=None, deadline=None, max_examples=150, print_blob=False
)

dtypes = st.sampled_from(
    [torch.uint8, torch.bfloat16, torch.float32, torch.complex64, torch.complex128]
)
layouts = st.sampled_from([torch.clone, column_major, spaced])
generators = st.randoms(use_true_random=False)


def entries_in(g, shape, most):
    """Up to `most` rows, many of them equal, sorted every other time."""
    count = 0 if 0 in shape else g.randrange(most + 1)
    found = [[g.randrange(size) for size in shape] for _ in range(count)]
    if g.random() < 0.5:
        found.sort()
    if found and g.random() < 0.2:
        found = sorted([list(row) for row in {tuple(row) for row in found}])
    return torch.tensor(found, dtype=torch.int64).reshape(len(found), len(shape))


@st.composite
def concat_calls(draw):
    g = draw(generators)
    rank = draw(st.integers(1, 4))
    axis = draw(st.integers(-rank, rank - 1))
    expand = draw(st.booleans())
    dense = draw(st.lists(st.integers(0, 3), max_size=2))
    dtype = draw(dtypes)
    common = [draw(st.sampled_from([0, 1, 2, 3, 7, 2**33])) for _ in range(rank)]
    shapes = []
    for _ in range(draw(st.integers(1, 5))):
        shape = [g.choice([size, 1, 2]) for size in common] if expand else list(common)
        shape[axis] = g.randrange(5)
        shapes.append(shape)
    indices = [entries_in(g, shape, 30) for shape in shapes]
    values = [random_bits(g, dtype, t.shape[0], *dense) for t in indices]
    return indices, values, shapes, axis, expand, draw(layouts)


@seeded
@given(concat_calls())
def test_concat(call):
    indices, values, shapes, axis, expand, layout = call
    try:
        want = _reference.sparse_concat(indices, values, shapes, axis, expand)
    except ValueError:  # too many elements
        with pytest.raises(ValueError, match=r"fewer than 2\*\*63"):
            tso.concat_shape(shapes, axis, expand_nonconcat_dims=expand)
        return
    flat = [size for shape in shapes for size in shape]
    args = (flat, axis, expand)
    got = ops.sparse_concat(
        [layout(t) for t in indices], [layout(t) for t in values], *args
    )
    assert same_bits(got[0], want[0])
    assert same_bits(got[1], want[1])
    back = ops._sparse_concat_grad_values(got[0], indices, *args, False)
    for grad, value in zip(back, values, strict=True):
        assert same_bits(grad, value)

    rank, dense = len(shapes[0]), values[0].shape[1:]
    triples = [
        SparseTensor(i, v, (*s, *dense))
        for i, v, s in zip(indices, values, shapes, strict=True)
    ]
    out = tso.sparse_concat(triples, axis % rank, expand_nonconcat_dims=expand)
    assert out.dense_shape == (*want[2], *dense)
    assert same_bits(out.values, want[0])
    assert same_bits(out.indices, want[1])


def factors(g, count):
    """A random way to write a count as a product of sizes."""
    sizes = []
    while count > 1 and g.random() < 0.8:
        divisors = [d for d in range(2, min(count, 50) + 1) if count % d == 0]
        if not divisors:
            break
        sizes.append(g.choice(divisors))
        count //= sizes[-1]
    sizes.append(count)
    sizes += [1] * g.randrange(3)
    g.shuffle(sizes)
    return sizes


@st.composite
def reshape_calls(draw):
    g = draw(generators)
    powers = st.integers(0, 4)
    count = 1
    for prime in (2, 2, 2, 3, 5, 7, 11):
        count *= prime ** draw(powers)
    shape, target = factors(g, count), factors(g, count)
    if draw(st.booleans()):
        target[g.randrange(len(target))] = -1
    return entries_in(g, shape, 20), shape, target, draw(layouts)


@seeded
@given(reshape_calls())
def test_reshape(call):
    indices, shape, target, layout = call
    want, want_shape = _reference.sparse_reshape(indices, shape, target)
    assert same_bits(ops.sparse_reshape(layout(indices), shape, target), want)
    assert tso.reshape_shape(shape, target) == want_shape
    # There and back.
    back = ops.sparse_reshape(want, want_shape, shape)
    assert same_bits(back, indices)


@st.composite
def scatter_calls(draw):
    g = draw(generators)
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5]), min_size=1, max_size=4))
    depth = draw(st.integers(1, len(shape)))
    batch = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    rows = torch.Size(batch).numel()
    margin = draw(st.integers(0, 1))
    found = [
        [g.randrange(-margin, max(size + margin, 1)) for size in shape[:depth]]
        for _ in range(rows)
    ]
    index_dtype = draw(st.sampled_from([torch.int32, torch.int64]))
    indices = torch.tensor(found, dtype=index_dtype).reshape(*batch, depth)
    dtype = draw(dtypes)
    tensor, grad = (random_bits(g, dtype, *shape) for _ in range(2))
    updates = random_bits(g, dtype, *batch, *shape[depth:])
    return tensor, indices, updates, grad, draw(layouts)


@seeded
@given(scatter_calls())
def test_scatter(call):
    tensor, indices, updates, grad, layout = call
    args = layout(tensor), layout(indices), layout(updates)
    for policy in ("IGNORE", ""):
        try:
            want = _reference.tensor_scatter_update(tensor, indices, updates, policy)
        except IndexError:
            with pytest.raises(IndexError, match="must be within tensor"):
                ops.tensor_scatter_update(*args, policy)
            continue
        assert same_bits(ops.tensor_scatter_update(*args, policy), want)
        out = args[0].clone(memory_format=torch.preserve_format)
        ops.tensor_scatter_update_(out, *args[1:], policy)
        assert same_bits(out, want)
    grad = layout(grad)
    assert same_bits(
        ops._tensor_scatter_update_grad_tensor(grad, args[1]),
        _reference.tensor_scatter_update_grad_tensor(grad, indices),
    )
    assert same_bits(
        ops._tensor_scatter_update_grad_updates(grad, args[1]),
        _reference.tensor_scatter_update_grad_updates(grad, indices),
    )
