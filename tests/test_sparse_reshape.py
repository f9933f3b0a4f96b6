"""sparse_reshape: results, flags, sizes, forms of the target and memory."""

import pytest
import samples
import torch
from bits import DTYPES, name_of, random_bits, same_bits, shares_memory
from coo import coo, entries

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor, _reference

ops = torch.ops.torch_sparse_ops


@pytest.mark.parametrize("sample", samples.reshape_samples(), ids=lambda s: s.id)
def test_equals_reference(sample, device):
    want, _ = _reference.sparse_reshape(*sample.args())
    sample = sample.to(device)
    before = sample.indices.clone()
    out = ops.sparse_reshape(*sample.args())
    assert same_bits(out.cpu(), want)
    assert same_bits(sample.indices, before)
    assert out.stride() == (1, max(out.shape[0], 1))
    assert not shares_memory(out, sample.indices)


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_every_dtype(dtype):
    sample = samples.make_reshape("dtypes", (4, 6), (3, -1))
    values = random_bits(samples.random.Random(0), dtype, 7)
    want, _ = _reference.sparse_reshape(*sample.args())
    x = torch.sparse_coo_tensor(
        sample.indices.t(), values, (4, 6), check_invariants=True
    )
    out = tso.sparse_reshape(x, (3, -1))
    assert out.shape == (3, 8)
    assert same_bits(out._values(), values)
    assert same_bits(out._indices().t(), want)
    triple = tso.sparse_reshape(SparseTensor(sample.indices, values, (4, 6)), (3, -1))
    assert same_bits(triple.values, values)


# ------------------------------------------------------------ small, by hand


def reshaped(shape, pairs, new_shape, device):
    out = tso.sparse_reshape(coo(shape, pairs, device=device), new_shape)
    return tuple(out.shape), dict(entries(out))


def test_row_major_with_an_inferred_size(device):
    pairs = {(0, 5): 1, (2, 0): 2, (3, 4): 3}
    assert reshaped((4, 6), pairs, (3, -1), device) == (
        (3, 8),
        {(0, 5): 1, (1, 4): 2, (2, 6): 3},
    )


@pytest.mark.parametrize(
    "shape, pairs, new_shape, result",
    [
        (
            (70000, 70000),
            {(0, 1): 2, (69999, 69998): 1.5},
            (140000, 35000),
            ((140000, 35000), {(0, 1): 2, (139999, 34998): 1.5}),
        ),
        (
            (65536, 65536),
            {(65535, 65535): 4},
            (16, -1),
            ((16, 268435456), {(15, 268435455): 4}),
        ),
        (
            (50000, 50000),
            {(49999, 49999): 1.25},
            (50000, 50000),
            ((50000, 50000), {(49999, 49999): 1.25}),
        ),
    ],
    ids=["past-int32", "past-uint32", "same-shape"],
)
def test_sizes_are_counted_in_64_bits(shape, pairs, new_shape, result, device):
    assert reshaped(shape, pairs, new_shape, device) == result


@pytest.mark.parametrize(
    "new_shape, shape, rows",
    [
        ((8, 1), (8, 1), [(1, 0), (6, 0)]),
        ((2, 1, -1), (2, 1, 4), [(0, 0, 1), (1, 0, 2)]),
        ((1, 1, 8, 1), (1, 1, 8, 1), [(0, 0, 1, 0), (0, 0, 6, 0)]),
        ((-1,), (8,), [(1,), (6,)]),
    ],
    ids=str,
)
def test_sizes_of_one_anywhere(new_shape, shape, rows, device):
    got = reshaped((4, 2), {(0, 1): 1, (3, 0): 2}, new_shape, device)
    assert got == (shape, dict(zip(rows, (1, 2), strict=True)))


@pytest.mark.parametrize(
    "shape, new_shape, result",
    [
        ((0, 3), (-1, 3), (0, 3)),
        ((2, 0), (-1, 2), (0, 2)),
        ((0, 3), (3, 0), (3, 0)),
        ((0, 3), (0, 5, 7), (0, 5, 7)),
        ((2, 3), (3, 2), (3, 2)),
    ],
    ids=str,
)
def test_empty_shapes(shape, new_shape, result, device):
    assert reshaped(shape, {}, new_shape, device) == (result, {})


def test_rank_zero_both_ways(device):
    one = coo((1, 1), {(0, 0): 3.0}, device=device)
    scalar = tso.sparse_reshape(one, ())
    assert scalar.shape == ()
    assert scalar._indices().shape == (0, 1)
    assert entries(tso.sparse_reshape(scalar, (1, -1, 1))) == [((0, 0, 0), 3.0)]
    # A tensor without dimensions may repeat its one place.
    many = SparseTensor(
        torch.zeros(3, 0, dtype=torch.int64, device=device),
        torch.arange(3.0, device=device),
        (),
    )
    out = tso.sparse_reshape(many, (1,))
    assert out.indices.tolist() == [[0], [0], [0]]


# ----------------------------------------------------------- flags and sharing


def test_flag_and_order_survive(device):
    strict = coo((2, 3), {(0, 1): 2.0, (1, 2): 1.0}, coalesced=True, device=device)
    out = tso.sparse_reshape(strict, (3, 2))
    assert out.is_coalesced()
    assert entries(out) == [((0, 1), 2.0), ((2, 1), 1.0)]

    pairs = [((1, 2), 1.0), ((0, 1), 2.0), ((1, 2), 4.0)]
    loose = coo((2, 3), pairs, device=device)
    out = tso.sparse_reshape(loose, (3, 2))
    assert not out.is_coalesced()
    assert [value for _, value in entries(out)] == [1.0, 2.0, 4.0]
    assert out.to_dense().tolist() == [[0, 2], [0, 0], [0, 5]]


def test_false_flag_is_harmless():
    lie = coo((2, 3), [((1, 2), 1.0), ((0, 1), 2.0)], coalesced=True)
    assert entries(tso.sparse_reshape(lie, (6,))) == [((5,), 1.0), ((1,), 2.0)]


def test_values_are_the_input_values(device):
    """As with Tensor.view, no copy is made of the values; the indices are new."""
    x = coo((2, 3), {(0, 1): 2.0, (1, 2): 1.0}, device=device)
    for shape in ((3, 2), (2, 3)):
        out = tso.sparse_reshape(x, shape)
        assert out._values().data_ptr() == x._values().data_ptr()
        out._indices().zero_()
        assert [row for row, _ in entries(x)] == [(0, 1), (1, 2)]


# -------------------------------------------------------------------- hybrid


def test_trailing_dense_dimensions(device):
    indices = torch.tensor([[0, 1], [1, 2]], device=device)
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    triple = SparseTensor(indices, values, (2, 3, 2))
    for x in (triple, triple.to_torch()):
        out = tso.sparse_reshape(x, (3, 2, 2))
        out = out if x is triple else SparseTensor.from_torch(out)
        assert out.dense_shape == (3, 2, 2)
        assert out.indices.tolist() == [[0, 1], [2, 1]]
        assert same_bits(out.values, values)
        out = tso.sparse_reshape(x, (-1, 2))
        assert tuple(out.shape if x is not triple else out.dense_shape) == (6, 2)
        with pytest.raises(ValueError, match="must end in the dense sizes"):
            tso.sparse_reshape(x, (4, 3))
    # The dense part may be all that is left.
    one = SparseTensor(indices[:1] * 0, values[:1], (1, 1, 2))
    assert tso.sparse_reshape(one, (2,)).dense_shape == (2,)


# ------------------------------------------------------- forms of the target


@pytest.mark.parametrize(
    "new_shape",
    [
        (3, -1),
        [3, -1],
        torch.Size([3, 8]),
        torch.tensor([3, -1]),
        torch.tensor([3, -1], dtype=torch.int32),
    ],
    ids=["tuple", "list", "Size", "int64", "int32"],
)
def test_forms_of_the_target(new_shape):
    x = coo((4, 6), {(2, 0): 2.0})
    out = tso.sparse_reshape(x, new_shape)
    assert out.shape == (3, 8)
    triple = tso.sparse_reshape(SparseTensor.from_torch(x), new_shape)
    assert triple.dense_shape == (3, 8)
    assert all(type(size) is int for size in triple.dense_shape)


@pytest.mark.parametrize(
    "new_shape",
    [None, 24, 3.0, (3, 8.0), ((3, 8),), [[3], [8]], "38", (3, None), torch.ones(2)],
    ids=repr,
)
def test_other_forms_are_refused(new_shape):
    x = coo((4, 6), {(2, 0): 2.0})
    for t in (x, SparseTensor.from_torch(x)):
        with pytest.raises(TypeError, match="sparse_reshape: shape must be"):
            tso.sparse_reshape(t, new_shape)
    with pytest.raises(TypeError, match="shape must be"):
        tso.reshape_shape((4, 6), new_shape)


def test_reshape_shape():
    assert tso.reshape_shape((4, 6), (3, -1)) == (3, 8)
    assert tso.reshape_shape((), ()) == ()
    assert tso.reshape_shape((0, 3), [-1, 3]) == (0, 3)


@pytest.mark.parametrize("sample", samples.reshape_samples(), ids=lambda s: s.id)
def test_reshape_shape_equals_reference(sample):
    got = tso.reshape_shape(sample.shape, sample.new_shape)
    assert got == _reference.reshape_shape(sample.shape, sample.new_shape)
    assert all(type(size) is int for size in got)


# -------------------------------------------------------------------- memory


def test_memory_follows_the_entries():
    shape, place = (10**9, 10**9), (10**9 - 1, 10**9 - 1)
    values = torch.tensor([5.0], requires_grad=True)
    with torch.profiler.profile(profile_memory=True) as profile:
        x = torch.sparse_coo_tensor(torch.tensor([place]).t(), values, shape)
        out = tso.sparse_reshape(x, (-1, 4 * 10**9))
        out.backward(out.detach())
    assert entries(out.detach()) == [((249999999, 3999999999), 5.0)]
    assert values.grad.tolist() == [5.0]
    # Everything torch's allocator handed out, temporaries included.
    allocated = [
        event.nbytes()
        for event in profile.profiler.kineto_results.events()
        if event.name() == "[memory]" and event.nbytes() > 0
    ]
    assert 0 < sum(allocated) < 2**20
