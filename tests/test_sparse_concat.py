"""sparse_concat: results, order, flags, dtypes, sizes and strides."""

import pytest
import samples
import torch
from bits import DTYPES, name_of, same_bits, shares_memory
from coo import coo, entries

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor, _reference

ops = torch.ops.torch_sparse_ops

A = {(0, 2): 1.0, (1, 0): 2.0, (1, 1): 3.0}
B = {(0, 1): 4.0, (0, 2): 5.0}


def a_and_b(device="cpu"):
    return [
        coo((2, 3), A, coalesced=True, device=device),
        coo((2, 4), B, coalesced=True, device=device),
    ]


def by_reference(sample):
    return _reference.sparse_concat(
        sample.indices, sample.values, sample.shapes, sample.axis, sample.expand
    )


# ------------------------------------------------------- against the reference


@pytest.mark.parametrize("sample", samples.concat_samples(), ids=lambda s: s.id)
def test_equals_reference(sample, device):
    want_values, want_indices, _ = by_reference(sample)
    sample = sample.to(device)
    before = [t.clone() for t in sample.indices]
    values, indices = ops.sparse_concat(*sample.args())
    assert same_bits(values.cpu(), want_values)
    assert same_bits(indices.cpu(), want_indices)
    for t, copy in zip(sample.indices, before, strict=True):
        assert same_bits(t, copy)
    # One row per dimension, as torch stores the indices of a COO tensor.
    assert values.is_contiguous()
    assert indices.stride() == (1, max(indices.shape[0], 1))


@pytest.mark.parametrize("sample", samples.concat_samples(), ids=lambda s: s.id)
def test_gradient_equals_reference(sample, device):
    sample = sample.to(device)
    values, _ = ops.sparse_concat(*sample.args())
    flat = [size for shape in sample.shapes for size in shape]
    grads = ops._sparse_concat_grad_values(
        values, sample.indices, flat, sample.axis, sample.expand, sample.sorted
    )
    # What went to a place comes back from it.
    for grad, value in zip(grads, sample.values, strict=True):
        assert same_bits(grad, value)
        assert grad.is_contiguous()


@pytest.mark.parametrize("dtype", DTYPES, ids=name_of)
def test_coo_of_every_dtype(dtype):
    sample = samples.make_concat("coo", [(3, 4), (3, 5)], 1, nnz=9, dtype=dtype)
    parts = zip(sample.indices, sample.values, sample.shapes, strict=True)
    tensors = [
        torch.sparse_coo_tensor(indices.t(), values, shape, check_invariants=True)
        for indices, values, shape in parts
    ]
    out = tso.sparse_concat(tensors, 1)
    values, indices, shape = by_reference(sample)
    assert out.shape == shape
    assert same_bits(out._values(), values)
    assert same_bits(out._indices().t(), indices)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float64], ids=name_of)
def test_lazy_conjugate_and_negative_values(dtype):
    sample = samples.make_concat("lazy", [(3, 4), (3, 5)], 1, dtype=torch.complex128)
    lazy = [v.conj() for v in sample.values]
    if dtype == torch.complex64:
        lazy = [v.to(torch.complex64).conj() for v in sample.values]
        assert all(v.is_conj() for v in lazy)
    else:
        lazy = [v.imag for v in lazy]
        assert all(v.is_neg() for v in lazy)
    want, _, _ = _reference.sparse_concat(sample.indices, lazy, sample.shapes, 1)
    values, _ = ops.sparse_concat(sample.indices, lazy, [3, 4, 3, 5], 1)
    assert same_bits(values, want)


# ------------------------------------------------------------ order and flags


def test_sorted_and_flagged_on_every_axis(device):
    joined = [((0, 2), 1.0), ((0, 4), 4.0), ((0, 5), 5.0), ((1, 0), 2.0), ((1, 1), 3.0)]
    for axis in (1, -1):
        out = tso.sparse_concat(a_and_b(device), axis)
        assert out.shape == (2, 7)
        assert entries(out) == joined
        assert out.is_coalesced()
        assert out.indices().shape == (2, 5)
    a = a_and_b(device)[0]
    out = tso.sparse_concat([a, a], 0)
    assert out.shape == (4, 3)
    assert entries(out) == [*A.items(), ((2, 2), 1.0), ((3, 0), 2.0), ((3, 1), 3.0)]
    assert out.is_coalesced()
    assert out.indices().shape == (2, 6)


def test_unsorted_inputs(device):
    p = coo((2, 3), {(1, 0): 7.0, (0, 2): 8.0, (0, 0): 9.0}, device=device)
    stored = entries(p)
    out = tso.sparse_concat([p, coo((1, 3), {(0, 1): 6.0}, device=device)], 0)
    assert out.shape == (3, 3)
    assert entries(out) == [((0, 0), 9.0), ((0, 2), 8.0), ((1, 0), 7.0), ((2, 1), 6.0)]
    assert entries(p) == stored
    assert not p.is_coalesced()
    assert not out.is_coalesced()


def test_equal_coordinates_keep_input_and_position_order(device):
    # All entries share the prefix; the two last of input 0 share a coordinate.
    first = SparseTensor(
        torch.tensor([[0, 1], [0, 0], [0, 0]], device=device),
        torch.tensor([1, 2, 3], device=device),
        (1, 2),
    )
    out = tso.sparse_concat([first, first], 0)
    assert out.indices.tolist() == [[0, 0], [0, 0], [0, 1], [1, 0], [1, 0], [1, 1]]
    assert out.values.tolist() == [2, 3, 1, 2, 3, 1]
    out = tso.sparse_concat([first, first], 1)
    assert out.indices.tolist() == [[0, 0], [0, 0], [0, 1], [0, 2], [0, 2], [0, 3]]
    assert out.values.tolist() == [2, 3, 1, 2, 3, 1]


@pytest.mark.parametrize("flags", [(True, False), (False, True), (False, False)])
def test_flagged_only_when_all_inputs_are(flags):
    tensors = [
        coo((2, 3), A, coalesced=flags[0]),
        coo((2, 3), A, coalesced=flags[1]),
    ]
    assert not tso.sparse_concat(tensors, 1).is_coalesced()


def test_false_flag_is_found_out():
    """A tensor that lies about being coalesced gives a sorted, unflagged result."""
    unsorted = {(1, 0): 7.0, (0, 2): 8.0}
    lies = [
        coo((2, 3), unsorted, coalesced=True),
        torch.sparse_coo_tensor(
            torch.tensor([[0, 0], [1, 1]]),
            torch.tensor([1.0, 2.0]),
            (2, 3),
            is_coalesced=True,
            check_invariants=False,
        ),
    ]
    for lie in lies:
        for axis in (0, 1):
            out = tso.sparse_concat([lie, coo((2, 3), A, coalesced=True)], axis)
            rows = [row for row, _ in entries(out)]
            assert rows == sorted(rows)
            assert len(rows) == 5
            assert not out.is_coalesced()


def test_the_cpu_needs_no_promise_and_believes_none():
    unsorted = coo((2, 3), {(1, 0): 7.0, (0, 2): 8.0})
    for axis in (0, 1):
        out = tso.sparse_concat([unsorted, unsorted], axis, inputs_sorted=True)
        rows = [row for row, _ in entries(out)]
        assert rows == sorted(rows)


def test_fewer_than_two_entries_are_flagged():
    out = tso.sparse_concat([coo((2, 3), {(1, 1): 2.0}), coo((2, 3), {})], 0)
    assert out.is_coalesced()
    assert entries(out) == [((1, 1), 2.0)]


def test_one_input(device):
    p = coo((2, 3), {(1, 0): 7.0, (0, 2): 8.0}, device=device)
    out = tso.sparse_concat([p], 0)
    assert entries(out) == [((0, 2), 8.0), ((1, 0), 7.0)]
    out._values().fill_(0)
    out._indices().fill_(0)
    assert entries(p) == [((1, 0), 7.0), ((0, 2), 8.0)]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [1, 2])
def test_result_shares_no_memory(axis, count):
    a = a_and_b()[0]
    out = tso.sparse_concat([a] * count, axis)
    assert not shares_memory(out._values(), a._values())
    assert not shares_memory(out._indices(), a._indices())
    out._values().fill_(99)
    out._indices().fill_(0)
    assert entries(a) == list(A.items())


# ----------------------------------------------------------------- expansion


def test_expand_nonconcat_dims(device):
    wide = coo((3, 2), {(0, 0): 1.0, (2, 1): 2.0}, device=device)
    low = coo((2, 2), {(1, 0): 3.0}, device=device)
    out = tso.sparse_concat([wide, low], 1, expand_nonconcat_dims=True)
    assert out.shape == (3, 4)
    assert entries(out) == [((0, 0), 1.0), ((1, 2), 3.0), ((2, 1), 2.0)]
    with pytest.raises(ValueError, match=r"size 3 in dimension 0 .* size 2 in input 1"):
        tso.sparse_concat([wide, low], 1)


def test_any_rank_any_axis(device):
    first = coo((2, 3, 4), {(0, 0, 1): 1.0, (1, 2, 3): 2.0}, device=device)
    second = coo((3, 3, 4), {(0, 0, 0): 3.0, (2, 1, 3): 4.0}, device=device)
    out = tso.sparse_concat([first, second], 0)
    assert out.shape == (5, 3, 4)
    assert entries(out) == [
        ((0, 0, 1), 1.0),
        ((1, 2, 3), 2.0),
        ((2, 0, 0), 3.0),
        ((4, 1, 3), 4.0),
    ]
    with pytest.raises(ValueError, match="must agree in every dimension except axis=1"):
        tso.sparse_concat([first, second], 1)
    out = tso.sparse_concat([first, second], 1, expand_nonconcat_dims=True)
    assert out.shape == (3, 6, 4)


def test_inputs_without_entries(device):
    a, b = a_and_b(device)
    out = tso.sparse_concat([a, coo((2, 3), {}, device=device), b], 1)
    assert out.shape == (2, 10)
    assert [row for row, _ in entries(out)] == [(0, 2), (0, 7), (0, 8), (1, 0), (1, 1)]

    empty = coo((2, 3), {}, dtype=torch.int16, device=device)
    out = tso.sparse_concat([empty] * 3, 0)
    assert out.shape == (6, 3)
    assert out.is_coalesced()
    assert out._indices().shape == (2, 0)
    assert out.dtype == torch.int16


# --------------------------------------------------------------------- sizes


def test_offsets_past_32_bits(device):
    first = coo((1, 2**31 - 1), {(0, 2**31 - 2): 1.0}, device=device)
    out = tso.sparse_concat([first, coo((1, 2), {(0, 1): 2.0}, device=device)], 1)
    assert out.shape == (1, 2**31 + 1)
    assert entries(out) == [((0, 2**31 - 2), 1.0), ((0, 2**31), 2.0)]


def test_result_too_large_to_count():
    big = coo((2**31, 2**31), {(0, 0): 1.0})
    message = r"fewer than 2\*\*63 elements \(got \[4294967296, 2147483648\]"
    with pytest.raises(ValueError, match=message):
        tso.sparse_concat([big, big], 0)
    # Neither input is too large, nor their sum on the axis: expansion alone is.
    wide, tall = coo((1, 2**40), {(0, 1): 1.0}), coo((2**40, 1), {(1, 0): 1.0})
    with pytest.raises(ValueError, match=r"2\*\*63 .* for the result"):
        tso.sparse_concat([wide, tall], 1, expand_nonconcat_dims=True)


def test_hybrid_tensors(device):
    indices = torch.tensor([[1, 0], [0, 2]], device=device)
    values = torch.arange(12.0, device=device).reshape(2, 2, 3)
    x = SparseTensor(indices, values, (2, 3, 2, 3))
    out = tso.sparse_concat([x, x], 1)
    assert out.dense_shape == (2, 6, 2, 3)
    assert out.indices.tolist() == [[0, 2], [0, 5], [1, 0], [1, 3]]
    assert same_bits(out.values, values[[1, 1, 0, 0]])
    # The axis counts in the full shape.
    assert tso.sparse_concat([x, x], -3).dense_shape == (2, 6, 2, 3)
    assert tso.sparse_concat([x, x], -4).dense_shape == (4, 3, 2, 3)
    for axis in (2, 3, -1, -2):
        with pytest.raises(ValueError, match="a dense dimension"):
            tso.sparse_concat([x, x], axis)
    sparse = tso.sparse_concat([x.to_torch(), x.to_torch()], 1)
    assert sparse.sparse_dim() == 2
    assert same_bits(sparse._values(), out.values)


def test_a_thousand_inputs(device):
    tensors = [coo((1, 5), {(0, i % 5): float(i)}, device=device) for i in range(1000)]
    out = tso.sparse_concat(tensors, 0)
    assert entries(out) == [((i, i % 5), float(i)) for i in range(1000)]
    out = tso.sparse_concat(tensors, 1)
    assert entries(out) == [((0, 5 * i + i % 5), float(i)) for i in range(1000)]


# --------------------------------------------------------------------- modes


def test_deterministic_mode(deterministic):
    a, b = a_and_b()
    first, second = (t.clone().requires_grad_() for t in (a, b))
    out = tso.sparse_concat([first, second], 1)
    assert [v for _, v in entries(out.detach())] == [1.0, 4.0, 5.0, 2.0, 3.0]
    out.backward(out.detach())
    assert first.grad._values().tolist() == [1.0, 2.0, 3.0]


def test_invariant_checks_accept_the_result():
    with torch.sparse.check_sparse_tensor_invariants():
        out = tso.sparse_concat(a_and_b(), 1)
    assert out.is_coalesced()


def test_concat_shape():
    assert tso.concat_shape([(2, 3), (2, 4)], 1) == (2, 7)
    assert tso.concat_shape([(2, 3), (5, 4)], -2, expand_nonconcat_dims=True) == (7, 4)
    assert tso.concat_shape([torch.Size([2, 3]), [2, 4]], -1) == (2, 7)


@pytest.mark.parametrize("sample", samples.concat_samples(), ids=lambda s: s.id)
def test_concat_shape_equals_reference(sample):
    got = tso.concat_shape(
        sample.shapes, sample.axis, expand_nonconcat_dims=sample.expand
    )
    want = _reference.concat_shape(sample.shapes, sample.axis, sample.expand)
    assert got == want
    assert all(type(size) is int for size in got)
