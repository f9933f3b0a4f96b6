"""torch.library.opcheck, all four of its tests, on every raw operator."""

import itertools
import random

import pytest
import samples
import torch
from bits import numbers, same_bits
from torch._subclasses import FakeTensorMode
from torch.library import opcheck

import torch_sparse_ops as tso

ops = torch.ops.torch_sparse_ops

# The checker compares by torch's allclose, which does not know every dtype.
CHECKED = (
    torch.bool,
    torch.int16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
)


def chosen(found):
    """Every feature once: no threads, and of the ranks only each sixth case."""
    ranks = [s for s in found if s.id.startswith("rank")]
    return [
        sample
        for sample in found
        if not sample.id.startswith(("long", "many", "near-limit"))
        and not sample.id.endswith("-many")
        and (sample not in ranks or ranks.index(sample) % 6 == 1)
    ]


def check(op, *args):
    results = opcheck(op.default, args)
    assert len(results) == 4
    assert set(results.values()) == {"SUCCESS"}


def computed(t, dtype=None):
    """The same strides with plain numbers, which the checker can compare."""
    out = torch.empty_strided(t.shape, t.stride(), dtype=dtype or t.dtype)
    memory = out.untyped_storage().nbytes() // out.itemsize
    everywhere = numbers(random.Random(0), out.dtype, memory)
    return everywhere.as_strided(t.shape, t.stride())


def plain(found):
    return [s for s in chosen(found) if s.dtype in CHECKED]


concat_samples = plain(samples.concat_samples())
reshape_samples = chosen(samples.reshape_samples())
scatter_samples = plain(samples.scatter_samples())


def over(found):
    return pytest.mark.parametrize("sample", found, ids=lambda s: s.id)


@over(concat_samples)
def test_concat(sample):
    indices, _, *rest = sample.args()
    values = [computed(v) for v in sample.values]
    if sample.dtype.is_floating_point or sample.dtype.is_complex:
        values = [v.requires_grad_() for v in values]
    check(ops.sparse_concat, indices, values, *rest)


@over(concat_samples[1::3])
def test_concat_coo(sample):
    """What COO tensors call: the same, and whether each input was coalesced."""
    want = ops.sparse_concat(*sample.args())
    indices, values, *rest = sample.args()
    stored = [x.t() for x in indices]
    got_values, got_indices, strict = ops._sparse_concat_coo(stored, values, *rest)
    assert same_bits(got_values, want[0])
    assert same_bits(got_indices.t(), want[1])
    rows = [list(map(tuple, indices.tolist())) for indices in sample.indices]
    assert strict == all(a < b for r in rows for a, b in itertools.pairwise(r))
    if not strict:  # which no tracer can find out, nor does it have to
        check(ops._sparse_concat_coo, stored, [computed(v) for v in values], *rest)


def test_coo_without_data():
    x = torch.eye(3).to_sparse().to("meta")
    assert tso.sparse_concat([x, x], 0).shape == (6, 3)
    assert tso.sparse_reshape(x, (1, -1)).shape == (1, 9)
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.eye(3).to_sparse())
        assert tso.sparse_concat([x, x], 0).shape == (6, 3)
        assert tso.sparse_reshape(x, (1, -1)).shape == (1, 9)


@over(concat_samples[::3])
def test_concat_grad_values(sample):
    indices, _, *rest = sample.args()
    grad = computed(ops.sparse_concat(*sample.args())[0], torch.float64)
    check(ops._sparse_concat_grad_values, grad.requires_grad_(), indices, *rest)


@over(reshape_samples)
def test_reshape(sample):
    check(ops.sparse_reshape, *sample.args())


@over(scatter_samples)
def test_scatter(sample):
    tensor, indices, updates, policy = sample.args()
    tensor, updates = computed(tensor), computed(updates)
    if sample.dtype.is_floating_point or sample.dtype.is_complex:
        tensor.requires_grad_()
        updates.requires_grad_()
    check(ops.tensor_scatter_update, tensor, indices, updates, policy)


@over([s for s in scatter_samples[::3] if 0 not in s.tensor.stride()])
def test_scatter_in_place(sample):
    tensor, indices, updates, policy = sample.args()
    tensor, updates = computed(tensor), computed(updates)
    check(ops.tensor_scatter_update_, tensor, indices, updates, policy)


@over(scatter_samples[::5])
@pytest.mark.parametrize("which", ["tensor", "updates"])
def test_scatter_gradients(sample, which):
    op = getattr(ops, f"_tensor_scatter_update_grad_{which}")
    grad = computed(sample.tensor, torch.float64).requires_grad_()
    check(op, grad, sample.indices)


@over(scatter_samples[::5])
def test_scatter_gradients_at_once(sample):
    check(ops._tensor_scatter_update_grads, computed(sample.tensor), sample.indices)


# ------------------------------------------------------------------- schemas


def test_schemas():
    schemas = {
        name: str(getattr(ops, name).default._schema)
        for name in (
            "sparse_concat",
            "sparse_reshape",
            "tensor_scatter_update",
            "tensor_scatter_update_",
        )
    }
    prefix = "torch_sparse_ops::"
    assert schemas == {
        "sparse_concat": prefix + "sparse_concat(Tensor[] indices, Tensor[] values, "
        "SymInt[] shapes, int concat_dim, bool expand_nonconcat_dims=False, "
        "bool inputs_sorted=False) -> (Tensor output_values, Tensor output_indices)",
        "sparse_reshape": prefix + "sparse_reshape(Tensor input_indices, "
        "SymInt[] input_shape, SymInt[] new_shape) -> Tensor output_indices",
        "tensor_scatter_update": prefix + "tensor_scatter_update(Tensor tensor, "
        'Tensor indices, Tensor updates, str bad_indices_policy="") -> Tensor',
        "tensor_scatter_update_": prefix + "tensor_scatter_update_(Tensor(a!) tensor, "
        'Tensor indices, Tensor updates, str bad_indices_policy="") -> ()',
    }


# -------------------------------------------------------------- fake kernels


def described(out):
    return [
        (t.shape, t.stride(), t.dtype, t.layout, t.storage_offset())
        for t in torch.utils._pytree.tree_leaves(out)
    ]


ALL_SAMPLES = [
    *((ops.sparse_concat, s) for s in samples.concat_samples()),
    *((ops.sparse_reshape, s) for s in samples.reshape_samples()),
    *((ops.tensor_scatter_update, s) for s in samples.scatter_samples()),
]


@pytest.mark.parametrize(
    "op, sample", ALL_SAMPLES, ids=lambda x: getattr(x, "id", None) or x.__name__
)
def test_meta_results_are_exact(op, sample):
    """Shapes, strides and dtypes before running are those after it."""
    meta = op(*sample.to("meta").args())
    assert described(meta) == described(op(*sample.args()))
    assert all(t.is_meta for t in torch.utils._pytree.tree_leaves(meta))
