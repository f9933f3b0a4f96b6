"""tensor_scatter_update and its in-place form: results, winners, bounds, strides."""

import re
from pathlib import Path

import pytest
import samples
import torch
from bits import duplicate, name_of, same_bits, shares_memory

import torch_sparse_ops as tso
from torch_sparse_ops import _reference
from torch_sparse_ops import tensor_scatter_update as update

ops = torch.ops.torch_sparse_ops

SAMPLES = samples.scatter_samples()


def overlaps(t):
    return t.numel() > 1 and any(
        stride == 0 and size > 1
        for size, stride in zip(t.shape, t.stride(), strict=True)
    )


# ------------------------------------------------------- against the reference


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.id)
def test_equals_reference(sample, device):
    want = _reference.tensor_scatter_update(*sample.args())
    sample = sample.to(device)
    before = duplicate(sample.tensor)
    out = ops.tensor_scatter_update(*sample.args())
    assert same_bits(out.cpu(), want)
    assert out.is_contiguous()
    assert not shares_memory(out, sample.tensor)
    assert same_bits(sample.tensor, before)


@pytest.mark.parametrize(
    "sample", [s for s in SAMPLES if not overlaps(s.tensor)], ids=lambda s: s.id
)
def test_in_place_equals_reference(sample, device):
    want = _reference.tensor_scatter_update(*sample.args())
    tensor, indices, updates, policy = sample.to(device).args()
    tensor = duplicate(tensor)
    storage, version = tensor.untyped_storage(), tensor._version
    before = storage.clone()
    assert ops.tensor_scatter_update_(tensor, indices, updates, policy) is None
    assert same_bits(tensor.cpu(), want)
    assert tensor._version == version + 1
    if storage.nbytes() > tensor.numel() * tensor.itemsize:
        # With the old elements back, every byte between them is the old one too.
        tensor.copy_(sample.tensor)
        assert storage.tolist() == before.tolist()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.id)
def test_gradients_equal_reference(sample, device):
    grad, indices, _, _ = sample.args()
    want_tensor = _reference.tensor_scatter_update_grad_tensor(grad, indices)
    want_updates = _reference.tensor_scatter_update_grad_updates(grad, indices)
    grad, indices = grad.to(device), indices.to(device)
    both = ops._tensor_scatter_update_grads(grad, indices)
    for got, want in [
        (ops._tensor_scatter_update_grad_tensor(grad, indices), want_tensor),
        (ops._tensor_scatter_update_grad_updates(grad, indices), want_updates),
        (both[0], want_tensor),
        (both[1], want_updates),
    ]:
        assert same_bits(got.cpu(), want)
        assert got.is_contiguous()
        assert not shares_memory(got, grad)


# --------------------------------------------------------------- by hand


@pytest.fixture(params=["functional", "in_place"])
def call(request):
    """Either form of the operator, as a function of fresh arguments."""
    if request.param == "functional":
        return update

    def in_place(tensor, indices, updates, **policy):
        out = tso.tensor_scatter_update_(tensor, indices, updates, **policy)
        assert out is tensor
        return out

    return in_place


def test_last_update_wins(call, device):
    out = call(
        torch.arange(1, 10, device=device),
        torch.tensor([[0], [1], [1], [1], [2]], device=device),
        torch.tensor([11, 12, 13, 14, 15], device=device),
    )
    assert out.tolist() == [11, 14, 15, 4, 5, 6, 7, 8, 9]
    out = call(
        torch.arange(5.0, device=device),
        torch.tensor([[0], [1], [0], [1], [0], [1]], device=device),
        torch.arange(2.0, 8.0, device=device),
    )
    assert out.tolist() == [6, 7, 2, 3, 4]


def test_slice_is_written_whole(call, device):
    rows = torch.tensor([1.0, 2.0, 3.0], device=device)
    out = call(
        torch.zeros(2, 4, device=device),
        torch.tensor([[0], [0], [0]], device=device),
        rows[:, None].expand(3, 4),
    )
    assert out.tolist() == [[3.0] * 4, [0.0] * 4]
    out = call(
        torch.zeros(3, 2, device=device),
        torch.tensor([[1], [0], [1]], device=device),
        torch.tensor([[1.0, 2], [3, 4], [5, 6]], device=device),
    )
    assert out.tolist() == [[3, 4], [5, 6], [0, 0]]


def test_wide_rows_repeated_often(device):
    """Every winning row is whole, whatever thread wrote the ones before it."""
    updates = torch.arange(10_000, device=device)[:, None].expand(10_000, 4096)
    indices = torch.arange(10_000, device=device)[:, None] % 3
    zeros = torch.zeros(3, 4096, dtype=torch.int64, device=device)
    out = update(zeros, indices, updates)
    assert out.min(1).values.tolist() == [9999, 9997, 9998]
    assert out.max(1).values.tolist() == [9999, 9997, 9998]


def test_several_index_dimensions(call, device):
    out = call(
        torch.arange(12, device=device).reshape(2, 3, 2),
        torch.tensor([[[0, 2]], [[1, 0]]], device=device),
        torch.tensor([[[90, 91]], [[92, 93]]], device=device),
    )
    assert out.tolist() == [
        [[0, 1], [2, 3], [90, 91]],
        [[92, 93], [8, 9], [10, 11]],
    ]
    grid = [[[row, column] for column in range(2)] for row in range(3)]
    out = call(
        torch.zeros(3, 4, device=device),
        torch.tensor(grid, device=device),
        torch.tensor([[1.0, 2], [3, 4], [5, 6]], device=device),
    )
    assert out.tolist() == [[1, 2, 0, 0], [3, 4, 0, 0], [5, 6, 0, 0]]


@pytest.mark.parametrize(
    "shape, index_shape, update_shape",
    [((3,), (0, 1), (0,)), ((3, 2), (0, 2), (0,)), ((3, 2), (4, 0, 1), (4, 0, 2))],
    ids=str,
)
def test_no_updates(call, shape, index_shape, update_shape, device):
    tensor = torch.rand(shape, device=device)
    before = tensor.clone()
    indices = torch.zeros(index_shape, dtype=torch.int64, device=device)
    out = call(tensor, indices, torch.zeros(update_shape, device=device))
    assert same_bits(out, before)
    assert (out is tensor) == shares_memory(out, tensor)

    leaf = tensor.clone().requires_grad_()
    updates = torch.zeros(update_shape, device=device, requires_grad=True)
    update(leaf, indices, updates).backward(before)
    assert same_bits(leaf.grad, before)
    assert updates.grad.shape == update_shape


def test_zero_width_and_one_element(call, device):
    out = call(
        torch.zeros(10, 0, device=device),
        torch.tensor([[9]], device=device),
        torch.zeros(1, 0, device=device),
    )
    assert out.shape == (10, 0)
    out = call(
        torch.zeros(2, 1, device=device),
        torch.tensor([[1]], device=device),
        torch.tensor([[7.0]], device=device),
    )
    assert out.tolist() == [[0], [7]]


def test_result_is_never_the_input(device):
    tensor = torch.arange(4.0, device=device)
    for rows in ([], [1], [0, 1, 2, 3]):
        indices = torch.tensor(rows, dtype=torch.int64, device=device).reshape(-1, 1)
        out = update(tensor, indices, tensor[indices[:, 0]])
        assert same_bits(out, tensor)
        out.fill_(7)
        assert tensor.tolist() == [0, 1, 2, 3]


def test_special_values(call, device):
    patterns = [0x7FC0BEEF, -0x00000001, 0x7F800000, -0x80000000]  # NaNs, inf, -0.0
    special = torch.tensor(patterns, dtype=torch.int32, device=device)
    special = special.view(torch.float32)
    indices = torch.tensor([[3], [0]], device=device)
    out = call(special.clone(), indices, special[:2])
    want = [patterns[1], patterns[1], patterns[2], patterns[0]]
    assert out.view(torch.int32).tolist() == want


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float64], ids=name_of)
def test_lazy_conjugate_and_negative(call, dtype):
    x = torch.randn(4, 2, dtype=torch.complex128).conj()
    tensor = x.imag if dtype == torch.float64 else x.to(torch.complex64).conj()
    assert tensor.is_neg() or tensor.is_conj()
    indices = torch.tensor([[2], [0], [2]])
    want = _reference.tensor_scatter_update(tensor, indices, tensor[:3])
    got = call(tensor, indices, tensor[:3].clone())
    assert torch.equal(got, want)


# ------------------------------------------------------------------- strides


def test_strides_are_honoured(device):
    updates = torch.tensor([[1, 2, 3], [4, 5, 6]], device=device).t()
    indices = torch.zeros(3, 1, dtype=torch.int64, device=device)
    out = update(torch.zeros_like(updates.contiguous()), indices, updates)
    assert out.tolist() == [[3, 6], [0, 0], [0, 0]]
    tensor = torch.arange(6, device=device).reshape(2, 3).t()
    out = update(tensor, indices, updates)
    assert same_bits(out, update(tensor.contiguous(), indices, updates))
    assert out.is_contiguous()


def test_index_dtypes_agree(call, device):
    want = call(
        torch.zeros(5, device=device),
        torch.tensor([[4], [0], [4]], device=device),
        torch.tensor([1.0, 2.0, 3.0], device=device),
    )
    got = call(
        torch.zeros(5, device=device),
        torch.tensor([[4], [0], [4]], dtype=torch.int32, device=device),
        torch.tensor([1.0, 2.0, 3.0], device=device),
    )
    assert want.tolist() == [2, 0, 0, 0, 3]
    assert same_bits(got, want)


# ------------------------------------------------------ memory shared in place


def test_in_place_on_a_view():
    base = torch.zeros(4, 6)
    view = base[1:, ::2]
    tso.tensor_scatter_update_(view, torch.tensor([[0], [2]]), torch.ones(2, 3))
    assert base[1].tolist() == base[3].tolist() == [1, 0, 1, 0, 1, 0]
    assert base[0].tolist() == base[2].tolist() == [0] * 6


@pytest.mark.parametrize("size", [6, 50_000])
def test_updates_that_share_memory_act_as_if_copied(size):
    """Rotating a tensor by its own elements reads only old values."""
    tensor = torch.arange(size)
    indices = ((torch.arange(size) + 1) % size)[:, None]
    tso.tensor_scatter_update_(tensor, indices, tensor)
    assert torch.equal(tensor, torch.arange(size).roll(1))
    # Backwards, and through views of the same memory.
    tensor = torch.arange(size)
    tso.tensor_scatter_update_(tensor[:-1], indices[:-2], tensor[2:])
    want = torch.arange(size)
    want[1 : size - 1] = torch.arange(2, size)
    assert torch.equal(tensor, want)


def test_indices_that_share_memory_act_as_if_copied():
    tensor = torch.tensor([3, 2, 1, 0])
    tso.tensor_scatter_update_(tensor, tensor[:, None], tensor + 10)
    assert tensor.tolist() == [10, 11, 12, 13]


def test_functional_update_from_itself(device):
    x = torch.arange(5.0, device=device)
    out = update(x, torch.tensor([[4], [0]], device=device), x[:2])
    assert out.tolist() == [1, 1, 2, 3, 0]


# -------------------------------------------------------------------- bounds


@pytest.mark.parametrize("policy", ["", "DEFAULT", "ERROR"])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=name_of)
def test_out_of_bounds_raises_on_cpu(call, policy, index_dtype):
    tensor = torch.zeros(5)
    indices = torch.tensor([[1], [5]], dtype=index_dtype)
    with pytest.raises(IndexError, match=r"got \[5\] in row 1, tensor of shape \[5\]"):
        call(tensor, indices, torch.tensor([1.0, 2.0]), bad_indices_policy=policy)
    assert tensor.tolist() == [0] * 5  # nothing written, not even row 0


@pytest.mark.parametrize("bad", [-1, -5, 5, 2**32, 2**32 + 1, 2**63 - 1, -(2**63)])
def test_bounds_use_all_64_bits(call, bad):
    tensor = torch.zeros(5)
    indices = torch.tensor([[bad], [1]])
    updates = torch.tensor([10.0, 11.0])
    with pytest.raises(IndexError, match=rf"got \[{bad}\] in row 0"):
        call(tensor, indices, updates)
    assert tensor.tolist() == [0] * 5
    out = call(tensor, indices, updates, bad_indices_policy="IGNORE")
    assert out.tolist() == [0, 11, 0, 0, 0]


def test_first_bad_row_of_many_is_named(call):
    rows = torch.zeros(40_000, 2, dtype=torch.int64)
    rows[[39_999, 31_000, 20_001], 1] = 7
    tensor = torch.zeros(3, 4)
    with pytest.raises(IndexError, match=r"got \[0, 7\] in row 20001"):
        call(tensor, rows, torch.ones(40_000))
    assert tensor.sum() == 0


# Large enough for rows to be dealt out by destination: every width of a slice, a
# third of the rows on slices already named, some of them out of bounds.
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("dtype", "shape", "index_dtype"),
    [
        (torch.bool, (1_200, 1_000), torch.int64),
        (torch.bfloat16, (700_000,), torch.int64),
        (torch.float32, (900, 1_100), torch.int32),
        (torch.float64, (300_000,), torch.int32),
        (torch.complex128, (100_000,), torch.int64),
        (torch.int8, (500, 1_000, 3), torch.int64),
        (torch.float32, (50, 400, 16), torch.int64),
    ],
    ids=lambda x: str(x).removeprefix("torch."),
)
def test_many_rows(dtype, shape, index_dtype, threads, device):
    torch.set_num_threads(threads)
    depth = 2 if len(shape) > 1 else 1
    lead, tail = shape[:depth], shape[depth:]
    count = 40_000
    tensor = torch.randint(0, 100, shape).to(dtype)
    updates = torch.randint(0, 100, (count, *tail)).to(dtype)
    rows = torch.stack([torch.randint(0, n, (count,)) for n in lead], 1)
    rows[torch.randperm(count)[: count // 3]] = rows[0].clone()
    rows[[1, 777, -1], depth - 1] = torch.tensor([-1, lead[-1], 2**31 - 1])
    inside = ((rows >= 0) & (rows < torch.tensor(lead))).all(1)
    slices = rows[:, 0] if depth == 1 else rows[:, 0] * lead[1] + rows[:, 1]
    last = torch.full((torch.Size(lead).numel(),), -1)
    numbers = torch.arange(count)
    last.scatter_reduce_(0, slices[inside], numbers[inside], "amax")
    named, winners = last.ge(0).nonzero()[:, 0], last[last >= 0]

    want = tensor.flatten(0, depth - 1).clone()
    kept, taken = want.clone(), torch.zeros_like(updates)
    taken[winners] = want[named]
    want[named] = updates[winners]
    kept[named] = 0

    args = [x.to(device) for x in (tensor, rows.to(index_dtype), updates)]
    assert same_bits(ops.tensor_scatter_update(*args, "IGNORE").cpu(), want.view(shape))
    grads = ops._tensor_scatter_update_grad_tensor(*args[:2])
    assert same_bits(grads.cpu(), kept.view(shape))
    grads = ops._tensor_scatter_update_grad_updates(*args[:2])
    assert same_bits(grads.cpu(), taken)
    grads = ops._tensor_scatter_update_grads(*args[:2])
    assert same_bits(grads[0].cpu(), kept.view(shape))
    assert same_bits(grads[1].cpu(), taken)
    ops.tensor_scatter_update_(*args, "IGNORE")
    assert same_bits(args[0].cpu(), want.view(shape))


def test_ignored_rows_do_not_count_as_writers(device):
    tensor = torch.zeros(2, 2, device=device)
    indices = torch.tensor([[0, 1], [0, 2], [-1, 1], [1, 0]], device=device)
    updates = torch.tensor([1.0, 2.0, 3.0, 4.0], device=device)
    out = update(tensor, indices, updates, bad_indices_policy="IGNORE")
    assert out.tolist() == [[0, 1], [4, 0]]


def test_into_an_empty_tensor():
    indices, updates = torch.tensor([[0]]), torch.ones(1)
    with pytest.raises(IndexError, match=r"tensor of shape \[0\]"):
        update(torch.zeros(0), indices, updates)
    out = update(torch.zeros(0), indices, updates, bad_indices_policy="IGNORE")
    assert out.shape == (0,)


# --------------------------------------------------------------------- modes


def test_deterministic_mode(deterministic, call, device):
    out = call(
        torch.zeros(3, device=device),
        torch.tensor([[1], [1]], device=device),
        torch.tensor([1.0, 2.0], device=device),
    )
    assert out.tolist() == [0, 2, 0]
    leaf = torch.zeros(3, device=device, requires_grad=True)
    update(leaf, torch.tensor([[1]], device=device), leaf[:1]).sum().backward()
    assert leaf.grad.tolist() == [2, 0, 1]


def test_repeated_runs_are_identical(device):
    g = samples.random.Random(1)
    rows = [[g.randrange(500)] for _ in range(50_000)]
    indices = torch.tensor(rows, device=device)
    updates = torch.arange(100_000, device=device).reshape(50_000, 2)
    tensor = torch.zeros(500, 2, dtype=torch.int64, device=device)
    first = update(tensor, indices, updates)
    want = {row: i for i, (row,) in enumerate(rows)}
    assert first[:, 0].tolist() == [2 * want[row] for row in range(500)]
    assert all(same_bits(update(tensor, indices, updates), first) for _ in range(20))


def free_memory():
    meminfo = Path("/proc/meminfo")
    text = meminfo.read_text() if meminfo.exists() else ""
    found = re.search(r"MemAvailable: *(\d+) kB", text)
    return int(found[1]) * 1024 if found else 0


def test_past_32_bit_sizes():
    if free_memory() < 6 * 2**30:
        pytest.skip("needs 6 GB of free memory")
    size = 2**31 + 10
    tensor = torch.zeros(size, dtype=torch.uint8)
    index = torch.tensor([[2**31 + 5]])
    out = update(tensor, index, torch.tensor([9], dtype=torch.uint8))
    assert out[2**31 + 5] == 9
    out[2**31 + 5] = 0
    assert not out.any()
