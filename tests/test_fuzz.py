"""Arbitrary arguments, mostly wrong: an ordinary error or the right result.

Which of the two, and the class of the error, is what the slow reference says.
"""

import math

import pytest
import torch
from bits import same_bits

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor, _reference

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

ops = torch.ops.torch_sparse_ops

seeded = settings(
    derandomize=True, database=None, deadline=None, max_examples=400, print_blob=False
)

MAX, MIN = 2**63 - 1, -(2**63)
# Mostly what can be right, lest the first check refuse nearly every call.
sizes = st.sampled_from([2, 3] * 9 + [1, 0, 2**31, 2**32, 2**62, MAX, -1, -2, MIN])
targets = st.sampled_from([2, 3, 6, -1, 1, 0, 2**31, 2**32, 2**62, MAX, -2, MIN])
places = st.sampled_from([0, 1] * 12 + [2, -1, 2**31, 2**32, 2**32 + 1, MAX, MIN])
axes = st.sampled_from([0, 0, -1, 1, -2, 2, -3, MAX, MIN])


def outcome(call, *args):
    """(result, None) or (None, class of the error)."""
    try:
        return call(*args), None
    except (ValueError, IndexError) as error:
        return None, type(error)


def matrix(rows, columns):
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), columns)


@st.composite
def sparse_inputs(draw, rank):
    rank = draw(st.sampled_from([rank] * 9 + [rank + 1]))
    nnz = draw(st.integers(0, 3))
    flat = st.lists(places, min_size=rank, max_size=rank)
    rows = draw(st.lists(flat, min_size=nnz, max_size=nnz))
    shape = draw(st.lists(sizes, min_size=rank, max_size=rank))
    count = draw(st.sampled_from([nnz] * 9 + [nnz + 1]))
    return matrix(rows, rank), torch.arange(float(count)), shape


@st.composite
def concat_calls(draw):
    rank = draw(st.integers(0, 3))
    inputs = [draw(sparse_inputs(rank)) for _ in range(draw(st.integers(0, 3)))]
    if inputs and draw(st.booleans()):  # equal shapes, to pass the first checks
        inputs = [(i, v, inputs[0][2]) for i, v, _ in inputs]
    return inputs, draw(axes), draw(st.booleans())


@seeded
@given(concat_calls())
def test_concat(call):
    inputs, axis, expand = call
    indices, values, shapes = (
        map(list, zip(*inputs, strict=True)) if inputs else ([],) * 3
    )
    flat = [size for shape in shapes for size in shape]
    got, error = outcome(ops.sparse_concat, indices, values, flat, axis, expand)
    if inputs and len(flat) == len(inputs) * (rank := indices[0].shape[1]):
        # A flat list does not tell where one shape ends.
        shapes = [flat[rank * k : rank * (k + 1)] for k in range(len(inputs))]
    want, expected = outcome(
        _reference.sparse_concat, indices, values, shapes, axis, expand
    )
    assert error is expected
    if error is None:
        assert same_bits(got[0], want[0])
        assert same_bits(got[1], want[1])


@st.composite
def reshape_calls(draw):
    indices, _, shape = draw(sparse_inputs(draw(st.integers(0, 3))))
    if draw(st.booleans()):  # in bounds more often
        shape = [size if size > 0 else 6 for size in shape]
    target = draw(st.lists(targets, max_size=3))
    if draw(st.booleans()) and 0 not in shape and 0 < math.prod(shape) < 2**63:
        target = [math.prod(shape)]
    return indices, shape[: draw(st.sampled_from([3, 3, 3, 1]))], target


@seeded
@given(reshape_calls())
def test_reshape(call):
    got, error = outcome(ops.sparse_reshape, *call)
    want, expected = outcome(_reference.sparse_reshape, *call)
    assert error is expected
    if error is None:
        assert same_bits(got, want[0])


@st.composite
def scatter_calls(draw):
    shape = draw(st.lists(st.sampled_from([2, 3, 1, 0]), max_size=3))
    batch = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    depth = draw(st.sampled_from([*range(1, len(shape) + 1)] * 5 + [0, 4]))
    index_shape = draw(st.sampled_from([[*batch, depth]] * 9 + [batch[1:]]))
    count = math.prod(index_shape)
    index_dtype = draw(st.sampled_from([torch.int64] * 8 + [torch.int32, torch.int16]))
    data = draw(st.lists(places, min_size=count, max_size=count))
    indices = torch.tensor(data, dtype=torch.int64).reshape(index_shape)
    update_shape = draw(st.sampled_from([[*batch, *shape[depth:]]] * 9 + [batch]))
    dtype = draw(st.sampled_from([torch.float32] * 9 + [torch.float64]))
    updates = torch.arange(1, math.prod(update_shape) + 1, dtype=dtype)
    updates = updates.reshape(update_shape)
    policies = ["IGNORE", "", "DEFAULT", "ERROR"]
    policy = draw(st.sampled_from(policies * 4 + ["ignore", "\0"]))
    return torch.zeros(shape), indices.to(index_dtype), updates, policy


@seeded
@given(scatter_calls())
def test_scatter(call):
    got, error = outcome(ops.tensor_scatter_update, *call)
    want, expected = outcome(_reference.tensor_scatter_update, *call)
    assert error is expected
    if error is None:
        assert same_bits(got, want)
    tensor = call[0].clone()
    _, error = outcome(ops.tensor_scatter_update_, tensor, *call[1:])
    assert error is expected
    # Nothing is half written: all rows, or none.
    assert same_bits(tensor, call[0] if error else want)


@seeded
@given(sparse_inputs(2), st.booleans())
def test_coo_tensors_that_lie(part, flag):
    """Coordinates anywhere and a false flag: never an access out of bounds."""
    indices, values, shape = part
    values = torch.arange(float(indices.shape[0]))
    try:
        lie = torch.sparse_coo_tensor(
            indices.t(), values, shape, is_coalesced=flag, check_invariants=False
        )
    except RuntimeError:
        return  # torch refuses the sizes
    triple, _ = outcome(SparseTensor, indices, values, shape)
    for axis in range(len(shape)):
        args = ([indices] * 2, [values] * 2, [shape] * 2, axis)
        want, expected = outcome(_reference.sparse_concat, *args)
        got, error = outcome(tso.sparse_concat, [lie, lie], axis)
        assert error is expected
        if error is None:
            assert same_bits(got._values(), want[0])
            assert same_bits(got._indices().t(), want[1])
        if triple is not None:
            got, error = outcome(tso.sparse_concat, [triple, triple], axis)
            assert error is expected
            assert error or same_bits(got.indices, want[1])
    want, expected = outcome(_reference.sparse_reshape, indices, shape, [-1])
    got, error = outcome(tso.sparse_reshape, lie, [-1])
    assert error is expected
    if error is None:
        assert same_bits(got._indices().t(), want[0])
