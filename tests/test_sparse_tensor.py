"""The SparseTensor triple: parts, conversions, immutability, pytree, pickling."""

import copy
import io
import pickle

import pytest
import torch
from bits import same_bits
from coo import coo, entries
from torch.utils import _pytree as pytree

from torch_sparse_ops import SparseTensor, _reference

ROWS = torch.tensor([[1, 0], [0, 2], [1, 0]])
VALUES = torch.tensor([1.0, 2.0, 4.0])


def triple(values=VALUES):
    return SparseTensor(ROWS, values, (2, 3, *values.shape[1:]))


def test_parts_are_kept_as_given():
    x = triple()
    assert x.indices is ROWS
    assert x.values is VALUES
    assert x.dense_shape == (2, 3)
    indices, values, shape = x
    assert (indices, values, shape) == (x.indices, x.values, x.dense_shape)
    assert not isinstance(x, tuple)


@pytest.mark.parametrize(
    "shape",
    [[2, 3], torch.Size([2, 3]), torch.tensor([2, 3])],
    ids=lambda s: type(s).__name__,
)
def test_dense_shape_is_a_tuple_of_ints(shape):
    x = SparseTensor(ROWS, VALUES, shape)
    assert type(x.dense_shape) is tuple
    assert [type(size) for size in x.dense_shape] == [int, int]


def test_immutable():
    x = triple()
    with pytest.raises(AttributeError, match="immutable"):
        x.values = VALUES
    with pytest.raises(AttributeError, match="immutable"):
        del x.indices
    with pytest.raises(AttributeError):
        x.other = 1


def test_repr_names_the_parts():
    text = repr(SparseTensor(ROWS[:1], VALUES[:1], (2, 3)))
    parts = "indices=tensor([[1, 0]]), values=tensor([1.]), dense_shape=(2, 3)"
    assert text == f"SparseTensor({parts})"


def test_pytree():
    x = triple()
    leaves, spec = pytree.tree_flatten(x)
    assert leaves[0] is ROWS
    assert leaves[1] is VALUES
    assert len(leaves) == 2
    again = pytree.tree_unflatten(leaves, spec)
    assert again.dense_shape == (2, 3)
    doubled = pytree.tree_map(lambda t: t * 2, [x])[0]
    assert isinstance(doubled, SparseTensor)
    assert doubled.values.tolist() == [2, 4, 8]
    paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(x)[0]]
    assert paths == [".indices", ".values"]
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_copies_and_files():
    x = triple()
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    for again in (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        torch.load(file, weights_only=True),
    ):
        assert isinstance(again, SparseTensor)
        assert again.dense_shape == x.dense_shape
        assert same_bits(again.indices, x.indices)
        assert same_bits(again.values, x.values)


# --------------------------------------------------------------- conversions


@pytest.mark.parametrize("dense", [(), (2,)], ids=str)
def test_there_and_back(dense):
    x = triple(torch.randn(3, *dense))
    t = x.to_torch()
    assert t.shape == (2, 3, *dense)
    assert t.sparse_dim() == 2
    assert not t.is_coalesced()
    assert same_bits(t._indices().t(), ROWS)
    assert t._values().data_ptr() == x.values.data_ptr()
    again = SparseTensor.from_torch(t)
    assert again.dense_shape == x.dense_shape
    assert same_bits(again.indices, x.indices)
    assert again.values.data_ptr() == x.values.data_ptr()
    assert again.indices.data_ptr() == t._indices().data_ptr()


def test_coalesced_promise():
    order = torch.tensor([1, 0])
    x = SparseTensor(ROWS[order], VALUES[order], (2, 3))
    assert x.to_torch(is_coalesced=True).is_coalesced()
    assert entries(x.to_torch(is_coalesced=True)) == [((0, 2), 2.0), ((1, 0), 1.0)]
    assert not x.to_torch().is_coalesced()


def test_to_dense_sums_what_shares_a_coordinate():
    x = triple()
    want = _reference.to_dense(ROWS, VALUES, (2, 3))
    assert want.tolist() == [[0, 0, 2], [5, 0, 0]]
    assert same_bits(x.to_dense(), want)
    assert same_bits(x.to_torch().to_dense(), want)
    hybrid = triple(torch.arange(6.0).reshape(3, 2))
    want = _reference.to_dense(ROWS, hybrid.values, (2, 3))
    assert same_bits(hybrid.to_dense(), want)


@pytest.mark.parametrize("shape", [(), (2,)], ids=str)
def test_rank_zero(shape):
    values = torch.ones(3, *shape)
    x = SparseTensor(torch.zeros(3, 0, dtype=torch.int64), values, shape)
    assert torch.equal(x.to_dense(), torch.full(shape, 3.0))
    assert torch.equal(x.to_torch().to_dense(), torch.full(shape, 3.0))


def test_no_entries():
    x = SparseTensor(ROWS[:0], VALUES[:0], (0, 3))
    assert x.to_dense().shape == (0, 3)
    assert SparseTensor.from_torch(x.to_torch()).dense_shape == (0, 3)


@pytest.mark.parametrize("method", ["to_torch", "to_dense"])
def test_out_of_bounds_entries_are_refused(method):
    x = SparseTensor(torch.tensor([[0, 1], [2, 0]]), VALUES[:2], (2, 3))
    with pytest.raises(
        IndexError, match=r"got 2 in dimension 0 of entry 1, shape \[2, 3\]"
    ):
        getattr(x, method)()


def test_uncoalesced_and_flagged_tensors():
    loose = coo((2, 3), [((1, 2), 1.0), ((0, 1), 2.0), ((1, 2), 4.0)])
    x = SparseTensor.from_torch(loose)
    assert x.values.tolist() == [1, 2, 4]
    assert x.indices.tolist() == [[1, 2], [0, 1], [1, 2]]
    strict = SparseTensor.from_torch(loose.coalesce())
    assert strict.values.tolist() == [2, 5]
