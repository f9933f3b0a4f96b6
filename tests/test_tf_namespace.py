"""torch_sparse_ops.tf: TensorFlow's names, signatures and argument spellings."""

import inspect
import warnings

import pytest
import torch
from bits import same_bits
from coo import coo, entries

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor, tf

A = {(0, 2): 1.0, (1, 0): 2.0, (1, 1): 3.0}
B = {(0, 1): 4.0, (0, 2): 5.0}
JOINED = [((0, 2), 1.0), ((0, 4), 4.0), ((0, 5), 5.0), ((1, 0), 2.0), ((1, 1), 3.0)]

v1 = tf.compat.v1
EMPTY = inspect.Parameter.empty


def inputs():
    return [coo((2, 3), A, coalesced=True), coo((2, 4), B, coalesced=True)]


def spelling(function):
    """[(name, default)] of the parameters, all of them positional in TensorFlow."""
    parameters = inspect.signature(function).parameters.values()
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
    return [(p.name, p.default) for p in parameters]


V2_CONCAT = [
    ("axis", EMPTY),
    ("sp_inputs", EMPTY),
    ("expand_nonconcat_dims", False),
    ("name", None),
]
V1_CONCAT = [
    ("axis", EMPTY),
    ("sp_inputs", EMPTY),
    ("name", None),
    ("expand_nonconcat_dim", False),
    ("concat_dim", None),
    ("expand_nonconcat_dims", None),
]
RESHAPE = [("sp_input", EMPTY), ("shape", EMPTY), ("name", None)]
SCATTER = [("tensor", EMPTY), ("indices", EMPTY), ("updates", EMPTY), ("name", None)]


@pytest.mark.parametrize(
    "function, parameters",
    [
        (tf.sparse.concat, V2_CONCAT),
        (tf.sparse.reshape, RESHAPE),
        (tf.tensor_scatter_nd_update, SCATTER),
        (v1.sparse_concat, V1_CONCAT),
        (v1.sparse.concat, V1_CONCAT),
        (v1.sparse_reshape, RESHAPE),
        (v1.sparse.reshape, RESHAPE),
        (v1.tensor_scatter_nd_update, SCATTER),
        (v1.tensor_scatter_update, SCATTER),
    ],
    ids=lambda x: getattr(x, "__qualname__", ""),
)
def test_signatures(function, parameters):
    assert spelling(function) == parameters


# -------------------------------------------------------------------- concat

concats = pytest.mark.parametrize(
    "concat", [tf.sparse.concat, v1.sparse_concat, v1.sparse.concat]
)


@concats
def test_concat(concat):
    assert entries(concat(1, inputs())) == JOINED
    assert entries(concat(axis=-1, sp_inputs=inputs(), name="joined")) == JOINED
    triples = [SparseTensor.from_torch(x) for x in inputs()]
    assert concat(1, triples).dense_shape == (2, 7)


@concats
def test_concat_expands(concat):
    ragged = [coo((3, 2), {(0, 0): 1.0}), coo((2, 2), {(1, 0): 3.0})]
    out = concat(1, ragged, expand_nonconcat_dims=True)
    assert out.shape == (3, 4)
    with pytest.raises(ValueError, match="must agree in every dimension"):
        concat(1, ragged)


def test_positional_order_of_each():
    ragged = [coo((3, 2), {(0, 0): 1.0}), coo((2, 2), {(1, 0): 3.0})]
    assert tf.sparse.concat(1, ragged, True, "name").shape == (3, 4)
    with pytest.warns(DeprecationWarning, match="expand_nonconcat_dim"):
        assert v1.sparse_concat(1, ragged, "name", True).shape == (3, 4)


v1_concats = pytest.mark.parametrize("concat", [v1.sparse_concat, v1.sparse.concat])


@v1_concats
def test_deprecated_concat_dim(concat):
    with pytest.warns(DeprecationWarning, match=r"concat_dim.* axis"):
        out = concat(None, inputs(), concat_dim=1)
    assert entries(out) == JOINED
    with pytest.warns(DeprecationWarning, match="concat_dim"):
        assert entries(concat(1, inputs(), concat_dim=1)) == JOINED


@v1_concats
def test_deprecated_expand_nonconcat_dim(concat):
    ragged = [coo((3, 2), {(0, 0): 1.0}), coo((2, 2), {(1, 0): 3.0})]
    with pytest.warns(DeprecationWarning, match="expand_nonconcat_dims"):
        out = concat(1, ragged, expand_nonconcat_dim=True)
    assert out.shape == (3, 4)


@v1_concats
@pytest.mark.parametrize(
    "arguments",
    [
        {"axis": 0, "concat_dim": 1},
        {"axis": 1, "expand_nonconcat_dim": True, "expand_nonconcat_dims": False},
    ],
    ids=["axis", "expand"],
)
def test_conflicting_spellings(concat, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with pytest.raises(ValueError, match=r"axis|expand_nonconcat_dims"):
            concat(sp_inputs=inputs(), **arguments)


@v1_concats
def test_an_axis_is_required(concat):
    with pytest.raises(TypeError, match=r"axis must be an int \(got None\)"):
        concat(None, inputs())


@concats
def test_new_spellings_do_not_warn(concat):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        concat(1, inputs())
        concat(1, inputs(), expand_nonconcat_dims=True)


# ------------------------------------------------------------------- reshape

reshapes = pytest.mark.parametrize(
    "reshape", [tf.sparse.reshape, v1.sparse_reshape, v1.sparse.reshape]
)


@reshapes
def test_reshape(reshape):
    x = coo((4, 6), {(0, 5): 1.0, (2, 0): 2.0})
    for out in (
        reshape(x, (3, -1)),
        reshape(sp_input=x, shape=torch.tensor([3, 8]), name="flat"),
    ):
        assert entries(out) == [((0, 5), 1.0), ((1, 4), 2.0)]
    triple = reshape(SparseTensor.from_torch(x), [3, -1])
    assert triple.dense_shape == (3, 8)


# ------------------------------------------------------------------- scatter

updates_of = pytest.mark.parametrize(
    "update",
    [
        tf.tensor_scatter_nd_update,
        v1.tensor_scatter_nd_update,
        v1.tensor_scatter_update,
    ],
)


@updates_of
def test_scatter(update):
    out = update(torch.zeros(5), torch.tensor([[1], [1]]), torch.tensor([1.0, 2.0]))
    assert out.tolist() == [0, 2, 0, 0, 0]
    named = update(
        tensor=torch.zeros(5),
        indices=torch.tensor([[3]]),
        updates=torch.ones(1),
        name="updated",
    )
    assert named.tolist() == [0, 0, 0, 1, 0]


@updates_of
def test_scatter_takes_what_torch_can_convert(update):
    assert update([1, 2, 3], [[0], [2]], [7, 8]).tolist() == [7, 2, 8]
    assert update([1.0, 2.0], [[0]], [7.0]).dtype == torch.float32
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    array = numpy.array([1.5, 2.5])
    out = update(array, numpy.array([[1]], dtype="int32"), numpy.array([9.0]))
    assert out.dtype == torch.float64
    assert out.tolist() == [1.5, 9]
    assert array.tolist() == [1.5, 2.5]


@updates_of
@pytest.mark.parametrize("place", ["tensor", "indices", "updates"])
def test_strings_are_refused(update, place):
    arguments = {"tensor": [1.0, 2.0], "indices": [[0]], "updates": [7.0]}
    arguments[place] = ["a", "b"] if place == "tensor" else [["a"]]
    with pytest.raises(TypeError, match=place):
        update(**arguments)


@updates_of
def test_gradients_and_errors_are_those_of_the_operator(update):
    tensor = torch.zeros(3, requires_grad=True)
    update(tensor, [[1]], [5.0]).sum().backward()
    assert tensor.grad.tolist() == [1, 0, 1]
    with pytest.raises(IndexError) as ours:
        tso.tensor_scatter_update(torch.zeros(3), torch.tensor([[3]]), torch.ones(1))
    with pytest.raises(IndexError) as theirs:
        update(torch.zeros(3), [[3]], [1.0])
    assert str(theirs.value) == str(ours.value)


def test_results_equal_the_operators():
    x = coo((4, 6), {(2, 0): 2.0})
    ours = tso.sparse_reshape(x, (3, -1))
    theirs = tf.sparse.reshape(x, (3, -1))
    assert same_bits(ours._indices(), theirs._indices())
    assert theirs._values().data_ptr() == x._values().data_ptr()
