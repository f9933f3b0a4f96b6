"""The CUDA kernels, run on the CPU, equal the CPU kernels bit for bit in every order
of threads. cuda_on_host/README.md says how that works and what it cannot show."""

import os

import golden
import pytest
import torch
from bits import as_bytes, duplicate, same_bits
from cuda_on_host import build
from cuda_on_host.operators import ORDERS, Host
from samples import (
    concat_samples,
    make_concat,
    make_scatter,
    reshape_samples,
    scatter_samples,
)
from told import told

import torch_sparse_ops  # noqa: F401  (loads the CPU kernels)

cpu = torch.ops.torch_sparse_ops

pytestmark = pytest.mark.skipif(bool(build.LACKS), reason=build.LACKS)


@pytest.fixture(scope="session")
def library():
    # Set by sanitize.py, which also loads the sanitizer before Python.
    asan = os.environ.get("CUDA_ON_HOST_SANITIZER") == "address"
    return Host(build.build_library(build.ASAN if asan else build.PLAIN))


@pytest.fixture
def host(library):
    library.set_order("forward")
    library.counts()
    return library


def cases(items):
    items = list(items)
    return pytest.mark.parametrize("case", items, ids=[item.id for item in items])


def as_list(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)


def strides(result):
    return [t.stride() for t in as_list(result)]


def assert_same(got, want, order="forward"):
    for i, (a, b) in enumerate(zip(as_list(got), as_list(want), strict=True)):
        assert same_bits(a, b), f"result {i} in the order {order}"


def assert_same_call(host, name, *args):
    """The same results as on the CPU, in every order, or the same error."""
    try:
        want = getattr(cpu, name)(*args)
    except (ValueError, IndexError):
        assert told(getattr(host.ops, name), *args) == told(getattr(cpu, name), *args)
        return
    for order in ORDERS:
        host.set_order(order)
        got = getattr(host.ops, name)(*args)
        assert_same(got, want, order)
        assert strides(got) == strides(want)


def out_of_bounds(error):
    return error.startswith("IndexError") and "must be within" in error


# ------------------------------------------------------------------ golden cases


def is_flat(shape):
    return isinstance(shape, list) and not any(isinstance(x, list) for x in shape)


def assert_fails_alike(host, name, *args):
    """An error of the CPU is one here. Coordinates out of bounds are none, unless asked
    for: the device ignores them, or makes something of them that no test looks at."""
    error = told(getattr(cpu, name), *args)
    op = getattr(host.ops, name)
    if out_of_bounds(error) and args[-1] != "ERROR":
        op(*args)
    else:
        assert told(op, *args) == error


@cases(
    case
    for case in golden.load("sparse_concat")
    if all(map(is_flat, case.inputs.shapes))
)
def test_golden_concat(host, case):
    x = case.inputs
    flat = [size for shape in x.shapes for size in shape]
    args = (x.indices, x.values, flat, x.axis, x.expand)
    if not case.ok:
        assert_fails_alike(host, "sparse_concat", *args)
        return
    want = (case.expected.values, case.expected.indices)
    sorted_inputs = all(i.tolist() == sorted(i.tolist()) for i in x.indices)
    for promise in {False, sorted_inputs}:
        assert_same(host.ops.sparse_concat(*args, promise), want)
        if case.grad:
            grads = host.ops._sparse_concat_grad_values(
                case.grad.upstream, x.indices, flat, x.axis, x.expand, promise
            )
            assert_same(grads, case.grad.values)


@cases(
    case
    for case in golden.load("sparse_reshape")
    if is_flat(case.inputs.shape) and is_flat(case.inputs.new_shape)
)
def test_golden_reshape(host, case):
    args = (case.inputs.indices, case.inputs.shape, case.inputs.new_shape)
    if case.ok:
        assert_same(host.ops.sparse_reshape(*args), case.expected.indices)
    else:
        assert_fails_alike(host, "sparse_reshape", *args)


@cases(golden.load("tensor_scatter_update"))
def test_golden_scatter(host, case):
    x = case.inputs
    args = (x.tensor, x.indices, x.updates, x.policy)
    out = x.tensor.clone()
    if not case.ok:
        assert_fails_alike(host, "tensor_scatter_update", *args)
        assert_fails_alike(host, "tensor_scatter_update_", out, *args[1:])
        return
    assert_same(host.ops.tensor_scatter_update(*args), case.expected.output)
    host.ops.tensor_scatter_update_(out, *args[1:])
    assert_same(out, case.expected.output)
    if case.grad:
        upstream = case.grad.upstream
        transposes = (
            host.ops._tensor_scatter_update_grad_tensor(upstream, x.indices),
            host.ops._tensor_scatter_update_grad_updates(upstream, x.indices),
        )
        assert_same(transposes, (case.grad.tensor, case.grad.updates))


# ------------------------------------------------------- samples, in every order


# Two sorted inputs are merged, in more pieces than there are blocks.
MERGED = [
    make_concat(
        f"merged-{nnz}", [(70, 9)] * 2, 1, nnz=nnz, order="sorted", promise=True
    )
    for nnz in ([1, 1], [300, 2], [1, 4_097], [2_048, 2_048], [5_000, 9_000])
]


# The descriptions of so many inputs travel in several launches.
MANY = [
    make_concat(f"many-{layout}", [(9, 9)] * 700, 1, nnz=[3, 0, 5, 1] * 175, **layouts)
    for layout, layouts in {
        "rows": {},
        "columns": {"index_layout": "column_major"},
        "gaps": {"index_layout": "spaced"},
    }.items()
]


@cases(concat_samples() + MERGED + MANY)
def test_concat(host, case):
    indices, values, *rest = case.args()
    assert_same_call(host, "sparse_concat", indices, values, *rest)
    want = cpu.sparse_concat(indices, values, *rest)
    grad = want[0]
    assert_same_call(host, "_sparse_concat_grad_values", grad, indices, *rest)
    stored = [x.t() for x in indices]
    got_values, got_indices, strict = host.ops._sparse_concat_coo(stored, values, *rest)
    assert_same((got_values, got_indices.t()), want)
    assert strict is case.sorted
    assert host.counts()["host_reads"] == 0


@cases(reshape_samples())
def test_reshape(host, case):
    assert_same_call(host, "sparse_reshape", *case.args())
    assert host.counts()["host_reads"] == 0


@cases(scatter_samples())
def test_scatter(host, case):
    tensor, indices, _, policy = case.args()
    assert_same_call(host, "tensor_scatter_update", *case.args())
    assert_same_call(host, "_tensor_scatter_update_grad_tensor", tensor, indices)
    assert_same_call(host, "_tensor_scatter_update_grad_updates", tensor, indices)
    assert_same_call(host, "_tensor_scatter_update_grads", tensor, indices)
    assert (host.counts()["host_reads"] > 0) == (policy == "ERROR" and len(indices) > 0)


@cases(scatter_samples())
def test_scatter_in_place(host, case):
    want, rest = duplicate(case.tensor), case.args()[1:]
    try:
        cpu.tensor_scatter_update_(want, *rest)
    except ValueError:  # the tensor overlaps itself
        error = told(cpu.tensor_scatter_update_, case.tensor, *rest)
        assert told(host.ops.tensor_scatter_update_, case.tensor, *rest) == error
        return
    for order in ORDERS:
        host.set_order(order)
        out = duplicate(case.tensor)
        host.ops.tensor_scatter_update_(out, *rest)
        assert_same(out, want, order)


MISALIGNED = [torch.uint8, torch.int16, torch.float32, torch.complex128]


def shifted(t):
    """The same tensor, contiguous, one element further on in memory."""
    room = torch.empty(t.numel() + 1, dtype=t.dtype)
    return room[1:].view(t.shape).copy_(t)


@pytest.mark.parametrize("dtype", MISALIGNED)
@pytest.mark.parametrize("dense", [(), (16,)])
@pytest.mark.parametrize("promise", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_concat_misaligned(host, axis, promise, dense, dtype):
    options = {"nnz": 70, "dtype": dtype, "dense": dense, "order": "sorted"}
    case = make_concat("", [(9, 9)] * 3, axis, **options)
    indices = [shifted(t) for t in case.indices]
    rest = (*case.args()[2:-1], promise)
    values = [shifted(case.values[0]), *case.values[1:]]
    assert_same_call(host, "sparse_concat", indices, values, *rest)
    grad = shifted(cpu.sparse_concat(indices, values, *rest)[0])
    assert_same_call(host, "_sparse_concat_grad_values", grad, indices, *rest)


@pytest.mark.parametrize("nnz", [64, 65])
def test_reshape_misaligned(host, nnz):
    (case,) = (s for s in reshape_samples() if s.id == "transposed-sizes")
    rows = case.indices.repeat(nnz, 1)[:nnz]
    for indices in (shifted(rows), shifted(rows.t()).t()):
        assert_same_call(host, "sparse_reshape", indices, case.shape, case.new_shape)


@pytest.mark.parametrize("dtype", MISALIGNED)
@pytest.mark.parametrize("width", [(), (16,)])
def test_scatter_misaligned(host, width, dtype):
    case = make_scatter("", (40, *width), 1, (30,), dtype=dtype)
    tensor, indices, updates, _ = case.args()
    for at in range(3):
        args = [tensor, indices, updates]
        args[at] = shifted(args[at])
        assert_same_call(host, "tensor_scatter_update", *args)
        transpose = (args[0], args[1])
        assert_same_call(host, "_tensor_scatter_update_grad_tensor", *transpose)
        assert_same_call(host, "_tensor_scatter_update_grad_updates", *transpose)
        want, got = shifted(tensor), shifted(tensor)
        cpu.tensor_scatter_update_(want, *args[1:])
        host.ops.tensor_scatter_update_(got, *args[1:])
        assert_same(got, want)


def test_updates_and_indices_that_are_the_tensor(host):
    tensor = torch.arange(12).reshape(6, 2) % 6
    for args in [
        lambda t: (t, torch.tensor([[5], [0], [1]]), t[1:4]),
        lambda t: (t, t[:, :1], torch.arange(12).reshape(6, 2)),
    ]:
        want = tensor.clone()
        cpu.tensor_scatter_update_(*args(want))
        for order in ORDERS:
            host.set_order(order)
            out = tensor.clone()
            host.ops.tensor_scatter_update_(*args(out))
            assert_same(out, want, order)


# --------------------------------------- coordinates out of bounds, false promises

BAD = [-1, 5, -(2**63), 2**63 - 1, 2**32, -7]


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("order", ORDERS)
def test_scatter_out_of_bounds(host, index_dtype, order):
    rows = [i % 5 for i in range(600)]
    limits = torch.iinfo(index_dtype)
    for place, bad in zip(range(37, 600, 41), BAD * 3, strict=False):
        rows[place] = max(limits.min, min(limits.max, bad))
    indices = torch.tensor(rows, dtype=index_dtype)[:, None]
    tensor, updates = torch.zeros(5), torch.arange(1.0, 601.0)
    host.set_order(order)
    want = cpu.tensor_scatter_update(tensor, indices, updates, "IGNORE")
    for policy in ("", "DEFAULT", "IGNORE"):
        got = host.ops.tensor_scatter_update(tensor, indices, updates, policy)
        assert_same(got, want)
    out = tensor.clone()
    for op in ("tensor_scatter_update", "tensor_scatter_update_"):
        args = (out, indices, updates, "ERROR")
        error = told(getattr(cpu, op), *args)
        assert "in row 37" in error
        assert told(getattr(host.ops, op), *args) == error
    assert_same(out, tensor)


@pytest.mark.parametrize("order", ORDERS)
def test_reshape_out_of_bounds(host, order):
    """Entries within bounds are right whatever the others are."""
    indices = torch.stack([torch.arange(700) % 4, torch.arange(700) % 6], 1)
    want = cpu.sparse_reshape(indices, [4, 6], [3, 8])
    spoilt = torch.arange(3, 700, 13)
    bad = indices.clone()
    bad[spoilt, 0] = torch.tensor(BAD).repeat(9)[: len(spoilt)]
    host.set_order(order)
    got = host.ops.sparse_reshape(bad, [4, 6], [3, 8]).clone()
    got[spoilt] = want[spoilt]
    assert_same(got, want)


def entries(values, indices):
    return sorted(zip(indices.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("inputs, nnz", [(1, 700), (2, 7000), (3, 700), (70, 40)])
def test_concat_false_promise(host, axis, inputs, nnz, order):
    """Unsorted inputs that are said to be sorted: each entry comes up once."""
    case = make_concat("", [(40, 30)] * inputs, axis, nnz=nnz)
    args = (*case.args()[:-1], True)
    host.set_order(order)
    values, indices = host.ops.sparse_concat(*args)
    want_values, want_indices = cpu.sparse_concat(*args)
    both = [as_bytes(values), as_bytes(want_values)]
    assert entries(both[0], indices) == entries(both[1], want_indices)
    grads = host.ops._sparse_concat_grad_values(want_values, args[0], *args[2:])
    assert entries(as_bytes(torch.cat(grads)), torch.zeros_like(indices)) == entries(
        as_bytes(torch.cat(case.values)), torch.zeros_like(indices)
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("promise", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_concat_out_of_bounds(host, axis, promise, order):
    """As many entries come out as went in, and nothing else is touched."""
    case = make_concat("", [(40, 30)] * 3, axis, nnz=900)
    for indices in case.indices:
        spoilt = torch.arange(5, 900, 7)
        indices[spoilt, axis] = torch.tensor(BAD).repeat(22)[: len(spoilt)]
    host.set_order(order)
    args = (*case.args()[:-1], promise)
    values, indices = host.ops.sparse_concat(*args)
    rows = as_bytes(values).tolist()
    assert sorted(rows) == sorted(as_bytes(torch.cat(case.values)).tolist())
    grads = host.ops._sparse_concat_grad_values(values, args[0], *args[2:])
    assert_same(grads, case.values)


# ------------------------------------------------------------- what a call costs


def calls_of(host, call, *args):
    host.counts()
    call(*args)
    return host.counts()


@pytest.mark.parametrize("promise", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_launches_do_not_follow_the_inputs(host, axis, promise):
    def cost(inputs):
        case = make_concat("", [(9, 9)] * inputs, axis, nnz=3, order="sorted")
        args = (*case.args()[:-1], promise)
        return calls_of(host, host.ops.sparse_concat, *args)

    few, many = cost(3), cost(1000)
    assert many["launches"] <= few["launches"] + 1000 // 100
    for name in ("device_wide", "transfers", "host_reads"):
        assert many[name] <= few[name]
    assert many["allocations"] <= 3  # values, indices, one workspace


def test_one_workspace(host):
    case = make_concat("", [(9, 9)] * 3, 1, nnz=50)
    grad = cpu.sparse_concat(*case.args())[0]
    args = (grad, case.indices, *case.args()[2:])
    cost = calls_of(host, host.ops._sparse_concat_grad_values, *args)
    assert cost["allocations"] <= 3 + 1
    tensor, indices = torch.zeros(1000, 3), torch.zeros(50, 1, dtype=torch.int64)
    args = (tensor, indices, torch.ones(50, 3))
    cost = calls_of(host, host.ops.tensor_scatter_update, *args)
    assert cost["allocations"] <= 1 + 1
    cost = calls_of(host, host.ops.tensor_scatter_update_, *args)
    assert cost["allocations"] <= 1
