"""What is said about a faulty scatter: class and text, from every entry point."""

# ruff: noqa: E501  texts stand here as they are printed

import pytest
import torch
from told import as_raw, fakes, metas, parametrize, told, transcript

import torch_sparse_ops as tso

expecttest = pytest.importorskip("expecttest", reason="expecttest is not installed")

ops = torch.ops.torch_sparse_ops

# torch announces its CSR layout as a beta and its quantised dtypes as deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:(Sparse CSR|torch.quant)")

T = torch.zeros(4, 3)
ROWS = torch.tensor([[1], [3]])
PLACES = torch.tensor([[[1, 2]], [[3, 0]]])
UPDATES = torch.ones(2, 3)
MAX = 2**63 - 1


def indices(*rows):
    return torch.tensor(rows)


SHAPES = {
    "indices-float": (T, ROWS.float(), UPDATES),
    "indices-int16": (T, ROWS.short(), UPDATES),
    "indices-bool": (T, ROWS.bool(), UPDATES),
    "indices-uint64": (T, ROWS.to(torch.uint64), UPDATES),
    "updates-dtype": (T, ROWS, UPDATES.double()),
    "vector": (T, ROWS[:, 0], UPDATES),
    "scalar": (T, torch.tensor(1), UPDATES[0]),
    "depth-0": (T, torch.zeros(2, 0).long(), torch.ones(2, 4, 3)),
    "depth-3": (T, torch.zeros(2, 3).long(), UPDATES),
    "tensor-rank-0": (torch.tensor(1.0), ROWS, torch.ones(2)),
    "few-updates": (T, ROWS, UPDATES[:1]),
    "more-updates": (T, ROWS, torch.ones(3, 3)),
    "narrow-updates": (T, ROWS, torch.ones(2, 1)),
    "updates-of-elements": (T, PLACES, UPDATES),
    "scalar-updates": (T, PLACES, torch.tensor(1.0)),
    "rank-3-indices": (torch.zeros(8), torch.zeros(4, 1, 1).long(), torch.ones(4)),
    "updates-rank": (T, ROWS, torch.ones(2, 2, 3)),
    "no-rows": (T, ROWS[:0], UPDATES),
    "policy-case": (T, ROWS, UPDATES, "error"),
    "policy-unknown": (T, ROWS, UPDATES, "WRAP"),
}
ENTRIES = {
    "high": (T, indices([1], [4]), UPDATES),
    "negative": (T, indices([-1], [4]), UPDATES, "DEFAULT"),
    "second-coordinate": (T, indices([[1, 2]], [[3, 3]]), torch.ones(2, 1), "ERROR"),
    "int64": (T, indices([1], [2**32]), UPDATES),
    "extremes": (T, indices([0, MAX], [-MAX - 1, 0]), torch.ones(2)),
    "int32": (T, indices([0], [-(2**31)]).int(), UPDATES),
    "no-width": (torch.zeros(4, 0), indices([4]), torch.ones(1, 0)),
    "no-elements": (torch.zeros(0, 3), indices([0]), torch.ones(1, 3)),
}
FAULTS = SHAPES | ENTRIES


def test_texts():
    expecttest.assert_expected_inline(
        transcript(FAULTS, ops.tensor_scatter_update),
        """\
indices-float: ValueError: tensor_scatter_update: indices must be int32 or int64 (got float32)
indices-int16: ValueError: tensor_scatter_update: indices must be int32 or int64 (got int16)
indices-bool: ValueError: tensor_scatter_update: indices must be int32 or int64 (got bool)
indices-uint64: ValueError: tensor_scatter_update: indices must be int32 or int64 (got uint64)
updates-dtype: ValueError: tensor_scatter_update: updates must have the dtype of tensor (got float32 for tensor, float64 for updates)
vector: ValueError: tensor_scatter_update: indices must have at least 2 dimensions (got shape [2])
scalar: ValueError: tensor_scatter_update: indices must have at least 2 dimensions (got shape [])
depth-0: ValueError: tensor_scatter_update: indices.shape[-1] must be from 1 to the rank of tensor (got indices of shape [2, 0], tensor of shape [4, 3])
depth-3: ValueError: tensor_scatter_update: indices.shape[-1] must be from 1 to the rank of tensor (got indices of shape [2, 3], tensor of shape [4, 3])
tensor-rank-0: ValueError: tensor_scatter_update: indices.shape[-1] must be from 1 to the rank of tensor (got indices of shape [2, 1], tensor of shape [])
few-updates: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[1:] = [2, 3] (got [1, 3])
more-updates: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[1:] = [2, 3] (got [3, 3])
narrow-updates: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[1:] = [2, 3] (got [2, 1])
updates-of-elements: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[2:] = [2, 1] (got [2, 3])
scalar-updates: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[2:] = [2, 1] (got [])
rank-3-indices: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[1:] = [4, 1] (got [4])
updates-rank: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[1:] = [2, 3] (got [2, 2, 3])
no-rows: ValueError: tensor_scatter_update: updates.shape must be indices.shape[:-1] + tensor.shape[1:] = [0, 3] (got [2, 3])
policy-case: ValueError: tensor_scatter_update: bad_indices_policy must be one of "", "DEFAULT", "ERROR", "IGNORE" (got "error")
policy-unknown: ValueError: tensor_scatter_update: bad_indices_policy must be one of "", "DEFAULT", "ERROR", "IGNORE" (got "WRAP")
high: IndexError: tensor_scatter_update: indices must be within tensor (got [4] in row 1, tensor of shape [4, 3])
negative: IndexError: tensor_scatter_update: indices must be within tensor (got [-1] in row 0, tensor of shape [4, 3])
second-coordinate: IndexError: tensor_scatter_update: indices must be within tensor (got [3, 3] in row 1, tensor of shape [4, 3])
int64: IndexError: tensor_scatter_update: indices must be within tensor (got [4294967296] in row 1, tensor of shape [4, 3])
extremes: IndexError: tensor_scatter_update: indices must be within tensor (got [0, 9223372036854775807] in row 0, tensor of shape [4, 3])
int32: IndexError: tensor_scatter_update: indices must be within tensor (got [-2147483648] in row 1, tensor of shape [4, 3])
no-width: IndexError: tensor_scatter_update: indices must be within tensor (got [4] in row 0, tensor of shape [4, 0])
no-elements: IndexError: tensor_scatter_update: indices must be within tensor (got [0] in row 0, tensor of shape [0, 3])""",
    )


def fresh(args):
    return (args[0].clone(), *args[1:])


@parametrize(FAULTS)
def test_the_same_from_python(fault):
    tensor, rows, updates, *policy = FAULTS[fault]
    text = told(
        tso.tensor_scatter_update,
        tensor,
        rows,
        updates,
        bad_indices_policy="".join(policy),
    )
    assert as_raw(text) == told(ops.tensor_scatter_update, *FAULTS[fault])
    assert text.startswith("TypeError") == fault.startswith(
        ("indices-", "updates-dtype")
    )


@parametrize(FAULTS)
def test_the_same_in_place_and_nothing_written(fault):
    tensor, rows, updates, *policy = fresh(FAULTS[fault])
    before = tensor.clone()
    want = told(ops.tensor_scatter_update, *FAULTS[fault])
    want = want.replace("tensor_scatter_update: ", "tensor_scatter_update_: ")
    assert told(ops.tensor_scatter_update_, tensor, rows, updates, *policy) == want
    text = told(
        tso.tensor_scatter_update_,
        tensor,
        rows,
        updates,
        bad_indices_policy="".join(policy),
    )
    assert as_raw(text) == want
    assert torch.equal(tensor, before)
    assert tensor._version == 0


@parametrize(SHAPES)
def test_the_same_without_data(fault):
    for op in (ops.tensor_scatter_update, ops.tensor_scatter_update_):
        args = fresh(SHAPES[fault])
        want = told(op, *args)
        mode, fake_args = fakes(args)
        with mode:
            assert told(op, *fake_args) == want
        assert told(op, *metas(args)) == want


def test_gradient_operators():
    for op in (
        ops._tensor_scatter_update_grad_tensor,
        ops._tensor_scatter_update_grad_updates,
        ops._tensor_scatter_update_grads,
    ):
        name = op.__name__
        for args in [
            (T, ROWS.float()),
            (T, ROWS[:, 0]),
            (T, torch.zeros(2, 3).long()),
            (T, torch.zeros(2, 0).long()),
            (torch.tensor(1.0), ROWS),
        ]:
            text = told(op, *args)
            assert text.startswith(f"ValueError: {name}: indices")
            mode, fake_args = fakes(args)
            with mode:
                assert told(op, *fake_args) == text


# ------------------------------------------------------------------ in place

OVERLAPPING = {
    "expanded": torch.zeros(3).expand(4, 3),
    "diagonals": torch.zeros(6).as_strided((4, 3), (1, 1)),
    "windows": torch.zeros(20).as_strided((4, 3), (2, 4)),
}


@parametrize(OVERLAPPING)
def test_a_tensor_that_overlaps_itself(fault):
    tensor = OVERLAPPING[fault]
    text = told(ops.tensor_scatter_update_, tensor, ROWS, UPDATES)
    assert text == (
        "ValueError: tensor_scatter_update_: tensor must not overlap itself "
        f"(got shape [4, 3], strides {list(tensor.stride())})"
    )
    assert told(tso.tensor_scatter_update_, tensor, ROWS, UPDATES) == text
    mode, (fake, *rest) = fakes((tensor, ROWS, UPDATES))
    with mode:
        assert told(ops.tensor_scatter_update_, fake, *rest) == text
    assert tensor.sum() == 0
    # The functional form has no such limit.
    out = tso.tensor_scatter_update(tensor, ROWS, UPDATES)
    assert out.tolist() == [[0] * 3, [1] * 3, [0] * 3, [1] * 3]


@pytest.mark.parametrize(
    "shape, strides",
    [((4, 3), (1, 4)), ((4, 3), (10, 2)), ((1, 3), (0, 1))],
    ids=str,
)
def test_unusual_strides_that_do_not_overlap(shape, strides):
    tensor = torch.zeros(40).as_strided(shape, strides)
    tso.tensor_scatter_update_(tensor, torch.tensor([[0]]), torch.ones(1, shape[1]))
    want = torch.zeros(shape)
    want[0] = 1
    assert torch.equal(tensor, want)


# ---------------------------------------------------- what Python alone can see


def test_argument_kinds():
    sparse = torch.ones(4, 3).to_sparse()
    quantised = torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.qint8)
    calls = [
        ([1.0], ROWS, UPDATES),
        (T, [[1]], UPDATES),
        (T, ROWS, None),
        (sparse, ROWS, UPDATES),
        (T, ROWS.to_sparse(), UPDATES),
        (T, ROWS, sparse),
        (quantised, ROWS, UPDATES),
    ]
    told_ = [told(tso.tensor_scatter_update, *args) for args in calls]
    expecttest.assert_expected_inline(
        "\n".join(told_),
        """\
TypeError: tensor_scatter_update: tensor must be a Tensor (got list)
TypeError: tensor_scatter_update: indices must be a Tensor (got list)
TypeError: tensor_scatter_update: updates must be a Tensor (got None)
TypeError: tensor_scatter_update: tensor must be a strided Tensor (got a sparse_coo Tensor)
TypeError: tensor_scatter_update: indices must be a strided Tensor (got a sparse_coo Tensor)
TypeError: tensor_scatter_update: updates must be a strided Tensor (got a sparse_coo Tensor)
TypeError: tensor_scatter_update: tensor must be a strided Tensor (got a quantized Tensor)""",
    )
    for args, text in zip(calls, told_, strict=True):
        in_place = text.replace("update:", "update_:")
        assert told(tso.tensor_scatter_update_, *args) == in_place


def test_devices():
    faults = {
        "tensor": (T.to("meta"), ROWS, UPDATES),
        "indices": (T, ROWS.to("meta"), UPDATES),
        "updates": (T, ROWS, UPDATES.to("meta")),
    }
    expecttest.assert_expected_inline(
        transcript(faults, ops.tensor_scatter_update),
        """\
tensor: ValueError: tensor_scatter_update: all tensors must be on one device (got meta for tensor, cpu for indices)
indices: ValueError: tensor_scatter_update: all tensors must be on one device (got cpu for tensor, meta for indices)
updates: ValueError: tensor_scatter_update: all tensors must be on one device (got cpu for tensor, meta for updates)""",
    )
    for args in faults.values():
        text = told(ops.tensor_scatter_update, *args)
        assert told(tso.tensor_scatter_update, *args) == text
        text = text.replace("update:", "update_:")
        assert told(ops.tensor_scatter_update_, *args) == text
        assert told(tso.tensor_scatter_update_, *args) == text


def test_layouts_without_a_kernel():
    """Raw calls land in a fallback whose text a reader can use."""
    sparse = torch.ones(4, 3).to_sparse()
    quantised = torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.qint8)
    faults = {
        "sparse-tensor": (sparse, ROWS, UPDATES),
        "sparse-indices": (T, ROWS.to_sparse(), UPDATES),
        "csr-tensor": (torch.ones(4, 3).to_sparse_csr(), ROWS, UPDATES),
        "quantised": (quantised, ROWS, UPDATES),
    }
    expecttest.assert_expected_inline(
        transcript(faults, ops.tensor_scatter_update),
        """\
sparse-tensor: ValueError: tensor_scatter_update: strided tensors on CPU or CUDA are required (got a sparse_coo tensor for tensor)
sparse-indices: ValueError: tensor_scatter_update: strided tensors on CPU or CUDA are required (got a sparse_coo tensor for indices)
csr-tensor: ValueError: tensor_scatter_update: strided tensors on CPU or CUDA are required (got a sparse_csr tensor for tensor)
quantised: ValueError: tensor_scatter_update: strided tensors on CPU or CUDA are required (got a tensor of another dtype on cpu for tensor)""",
    )
