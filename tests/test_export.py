"""torch.export and AOTInductor: any number of entries, in another process."""

import subprocess
import sys
import textwrap

import pytest
import torch
from bits import same_bits
from torch.export import Dim
from torch.utils import _pytree as pytree

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

pytestmark = pytest.mark.usefixtures("fresh_compile")


class Model(torch.nn.Module):
    """Feature blocks joined and flattened, and a memory updated by rows."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(77.0))

    def forward(self, a, b, memory, rows, updates):
        joined = tso.sparse_concat([a, b], 1, expand_nonconcat_dims=True)
        flat = tso.sparse_reshape(joined, (-1,))
        scores = flat.values * self.weight[flat.indices[:, 0]]
        memory = tso.tensor_scatter_update(
            memory, rows, updates, bad_indices_policy="IGNORE"
        )
        return flat, scores, memory


def arguments(nnz_a, nnz_b, rows):
    g = torch.Generator().manual_seed(nnz_a)

    def indices(nnz, shape):
        columns = [torch.randint(size, (nnz,), generator=g) for size in shape]
        return torch.stack(columns, dim=1)

    a = SparseTensor(indices(nnz_a, (7, 5)), torch.randn(nnz_a), (7, 5))
    b = SparseTensor(indices(nnz_b, (4, 6)), torch.randn(nnz_b), (4, 6))
    places = torch.randint(-1, 4, (rows, 1), generator=g)
    return a, b, torch.zeros(3, 2), places, torch.randn(rows, 2)


def dynamic_shapes():
    entries_a, entries_b, rows = Dim("entries_a"), Dim("entries_b"), Dim("rows")
    # The leaves of a triple, in order.
    return (
        [{0: entries_a}, {0: entries_a}],
        [{0: entries_b}, {0: entries_b}],
        {},
        {0: rows},
        {0: rows},
    )


def check(program, *counts):
    args = arguments(*counts)
    want, got = Model()(*args), program(*args)
    leaves, spec = pytree.tree_flatten(want)
    got_leaves, got_spec = pytree.tree_flatten(got)
    assert got_spec == spec
    assert all(same_bits(x, y) for x, y in zip(got_leaves, leaves, strict=True))


@pytest.fixture(scope="module")
def exported():
    return torch.export.export(
        Model(), arguments(5, 6, 7), dynamic_shapes=dynamic_shapes()
    )


COUNTS = [(5, 6, 7), (2, 3, 4), (30, 2, 11)]


def test_any_number_of_entries(exported):
    for counts in COUNTS:
        check(exported.module(), *counts)


@pytest.mark.parametrize("strict", [False, True])
def test_both_ways_of_tracing(strict):
    program = torch.export.export(
        Model(), arguments(5, 6, 7), dynamic_shapes=dynamic_shapes(), strict=strict
    )
    names = {str(node.target) for node in program.graph.nodes}
    for op in ("sparse_concat", "sparse_reshape", "tensor_scatter_update"):
        assert f"torch_sparse_ops.{op}.default" in names
    check(program.module(), 9, 8, 5)


def test_decomposed_for_inference(exported):
    check(exported.run_decompositions().module(), 9, 8, 5)


def test_errors_are_those_of_eager(exported):
    a, *rest = arguments(5, 6, 7)
    wrong = SparseTensor(a.indices + 7, a.values, a.dense_shape)
    with pytest.raises(IndexError) as eager:
        Model()(wrong, *rest)
    with pytest.raises(IndexError) as late:
        exported.module()(wrong, *rest)
    assert str(late.value) == str(eager.value)


def test_the_shape_of_a_triple_is_part_of_the_program(exported):
    a, *rest = arguments(5, 6, 7)
    wider = SparseTensor(a.indices, a.values, (7, 9))
    with pytest.raises(Exception, match=r"(?i)spec|tree|structure"):
        exported.module()(wider, *rest)


RUN = """
    import sys
    import torch
    import torch_sparse_ops
    from torch.utils import _pytree as pytree

    kind, program, args, out = sys.argv[1:]
    args = torch.load(args, weights_only=True)
    if kind == "exported":
        run = torch.export.load(program).module()
    else:
        run = torch._inductor.aoti_load_package(program)
    result = run(*args)
    torch.save(pytree.tree_leaves(result), out)
"""


def run_elsewhere(folder, kind, program):
    """The program in a new process, for other counts than it was made with."""
    args = arguments(30, 2, 11)
    torch.save(args, folder / "args.pt")
    command = [sys.executable, "-c", textwrap.dedent(RUN), kind, str(program)]
    command += [str(folder / "args.pt"), str(folder / "out.pt")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    got = torch.load(folder / "out.pt", weights_only=True)
    want = pytree.tree_leaves(Model()(*args))
    assert all(same_bits(x, y) for x, y in zip(got, want, strict=True))


@pytest.mark.slow
def test_saved_and_loaded_in_another_process(exported, tmp_path):
    torch.export.save(exported, tmp_path / "program.pt2")
    run_elsewhere(tmp_path, "exported", tmp_path / "program.pt2")


@pytest.mark.slow
def test_ahead_of_time_package_in_another_process(exported, tmp_path):
    package = torch._inductor.aoti_compile_and_package(
        exported, package_path=str(tmp_path / "model.pt2")
    )
    check(torch._inductor.aoti_load_package(package), *COUNTS[1])
    run_elsewhere(tmp_path, "package", package)


def test_triples_survive_saving(tmp_path):
    x = arguments(5, 6, 7)[0]
    torch.save({"x": x}, tmp_path / "x.pt")
    again = torch.load(tmp_path / "x.pt", weights_only=True)["x"]
    assert isinstance(again, SparseTensor)
    assert same_bits(again.indices, x.indices)
    assert same_bits(again.values, x.values)
    assert again.dense_shape == x.dense_shape
    spec = pytree.tree_structure({"x": [x]})
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
