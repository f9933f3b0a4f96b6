"""What a CUDA call costs, counted where the CUDA sources run on the CPU: launches (with
CUB's calls as one each), copies and memsets, reads of the host, allocations."""

import ctypes
from typing import NamedTuple

import pytest
import torch
from cuda_on_host import build
from devices import coordinates, in_order


class Cost(NamedTuple):
    launches: int
    sorts: int = 0
    transfers: int = 0
    host_reads: int = 0
    allocations: int = 0


@pytest.fixture(scope="module")
def host():
    path = build.build_library()
    torch.ops.load_library(path)
    return ctypes.CDLL(str(path))


def cost(host, function, *args):
    counts = (ctypes.c_int64 * 5)()
    host.cuda_on_host_take_counts(counts)
    getattr(torch.ops.torch_sparse_ops_host, function)(*args)
    host.cuda_on_host_take_counts(counts)
    return Cost(*counts)


SHAPE = (50, 40)


def concat_args(inputs, axis, promise, dense=(), nnz=10):
    indices = [in_order(coordinates(nnz, SHAPE, i), SHAPE) for i in range(inputs)]
    indices = [i.t().contiguous().t() for i in indices]
    values = [torch.zeros(nnz, *dense) for _ in indices]
    return indices, values, [*SHAPE] * inputs, axis, False, promise


CONCATS = [
    ((2, 0, True), Cost(1, allocations=2)),
    ((64, 0, True), Cost(1, allocations=2)),
    ((65, 0, True), Cost(2, allocations=3)),
    ((1000, 0, True), Cost(7, allocations=3)),
    ((2, 1, True), Cost(3, transfers=1, allocations=3)),
    ((2, 1, True, (3,)), Cost(4, transfers=1, allocations=3)),
    ((3, 1, True), Cost(2, sorts=1, allocations=3)),
    ((3, 1, True, (3,)), Cost(3, sorts=1, allocations=3)),
    ((1000, 1, True), Cost(8, sorts=1, allocations=3)),
    ((2, 0, False), Cost(2, sorts=1, allocations=3)),
    ((1000, 0, False), Cost(8, sorts=1, allocations=3)),
]


@pytest.mark.parametrize("args, want", CONCATS, ids=str)
def test_concat(host, args, want):
    args = concat_args(*args)
    assert cost(host, "sparse_concat", *args) == want
    # The transpose makes one tensor for each input in place of two.
    indices, values, *rest = args
    got = cost(host, "_sparse_concat_grad_values", torch.cat(values), indices, *rest)
    assert got.allocations == want.allocations - 2 + len(indices)
    assert got.launches <= want.launches
    assert got[1:4] == want[1:4]


def test_inputs_of_any_layout_go_to_the_table_84_at_a_time(host):
    indices, *rest = concat_args(1000, 0, True)
    mixed = [t.contiguous() if i % 2 else t for i, t in enumerate(indices)]
    assert cost(host, "sparse_concat", mixed, *rest).launches == 13


@pytest.mark.parametrize("axis", [0, 1])
def test_no_entries_cost_nothing(host, axis):
    args = concat_args(3, axis, False, nnz=0)
    assert cost(host, "sparse_concat", *args) == Cost(0, allocations=2)


def test_reshape(host):
    args = (coordinates(100, SHAPE), SHAPE, (40, -1))
    assert cost(host, "sparse_reshape", *args) == Cost(1, allocations=1)


FILL = Cost(2, transfers=1, allocations=2)
COPY_AND_MOVE = Cost(3, transfers=2, allocations=2)
IN_PLACE = Cost(3, transfers=1, allocations=1)
TO_ROWS = Cost(3, transfers=1, allocations=2)
SCATTERS = {
    "many rows": ((100_000, 2), 20_000, FILL),
    "few slices": ((1000, 2), 10, FILL),
    "few rows": ((100_000, 2), 100, COPY_AND_MOVE),
    "wide slices": ((100_000, 16), 100, FILL),
}


@pytest.mark.parametrize("shape, rows, want", SCATTERS.values(), ids=SCATTERS)
def test_scatter(host, shape, rows, want):
    tensor, indices = torch.zeros(shape), torch.randint(shape[0], (rows, 1))
    updates = torch.zeros(rows, *shape[1:])
    args = (tensor, indices, updates)
    assert cost(host, "tensor_scatter_update", *args) == want
    assert cost(host, "tensor_scatter_update_", *args) == IN_PLACE
    grad_tensor, grad_updates = (
        cost(host, f"_tensor_scatter_update_grad_{name}", tensor, indices)
        for name in ("tensor", "updates")
    )
    assert grad_tensor == want
    assert grad_updates == TO_ROWS
    # A copy to the host, and the wait for it.
    checked = Cost(want.launches + 2, 0, want.transfers + 1, 2, want.allocations)
    assert cost(host, "tensor_scatter_update", *args, "ERROR") == checked
