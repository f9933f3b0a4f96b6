"""torch.func.vmap: equal, bit for bit, to a loop over the examples."""

import itertools

import pytest
import torch
from bits import same_bits
from torch.func import grad, jvp, vmap
from torch.utils import _pytree as pytree

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

ops = torch.ops.torch_sparse_ops

# Unsorted, with (1, 1) twice in the first.
FIRST = torch.tensor([[1, 1], [0, 2], [1, 1], [0, 0]])
SECOND = torch.tensor([[1, 3], [0, 1]])
# A repeat, and rows 3 and 5 out of bounds.
ROWS = torch.tensor([[1], [0], [1], [4], [1], [-1]])
PLACES = torch.tensor([[1, 1], [0, 0], [1, 1], [1, 2], [0, 1], [2, -1]])


def looped(function, in_dims, args):
    """What vmap must find: the function on each example, the results stacked."""
    batch = next(
        x.shape[d] for x, d in zip(args, in_dims, strict=True) if d is not None
    )
    results = [
        function(
            *(
                x if d is None else x.select(d, b)
                for x, d in zip(args, in_dims, strict=True)
            )
        )
        for b in range(batch)
    ]
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results)
    return [torch.stack(parts) for parts in zip(*results, strict=True)]


def check_vmap(function, in_dims, args):
    got = vmap(function, in_dims=in_dims)(*args)
    want = looped(function, in_dims, args)
    if isinstance(got, torch.Tensor):
        got, want = [got], [want]
    for g, w in zip(got, want, strict=True):
        assert same_bits(g, w)


def subsets(*dims):
    """Every choice of None or a dim for each argument, but not None for all."""
    return [d for d in itertools.product(*dims) if any(x is not None for x in d)]


def batched(x, dim, batch=3):
    """Examples of the shape of x, stacked along dim; shuffled along its rows."""
    if dim is None:
        return x
    examples = [x[torch.randperm(len(x))] for _ in range(batch)]
    place = dim if dim >= 0 else dim + x.dim() + 1
    return torch.stack(examples, place)


@pytest.mark.parametrize(
    "in_dims", subsets((None, 0, -1), (None, 0, 1, -1), (None, 0, 1)), ids=str
)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
def test_vmap_of_scatter(in_dims, index_dtype):
    for indices, shape in [(ROWS, (4, 2)), (PLACES, (4, 2)), (PLACES, (4, 2, 3))]:
        updates = torch.randn(6, *shape[indices.shape[1] :])
        args = torch.randn(shape), indices.to(index_dtype), updates
        args = [batched(x, d) for x, d in zip(args, in_dims, strict=True)]

        def call(tensor, indices, updates):
            return tso.tensor_scatter_update(
                tensor, indices, updates, bad_indices_policy="IGNORE"
            )

        check_vmap(call, in_dims, args)


@pytest.mark.parametrize("in_dims", subsets((0, 1, -1), (None, 0, -1), (None, 0)))
def test_vmap_of_scatter_in_place(in_dims):
    args = [torch.randn(4, 2), ROWS, torch.randn(6, 2)]
    args = [batched(x, d) for x, d in zip(args, in_dims, strict=True)]

    def call(tensor, indices, updates):
        return tso.tensor_scatter_update_(
            tensor, indices, updates, bad_indices_policy="IGNORE"
        )

    want = looped(lambda t, *rest: call(t.clone(), *rest), in_dims, args)
    assert same_bits(vmap(call, in_dims)(*args), want)
    # The argument itself has changed.
    assert same_bits(args[0].movedim(in_dims[0], 0), want)


@pytest.mark.parametrize("in_dims", subsets((None, 0, -1), (None, 0, 1)), ids=str)
@pytest.mark.parametrize("name", ["grad_tensor", "grad_updates"])
def test_vmap_of_scatter_gradients(name, in_dims):
    op = getattr(ops, f"_tensor_scatter_update_{name}")
    args = [torch.randn(4, 2), PLACES]
    check_vmap(op, in_dims, [batched(x, d) for x, d in zip(args, in_dims, strict=True)])


def test_vmap_of_a_batch_of_index_dimensions():
    tensor, updates = torch.randn(3, 4, 5), torch.randn(3, 2, 6, 5)
    indices = torch.randint(0, 4, (3, 2, 6, 1))
    check_vmap(tso.tensor_scatter_update, (0, 0, 0), (tensor, indices, updates))
    check_vmap(
        tso.tensor_scatter_update,
        (None, 1, 0),
        (tensor[0], indices.movedim(0, 1), updates),
    )


CONCAT_DIMS = subsets((None, 0, -1), (None, 1), (None, 0), (None, 0, -1))


@pytest.mark.parametrize("in_dims", CONCAT_DIMS, ids=str)
@pytest.mark.parametrize("axis", [0, 1, -2])
@pytest.mark.parametrize("dense", [(), (2,)], ids=str)
def test_vmap_of_concat(in_dims, axis, dense):
    args = [FIRST, SECOND, torch.randn(4, *dense), torch.randn(2, *dense)]
    args = [batched(x, d) for x, d in zip(args, in_dims, strict=True)]
    shapes = [2, 3, 2, 4]

    def call(first, second, *values):
        return ops.sparse_concat(
            [first, second], list(values), shapes, axis, True, False
        )

    check_vmap(call, in_dims, args)

    def transpose(first, second, grad_values):
        return ops._sparse_concat_grad_values(
            grad_values, [first, second], shapes, axis, True, False
        )

    dims = (*in_dims[:2], 0)
    check_vmap(transpose, dims, (*args[:2], torch.randn(3, 6, *dense)))
    if in_dims[:2] != (None, None):
        dims = (*in_dims[:2], None)
        check_vmap(transpose, dims, (*args[:2], torch.randn(6, *dense)))


@pytest.mark.parametrize("in_dim", [0, 1, -1])
def test_vmap_of_reshape(in_dim):
    check_vmap(
        lambda x: ops.sparse_reshape(x, [2, 3], [3, -1]),
        (in_dim,),
        (batched(FIRST, in_dim),),
    )


def test_vmap_where_the_volume_of_the_batch_is_too_large():
    """Each example has fewer than 2**63 elements, all of them together more."""
    shape = [2**31, 2**30]
    indices = torch.stack([FIRST, FIRST.flip(0)])
    values = torch.randn(2, 4)

    def call(i, v):
        return ops.sparse_concat([i, FIRST], [v, values[0]], shape * 2, 1)

    def transpose(i, g):
        return ops._sparse_concat_grad_values(g, [i], shape, 1, False, False)

    check_vmap(call, (0, 0), (indices, values))
    check_vmap(transpose, (0, 0), (indices, values))


def test_vmap_without_entries():
    none, values = torch.zeros(3, 0, 2).long(), torch.zeros(3, 0)

    def call(i, v):
        return ops.sparse_concat([i, i], [v, v], [2, 3] * 2, 0)

    check_vmap(call, (0, 0), (none, values))
    check_vmap(lambda i: ops.sparse_reshape(i, [0, 3], [3, -1]), (0,), (none,))
    check_vmap(
        lambda t, i, u: ops.tensor_scatter_update(t, i, u),
        (0, 0, 0),
        (torch.randn(3, 4), torch.zeros(3, 0, 1).long(), values),
    )


def test_nested_vmap():
    tensor = torch.randn(2, 3, 4)
    indices = torch.randint(0, 4, (3, 5, 1))
    updates = torch.randn(2, 5)
    got = vmap(vmap(tso.tensor_scatter_update, (0, 0, None)), (0, None, 0))(
        tensor, indices, updates
    )
    want = torch.stack(
        [
            torch.stack(
                [
                    tso.tensor_scatter_update(tensor[a, b], indices[b], updates[a])
                    for b in range(3)
                ]
            )
            for a in range(2)
        ]
    )
    assert same_bits(got, want)

    first = torch.stack([FIRST, FIRST.flip(0), FIRST.roll(1, 0)])
    values = torch.randn(2, 4)

    def concat(i, v):
        return ops.sparse_concat([i, SECOND], [v, v[:2]], [2, 3, 2, 4], 1)

    got = vmap(vmap(concat, (0, None)), (None, 0))(first, values)
    for a, b in itertools.product(range(2), range(3)):
        for g, w in zip(got, concat(first[b], values[a]), strict=True):
            assert same_bits(g[a, b], w)


# ------------------------------------------------------- triples in and out


def test_triples_go_in_and_out_of_vmap():
    values = torch.randn(3, 4)
    batch = SparseTensor(FIRST, torch.randn(4), (2, 3))
    over_values = SparseTensor(None, 0, (2, 3))
    inputs = pytree.tree_unflatten([FIRST, values], pytree.tree_structure(batch))

    def program(x):
        joined = tso.sparse_concat([x, batch], 1)
        return tso.sparse_reshape(joined, (4, -1)), joined.to_dense()

    out, dense = vmap(program, in_dims=(over_values,), out_dims=(0, 0))(inputs)
    assert isinstance(out, SparseTensor)
    assert out.dense_shape == (4, 3)
    for b in range(3):
        want, want_dense = program(SparseTensor(FIRST, values[b], (2, 3)))
        assert same_bits(out.values[b], want.values)
        assert same_bits(out.indices[b], want.indices)
        assert same_bits(dense[b], want_dense)


def test_triples_go_through_grad_and_jvp():
    x = SparseTensor(FIRST, torch.randn(4).double(), (2, 3))

    def loss(values):
        inner = SparseTensor(x.indices, values, x.dense_shape)
        return (tso.sparse_concat([inner, x], 0).values ** 2).sum()

    assert torch.allclose(grad(loss)(x.values), 2 * x.values)
    joined, tangents = jvp(
        lambda v: tso.sparse_concat([SparseTensor(FIRST, v, (2, 3)), x], 0),
        (x.values,),
        (torch.ones(4).double(),),
    )
    assert isinstance(joined, SparseTensor)
    assert tangents.values.sum() == 4
    assert joined.dense_shape == tangents.dense_shape == (4, 3)


def test_coo_tensors_in_func_grad():
    def loss(values):
        x = torch.sparse_coo_tensor(FIRST.t(), values, (2, 3))
        out = tso.sparse_reshape(tso.sparse_concat([x, x], 1), (-1,))
        return (out.to_dense() ** 2).sum()

    def dense_loss(values):
        x = torch.zeros(2, 3).double()
        x = x.index_put(tuple(FIRST.t()), values, accumulate=True)
        return 2 * (x**2).sum()

    values = torch.randn(4).double()
    assert torch.allclose(grad(loss)(values), grad(dense_loss)(values))
