"""What inductor makes of the in-place operator: a call on the tensor itself."""

import re

import pytest
import torch
from bits import same_bits
from torch._inductor.utils import run_and_get_code

import torch_sparse_ops as tso

pytestmark = pytest.mark.usefixtures("fresh_compile")


def write_to_argument(memory, rows, updates):
    tso.tensor_scatter_update_(memory, rows, updates)
    return memory.sum()


def write_to_own(memory, rows, updates):
    own = memory * 2
    tso.tensor_scatter_update_(own, rows, updates)
    return own


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "program, allocations", [(write_to_argument, 1), (write_to_own, 1)]
)
def test_nothing_is_copied(program, allocations, dynamic):
    """One buffer each: the sum, and the tensor that eager makes too."""
    memory, updates = torch.randn(50, 4), torch.randn(2, 4)
    rows = torch.tensor([[1], [3]])
    eager = memory.clone()
    want = program(eager, rows, updates)
    run = torch.compile(program, fullgraph=True, dynamic=dynamic)
    got, (code,) = run_and_get_code(run, memory, rows, updates)
    call = code[code.index("def call(") : code.index("def get_args(")]
    assert call.count("torch_sparse_ops.tensor_scatter_update_.default(") == 1
    assert len(re.findall(r"= empty_strided\w*\(", call)) == allocations
    assert not re.search(r"clone|copy_|tensor_scatter_update\.default", call)
    torch.testing.assert_close(got, want)
    assert same_bits(memory, eager)
