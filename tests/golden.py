"""Loads the golden cases: inputs and results of TensorFlow's own kernels."""

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import torch

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Fault:
    """The class of an error and a piece of its text."""

    cls: type
    text: str


# One entry per category of error in the files. A wrong dtype is a TypeError where
# Python can say so and a ValueError from a raw operator.
FAULTS = {
    "empty_list": Fault(ValueError, "at least one input is required"),
    "rank_mismatch": Fault(ValueError, "sparse dimension"),
    "axis_out_of_range": Fault(IndexError, "axis must be in"),
    "shape_mismatch": Fault(ValueError, "must agree in every dimension except"),
    "shape_overflow": Fault(ValueError, "fewer than 2\\*\\*63|as many elements|divide"),
    "dtype_mismatch": Fault(TypeError, "must have the same dtype"),
    "indices_values_count_mismatch": Fault(ValueError, "one row for each"),
    "indices_rank_mismatch": Fault(ValueError, "sizes?"),
    "indices_not_matrix": Fault(ValueError, "must be of shape \\[nnz, rank\\]"),
    "shape_not_vector": Fault(TypeError, "shape"),
    "new_shape_not_vector": Fault(TypeError, "shape"),
    "negative_dim": Fault(ValueError, "must not be negative"),
    "index_out_of_bounds": Fault(IndexError, "must be within"),
    "nnz_in_empty_shape": Fault(IndexError, "an empty shape cannot have entries"),
    "element_count_mismatch": Fault(ValueError, "number of elements|as many elements"),
    "unknown_dim_with_zero": Fault(ValueError, "cannot be inferred"),
    "two_unknown_dims": Fault(ValueError, "at most one target size may be -1"),
    "negative_target_dim": Fault(ValueError, "except for one -1"),
    "unknown_policy": Fault(ValueError, "bad_indices_policy must be one of"),
    "updates_shape_mismatch": Fault(ValueError, "updates.shape must be"),
    "index_depth_exceeds_rank": Fault(ValueError, "from 1 to the rank of tensor"),
    "unsupported_index_depth": Fault(ValueError, "from 1 to the rank of tensor"),
    "indices_rank_too_small": Fault(ValueError, "at least 2 dimensions"),
    "tensor_rank_zero": Fault(ValueError, "from 1 to the rank of tensor"),
}

# The result that differs from the file: a values matrix is a hybrid tensor here.
HYBRID_CASE = "values-matrix"


@dataclass(frozen=True)
class Case:
    id: str
    inputs: SimpleNamespace
    faults: tuple[Fault, ...] = ()  # empty when the call succeeds
    expected: SimpleNamespace | None = None
    grad: SimpleNamespace | None = field(default=None)

    @property
    def ok(self):
        return not self.faults


def tensor(data, dtype, shape=None):
    """A tensor of `data` as the files write it: complex as pairs, "nan" as text."""
    if dtype.is_complex:
        data = [complex(float(re), float(im)) for re, im in data]
    elif dtype.is_floating_point:
        data = [float(x) for x in data]
    out = torch.tensor(data, dtype=dtype)
    return out if shape is None else out.reshape(shape)


def index_matrix(rows, rank):
    return torch.tensor(rows, dtype=torch.int64).reshape(len(rows), rank)


def dtype_of(name):
    return getattr(torch, name)


def nested(data, shape):
    """`data` as nested lists of the given shape; a bare number for no dimensions."""
    return torch.tensor(data, dtype=torch.int64).reshape(shape).tolist()


def sparse_input(case_input, dtype):
    """(indices, values, shape) of one input, well formed or not."""
    raw = case_input.get("raw")
    if raw is None:
        shape = case_input["shape"]
        return (
            index_matrix(case_input["indices"], len(shape)),
            tensor(case_input["values"], dtype),
            shape,
        )
    values = raw["values"]
    dtype = dtype_of(values["dtype"]) if "dtype" in values else dtype
    return (
        torch.tensor(raw["indices"]["data"], dtype=torch.int64).reshape(
            raw["indices"]["shape"]
        ),
        tensor(values["data"], dtype, values["shape"]),
        nested(raw["shape"]["data"], raw["shape"]["shape"]),
    )


def concat_inputs(case):
    dtype = dtype_of(case["dtype"])
    inputs = [sparse_input(x, dtype) for x in case["sp_inputs"]]
    return SimpleNamespace(
        indices=[x[0] for x in inputs],
        values=[x[1] for x in inputs],
        shapes=[x[2] for x in inputs],
        axis=case["axis"],
        expand=case["expand_nonconcat_dims"],
    )


def reshape_inputs(case):
    raw = case.get("raw")
    if raw is None:
        indices, values, shape = sparse_input(case, dtype_of(case["dtype"]))
        new_shape = case["new_shape"]
    else:
        indices = torch.tensor(raw["indices"]["data"], dtype=torch.int64)
        indices = indices.reshape(raw["indices"]["shape"])
        shape = nested(raw["shape"]["data"], raw["shape"]["shape"])
        new_shape = nested(raw["new_shape"]["data"], raw["new_shape"]["shape"])
        values = torch.ones(indices.shape[0])
    return SimpleNamespace(
        indices=indices, values=values, shape=shape, new_shape=new_shape
    )


def scatter_inputs(case):
    dtype = dtype_of(case["dtype"])
    return SimpleNamespace(
        tensor=tensor(case["tensor"]["data"], dtype, case["tensor"]["shape"]),
        indices=torch.tensor(
            case["indices"]["data"], dtype=dtype_of(case["index_dtype"])
        ).reshape(case["indices"]["shape"]),
        updates=tensor(case["updates"]["data"], dtype, case["updates"]["shape"]),
        policy=case["bad_indices_policy"],
    )


def sparse_expected(case, dtype):
    shape = case["shape"]
    return SimpleNamespace(
        indices=index_matrix(case["indices"], len(shape)),
        values=tensor(case["values"], dtype),
        shape=tuple(shape),
    )


def hybrid_expected(inputs):
    """The case of two inputs with one entry each, at the origin, joined on axis 0."""
    return SimpleNamespace(
        indices=torch.tensor([[0, 0], [inputs.shapes[0][0], 0]]),
        values=torch.cat(inputs.values),
        shape=(sum(shape[0] for shape in inputs.shapes), inputs.shapes[0][1]),
    )


def gradients(op, grad, dtype, inputs):
    upstream = grad["upstream"]
    if op == "tensor_scatter_update":
        return SimpleNamespace(
            upstream=tensor(upstream, dtype, inputs.tensor.shape),
            tensor=tensor(grad["d_tensor"], dtype, inputs.tensor.shape),
            updates=tensor(grad["d_updates"], dtype, inputs.updates.shape),
        )
    d_values = grad["d_values"]
    if op == "sparse_concat":
        d_values = [tensor(d, dtype) for d in d_values]
    else:
        d_values = tensor(d_values, dtype)
    return SimpleNamespace(upstream=tensor(upstream, dtype), values=d_values)


READERS = {
    "sparse_concat": concat_inputs,
    "sparse_reshape": reshape_inputs,
    "tensor_scatter_update": scatter_inputs,
}


def read(op, case):
    inputs = READERS[op](case["inputs"])
    expected, grad, faults = case["expected"], case.get("grad"), ()
    name = case["id"].removeprefix(op + "-")
    if name.endswith(HYBRID_CASE):
        return Case(name, inputs, expected=hybrid_expected(inputs))
    if expected["status"] == "error":
        categories = [expected["category"], *expected.get("also_ok", ())]
        faults = tuple(FAULTS[category] for category in categories)
        return Case(name, inputs, faults)
    dtype = dtype_of(case["inputs"]["dtype"])
    if op == "tensor_scatter_update":
        output = expected["output"]
        result = SimpleNamespace(output=tensor(output["data"], dtype, output["shape"]))
    else:
        result = sparse_expected(expected, dtype)
    if grad is not None:
        grad = gradients(op, grad, dtype, inputs)
    return Case(name, inputs, expected=result, grad=grad)


@functools.cache
def load(op):
    """Every case of one operator. Their tensors are shared: do not write to them."""
    cases = json.loads((FOLDER / f"{op}.json").read_text())["cases"]
    return [read(op, case) for case in cases]
