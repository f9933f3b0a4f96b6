"""What is said about a faulty call: class and text, the same from every entry point.

Each table holds faulty arguments of one raw operator. The texts of the raw calls are
pinned; the Python functions, the fake kernels (FakeTensor and meta) and compiled code
must say the same. A wrong dtype is a TypeError from Python, a ValueError elsewhere.
"""

# ruff: noqa: E501  texts stand here as they are printed

import pytest
import torch
from told import as_raw, fakes, metas, parametrize, told, transcript

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

expecttest = pytest.importorskip("expecttest", reason="expecttest is not installed")

ops = torch.ops.torch_sparse_ops

# torch announces its CSR layout as a beta and its quantised dtypes as deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:(Sparse CSR|torch.quant)")

ROWS = torch.tensor([[0, 1], [1, 2]])
VALUES = torch.tensor([1.0, 2.0])
NONE = torch.zeros(0, 2, dtype=torch.int64)
NO_VALUES = torch.zeros(0)
MAX = 2**63 - 1


def rows(*coordinates):
    return torch.tensor(coordinates)


def pair(shapes, axis=0, expand=False, *, i=ROWS, v=VALUES, second=None):
    """Two inputs with the same entries, unless the second is given."""
    i2, v2 = second or (i, v)
    return [i, i2], [v, v2], shapes, axis, expand


CONCAT_SHAPES = {
    "empty-list": ([], [], [], 0),
    "lengths": ([ROWS], [VALUES, VALUES], [2, 3], 0),
    "vector": pair([2, 3, 2, 3], i=torch.tensor([0, 1])),
    "scalar": pair([2, 3, 2, 3], second=(torch.tensor(0), VALUES)),
    "ranks": pair([2, 3, 2, 3, 4], second=(torch.zeros(2, 3).long(), VALUES)),
    "rank-0": pair([], i=torch.zeros(2, 0).long()),
    "rank-65": pair([1] * 130, i=torch.zeros(2, 65).long()),
    "few-sizes": pair([2, 3, 2]),
    "many-sizes": pair([2, 3, 2, 3, 4, 5]),
    "indices-dtype": pair([2, 3, 2, 3], second=(ROWS.int(), VALUES)),
    "indices-float": pair([2, 3, 2, 3], i=ROWS.float()),
    "short-values": pair([2, 3, 2, 3], second=(ROWS, VALUES[:1])),
    "long-values": pair([2, 3, 2, 3], i=NONE),
    "scalar-values": pair([2, 3, 2, 3], v=torch.tensor(1.0)),
    "values-dtype": pair([2, 3, 2, 3], second=(ROWS, VALUES.double())),
    "dense": pair([2, 3, 2, 3], second=(ROWS, VALUES[:, None])),
    "axis-high": pair([2, 3, 2, 3], 2),
    "axis-low": pair([2, 3, 2, 3], -3),
    "axis-max": pair([2, 3, 2, 3], MAX),
    "axis-min": pair([2, 3, 2, 3], -MAX - 1),
    "negative": pair([2, 3, 2, -3]),
    "volume": pair([2**40, 3, 2**40, 2**23]),
    "sizes": pair([2, 3, 2, 4]),
    "sizes-negative-axis": pair([2, 3, 5, 3], -1),
    "result-volume": pair([2**31, 2**31, 2**31, 2**31]),
    "result-size": pair([MAX, 0, MAX, 0], i=NONE, v=NO_VALUES),
    "expanded-volume": pair([1, 2**40, 2**40, 1], 1, True, i=NONE, v=NO_VALUES),
}
CONCAT_ENTRIES = {
    "entry-in-empty": pair([2, 3, 0, 3], 0),
    "high": pair([2, 3, 2, 3], second=(rows([0, 0], [1, 3]), VALUES)),
    "negative-entry": pair([2, 3, 2, 3], i=rows([0, 0], [-1, -2])),
    "max": pair([2, 3, 2, 3], 1, i=rows([MAX, 0], [0, MAX])),
    "min": pair([2, 3, 2, 3], 1, second=(rows([0, -MAX - 1], [-1, 0]), VALUES)),
}
CONCAT_FAULTS = CONCAT_SHAPES | CONCAT_ENTRIES


def test_concat_texts():
    expecttest.assert_expected_inline(
        transcript(CONCAT_FAULTS, ops.sparse_concat),
        """\
empty-list: ValueError: sparse_concat: at least one input is required (got an empty list)
lengths: ValueError: sparse_concat: indices and values must have the same length (got 1 and 2)
vector: ValueError: sparse_concat: indices must be of shape [nnz, rank] (got shape [2] for input 0)
scalar: ValueError: sparse_concat: indices must be of shape [nnz, rank] (got shape [] for input 1)
ranks: ValueError: sparse_concat: inputs must have the same number of sparse dimensions (got 2 for input 0, 3 for input 1)
rank-0: ValueError: sparse_concat: at least one sparse dimension is required (got 0 for input 0)
rank-65: ValueError: sparse_concat: at most 64 sparse dimensions are supported (got 65)
few-sizes: ValueError: sparse_concat: shapes must hold 2 sizes for each of the 2 inputs (got 3)
many-sizes: ValueError: sparse_concat: shapes must hold 2 sizes for each of the 2 inputs (got 6)
indices-dtype: ValueError: sparse_concat: indices must be int64 (got int32 for input 1)
indices-float: ValueError: sparse_concat: indices must be int64 (got float32 for input 0)
short-values: ValueError: sparse_concat: values must have one row for each of the 2 entries (got shape [1] for input 1)
long-values: ValueError: sparse_concat: values must have one row for each of the 0 entries (got shape [2] for input 0)
scalar-values: ValueError: sparse_concat: values must have one row for each of the 2 entries (got shape [] for input 0)
values-dtype: ValueError: sparse_concat: inputs must have the same dtype (got float32 for input 0, float64 for input 1)
dense: ValueError: sparse_concat: inputs must agree in their dense dimensions (got [] for input 0, [1] for input 1)
axis-high: IndexError: sparse_concat: axis must be in [-2, 2) (got 2)
axis-low: IndexError: sparse_concat: axis must be in [-2, 2) (got -3)
axis-max: IndexError: sparse_concat: axis must be in [-2, 2) (got 9223372036854775807)
axis-min: IndexError: sparse_concat: axis must be in [-2, 2) (got -9223372036854775808)
negative: ValueError: sparse_concat: sizes must not be negative (got shape [2, -3] for input 1)
volume: ValueError: sparse_concat: a shape must have fewer than 2**63 elements (got [1099511627776, 8388608] for input 1)
sizes: ValueError: sparse_concat: inputs must agree in every dimension except axis=0 (got size 3 in dimension 1 of input 0, size 4 in input 1; expand_nonconcat_dims=True takes the largest)
sizes-negative-axis: ValueError: sparse_concat: inputs must agree in every dimension except axis=1 (got size 2 in dimension 0 of input 0, size 5 in input 1; expand_nonconcat_dims=True takes the largest)
result-volume: ValueError: sparse_concat: a shape must have fewer than 2**63 elements (got [4294967296, 2147483648] for the result)
result-size: ValueError: sparse_concat: a shape must have fewer than 2**63 elements (got [18446744073709551614, 0] for the result)
expanded-volume: ValueError: sparse_concat: a shape must have fewer than 2**63 elements (got [1099511627776, 1099511627777] for the result)
entry-in-empty: IndexError: sparse_concat: an empty shape cannot have entries (got 2 entries, shape [0, 3] for input 1)
high: IndexError: sparse_concat: indices must be within the shape (got 3 in dimension 1 of entry 1 of input 1, shape [2, 3])
negative-entry: IndexError: sparse_concat: indices must be within the shape (got -1 in dimension 0 of entry 1 of input 0, shape [2, 3])
max: IndexError: sparse_concat: indices must be within the shape (got 9223372036854775807 in dimension 0 of entry 0 of input 0, shape [2, 3])
min: IndexError: sparse_concat: indices must be within the shape (got -9223372036854775808 in dimension 1 of entry 0 of input 1, shape [2, 3])""",
    )


def coo(indices, values, shape):
    return torch.sparse_coo_tensor(indices.t(), values, shape, check_invariants=False)


def sparse_inputs(kind, indices, values, flat):
    """The inputs as triples or COO tensors, or None where there is no such thing."""
    inputs, sizes = [], iter(flat)
    try:
        for i, v in zip(indices, values, strict=True):
            shape = [next(sizes) for _ in range(i.shape[1])]
            inputs.append(kind(i, v, (*shape, *v.shape[1:])))
    except (RuntimeError, TypeError, ValueError, IndexError, StopIteration):
        return None
    return None if list(sizes) else inputs


# What no sparse tensor can be: the faults that its construction finds.
MALFORMED = {
    "lengths",
    "vector",
    "scalar",
    "few-sizes",
    "many-sizes",
    "short-values",
    "long-values",
    "scalar-values",
    "negative",
    "volume",
}
# torch makes int64 of other indices, and looks into no entry.
REFUSED_AS_TRIPLE = {"indices-dtype", "indices-float", "rank-65", "entry-in-empty"}


@parametrize(CONCAT_FAULTS)
def test_concat_says_the_same_from_triples(fault):
    indices, values, flat, axis, *expand = CONCAT_FAULTS[fault]
    inputs = sparse_inputs(SparseTensor, indices, values, flat)
    assert (inputs is None) == (fault in MALFORMED | REFUSED_AS_TRIPLE)
    if inputs is not None:
        expand = {"expand_nonconcat_dims": any(expand)}
        text = told(tso.sparse_concat, inputs, axis, **expand)
        assert as_raw(text) == told(ops.sparse_concat, *CONCAT_FAULTS[fault])
        assert text.startswith("TypeError") == (fault == "values-dtype")


@parametrize([fault for fault in CONCAT_FAULTS if not fault.startswith("indices-")])
def test_concat_says_the_same_from_coo(fault):
    indices, values, flat, axis, *expand = CONCAT_FAULTS[fault]
    inputs = sparse_inputs(coo, indices, values, flat)
    assert (inputs is None) == (fault in MALFORMED)
    if inputs is not None:
        expand = {"expand_nonconcat_dims": any(expand)}
        text = told(tso.sparse_concat, inputs, axis, **expand)
        assert as_raw(text) == told(ops.sparse_concat, *CONCAT_FAULTS[fault])


@parametrize(CONCAT_SHAPES)
def test_concat_says_the_same_without_data(fault):
    args = CONCAT_SHAPES[fault]
    want = told(ops.sparse_concat, *args)
    mode, fake_args = fakes(args)
    with mode:
        assert told(ops.sparse_concat, *fake_args) == want
    assert told(ops.sparse_concat, *metas(args)) == want


# The transpose takes no values to be wrong.
TRANSPOSED = [
    fault
    for fault in CONCAT_FAULTS
    if "values" not in fault and fault not in ("lengths", "dense")
]


@parametrize(TRANSPOSED)
def test_grad_values_says_the_same(fault):
    indices, values, flat, axis, *expand = CONCAT_FAULTS[fault]
    grad = torch.ones(sum(len(v) for v in values))
    args = grad, indices, flat, axis, any(expand), False
    want = told(ops.sparse_concat, *CONCAT_FAULTS[fault])
    want = want.replace("sparse_concat", "_sparse_concat_grad_values")
    assert told(ops._sparse_concat_grad_values, *args) == want
    if fault in CONCAT_SHAPES:
        mode, args = fakes(args)
        with mode:
            assert told(ops._sparse_concat_grad_values, *args) == want


# ------------------------------------------------- what Python alone can see


def test_kinds_of_inputs():
    x = SparseTensor(ROWS, VALUES, (2, 3))
    t = x.to_torch()
    hybrid = SparseTensor(ROWS, torch.ones(2, 4), (2, 3, 4))
    faults = {
        "triple": (x, 0),
        "dense-alone": (torch.ones(2, 3), 0),
        "coo-alone": (t, 0),
        "none": (None, 0),
        "dense": ([t, torch.ones(2, 3)], 0),
        "csr": ([t, torch.ones(2, 3).to_sparse_csr()], 0),
        "number": ([x, 3], 0),
        "mixed": ([x, x, t], 0),
        "empty": ([], 0),
        "empty-tuple": ((), 0),
        "axis-float": ([x], 1.0),
        "axis-none": ([x], None),
        "axis-text": ([x], "0"),
        "axis-huge": ([x], 2**70),
        "dense-axis": ([hybrid], 2),
        "dense-axis-negative": ([hybrid], -1),
        "hybrid-axis": ([hybrid], 3),
        "ranks": ([x, SparseTensor(ROWS[:, :1], VALUES, (2,))], 0),
        "rank-by-dense-sizes": ([hybrid, SparseTensor(ROWS, VALUES, (2, 3))], 0),
    }
    expecttest.assert_expected_inline(
        transcript(faults, tso.sparse_concat),
        """\
triple: TypeError: sparse_concat: sp_inputs must be a list or tuple of sparse COO tensors or SparseTensors (got SparseTensor)
dense-alone: TypeError: sparse_concat: sp_inputs must be a list or tuple of sparse COO tensors or SparseTensors (got Tensor)
coo-alone: TypeError: sparse_concat: sp_inputs must be a list or tuple of sparse COO tensors or SparseTensors (got Tensor)
none: TypeError: sparse_concat: sp_inputs must be a list or tuple of sparse COO tensors or SparseTensors (got NoneType)
dense: TypeError: sparse_concat: input 1 must be a sparse COO tensor or a SparseTensor (got a strided Tensor)
csr: TypeError: sparse_concat: input 1 must be a sparse COO tensor or a SparseTensor (got a sparse_csr Tensor)
number: TypeError: sparse_concat: input 1 must be a sparse COO tensor or a SparseTensor (got int 3)
mixed: TypeError: sparse_concat: inputs must be all COO tensors or all SparseTensors (got a SparseTensor for input 0, a sparse COO tensor for input 2)
empty: ValueError: sparse_concat: at least one input is required (got an empty list)
empty-tuple: ValueError: sparse_concat: at least one input is required (got an empty list)
axis-float: TypeError: sparse_concat: axis must be an int (got float 1.0)
axis-none: TypeError: sparse_concat: axis must be an int (got None)
axis-text: TypeError: sparse_concat: axis must be an int (got str '0')
axis-huge: IndexError: sparse_concat: axis must be in [-2, 2) (got 1180591620717411303424)
dense-axis: ValueError: sparse_concat: axis must be a sparse dimension, below 2 (got 2, a dense dimension)
dense-axis-negative: ValueError: sparse_concat: axis must be a sparse dimension, below 2 (got -1, a dense dimension)
hybrid-axis: IndexError: sparse_concat: axis must be in [-3, 3) (got 3)
ranks: ValueError: sparse_concat: inputs must have the same number of sparse dimensions (got 2 for input 0, 1 for input 1)
rank-by-dense-sizes: ValueError: sparse_concat: inputs must agree in their dense dimensions (got [4] for input 0, [] for input 1)""",
    )


def test_shapes_alone():
    faults = {
        "empty": ([], 0),
        "ranks": ([(2, 3), (2,)], 0),
        "rank-0": ([()], 0),
        "axis": ([(2, 3)], 2),
        "sizes": ([(2, 3), (3, 3)], 1),
        "negative": ([(2, -3)], 0),
        "volume": ([(2**40, 2**40)], 0),
        "result": ([(2**62,), (2**62,)], 0),
        "float": ([(2.0, 3)], 0),
        "one-shape": ((2, 3), 0),
        "none": (None, 0),
    }
    expecttest.assert_expected_inline(
        transcript(faults, tso.concat_shape),
        """\
empty: ValueError: concat_shape: at least one input is required (got an empty list)
ranks: ValueError: concat_shape: inputs must have the same number of sparse dimensions (got 2 for input 0, 1 for input 1)
rank-0: ValueError: concat_shape: at least one sparse dimension is required (got 0 for input 0)
axis: IndexError: concat_shape: axis must be in [-2, 2) (got 2)
sizes: ValueError: concat_shape: inputs must agree in every dimension except axis=1 (got size 2 in dimension 0 of input 0, size 3 in input 1; expand_nonconcat_dims=True takes the largest)
negative: ValueError: concat_shape: sizes must not be negative (got shape [2, -3] for input 0)
volume: ValueError: concat_shape: a shape must have fewer than 2**63 elements (got [1099511627776, 1099511627776] for input 0)
result: ValueError: concat_shape: a shape must have fewer than 2**63 elements (got [9223372036854775808] for the result)
float: TypeError: concat_shape: shapes[0] must be a sequence of ints or a 1-D integer tensor (got float 2.0 at position 0)
one-shape: TypeError: concat_shape: shapes[0] must be a sequence of ints or a 1-D integer tensor (got int 2)
none: TypeError: concat_shape: shapes must be a sequence of shapes (got None)""",
    )


def test_devices():
    there = ROWS.to("meta"), VALUES.to("meta")
    faults = {
        "indices": ([ROWS, there[0]], [VALUES] * 2, [2, 3] * 2, 0),
        "values": ([ROWS] * 2, [VALUES, there[1]], [2, 3] * 2, 0),
        "second": ([ROWS, there[0]], [VALUES, there[1]], [2, 3] * 2, 0),
    }
    expecttest.assert_expected_inline(
        transcript(faults, ops.sparse_concat),
        """\
indices: ValueError: sparse_concat: all tensors must be on one device (got cpu for input 0, meta for input 1)
values: ValueError: sparse_concat: all tensors must be on one device (got cpu for input 0, meta for input 1)
second: ValueError: sparse_concat: all tensors must be on one device (got cpu for input 0, meta for input 1)""",
    )
    for kind in (SparseTensor, coo):
        inputs = [kind(ROWS, VALUES, (2, 3)), kind(*there, (2, 3))]
        text = told(tso.sparse_concat, inputs, 0)
        assert text == told(ops.sparse_concat, *faults["second"])


def test_layouts_without_a_kernel():
    """Raw calls land in a fallback whose text a reader can use."""
    sparse = ROWS.to_sparse()
    faults = {
        "sparse-indices": ([ROWS, sparse], [VALUES, VALUES], [2, 3, 2, 3], 0),
        "sparse-values": ([ROWS], [VALUES.to_sparse()], [2, 3], 0),
        "coo-input": ([ROWS, ROWS.float().to_sparse()], [VALUES] * 2, [2, 3] * 2, 0),
    }
    expecttest.assert_expected_inline(
        transcript(faults, ops.sparse_concat),
        """\
sparse-indices: ValueError: sparse_concat: strided tensors on CPU or CUDA are required (got a sparse_coo tensor for input 1)
sparse-values: ValueError: sparse_concat: strided tensors on CPU or CUDA are required (got a sparse_coo tensor for input 0)
coo-input: ValueError: sparse_concat: strided tensors on CPU or CUDA are required (got a sparse_coo tensor for input 1)""",
    )
