"""What is said about a faulty reshape or triple: class and text, from every entry."""

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
NONE = torch.zeros(0, 2, dtype=torch.int64)
MAX = 2**63 - 1


def rows(*coordinates):
    return torch.tensor(coordinates)


SHAPES = {
    "vector": (torch.tensor([0, 1]), [2, 3], [6]),
    "scalar": (torch.tensor(0), [], [1]),
    "indices-dtype": (ROWS.int(), [2, 3], [6]),
    "indices-float": (ROWS.float(), [2, 3], [6]),
    "rank-65": (torch.zeros(1, 65).long(), [1] * 65, [1]),
    "target-rank-65": (torch.zeros(1, 1).long(), [1], [1] * 65),
    "few-sizes": (ROWS, [2], [2]),
    "many-sizes": (ROWS, [2, 3, 1], [6]),
    "negative": (NONE, [2, -3], [6]),
    "negative-pair": (NONE, [-2, -3], [6]),
    "volume": (NONE, [2**32, 2**31], [6]),
    "negative-target": (ROWS, [2, 3], [-2, -3]),
    "min-target": (ROWS, [2, 3], [-MAX - 1]),
    "two-unknown": (ROWS, [2, 3], [-1, -1]),
    "unknown-beside-0": (ROWS, [2, 3], [0, -1]),
    "unknown-of-0": (NONE, [0, 3], [0, -1]),
    "does-not-divide": (ROWS, [2, 3], [4, -1]),
    "larger-than-all": (ROWS, [2, 3], [-1, 12]),
    "count": (ROWS, [2, 3], [7]),
    "count-without-entries": (NONE, [2, 3], [7]),
    "to-empty": (ROWS, [2, 3], [0]),
    "from-empty": (NONE, [0, 3], [2, 3]),
    "to-rank-0": (ROWS, [2, 3], []),
    "target-volume": (ROWS, [2, 3], [2**40, 2**40]),
    "target-wraps": (ROWS, [2, 3], [2**62, 4, 6]),
    "target-wraps-to-count": (NONE, [2**62, 1], [2**62, 5]),
    "inferred-volume": (ROWS, [2, 3], [-1, 2**32, 2**32]),
}
ENTRIES = {
    "entry-in-empty": (ROWS, [0, 3], [3, 0]),
    "high": (rows([0, 0], [1, 3]), [2, 3], [6]),
    "first-dimension": (rows([0, 0], [2, 9]), [2, 3], [6]),
    "negative-entry": (rows([0, -1]), [2, 3], [6]),
    "cancels": (rows([1, -1]), [2, 3], [6]),
    "same-shape": (rows([1, 7]), [2, 3], [2, 3]),
    "max": (rows([MAX, MAX]), [2, 3], [3, 2]),
    "min": (rows([0, -MAX - 1]), [2, 3], [-1]),
    "far-entry": (torch.arange(40_000)[:, None], [39_999], [1, -1]),
}
FAULTS = SHAPES | ENTRIES


def test_texts():
    expecttest.assert_expected_inline(
        transcript(FAULTS, ops.sparse_reshape),
        """\
vector: ValueError: sparse_reshape: indices must be of shape [nnz, rank] (got shape [2])
scalar: ValueError: sparse_reshape: indices must be of shape [nnz, rank] (got shape [])
indices-dtype: ValueError: sparse_reshape: indices must be int64 (got int32)
indices-float: ValueError: sparse_reshape: indices must be int64 (got float32)
rank-65: ValueError: sparse_reshape: at most 64 sparse dimensions are supported (got 65)
target-rank-65: ValueError: sparse_reshape: at most 64 sparse dimensions are supported (got 65)
few-sizes: ValueError: sparse_reshape: the shape must have 2 sizes, one for each sparse dimension (got [2])
many-sizes: ValueError: sparse_reshape: the shape must have 2 sizes, one for each sparse dimension (got [2, 3, 1])
negative: ValueError: sparse_reshape: sizes must not be negative (got shape [2, -3])
negative-pair: ValueError: sparse_reshape: sizes must not be negative (got shape [-2, -3])
volume: ValueError: sparse_reshape: a shape must have fewer than 2**63 elements (got [4294967296, 2147483648])
negative-target: ValueError: sparse_reshape: target sizes must not be negative, except for one -1 (got 6 elements in [2, 3], target [-2, -3])
min-target: ValueError: sparse_reshape: target sizes must not be negative, except for one -1 (got 6 elements in [2, 3], target [-9223372036854775808])
two-unknown: ValueError: sparse_reshape: at most one target size may be -1 (got 6 elements in [2, 3], target [-1, -1])
unknown-beside-0: ValueError: sparse_reshape: -1 cannot be inferred beside a size of 0 (got 6 elements in [2, 3], target [0, -1])
unknown-of-0: ValueError: sparse_reshape: -1 cannot be inferred beside a size of 0 (got 0 elements in [0, 3], target [0, -1])
does-not-divide: ValueError: sparse_reshape: the target sizes must divide the number of elements (got 6 elements in [2, 3], target [4, -1])
larger-than-all: ValueError: sparse_reshape: the target sizes must divide the number of elements (got 6 elements in [2, 3], target [-1, 12])
count: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [7])
count-without-entries: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [7])
to-empty: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [0])
from-empty: ValueError: sparse_reshape: the target must have as many elements as the input (got 0 elements in [0, 3], target [2, 3])
to-rank-0: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [])
target-volume: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [1099511627776, 1099511627776])
target-wraps: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [4611686018427387904, 4, 6])
target-wraps-to-count: ValueError: sparse_reshape: the target must have as many elements as the input (got 4611686018427387904 elements in [4611686018427387904, 1], target [4611686018427387904, 5])
inferred-volume: ValueError: sparse_reshape: the target sizes must divide the number of elements (got 6 elements in [2, 3], target [-1, 4294967296, 4294967296])
entry-in-empty: IndexError: sparse_reshape: an empty shape cannot have entries (got 2 entries, shape [0, 3])
high: IndexError: sparse_reshape: indices must be within the shape (got 3 in dimension 1 of entry 1, shape [2, 3])
first-dimension: IndexError: sparse_reshape: indices must be within the shape (got 2 in dimension 0 of entry 1, shape [2, 3])
negative-entry: IndexError: sparse_reshape: indices must be within the shape (got -1 in dimension 1 of entry 0, shape [2, 3])
cancels: IndexError: sparse_reshape: indices must be within the shape (got -1 in dimension 1 of entry 0, shape [2, 3])
same-shape: IndexError: sparse_reshape: indices must be within the shape (got 7 in dimension 1 of entry 0, shape [2, 3])
max: IndexError: sparse_reshape: indices must be within the shape (got 9223372036854775807 in dimension 0 of entry 0, shape [2, 3])
min: IndexError: sparse_reshape: indices must be within the shape (got -9223372036854775808 in dimension 1 of entry 0, shape [2, 3])
far-entry: IndexError: sparse_reshape: indices must be within the shape (got 39999 in dimension 0 of entry 39999, shape [39999])""",
    )


def coo(indices, shape):
    return torch.sparse_coo_tensor(
        indices.t(), torch.ones(indices.shape[0]), shape, check_invariants=False
    )


def triple(indices, shape):
    return SparseTensor(indices, torch.ones(indices.shape[0]), shape)


def sparse_input(kind, indices, shape):
    """The input, or None where there is no such triple or COO tensor."""
    try:
        return kind(indices, shape)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None


# What no sparse tensor can be: the faults that its construction finds.
MALFORMED = {
    "vector",
    "scalar",
    "few-sizes",
    "many-sizes",
    "negative",
    "negative-pair",
    "volume",
}
# torch makes int64 of other indices, and looks into no entry.
REFUSED_AS_TRIPLE = {"indices-dtype", "indices-float", "rank-65", "entry-in-empty"}


@parametrize(FAULTS)
def test_the_same_from_python(fault):
    indices, shape, target = FAULTS[fault]
    want = told(ops.sparse_reshape, indices, shape, target)
    x = sparse_input(triple, indices, shape)
    assert (x is None) == (fault in MALFORMED | REFUSED_AS_TRIPLE)
    if x is not None:
        assert as_raw(told(tso.sparse_reshape, x, target)) == want
    if fault.startswith("indices-"):
        return
    x = sparse_input(coo, indices, shape)
    assert (x is None) == (fault in MALFORMED)
    if x is not None:
        assert told(tso.sparse_reshape, x, target) == want


@parametrize(SHAPES)
def test_the_same_without_data(fault):
    want = told(ops.sparse_reshape, *SHAPES[fault])
    mode, args = fakes(SHAPES[fault])
    with mode:
        assert told(ops.sparse_reshape, *args) == want
    assert told(ops.sparse_reshape, *metas(SHAPES[fault])) == want


# Those that are not about the indices.
OF_SIZES = [
    fault
    for fault in SHAPES
    if fault not in MALFORMED and "indices" not in fault and "rank-65" not in fault
]


@parametrize([*OF_SIZES, "negative", "negative-pair", "volume"])
def test_shapes_alone(fault):
    """reshape_shape() says the same of the same sizes, by its own name."""
    indices, shape, target = SHAPES[fault]
    want = told(ops.sparse_reshape, indices, shape, target)
    want = want.replace("sparse_reshape", "reshape_shape")
    assert told(tso.reshape_shape, shape, target) == want


def test_sparse_indices():
    expecttest.assert_expected_inline(
        told(ops.sparse_reshape, ROWS.to_sparse(), [2, 3], [6]),
        """ValueError: sparse_reshape: strided tensors on CPU or CUDA are required (got a sparse_coo tensor for input_indices)""",
    )


# ------------------------------------------------- what Python alone can see


def test_kinds_of_input_and_target():
    x = SparseTensor(ROWS, torch.ones(2), (2, 3))
    hybrid = SparseTensor(ROWS, torch.ones(2, 4), (2, 3, 4))
    faults = {
        "dense": (torch.ones(2, 3), (6,)),
        "csr": (torch.ones(2, 3).to_sparse_csr(), (6,)),
        "list": ([x], (6,)),
        "none": (None, (6,)),
        "tuple": ((ROWS, torch.ones(2), (2, 3)), (6,)),
        "float": (x, (2.0, 3)),
        "float-alone": (x, 6.0),
        "int": (x, 6),
        "no-target": (x, None),
        "nested": (x, [[2, 3]]),
        "text": (x, "6"),
        "float-tensor": (x, torch.ones(1)),
        "matrix": (x, torch.ones(1, 1).long()),
        "huge": (x, (2**63,)),
        "huge-negative": (x, (-(2**70),)),
        "dense-sizes": (hybrid, (3, 8)),
        "no-dense-sizes": (hybrid, ()),
        "dense-count": (hybrid, (5, 4)),
    }
    expecttest.assert_expected_inline(
        transcript(faults, tso.sparse_reshape),
        """\
dense: TypeError: sparse_reshape: sp_input must be a sparse COO tensor or a SparseTensor (got a strided Tensor)
csr: TypeError: sparse_reshape: sp_input must be a sparse COO tensor or a SparseTensor (got a sparse_csr Tensor)
list: TypeError: sparse_reshape: sp_input must be a sparse COO tensor or a SparseTensor (got list)
none: TypeError: sparse_reshape: sp_input must be a sparse COO tensor or a SparseTensor (got None)
tuple: TypeError: sparse_reshape: sp_input must be a sparse COO tensor or a SparseTensor (got tuple)
float: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got float 2.0 at position 0)
float-alone: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got float 6.0)
int: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got int 6)
no-target: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got None)
nested: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got list at position 0)
text: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got str '6')
float-tensor: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got a 1-D float32 Tensor)
matrix: TypeError: sparse_reshape: shape must be a sequence of ints or a 1-D integer tensor (got a 2-D int64 Tensor)
huge: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [9223372036854775808])
huge-negative: ValueError: sparse_reshape: target sizes must not be negative, except for one -1 (got 6 elements in [2, 3], target [-1180591620717411303424])
dense-sizes: ValueError: sparse_reshape: the target must end in the dense sizes [4] (got target [3, 8])
no-dense-sizes: ValueError: sparse_reshape: the target must end in the dense sizes [4] (got target [])
dense-count: ValueError: sparse_reshape: the target must have as many elements as the input (got 6 elements in [2, 3], target [5])""",
    )


def test_triples():
    values = torch.ones(2)
    faults = {
        "no-tensor": ([[0, 1]], values, (2, 3)),
        "values-list": (ROWS, [1.0, 2.0], (2, 3)),
        "sparse-indices": (ROWS.to_sparse(), values, (2, 3)),
        "sparse-values": (ROWS, values.to_sparse(), (2, 3)),
        "vector": (ROWS[0], values, (2, 3)),
        "dtype": (ROWS.int(), values, (2, 3)),
        "count": (ROWS, values[:1], (2, 3)),
        "scalar": (ROWS, values[0], (2, 3)),
        "few-sizes": (ROWS, values, (2,)),
        "many-sizes": (ROWS, values, (2, 3, 4)),
        "dense-sizes": (ROWS, values[:, None], (2, 3, 4)),
        "negative": (ROWS, values, (2, -3)),
        "volume": (ROWS, values, (2**40, 2**40)),
        "size": (ROWS[:0], values[:0], (2**63, 0)),
        "empty": (ROWS, values, (0, 3)),
        "float": (ROWS, values, (2.0, 3)),
        "no-shape": (ROWS, values, None),
        "nested": (ROWS, values, [[2, 3]]),
    }
    expecttest.assert_expected_inline(
        transcript(faults, SparseTensor),
        """\
no-tensor: TypeError: SparseTensor: indices must be a Tensor (got list)
values-list: TypeError: SparseTensor: values must be a Tensor (got list)
sparse-indices: TypeError: SparseTensor: indices must be a strided Tensor (got a sparse_coo Tensor)
sparse-values: TypeError: SparseTensor: values must be a strided Tensor (got a sparse_coo Tensor)
vector: ValueError: SparseTensor: indices must be of shape [nnz, rank] (got shape [2])
dtype: TypeError: SparseTensor: indices must be int64 (got int32)
count: ValueError: SparseTensor: values must have one row for each of the 2 entries (got shape [1])
scalar: ValueError: SparseTensor: values must have one row for each of the 2 entries (got shape [])
few-sizes: ValueError: SparseTensor: dense_shape must hold 2 sparse sizes, then the dense sizes [] (got [2])
many-sizes: ValueError: SparseTensor: dense_shape must hold 2 sparse sizes, then the dense sizes [] (got [2, 3, 4])
dense-sizes: ValueError: SparseTensor: dense_shape must hold 2 sparse sizes, then the dense sizes [1] (got [2, 3, 4])
negative: ValueError: SparseTensor: sizes must not be negative (got shape [2, -3])
volume: ValueError: SparseTensor: a shape must have fewer than 2**63 elements (got [1099511627776, 1099511627776])
size: ValueError: SparseTensor: a shape must have fewer than 2**63 elements (got [9223372036854775808, 0])
empty: IndexError: SparseTensor: an empty shape cannot have entries (got 2 entries, shape [0, 3])
float: TypeError: SparseTensor: dense_shape must be a sequence of ints or a 1-D integer tensor (got float 2.0 at position 0)
no-shape: TypeError: SparseTensor: dense_shape must be a sequence of ints or a 1-D integer tensor (got None)
nested: TypeError: SparseTensor: dense_shape must be a sequence of ints or a 1-D integer tensor (got list at position 0)""",
    )


def test_conversions():
    faults = {
        "dense": (torch.ones(2, 3),),
        "csr": (torch.ones(2, 3).to_sparse_csr(),),
        "none": (None,),
    }
    expecttest.assert_expected_inline(
        transcript(faults, SparseTensor.from_torch),
        """\
dense: TypeError: SparseTensor.from_torch: a sparse COO tensor is required (got a strided Tensor)
csr: TypeError: SparseTensor.from_torch: a sparse COO tensor is required (got a sparse_csr Tensor)
none: TypeError: SparseTensor.from_torch: a sparse COO tensor is required (got None)""",
    )
