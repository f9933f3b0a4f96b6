"""First and second derivatives of raw operators, triples and dense tensors."""

import pytest
import torch
from bits import same_bits
from torch.autograd import gradcheck, gradgradcheck

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

ops = torch.ops.torch_sparse_ops

# Two unsorted inputs with a repeated coordinate, (1, 1) in the first.
FIRST = torch.tensor([[1, 1], [0, 2], [1, 1], [0, 0]])
SECOND = torch.tensor([[1, 3], [0, 1]])
SHAPES = [(2, 3), (2, 4)]
FLAT = [2, 3, 2, 4]

dtypes = pytest.mark.parametrize(
    "dtype", [torch.float64, torch.complex128], ids=["real", "complex"]
)
dense_sizes = pytest.mark.parametrize("dense", [(), (2,), (2, 0)], ids=str)


def leaf(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def check(function, *leaves):
    assert gradcheck(function, leaves)
    assert gradgradcheck(function, leaves)


# ------------------------------------------------------------- sparse_concat


def concat_raw(first, second, axis=1):
    return ops.sparse_concat([FIRST, SECOND], [first, second], FLAT, axis, axis == 0)[0]


def concat_triples(first, second, axis=1):
    triples = [
        SparseTensor(indices, values, (*shape, *values.shape[1:]))
        for indices, values, shape in zip(
            (FIRST, SECOND), (first, second), SHAPES, strict=True
        )
    ]
    return tso.sparse_concat(triples, axis, expand_nonconcat_dims=axis == 0).values


concats = pytest.mark.parametrize("concat", [concat_raw, concat_triples])


@concats
@dtypes
@dense_sizes
def test_concat(concat, dtype, dense):
    leaves = leaf(4, *dense, dtype=dtype), leaf(2, *dense, dtype=dtype)
    check(concat, *leaves)
    check(lambda *v: concat(*v, axis=0), *leaves)


@concats
def test_concat_of_what_was_concatenated(concat):
    check(lambda v: concat(v, v[:2] * v[2:]), leaf(4))


@concats
def test_concat_gradient_follows_the_entry(concat):
    first, second = leaf(4), leaf(2)
    out = concat(first, second)
    # Sorted: (0,0) (0,2) (0,4) (1,1) (1,1) (1,6).
    out.backward(torch.tensor([1.0, 2, 3, 4, 5, 6]).double())
    assert first.grad.tolist() == [4, 2, 5, 1]
    assert second.grad.tolist() == [6, 3]


@concats
@pytest.mark.parametrize("which", [0, 1])
def test_concat_only_one_needs_a_gradient(concat, which):
    leaves = [leaf(4), leaf(2)]
    leaves[1 - which].requires_grad_(False)
    out = concat(*leaves)
    out.sum().backward()
    assert leaves[which].grad.tolist() == [1] * leaves[which].numel()
    assert leaves[1 - which].grad is None


@concats
def test_concat_without_gradients_has_no_graph(concat):
    with torch.no_grad():
        assert not concat(leaf(4), leaf(2)).requires_grad
    assert not concat(leaf(4).detach(), leaf(2).detach()).requires_grad


@concats
def test_concat_gradient_with_strides_and_no_entries(concat):
    first, second = leaf(4, 3), leaf(2, 3)
    grad = torch.randn(3, 6, dtype=torch.float64).t()
    assert not grad.is_contiguous()
    got = torch.autograd.grad(concat(first, second), (first, second), grad)
    want = torch.autograd.grad(
        concat(first, second), (first, second), grad.contiguous()
    )
    assert all(same_bits(a, b) for a, b in zip(got, want, strict=True))

    empty = torch.zeros(0, 2, dtype=torch.int64)
    none, some = leaf(0), leaf(4)
    values, _ = ops.sparse_concat([empty, FIRST], [none, some], [2, 3, 2, 3], 0)
    values.sum().backward()
    assert none.grad.shape == (0,)
    assert some.grad.tolist() == [1] * 4


# ------------------------------------------------------------ sparse_reshape


@dtypes
@dense_sizes
def test_reshape(dtype, dense):
    def reshape(values):
        triple = SparseTensor(FIRST, values, (2, 3, *dense))
        return tso.sparse_reshape(triple, (3, -1, *dense)).values * values

    check(reshape, leaf(4, *dense, dtype=dtype))


def test_reshape_gradient_is_one_to_one():
    rows = {(0, 5): 10.0, (2, 0): 20.0, (3, 4): 30.0}
    for order in ([0, 1, 2], [2, 0, 1]):
        chosen = [list(rows)[k] for k in order]
        values = leaf(3)
        triple = SparseTensor(torch.tensor(chosen), values, (4, 6))
        weights = torch.tensor([rows[row] for row in chosen]).double()
        (tso.sparse_reshape(triple, (3, -1)).values * weights).sum().backward()
        assert values.grad.tolist() == [rows[row] for row in chosen]


# ----------------------------------------------------- tensor_scatter_update

# Repeats, and rows 3 and 5 out of bounds.
ROWS = torch.tensor([[1], [0], [1], [4], [1], [-1]])
PLACES = torch.tensor([[1, 1], [0, 0], [1, 1], [1, 2], [0, 1], [2, -1]])


def scatter_raw(tensor, indices, updates):
    return ops.tensor_scatter_update(tensor, indices, updates, "IGNORE")


def scatter(tensor, indices, updates):
    return tso.tensor_scatter_update(
        tensor, indices, updates, bad_indices_policy="IGNORE"
    )


def scatter_in_place(tensor, indices, updates):
    out = tensor * 1
    result = tso.tensor_scatter_update_(
        out, indices, updates, bad_indices_policy="IGNORE"
    )
    assert result is out
    return result


scatters = pytest.mark.parametrize("scatter", [scatter_raw, scatter, scatter_in_place])


@scatters
@dtypes
@pytest.mark.parametrize(
    "shape, indices",
    [((3,), ROWS), ((3, 2), ROWS), ((3, 2), PLACES), ((3, 2, 2), PLACES)],
    ids=["elements", "rows", "elements-2d", "rows-2d"],
)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_scatter(scatter, dtype, shape, indices, index_dtype):
    indices = indices.to(index_dtype)
    tensor = leaf(*shape, dtype=dtype)
    updates = leaf(6, *shape[indices.shape[1] :], dtype=dtype)
    check(lambda t, u: scatter(t, indices, u), tensor, updates)


@scatters
def test_scatter_into_itself(scatter):
    check(lambda t: scatter(t * t, ROWS[:3], t), leaf(3))


@scatters
def test_scatter_gradient_goes_to_the_surviving_row(scatter):
    tensor, updates = leaf(3), leaf(3)
    out = scatter(tensor, torch.tensor([[1], [1], [2]]), updates)
    out.backward(torch.tensor([10.0, 20.0, 30.0]).double())
    assert out.tolist() == [tensor[0].item(), *updates[1:].tolist()]
    assert tensor.grad.tolist() == [10, 0, 0]
    assert updates.grad.tolist() == [0, 20, 30]


@scatters
@pytest.mark.parametrize("which", ["tensor", "updates"])
def test_scatter_only_one_needs_a_gradient(scatter, which):
    tensor, updates = leaf(3), leaf(2)
    (updates if which == "tensor" else tensor).requires_grad_(False)
    scatter(tensor, torch.tensor([[1], [1]]), updates).sum().backward()
    if which == "tensor":
        assert tensor.grad.tolist() == [1, 0, 1]
        assert updates.grad is None
    else:
        assert updates.grad.tolist() == [0, 1]
        assert tensor.grad is None


@scatters
def test_scatter_gradient_of_ignored_rows_is_zero(scatter):
    tensor, updates = leaf(2), leaf(3)
    scatter(tensor, torch.tensor([[5], [1], [-1]]), updates).sum().backward()
    assert tensor.grad.tolist() == [1, 0]
    assert updates.grad.tolist() == [0, 1, 0]


@scatters
def test_scatter_gradient_with_strides(scatter):
    tensor, updates = leaf(3, 4), leaf(6, 4)
    grad = torch.randn(4, 3, dtype=torch.float64).t()
    leaves = (tensor, updates)
    got = torch.autograd.grad(scatter(tensor, ROWS, updates), leaves, grad)
    want = torch.autograd.grad(
        scatter(tensor, ROWS, updates), leaves, grad.contiguous()
    )
    assert all(same_bits(a, b) for a, b in zip(got, want, strict=True))


@scatters
def test_scatter_gradient_of_an_expanded_loss(scatter):
    """sum() hands back one number with stride 0."""
    tensor, updates = leaf(3, 2), leaf(6, 2)
    scatter(tensor, ROWS, updates).sum().backward()
    assert tensor.grad.tolist() == [[0, 0], [0, 0], [1, 1]]
    assert updates.grad.sum(1).tolist() == [0, 2, 0, 0, 2, 0]


# ------------------------------------------------------------------ in place


def test_raw_in_place_refuses_gradients():
    indices, updates = torch.tensor([[1]]), torch.ones(1)
    for tensor, rows in [
        (torch.ones(2, requires_grad=True) * 2, updates),
        (torch.ones(2), updates.clone().requires_grad_()),
    ]:
        before = tensor.detach().clone()
        with pytest.raises(
            NotImplementedError, match=r"torch_sparse_ops\.tensor_scatter_update_ "
        ):
            ops.tensor_scatter_update_(tensor, indices, rows)
        assert same_bits(tensor.detach(), before)
        with torch.no_grad():
            ops.tensor_scatter_update_(tensor, indices, rows)
        assert tensor.tolist()[1] == 1


def test_in_place_on_a_leaf_is_refused_as_by_torch():
    tensor = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        tso.tensor_scatter_update_(tensor, torch.tensor([[1]]), torch.ones(1))
    with torch.no_grad():
        tso.tensor_scatter_update_(tensor, torch.tensor([[1]]), torch.zeros(1))
    assert tensor.tolist() == [1, 0, 1]


@pytest.mark.parametrize("needs_grad", [False, True])
def test_in_place_is_seen_by_what_was_saved(needs_grad):
    """A backward that saved the old elements fails instead of using the new ones."""
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # saves its result
    target = y if needs_grad else y.detach()
    tso.tensor_scatter_update_(target, torch.tensor([[1]]), torch.zeros(1))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_place_on_a_view_of_a_base():
    base = leaf(3, 2)
    scaled = base * 1
    updates = leaf(1)
    tso.tensor_scatter_update_(scaled[:, 0], torch.tensor([[1]]), updates)
    scaled.sum().backward()
    assert base.grad.tolist() == [[1, 1], [0, 1], [1, 1]]
    assert updates.grad.tolist() == [1]


def test_in_place_result_of_a_tensor_without_gradient():
    tensor, updates = torch.zeros(3), torch.ones(2, requires_grad=True)
    out = tso.tensor_scatter_update_(tensor, torch.tensor([[1], [1]]), updates)
    assert out is tensor
    assert tensor.requires_grad
    (tensor * 3).sum().backward()
    assert updates.grad.tolist() == [0, 3]
