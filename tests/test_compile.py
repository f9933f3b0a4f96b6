"""torch.compile(fullgraph=True) on triples and dense tensors equals eager."""

import pytest
import torch
from bits import same_bits
from torch._dynamo.testing import CompileCounterWithBackend

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

ops = torch.ops.torch_sparse_ops

pytestmark = pytest.mark.usefixtures("fresh_compile")

dynamics = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def compiled(function, backend="aot_eager", dynamic=None):
    return torch.compile(function, fullgraph=True, backend=backend, dynamic=dynamic)


def triple(nnz, shape=(8, 9), *, seed=0, dense=(), grad=False):
    g = torch.Generator().manual_seed(seed)
    indices = torch.stack(
        [torch.randint(size, (nnz,), generator=g) for size in shape], dim=1
    )
    values = torch.randn(nnz, *dense, generator=g, requires_grad=grad)
    return SparseTensor(indices, values, (*shape, *dense))


def strides(t):
    """Of the dimensions that have more than one place."""
    return [s for size, s in zip(t.shape, t.stride(), strict=True) if size > 1]


def same(a, b):
    """Bit for bit, for tensors, triples and whatever holds them."""
    flat_a, spec_a = torch.utils._pytree.tree_flatten(a)
    flat_b, spec_b = torch.utils._pytree.tree_flatten(b)
    assert spec_a == spec_b
    for x, y in zip(flat_a, flat_b, strict=True):
        if isinstance(x, torch.Tensor):
            assert same_bits(x, y)
            assert strides(x) == strides(y)
        else:
            assert x == y
    return True


def gradients(function, *args):
    """The results and the gradients of all values in the arguments."""
    leaves = [
        t
        for t in torch.utils._pytree.tree_leaves(args)
        if getattr(t, "requires_grad", 0)
    ]
    out = function(*args)
    floats = [t for t in torch.utils._pytree.tree_leaves(out) if t.is_floating_point()]
    loss = sum((t * torch.arange(t.numel()).reshape(t.shape)).sum() for t in floats)
    return out, torch.autograd.grad(loss, leaves)


# ------------------------------------------------------------------ programs


def concat(a, b):
    return tso.sparse_concat([a, b], 1)


def concat_expanding(a, b):
    return tso.sparse_concat([a, b], -2, expand_nonconcat_dims=True)


def reshape(a, b):
    return tso.sparse_reshape(a, (-1, 12)), tso.sparse_reshape(b, [9, 1, -1])


def all_three(a, b):
    """Feature blocks joined and flattened, then written into a memory."""
    flat = tso.sparse_reshape(tso.sparse_concat([a, b, a], 1), (-1,))
    memory = torch.zeros(flat.dense_shape)
    return flat, tso.tensor_scatter_update(memory, flat.indices, flat.values * 2)


PROGRAMS = {f.__name__: f for f in (concat, concat_expanding, reshape, all_three)}


@dynamics
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_triples(program, dynamic):
    args = [triple(7, grad=True), triple(6, seed=1, grad=True)]
    if program is concat_expanding:
        args[1] = triple(6, (5, 4), seed=1, grad=True)
    function = compiled(program, dynamic=dynamic)
    same(gradients(function, *args), gradients(program, *args))


def test_hybrid_triples():
    args = [triple(7, dense=(2,), grad=True), triple(6, seed=1, dense=(2,), grad=True)]
    same(gradients(compiled(concat), *args), gradients(concat, *args))


INDICES = torch.tensor([[2], [0], [2], [-1], [9], [0]])


def scatter(tensor, updates):
    return tso.tensor_scatter_update(
        tensor, INDICES, updates, bad_indices_policy="IGNORE"
    )


def scatter_in_place(tensor, updates):
    out = tensor * 2
    tso.tensor_scatter_update_(out, INDICES, updates, bad_indices_policy="IGNORE")
    return out * out


def scatter_from_itself(tensor, updates):
    rows = torch.arange(3)[:, None]
    return tso.tensor_scatter_update(tensor, rows, tensor[1:4]) + updates.sum()


SCATTERS = {f.__name__: f for f in (scatter, scatter_in_place, scatter_from_itself)}


@dynamics
@pytest.mark.parametrize("program", SCATTERS.values(), ids=SCATTERS)
def test_scatter(program, dynamic):
    args = torch.randn(5, 3, requires_grad=True), torch.randn(6, 3, requires_grad=True)
    function = compiled(program, dynamic=dynamic)
    same(gradients(function, *args), gradients(program, *args))


def test_in_place_changes_the_argument():
    def write(tensor, updates):
        tso.tensor_scatter_update_(tensor, INDICES[:3], updates)
        return tensor.sum()

    def write_raw(tensor, updates):
        ops.tensor_scatter_update_(tensor, INDICES[:3], updates)
        return tensor.sum()

    for program in (write, write_raw):
        eager, other = torch.zeros(5, 3), torch.zeros(5, 3)
        updates = torch.randn(3, 3)
        assert same(compiled(program)(other, updates), program(eager, updates))
        assert same_bits(other, eager)
        assert other[2].tolist() == updates[2].tolist()


def test_raw_operators():
    a, b = triple(7), triple(6, seed=1)

    def program(ia, va, ib, vb):
        values, indices = ops.sparse_concat([ia, ib], [va, vb], [8, 9, 8, 9], 1)
        return values, ops.sparse_reshape(indices, [8, 18], [-1, 3])

    args = a.indices, a.values, b.indices, b.values
    assert same(compiled(program)(*args), program(*args))


# ------------------------------------------------------- inductor, the default


@dynamics
def test_inductor(dynamic):
    def program(a, b, memory, updates):
        flat, _ = all_three(a, b)
        memory = memory * 2
        tso.tensor_scatter_update_(memory, INDICES[:3], updates)
        return flat.values.relu(), flat.indices + 1, memory

    args = (
        triple(7, grad=True),
        triple(6, seed=1, grad=True),
        torch.randn(5, 3, requires_grad=True),
        torch.randn(3, 3, requires_grad=True),
    )
    function = compiled(program, "inductor", dynamic)
    assert same(gradients(function, *args), gradients(program, *args))


# --------------------------------------------------------- how often, how large


def test_a_new_number_of_entries_compiles_at_most_once_more():
    counter = CompileCounterWithBackend("aot_eager")
    function = compiled(all_three, counter)
    for nnz in (5, 6, 7, 9, 30, 12):
        args = triple(nnz), triple(nnz + 2, seed=1)
        assert same(function(*args), all_three(*args))
    assert counter.frame_count == 2
    # torch specialises 0 and 1, and each number of inputs.
    for nnz in (0, 1, 0, 1):
        args = triple(nnz), triple(nnz, seed=1)
        assert same(function(*args), all_three(*args))
    assert counter.frame_count <= 4


def test_a_new_number_of_rows_compiles_at_most_once_more():
    def program(tensor, indices, updates):
        return tso.tensor_scatter_update(tensor, indices, updates)

    counter = CompileCounterWithBackend("aot_eager")
    function = compiled(program, counter)
    tensor = torch.randn(5, 3)
    for rows in (2, 3, 7, 8, 40):
        args = tensor, torch.arange(rows)[:, None] % 5, torch.randn(rows, 3)
        assert same(function(*args), program(*args))
    assert counter.frame_count == 2


def test_shapes_are_known_before_running():
    """An inferred size and an expanded one are plain ints while tracing."""
    seen = []

    def program(a, b):
        joined = tso.sparse_concat([a, b], 1, expand_nonconcat_dims=True)
        flat = tso.sparse_reshape(joined, (2, -1))
        seen.append((joined.dense_shape, flat.dense_shape))
        return torch.zeros(joined.dense_shape), torch.ones(flat.dense_shape)

    args = triple(7), triple(5, (6, 5))
    zeros, ones = compiled(program, "eager")(*args)
    assert zeros.shape == (8, 14)
    assert ones.shape == (2, 56)
    seen = []
    program(*args)
    assert seen == [((8, 14), (2, 56))]


def test_symbolic_sizes():
    """Sparse sizes taken from a dense tensor whose size changes."""

    def program(dense):
        rows = dense.shape[0]
        indices = torch.arange(3)[:, None].expand(3, 2)
        flat = ops.sparse_reshape(indices, [rows, 6], [-1, rows])
        both = ops.sparse_concat([flat, flat], [dense[:3]] * 2, [6, rows] * 2, 0)
        return both, ops.tensor_scatter_update(dense, indices[:, :1], dense[-3:])

    function = compiled(program, dynamic=True)
    for rows in (6, 8, 11):
        dense = torch.randn(rows, 2)
        assert same(function(dense), program(dense))


# -------------------------------------------------------------------- errors


def test_kernel_errors_are_those_of_eager():
    bad = SparseTensor(torch.tensor([[0, 1], [1, 9]]), torch.ones(2), (8, 9))
    tensor, updates = torch.zeros(3), torch.ones(2)
    rows = torch.tensor([[1], [3]])

    def update(tensor, rows, updates):
        return tso.tensor_scatter_update(tensor, rows, updates)

    def update_in_place(tensor, rows, updates):
        return tso.tensor_scatter_update_(tensor, rows, updates) + 1

    for program, args in [
        (concat, (triple(3), bad)),
        (lambda x: tso.sparse_reshape(x, (-1,)), (bad,)),
        (update, (tensor, rows, updates)),
        (update_in_place, (tensor, rows, updates)),
    ]:
        with pytest.raises(IndexError) as eager:
            program(*args)
        for backend in ("eager", "aot_eager"):
            with pytest.raises(IndexError) as late:
                compiled(program, backend)(*args)
            assert type(late.value) is type(eager.value)
            assert str(late.value) == str(eager.value)
    assert tensor.tolist() == [0, 0, 0]


def test_errors_while_tracing_keep_their_text():
    """torch wraps what Python raises under fullgraph; the sentence stays in it."""
    for program in (concat, lambda a, b: tso.sparse_reshape(a, (7,))):
        args = triple(3), triple(3, (7, 9))
        with pytest.raises(ValueError, match="must") as eager:
            program(*args)
        with pytest.raises(Exception) as late:
            compiled(program, "eager")(*args)
        assert str(eager.value) in str(late.value)


def test_coo_tensors_are_refused_by_torch_itself():
    coo = triple(3).to_torch()

    def program(x):
        return tso.sparse_reshape(x, (-1,))

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"(?i)sparse"):
        compiled(program, "eager")(coo)
    # Without fullgraph the graph breaks there and the result is right.
    out = torch.compile(program, backend="eager")(coo)
    assert torch.equal(out.to_dense(), coo.to_dense().reshape(-1))
