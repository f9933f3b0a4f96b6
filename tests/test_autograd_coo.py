"""Gradients of COO tensors: leaves, built from values, and what comes back in."""

import pytest
import torch
from bits import same_bits
from coo import coo, entries
from torch.autograd import gradcheck, gradgradcheck

import torch_sparse_ops as tso

# Coalesced, stored in another order, and with a repeated coordinate.
SORTED = [(0, 1), (0, 2), (1, 0)]
SHUFFLED = [(1, 0), (0, 2), (0, 1)]
REPEATED = [(1, 0), (0, 2), (1, 0), (0, 1)]
STORED = {"sorted": SORTED, "shuffled": SHUFFLED, "repeated": REPEATED}
SHAPE = (2, 3)

stored = pytest.mark.parametrize("rows", STORED.values(), ids=STORED)


def build(rows, values, shape=SHAPE):
    return torch.sparse_coo_tensor(
        torch.tensor(rows).t(),
        values,
        (*shape, *values.shape[1:]),
        is_coalesced=rows == SORTED,
    )


def concat(x, other=None, axis=1):
    other = coo((2, 2), {(0, 1): 7.0}, dtype=x.dtype) if other is None else other
    return tso.sparse_concat([x, other], axis)


def reshape(x):
    return tso.sparse_reshape(x, (3, 2, *x.shape[2:]))


both = pytest.mark.parametrize("function", [concat, reshape])

# How a loss may read a COO result: each hands back another kind of gradient.
READS = {
    "dense": lambda out: out.to_dense(masked_grad=False),
    "masked": lambda out: out.to_dense(masked_grad=True),
    "coalesced-values": lambda out: out.coalesce().values(),
    "sum": torch.sparse.sum,
    "triple": lambda out: tso.SparseTensor.from_torch(out).to_dense(),
    "product": lambda out: torch.sparse.mm(out, torch.ones(out.shape[1], 2).double()),
}


# -------------------------------------------------------- built from values


@stored
@both
@pytest.mark.parametrize("read", READS)
def test_values_through_any_loss(rows, function, read):
    values = torch.randn(len(rows), dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda v: READS[read](function(build(rows, v))), (values,))


@stored
@both
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_hybrid_values(rows, function, dtype):
    values = torch.randn(len(rows), 2, dtype=dtype, requires_grad=True)
    other = coo((2, 2), []).to(dtype)
    other = torch.sparse_coo_tensor(
        other._indices(), torch.zeros(0, 2, dtype=dtype), (2, 2, 2)
    )

    def read(v):
        x = build(rows, v)
        out = concat(x, other) if function is concat else reshape(x)
        return out.to_dense(masked_grad=False)

    assert gradcheck(read, (values,))


@stored
def test_second_derivatives(rows):
    """Through the triples: torch has no second derivative of most sparse ops."""
    values = torch.randn(len(rows), dtype=torch.float64, requires_grad=True)

    def read(v):
        triple = tso.SparseTensor(torch.tensor(rows), v, SHAPE)
        joined = tso.sparse_concat([triple, triple], 1)
        return tso.sparse_reshape(joined, (-1,)).values ** 3

    assert gradgradcheck(read, (values,))


def test_gradients_of_every_input():
    """The documented case: weights 1 to 5 on the sorted entries."""
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    second_rows, second = [(0, 1), (0, 2)], torch.tensor([4.0, 5.0])
    for rows, first, want in [
        ([(0, 2), (1, 0), (1, 1)], [1.0, 2.0, 3.0], [1, 4, 5]),
        ([(1, 1), (0, 2), (1, 0)], [3.0, 1.0, 2.0], [5, 1, 4]),
    ]:
        leaves = torch.tensor(first, requires_grad=True), second.clone()
        leaves[1].requires_grad_()
        out = concat(build(rows, leaves[0]), build(second_rows, leaves[1], (2, 4)))
        read = tso.SparseTensor.from_torch(out)
        assert read.values.tolist() == [1, 4, 5, 2, 3]
        (read.values * weights).sum().backward()
        assert leaves[0].grad.tolist() == want
        assert leaves[1].grad.tolist() == [2, 3]


@pytest.mark.parametrize("rows", [SORTED, SHUFFLED], ids=["sorted", "shuffled"])
def test_gradients_of_stacked_inputs(rows):
    """Along axis 0, of sorted inputs, gradients are views of that of
    the result, as those of torch.cat are."""
    x = build(rows, torch.randn(len(rows), dtype=torch.float64)).requires_grad_()
    out = concat(x, x.detach(), axis=0)
    grad = torch.arange(2.0 * len(rows), dtype=torch.float64)
    upstream = torch.sparse_coo_tensor(
        out.detach()._indices(), grad, out.shape, is_coalesced=True
    )
    (got,) = torch.autograd.grad(out, x, upstream)
    want = [grad[sorted(rows).index(row)] for row in rows]
    assert got._values().tolist() == want
    shared = got._values().data_ptr() == grad.data_ptr()
    assert shared == (rows == SORTED)


@stored
def test_entries_of_one_coordinate_share_a_gradient(rows):
    """A COO tensor means the sum of them; a triple tells them apart."""
    values = torch.randn(len(rows), requires_grad=True)
    out = concat(build(rows, values))
    tso.SparseTensor.from_torch(out).values.sum().backward()
    assert values.grad.tolist() == [1] * len(rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_different_gradients_of_one_coordinate_raise(dtype):
    indices = torch.tensor([[0, 1, 0], [1, 0, 1]])
    values = torch.ones(3, 2, dtype=dtype)
    for weights, agree in ((1, 2, 1), True), ((1, 2, 3), False), ((1, 2, 0), False):
        x = torch.sparse_coo_tensor(indices, values, (2, 2, 2)).requires_grad_()
        weight = torch.tensor(weights, dtype=dtype).unsqueeze(1)
        loss = (tso.SparseTensor.from_torch(x).values * weight).sum().real
        if agree:
            (grad,) = torch.autograd.grad(loss, x)
            assert same_bits(grad.to_dense()[0, 1], torch.ones(2, dtype=dtype))
        else:
            with pytest.raises(RuntimeError, match="were given different gradients"):
                torch.autograd.grad(loss, x)


def test_only_one_input_needs_a_gradient():
    values = torch.randn(3, requires_grad=True)
    fixed = torch.randn(3)
    out = concat(build(SORTED, fixed), build(SHUFFLED, values))
    out.to_dense().sum().backward()
    assert values.grad.tolist() == [1, 1, 1]
    assert fixed.grad is None


# ------------------------------------------------------------- leaf tensors


@stored
@both
@pytest.mark.parametrize("read", READS)
def test_leaf_gets_a_sparse_gradient(rows, function, read):
    values = torch.randn(len(rows), dtype=torch.float64)
    x = build(rows, values).requires_grad_()
    READS[read](function(x)).sum().backward()
    assert x.grad.layout == torch.sparse_coo
    assert x.grad.shape == x.shape
    # Of its own sparsity, whatever the size of the dense gradient.
    assert set(map(tuple, x.grad._indices().t().tolist())) == set(rows)
    assert x.grad._nnz() <= x._nnz()
    scale = 2 if read == "product" else 1
    got = x.grad.to_dense()
    want = torch.zeros(SHAPE, dtype=torch.float64)
    for row in rows:
        want[row] = scale
    assert torch.equal(got, want)


@both
def test_gradcheck_of_leaves(function):
    x = build(SORTED, torch.randn(3, dtype=torch.float64)).requires_grad_()
    assert gradcheck(
        lambda t: function(t).to_dense(masked_grad=True), (x,), masked=True
    )


def test_leaf_parameters_learn():
    """A step of an optimiser on a COO parameter, as embeddings are trained."""
    x = build(SORTED, torch.tensor([1.0, 2.0, 3.0])).requires_grad_()
    optimizer = torch.optim.SGD([x], lr=0.5)
    concat(x).to_dense().sum().backward()
    optimizer.step()
    assert x.detach().to_dense().tolist() == [[0, 0.5, 1.5], [2.5, 0, 0]]


def test_memory_follows_the_entries():
    """Volumes that no dense gradient could have."""
    size = 2**30
    values = torch.randn(2, requires_grad=True)
    x = build([(size - 1, 0), (0, size - 1)], values, (size, size))
    leaf = coo((size, size), {(5, 5): 1.0}).requires_grad_()
    out = tso.sparse_reshape(tso.sparse_concat([x, leaf], 1), (-1, 8))
    tso.SparseTensor.from_torch(out).values.square().sum().backward()
    assert same_bits(values.grad, 2 * values.detach())
    assert entries(leaf.grad) == [((5, 5), 2.0)]


# --------------------------------------------------- gradients that come back


def matched(dense, rows):
    return torch.stack([dense[row] for row in rows])


def sparse_gradient(kind, dense, rows):
    """One gradient in several spellings, and the dense tensor it means."""
    pairs = [(row, dense[row].item()) for row in rows]
    if kind == "dense":
        return dense, dense
    if kind == "reordered":
        pairs.reverse()
    elif kind == "missing":
        pairs = pairs[1:]
    elif kind == "extra":
        pairs.append(((1, 2), 64.0))
    elif kind == "repeated":
        pairs = [(row, value / 2) for row, value in pairs for _ in range(2)]
    elif kind == "none":
        pairs = []
    sparse = coo(tuple(dense.shape), pairs, coalesced=None)
    if kind == "coalesced":
        sparse = sparse.coalesce()
    return sparse, sparse.to_dense()


KINDS = [
    "dense",
    "same",
    "coalesced",
    "reordered",
    "missing",
    "extra",
    "repeated",
    "none",
]


@pytest.mark.parametrize("kind", KINDS)
@stored
@both
def test_incoming_gradients_are_matched_by_coordinate(kind, rows, function):
    values = torch.randn(len(rows), requires_grad=True)
    leaf = build(rows, values.detach().clone()).requires_grad_()
    out = function(build(rows, values))
    places = [row for row, _ in entries(out.detach())]
    dense = torch.arange(1.0, out.numel() + 1).reshape(out.shape)
    grad, meaning = sparse_gradient(kind, dense, dict.fromkeys(places))
    out.backward(grad)
    # Both functions keep the place in row-major order of an (2, 3) tensor here.
    if function is concat:
        want = meaning[:, :3]
    else:
        want = meaning.reshape(SHAPE)
    assert same_bits(values.grad, matched(want, rows))

    function(leaf).backward(grad)
    assert leaf.grad.layout == torch.sparse_coo
    mask = torch.zeros(SHAPE, dtype=torch.bool)
    for row in rows:
        mask[row] = True
    assert torch.equal(leaf.grad.to_dense(), want * mask)


def test_hybrid_incoming_gradients():
    values = torch.randn(3, 2, requires_grad=True)
    out = reshape(build(SHUFFLED, values))
    rows = [(0, 1), (2, 1)]  # the first is the place of (0, 1), the second of none
    grad = torch.sparse_coo_tensor(
        torch.tensor(rows).t(), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 2, 2)
    )
    out.backward(grad)
    assert values.grad.tolist() == [[0, 0], [0, 0], [1, 2]]
    # A gradient may hide its dense dimension among its sparse ones.
    values.grad = None
    full = torch.arange(12.0).reshape(3, 2, 2)
    reshape(build(SHUFFLED, values)).backward(full.to_sparse(3))
    assert same_bits(values.grad, matched(full.reshape(2, 3, 2), SHUFFLED))


# ------------------------------------------------------- conversion of triples


@stored
def test_from_and_to_torch(rows):
    values = torch.randn(len(rows), dtype=torch.float64, requires_grad=True)

    def there_and_back(v):
        triple = tso.SparseTensor.from_torch(build(rows, v))
        again = tso.SparseTensor.from_torch(triple.to_torch())
        return again.to_dense() ** 2

    assert gradcheck(there_and_back, (values,))
    assert gradgradcheck(
        lambda v: tso.SparseTensor(torch.tensor(rows), v, SHAPE).to_dense() ** 3,
        (values,),
    )
