"""CUDA equals the CPU bit for bit: results, gradients, every run."""

import re

import golden
import pytest
import samples
import torch
from bits import GRAD_DTYPES
from conftest import needs_cuda
from devices import assert_same, coordinates, in_order, leaf, on

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

pytestmark = [pytest.mark.cuda, needs_cuda]

ops = torch.ops.torch_sparse_ops

CONCATS = samples.concat_samples()
RESHAPES = samples.reshape_samples()
SCATTERS = samples.scatter_samples()


def parametrize(selection):
    return pytest.mark.parametrize("sample", selection, ids=lambda sample: sample.id)


def overlaps(t):
    return any(
        st == 0 and size > 1 for size, st in zip(t.shape, t.stride(), strict=True)
    )


# ------------------------------------------------------------------- samples

TRANSPOSES = [
    ops._tensor_scatter_update_grad_tensor,
    ops._tensor_scatter_update_grad_updates,
    ops._tensor_scatter_update_grads,
]


@parametrize(CONCATS)
def test_concat_samples(sample):
    want = ops.sparse_concat(*sample.args())
    args = on("cuda", sample.args())
    assert_same(ops.sparse_concat(*args), want)
    stored = [x.t() for x in args[0]]
    coo = ops._sparse_concat_coo(stored, *args[1:])
    assert_same((coo[0], coo[1].t(), coo[2]), (*want, sample.sorted))
    indices, _, *rest = sample.args()
    args = (want[0], indices, *rest)
    want = ops._sparse_concat_grad_values(*args)
    assert_same(ops._sparse_concat_grad_values(*on("cuda", args)), want)


@parametrize(RESHAPES)
def test_reshape_samples(sample):
    want = ops.sparse_reshape(*sample.args())
    assert_same(ops.sparse_reshape(*on("cuda", sample.args())), want)


@parametrize(SCATTERS)
def test_scatter_samples(sample):
    args = on("cuda", sample.args())
    assert_same(
        ops.tensor_scatter_update(*args), ops.tensor_scatter_update(*sample.args())
    )
    for op in TRANSPOSES:
        assert_same(op(*args[:2]), op(*sample.args()[:2]))


@parametrize([s for s in SCATTERS if not overlaps(s.tensor)])
def test_scatter_samples_in_place(sample):
    here, there = (on(device, sample.args()) for device in ("cpu", "cuda"))
    ops.tensor_scatter_update_(*here)
    ops.tensor_scatter_update_(*there)
    # The gaps between the elements are still what they were, too.
    storages = [args[0].untyped_storage().tolist() for args in (here, there)]
    assert storages[0] == storages[1]


# ------------------------------------------------------------------- golden


def raw_concat(x):
    flat = [size for shape in x.shapes for size in shape]
    return lambda device: ops.sparse_concat(
        on(device, x.indices), on(device, x.values), flat, x.axis, x.expand
    )


def raw_reshape(x):
    return lambda device: ops.sparse_reshape(
        on(device, x.indices), x.shape, x.new_shape
    )


def raw_scatter(x):
    return lambda device: ops.tensor_scatter_update(
        *on(device, (x.tensor, x.indices, x.updates)), x.policy
    )


def is_flat(shape):
    return isinstance(shape, list) and not any(isinstance(x, list) for x in shape)


def raw_calls():
    calls = {}
    for case in golden.load("sparse_concat"):
        if all(map(is_flat, case.inputs.shapes)):
            calls[f"concat-{case.id}"] = raw_concat(case.inputs)
    for case in golden.load("sparse_reshape"):
        if is_flat(case.inputs.shape) and is_flat(case.inputs.new_shape):
            calls[f"reshape-{case.id}"] = raw_reshape(case.inputs)
    for case in golden.load("tensor_scatter_update"):
        calls[f"scatter-{case.id}"] = raw_scatter(case.inputs)
    return calls


def outcome(call, device):
    """(result, None), or (None, the error)."""
    try:
        return call(device), None
    except (ValueError, IndexError) as error:
        return None, error


OUT_OF_BOUNDS = re.compile("indices must be within")


@pytest.mark.parametrize(
    "call", [pytest.param(c, id=i) for i, c in raw_calls().items()]
)
def test_golden(call):
    want, error = outcome(call, "cpu")
    got, cuda_error = outcome(call, "cuda")
    torch.cuda.synchronize()
    if error is None:
        assert cuda_error is None
        assert_same(got, want)
    elif cuda_error is None:
        # Coordinates are looked at on the CPU alone, unless the policy is "ERROR".
        assert OUT_OF_BOUNDS.search(str(error))
    else:
        assert type(cuda_error) is type(error)
        assert str(cuda_error) == str(error)


# ---------------------------------------------------------------- gradients


def gradients(function, *tensors):
    leaves = [leaf(t) for t in tensors]
    out = function(*leaves)
    weights = torch.arange(out.numel(), dtype=torch.float64, device=out.device)
    weights = weights.reshape(out.shape).to(out.dtype)
    return torch.autograd.grad(out, leaves, weights, create_graph=False)


@pytest.mark.parametrize("dtype", GRAD_DTYPES, ids=str)
@pytest.mark.parametrize("coo", [False, True])
def test_sparse_gradients(dtype, coo):
    indices = [coordinates(40, (7, 6), seed) for seed in range(3)]
    values = [torch.ones(40, 3, dtype=dtype) * seed for seed in range(3)]

    def function(*values):
        inputs = [
            SparseTensor(i.to(v.device), v, (7, 6, 3))
            for i, v in zip(indices, values, strict=True)
        ]
        if not coo:
            return tso.sparse_reshape(tso.sparse_concat(inputs, 1), (-1, 3, 3)).values
        out = tso.sparse_concat([x.to_torch() for x in inputs], 1)
        return SparseTensor.from_torch(tso.sparse_reshape(out, (-1, 3, 3))).values

    want = gradients(function, *values)
    assert_same(gradients(function, *on("cuda", values)), want)


@pytest.mark.parametrize("dtype", GRAD_DTYPES, ids=str)
@pytest.mark.parametrize("in_place", [False, True])
def test_scatter_gradients(dtype, in_place):
    tensor = torch.zeros(9, 5, 4, dtype=dtype)
    indices = coordinates(60, (9, 5))
    updates = torch.ones(60, 4, dtype=dtype)

    def function(tensor, updates):
        rows = indices.to(tensor.device)
        if in_place:
            return tso.tensor_scatter_update_(tensor * 2, rows, updates)
        return tso.tensor_scatter_update(tensor, rows, updates)

    want = gradients(function, tensor, updates)
    assert_same(gradients(function, tensor.cuda(), updates.cuda()), want)


# -------------------------------------------------------------------- large


def large_concat(inputs, shape, axis, promise, dense=(), nnz=300_007):
    indices = [coordinates(nnz + i, shape, seed=i) for i in range(inputs)]
    if promise:
        indices = [in_order(i, shape) for i in indices]
    # One row per dimension, as COO tensors store them.
    indices = [i.t().contiguous().t() for i in indices]
    values = [torch.randn(len(i), *dense) for i in indices]
    return indices, values, list(shape) * inputs, axis, False, promise


LARGE_CONCATS = {
    "copies": lambda: large_concat(3, (1000, 1000), 0, True),
    "merge": lambda: large_concat(2, (5000, 5000), 1, True),
    "merge-few-prefixes": lambda: large_concat(2, (3, 10**6), 1, True),
    "merge-rows": lambda: large_concat(2, (5000, 5000), 1, True, dense=(6,)),
    "prefix-sort": lambda: large_concat(5, (5000, 5000), 1, True),
    "prefix-sort-64-bit": lambda: large_concat(4, (2**20, 2**20, 9), 2, True),
    "full-sort": lambda: large_concat(3, (100, 1000), 0, False),
    "full-sort-64-bit": lambda: large_concat(3, (10**6, 10**6), 1, False),
    "full-sort-rows": lambda: large_concat(3, (10**6, 10**6), 1, False, dense=(3,)),
}


@pytest.mark.parametrize("make", LARGE_CONCATS.values(), ids=LARGE_CONCATS)
def test_large_concat(make):
    args = make()
    want = ops.sparse_concat(*args)
    assert_same(ops.sparse_concat(*on("cuda", args)), want)
    args = (want[0], args[0], *args[2:])
    want = ops._sparse_concat_grad_values(*args)
    assert_same(ops._sparse_concat_grad_values(*on("cuda", args)), want)


@pytest.mark.parametrize(
    "shape, depth, rows",
    [
        ((10**6,), 1, 10**6),
        ((10**6,), 1, 1000),
        ((100, 10**4, 2), 2, 10**6),
        ((10**5, 64), 1, 10**5),
        ((10**5, 64), 1, 100),
        ((10, 100_003), 1, 50),
        ((2, 3), 2, 10**6),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.complex128])
def test_large_scatter(shape, depth, rows, dtype):
    indices = coordinates(rows, shape[:depth]) - 1  # some out of bounds
    tensor = torch.randn(shape).mul(100).to(dtype)
    updates = torch.randn(rows, *shape[depth:]).mul(100).to(dtype)
    args = (tensor, indices, updates, "IGNORE")
    want = ops.tensor_scatter_update(*args)
    args = on("cuda", args)
    assert_same(ops.tensor_scatter_update(*args), want)
    ops.tensor_scatter_update_(*args)
    assert_same(args[0], want)
    for op in TRANSPOSES:
        assert_same(op(*args[:2]), op(want, indices))


@pytest.mark.parametrize(
    "shape, target", [((999, 1001), (1001, 999)), ((64, 128), (8192,))]
)
def test_large_reshape(shape, target):
    for nnz in (10**6, 10**6 + 1):
        indices = coordinates(nnz, shape).t().contiguous().t()
        want = ops.sparse_reshape(indices, shape, target)
        assert_same(ops.sparse_reshape(indices.cuda(), shape, target), want)


def test_100_runs_are_identical():
    rows = torch.randint(1000, (200_000, 1))
    updates = torch.arange(200_000.0)
    tensor = torch.zeros(1000)
    want = ops.tensor_scatter_update(tensor, rows, updates)
    concat = large_concat(3, (7, 9), 1, False, nnz=50_000)
    want_concat = ops.sparse_concat(*concat)
    args = on("cuda", (tensor, rows, updates))
    concat = on("cuda", concat)
    for _ in range(100):
        assert_same(ops.tensor_scatter_update(*args), want)
        assert_same(ops.sparse_concat(*concat), want_concat)


def test_deterministic_mode(deterministic):
    args = on("cuda", (torch.zeros(50), torch.randint(50, (999, 1)), torch.rand(999)))
    want = ops.tensor_scatter_update(*on("cpu", args))
    assert_same(ops.tensor_scatter_update(*args), want)
