"""The golden cases through every way to call an operator, bit for bit."""

import itertools
import re

import golden
import pytest
import torch
from bits import GRAD_DTYPES, same_bits

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

ops = torch.ops.torch_sparse_ops

CONCAT = golden.load("sparse_concat")
RESHAPE = golden.load("sparse_reshape")
SCATTER = golden.load("tensor_scatter_update")


def cases(selection):
    selection = list(selection)
    return pytest.mark.parametrize(
        "case", selection, ids=[case.id for case in selection]
    )


def is_flat(shape):
    return isinstance(shape, list) and not any(isinstance(x, list) for x in shape)


def full_shape(shape, values):
    """Sparse sizes and then the dense ones; malformed shapes as they are."""
    return [*shape, *values.shape[1:]] if is_flat(shape) else shape


def coo(indices, values, shape, flag=None):
    return torch.sparse_coo_tensor(
        indices.t(),
        values,
        full_shape(shape, values),
        is_coalesced=flag,
        check_invariants=False,
    )


def increases(indices):
    rows = indices.tolist()
    return all(a < b for a, b in itertools.pairwise(rows))


def sparse_parts(case):
    """(indices, values, shape) of every sparse input of a case."""
    x = case.inputs
    if isinstance(x.indices, list):
        return list(zip(x.indices, x.values, x.shapes, strict=True))
    return [(x.indices, x.values, x.shape)]


def torch_builds(case):
    """Whether torch's own constructor takes the inputs and the result."""
    try:
        for part in sparse_parts(case):
            coo(*part)
        if case.ok:
            dense = case.expected.values.shape[1:]
            torch.empty(*case.expected.shape, *dense, layout=torch.sparse_coo)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    return True


def assert_raises(faults, call, *, raw=False):
    """`call` raises one of the faults: its class, with its text."""
    with pytest.raises((ValueError, IndexError, TypeError)) as error:
        call()
    cls, text = type(error.value), str(error.value)
    for fault in faults:
        want = ValueError if raw and fault.cls is TypeError else fault.cls
        if cls is want and re.search(fault.text, text):
            return
    pytest.fail(f"{cls.__name__}: {text}")


def test_every_case_is_there():
    for selection, count in [(CONCAT, 328), (RESHAPE, 326), (SCATTER, 338)]:
        assert len(selection) == count
    assert sum(map(torch_builds, CONCAT)) == 316
    assert sum(map(torch_builds, RESHAPE)) == 311


# ------------------------------------------------------------- sparse_concat


def concat_raw(x, values=None):
    flat = [size for shape in x.shapes for size in shape]
    return ops.sparse_concat(x.indices, values or x.values, flat, x.axis, x.expand)


def concat_triples(x, values=None):
    parts = zip(x.indices, values or x.values, x.shapes, strict=True)
    triples = [SparseTensor(i, v, full_shape(s, v)) for i, v, s in parts]
    return tso.sparse_concat(triples, x.axis, expand_nonconcat_dims=x.expand)


def concat_coo(x, values=None, flag=None):
    parts = zip(x.indices, values or x.values, x.shapes, strict=True)
    tensors = [coo(i, v, s, flag) for i, v, s in parts]
    return tso.sparse_concat(tensors, x.axis, expand_nonconcat_dims=x.expand)


@cases(case for case in CONCAT if all(map(is_flat, case.inputs.shapes)))
def test_concat_raw(case):
    if not case.ok:
        assert_raises(case.faults, lambda: concat_raw(case.inputs), raw=True)
        return
    values, indices = concat_raw(case.inputs)
    assert same_bits(indices, case.expected.indices)
    assert same_bits(values, case.expected.values)


@cases(CONCAT)
def test_concat_triples(case):
    if not case.ok:
        assert_raises(case.faults, lambda: concat_triples(case.inputs))
        return
    result = concat_triples(case.inputs)
    assert same_bits(result.indices, case.expected.indices)
    assert same_bits(result.values, case.expected.values)
    dense = case.expected.values.shape[1:]
    assert result.dense_shape == (*case.expected.shape, *dense)


@cases(filter(torch_builds, CONCAT))
def test_concat_coo(case):
    if not case.ok:
        assert_raises(case.faults, lambda: concat_coo(case.inputs))
        return
    strict = all(map(increases, case.inputs.indices))
    for flag in (None, True) if strict else (None,):
        result = concat_coo(case.inputs, flag=flag)
        assert same_bits(result._indices().t(), case.expected.indices)
        assert same_bits(result._values(), case.expected.values)
        assert result.shape[: result.sparse_dim()] == case.expected.shape
        assert result.is_coalesced() == (flag or result._nnz() < 2 or all_short(case))


def all_short(case):
    """torch flags every tensor with fewer than two entries."""
    return all(len(indices) < 2 for indices in case.inputs.indices)


@cases(case for case in CONCAT if case.grad)
@pytest.mark.parametrize("call", ["raw", "triples"])
def test_concat_gradients(case, call):
    leaves = [v.clone().requires_grad_() for v in case.inputs.values]
    if call == "raw":
        values = concat_raw(case.inputs, leaves)[0]
    else:
        values = concat_triples(case.inputs, leaves).values
    values.backward(case.grad.upstream)
    for leaf, want in zip(leaves, case.grad.values, strict=True):
        assert same_bits(leaf.grad, want)


def by_coordinate(case):
    """What each entry of the result gets from a gradient that is a sparse tensor:
    the sum over its coordinate. None where it would have to be rounded."""
    rows = [tuple(row) for row in case.expected.indices.tolist()]
    upstream = case.grad.upstream
    if len(set(rows)) == len(rows):
        return dict(zip(rows, upstream, strict=True))
    if upstream.dtype.itemsize < 4:
        return None
    sums = dict.fromkeys(rows, upstream.new_zeros(()))
    for row, g in zip(rows, upstream, strict=True):
        sums[row] = sums[row] + g
    return sums


def gathered(sums, rows, like):
    picked = [sums[tuple(row)] for row in rows.tolist()]
    return torch.stack(picked) if picked else like[:0]


def coo_gradient(result, case):
    return coo(case.expected.indices, case.grad.upstream, list(result.shape))


@cases(
    case for case in filter(torch_builds, CONCAT) if case.grad and by_coordinate(case)
)
def test_concat_coo_gradients(case):
    x = case.inputs
    leaves = [v.clone().requires_grad_() for v in x.values]
    result = concat_coo(x, leaves)
    result.backward(coo_gradient(result, case))
    sums, axis, offset = by_coordinate(case), x.axis % len(x.shapes[0]), 0
    for leaf, indices, shape in zip(leaves, x.indices, x.shapes, strict=True):
        moved = indices.clone()
        moved[:, axis] += offset
        assert same_bits(leaf.grad, gathered(sums, moved, case.grad.upstream))
        offset += shape[axis]


# ------------------------------------------------------------ sparse_reshape


def reshape_raw(x):
    return ops.sparse_reshape(x.indices, x.shape, x.new_shape)


def reshape_triple(x, values=None):
    values = x.values if values is None else values
    triple = SparseTensor(x.indices, values, full_shape(x.shape, values))
    return tso.sparse_reshape(triple, x.new_shape)


def reshape_coo(x, values=None, flag=None):
    values = x.values if values is None else values
    return tso.sparse_reshape(coo(x.indices, values, x.shape, flag), x.new_shape)


@cases(
    case
    for case in RESHAPE
    if is_flat(case.inputs.shape) and is_flat(case.inputs.new_shape)
)
def test_reshape_raw(case):
    if not case.ok:
        assert_raises(case.faults, lambda: reshape_raw(case.inputs), raw=True)
        return
    assert same_bits(reshape_raw(case.inputs), case.expected.indices)


@cases(RESHAPE)
def test_reshape_triple(case):
    if not case.ok:
        assert_raises(case.faults, lambda: reshape_triple(case.inputs))
        return
    result = reshape_triple(case.inputs)
    assert same_bits(result.indices, case.expected.indices)
    assert same_bits(result.values, case.expected.values)
    assert result.dense_shape == case.expected.shape


@cases(filter(torch_builds, RESHAPE))
def test_reshape_coo(case):
    if not case.ok:
        assert_raises(case.faults, lambda: reshape_coo(case.inputs))
        return
    for flag in (None, True) if increases(case.inputs.indices) else (None,):
        result = reshape_coo(case.inputs, flag=flag)
        assert same_bits(result._indices().t(), case.expected.indices)
        assert same_bits(result._values(), case.expected.values)
        assert result.shape == case.expected.shape
        assert result.is_coalesced() == (flag or result._nnz() < 2)


@cases(case for case in RESHAPE if case.grad)
def test_reshape_gradients(case):
    leaf = case.inputs.values.clone().requires_grad_()
    reshape_triple(case.inputs, leaf).values.backward(case.grad.upstream)
    assert same_bits(leaf.grad, case.grad.values)


@cases(
    case for case in filter(torch_builds, RESHAPE) if case.grad and by_coordinate(case)
)
def test_reshape_coo_gradients(case):
    leaf = case.inputs.values.clone().requires_grad_()
    result = reshape_coo(case.inputs, leaf)
    result.backward(coo_gradient(result, case))
    want = gathered(by_coordinate(case), case.expected.indices, case.grad.upstream)
    assert same_bits(leaf.grad, want)


# ----------------------------------------------------- tensor_scatter_update


def scatter_in_place(op):
    def call(tensor, indices, updates, **policy):
        out = tensor.clone()
        op(out, indices, updates, **policy)
        return out

    return call


SCATTER_CALLS = {
    "raw": ops.tensor_scatter_update,
    "function": tso.tensor_scatter_update,
    "raw-in-place": scatter_in_place(ops.tensor_scatter_update_),
    "function-in-place": scatter_in_place(tso.tensor_scatter_update_),
}


@cases(SCATTER)
@pytest.mark.parametrize("call", SCATTER_CALLS)
def test_scatter(case, call):
    x, op = case.inputs, SCATTER_CALLS[call]
    before = x.tensor.clone()

    def run():
        return op(x.tensor, x.indices, x.updates, bad_indices_policy=x.policy)

    if case.ok:
        assert same_bits(run(), case.expected.output)
    else:
        assert_raises(case.faults, run, raw=call.startswith("raw"))
    assert same_bits(x.tensor, before)


@cases(case for case in SCATTER if case.grad)
@pytest.mark.parametrize("call", ["raw", "function", "function-in-place"])
def test_scatter_gradients(case, call):
    x = case.inputs
    tensor, updates = x.tensor.clone(), x.updates.clone()
    tensor.requires_grad_()
    updates.requires_grad_()
    out = SCATTER_CALLS[call](tensor, x.indices, updates, bad_indices_policy=x.policy)
    out.backward(case.grad.upstream)
    assert same_bits(tensor.grad, case.grad.tensor)
    assert same_bits(updates.grad, case.grad.updates)


def test_gradients_cover_every_float_dtype():
    for selection in (CONCAT, RESHAPE, SCATTER):
        covered = {case.grad.upstream.dtype for case in selection if case.grad}
        assert covered == set(GRAD_DTYPES)
