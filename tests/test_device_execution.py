"""CUDA calls on streams, devices and in graphs; bad arguments; memory."""

import importlib.util
import random
import re

import pytest
import torch
from conftest import needs_cuda
from devices import assert_same, coordinates, in_order, leaf, on

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

pytestmark = [pytest.mark.cuda, needs_cuda]

ops = torch.ops.torch_sparse_ops


# -------------------------------------------------------- streams and devices


def every_operator(seed):
    """{name: (function, CPU arguments)}; the same sizes for every seed."""
    torch.manual_seed(seed)
    g = random.Random(seed)
    two = [in_order(coordinates(5000, (70, 80), seed + i), (70, 80)) for i in (0, 1)]
    two = [i.t().contiguous().t() for i in two]
    values = [torch.randn(5000), torch.randn(5000)]
    many = [coordinates(3, (5, 6), g.randrange(10**6)) for _ in range(200)]
    many_values = [torch.randn(3, 2) for _ in many]
    rows = torch.randint(300, (4000, 1))
    tensor, updates = torch.randn(300, 5), torch.randn(4000, 5)
    few = torch.randint(10**5, (50, 1))
    long_tensor = torch.randn(10**5)

    def concat(axis, promise):
        def call(indices, values, shape):
            return ops.sparse_concat(
                indices, values, shape * len(indices), axis, False, promise
            )

        return call

    def concat_grad(grad, indices):
        return ops._sparse_concat_grad_values(
            grad, indices, [70, 80] * 2, 1, False, True
        )

    def in_place(tensor, indices, updates):
        out = tensor.clone()
        ops.tensor_scatter_update_(out, indices, updates)
        return out

    return {
        "concat_copies": (concat(0, True), (two, values, [70, 80])),
        "concat_merge": (concat(1, True), (two, values, [70, 80])),
        "concat_sort": (concat(1, False), (two, values, [70, 80])),
        "concat_many": (concat(1, False), (many, many_values, [5, 6])),
        "concat_many_copies": (concat(0, True), (many, many_values, [5, 6])),
        "concat_grad": (concat_grad, (torch.randn(10_000, 3), two)),
        "reshape": (
            lambda indices: ops.sparse_reshape(indices, [70, 80], [-1, 14]),
            (two[0],),
        ),
        "scatter": (ops.tensor_scatter_update, (tensor, rows, updates)),
        "scatter_few": (ops.tensor_scatter_update, (long_tensor, few, torch.rand(50))),
        "scatter_": (in_place, (tensor, rows, updates)),
        "grad_tensor": (ops._tensor_scatter_update_grad_tensor, (tensor, rows)),
        "grad_updates": (ops._tensor_scatter_update_grad_updates, (tensor, rows)),
    }


OPERATORS = list(every_operator(0))
each_operator = pytest.mark.parametrize("name", OPERATORS)


@each_operator
def test_side_stream(name):
    """Work is queued behind what the current stream still has to do."""
    function, args = every_operator(1)[name]
    want = function(*args)
    source = on("cuda", args)
    late = torch.utils._pytree.tree_map_only(torch.Tensor, torch.zeros_like, source)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        copy_into(late, source)
        got = function(*late)
    stream.synchronize()
    assert_same(got, want)


def copy_into(tree, source):
    flat = torch.utils._pytree.tree_leaves(tree)
    for to, from_ in zip(flat, torch.utils._pytree.tree_leaves(source), strict=True):
        if isinstance(to, torch.Tensor):
            to.copy_(from_)


@each_operator
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_second_device(name):
    function, args = every_operator(2)[name]
    want = function(*args)
    assert torch.cuda.current_device() == 0
    got = function(*on("cuda:1", args))
    assert torch.cuda.current_device() == 0
    leaves = torch.utils._pytree.tree_leaves(got)
    assert all(t.device == torch.device("cuda:1") for t in leaves)
    assert_same(got, want)


@each_operator
def test_cuda_graph(name):
    """A replay reads the arguments anew, and nothing else of the host."""
    function, args = every_operator(3)[name]
    static = on("cuda", args)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = function(*static)
    del args
    for seed in (3, 4, 5):
        function, args = every_operator(seed)[name]
        copy_into(static, on("cuda", args))
        graph.replay()
        assert_same(got, function(*args))


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="torch.compile needs triton"
)
@pytest.mark.usefixtures("fresh_compile")
def test_compile_reduce_overhead():
    def program(indices, a, b, memory):
        inputs = [SparseTensor(indices, v, (70, 80)) for v in (a, b)]
        joined = tso.sparse_concat(inputs, 1, inputs_sorted=True)
        flat = tso.sparse_reshape(joined, (-1,))
        return tso.tensor_scatter_update(memory, flat.indices, flat.values * 2)

    compiled = torch.compile(program, mode="reduce-overhead", fullgraph=True)
    indices = in_order(coordinates(5000, (70, 80)), (70, 80))
    for seed in range(4):
        torch.manual_seed(seed)
        args = (indices, torch.randn(5000), torch.randn(5000), torch.zeros(70 * 160))
        leaves = [args[0].cuda()] + [leaf(t.cuda()) for t in args[1:]]
        torch.compiler.cudagraph_mark_step_begin()
        out = compiled(*leaves)
        got = [out.detach().clone(), *torch.autograd.grad(out.sum(), leaves[1:])]
        got = [t.clone() for t in got]
        leaves = [args[0]] + [leaf(t) for t in args[1:]]
        out = program(*leaves)
        assert_same(got, [out.detach(), *torch.autograd.grad(out.sum(), leaves[1:])])


# ------------------------------------------------------------- out of bounds


def usable():
    torch.cuda.synchronize()
    return torch.ones(3, device="cuda").sum().item() == 3


BAD_ROWS = torch.tensor([[1, 2], [4, 0], [0, -1], [3, 1], [2**32, 0], [-1, 5]])


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("policy", ["", "DEFAULT", "IGNORE", "ERROR"])
@pytest.mark.parametrize("in_place", [False, True])
def test_bad_rows(index_dtype, policy, in_place):
    rows = BAD_ROWS[[0, 1, 2, 3, 5]] if index_dtype == torch.int32 else BAD_ROWS
    tensor, updates = torch.zeros(4, 3), torch.arange(1.0, len(rows) + 1)
    rows = rows.to(index_dtype)
    args = on("cuda", (tensor, rows, updates))
    op = ops.tensor_scatter_update_ if in_place else ops.tensor_scatter_update
    if policy == "ERROR":
        with pytest.raises(IndexError) as want:
            op(tensor, rows, updates, policy)
        with pytest.raises(IndexError) as got:
            op(*args, policy)
        assert str(got.value) == str(want.value)
        assert "[4, 0] in row 1" in str(got.value)
        assert_same(args[0], torch.zeros(4, 3))
    else:
        got = op(*args, policy)
        want = ops.tensor_scatter_update(tensor, rows, updates, "IGNORE")
        assert_same(args[0] if in_place else got, want)
    assert usable()


def test_the_first_of_many_bad_rows_is_told():
    rows = torch.randint(1000, (10**6, 1), device="cuda")
    rows[[70_001, 500_000, 999_999]] = 1000
    with pytest.raises(IndexError, match=re.escape("[1000] in row 70001,")):
        ops.tensor_scatter_update(
            torch.zeros(1000, device="cuda"), rows, torch.rand(10**6).cuda(), "ERROR"
        )
    assert usable()


@pytest.mark.parametrize("promise", [False, True])
@pytest.mark.parametrize("inputs", [1, 2, 3, 100])
@pytest.mark.parametrize("axis", [0, 1])
def test_bad_coordinates_and_false_promises(inputs, axis, promise):
    """No access out of bounds; every entry comes out once, as it is."""
    extremes = torch.tensor([-(2**63), 2**63 - 1, -1, 0, 1, 10**18])
    indices = [extremes[torch.randint(6, (3000, 2))].cuda() for _ in range(inputs)]
    numbers = torch.arange(3000 * inputs, device="cuda")
    values, out = ops.sparse_concat(
        indices, list(numbers.split(3000)), [8, 8] * inputs, axis, False, promise
    )
    assert usable()
    assert torch.equal(values.sort().values, numbers)
    moved = torch.cat(indices).clone()
    moved[:, axis] += 8 * (numbers // 3000)
    assert torch.equal(out, moved[values])
    ops.sparse_reshape(indices[0], [8, 8], [4, 2, 8])
    assert usable()


def test_bounds_are_checked_with_the_invariants():
    bad = torch.tensor([[0, 9]], device="cuda")
    triple = SparseTensor(bad, torch.ones(1, device="cuda"), (2, 3))
    with torch.sparse.check_sparse_tensor_invariants(True):
        for call in (
            lambda: tso.sparse_concat([triple], 0),
            lambda: tso.sparse_reshape(triple, (3, 2)),
        ):
            with pytest.raises(IndexError, match="indices must be within the shape"):
                call()
    assert usable()


def test_every_argument_is_on_one_device():
    here, there = torch.zeros(2, 1, dtype=torch.int64), torch.zeros(2, 1).long().cuda()
    for call in (
        lambda: ops.sparse_concat([there, here], [there, here], [3, 3], 0),
        lambda: ops.sparse_concat([there, there], [there, here], [3, 3], 0),
        lambda: ops.tensor_scatter_update(there, here, there),
        lambda: ops.tensor_scatter_update(there, there, here),
        lambda: ops.tensor_scatter_update_(there, here, there),
        lambda: ops._sparse_concat_grad_values(there, [here], [3], 0, False, False),
        lambda: ops._tensor_scatter_update_grad_tensor(there, here),
        lambda: ops._tensor_scatter_update_grad_updates(there, here),
    ):
        with pytest.raises(ValueError, match="must be on one device") as error:
            call()
        assert "cpu for" in str(error.value)
        assert "cuda:0 for" in str(error.value)
    assert usable()


def test_in_place_aliases_act_as_copies():
    tensor = torch.arange(100_000, device="cuda")
    below = tensor[:-1].clone()
    ops.tensor_scatter_update_(tensor, tensor[1:, None], tensor[:-1])
    assert torch.equal(tensor[1:], below)
    assert tensor[0] == 0


# ------------------------------------------------------------ size and memory


def needs_free(gibibytes):
    free = torch.cuda.mem_get_info()[0]
    if free < gibibytes * 2**30:
        pytest.skip(
            f"needs {gibibytes} GiB of free device memory ({free >> 30} GiB are)"
        )


def test_scatter_past_2_31():
    needs_free(6)
    size = 2**31 + 10
    tensor = torch.zeros(size, dtype=torch.uint8, device="cuda")
    rows = torch.tensor([[2**31 + 5], [7], [2**31 + 5], [2**32 + 7]], device="cuda")
    updates = torch.tensor([8, 1, 9, 3], dtype=torch.uint8, device="cuda")
    out = ops.tensor_scatter_update(tensor, rows, updates)
    assert out[[7, 2**31 + 5]].tolist() == [1, 9]
    assert out.count_nonzero() == 2
    ops.tensor_scatter_update_(tensor, rows, updates)
    assert torch.equal(tensor, out)


def test_concat_past_2_31_entries():
    needs_free(48)
    nnz = 2**31 + 5
    indices = torch.zeros(1, 1, dtype=torch.int64, device="cuda").expand(nnz, 1)
    values = torch.zeros(nnz, dtype=torch.uint8, device="cuda")
    values[-1] = 1
    last = torch.tensor([[3]], device="cuda")
    out, moved = ops.sparse_concat(
        [indices, last], [values, last[0].to(torch.uint8)], [2, 4], 0, False, True
    )
    assert out[-3:].tolist() == [0, 1, 3]
    assert moved[-2:].tolist() == [[0], [5]]


def thousand_inputs(device):
    indices = [coordinates(i % 4, (5, 6), i).t().contiguous().t() for i in range(1000)]
    values = [torch.full((len(i),), float(n)) for n, i in enumerate(indices)]
    return on(device, (indices, values))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("promise", [False, True])
def test_1000_inputs(axis, promise):
    indices, values = thousand_inputs("cpu")
    if promise:
        indices = [in_order(i, (5, 6)).t().contiguous().t() for i in indices]
    args = (indices, values, [5, 6] * 1000, axis, False, promise)
    want = ops.sparse_concat(*args)
    args = on("cuda", args)
    assert_same(ops.sparse_concat(*args), want)
    torch.cuda.synchronize()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CUDA]
    ) as profile:
        ops.sparse_concat(*args)
        torch.cuda.synchronize()
    on_device = [e for e in profile.events() if e.device_type.name == "CUDA"]
    assert 1 <= len(on_device) <= 24


@each_operator
def test_memory_is_returned(name):
    function, args = every_operator(6)[name]
    args = on("cuda", args)
    function(*args)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    out = function(*args)
    kept = sum(
        (t.untyped_storage().nbytes() + 511) // 512 * 512
        for t in torch.utils._pytree.tree_leaves(out)
    )
    assert torch.cuda.memory_allocated() == before + kept
    del out
    assert torch.cuda.memory_allocated() == before
