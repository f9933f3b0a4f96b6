"""The number of threads changes nothing, nor do several callers at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import samples
import torch
from bits import same_bits
from torch.utils._pytree import tree_leaves

ops = torch.ops.torch_sparse_ops

CALLS = {
    f"{op}-{sample.id}": (getattr(ops, op), sample)
    for op, found in {
        "sparse_concat": samples.concat_samples(),
        "sparse_reshape": samples.reshape_samples(),
        "tensor_scatter_update": samples.scatter_samples(),
    }.items()
    for sample in found
    if sample.id.startswith("long")
}


def same(a, b):
    pairs = zip(tree_leaves(a), tree_leaves(b), strict=True)
    return all(same_bits(x, y) for x, y in pairs)


@pytest.mark.parametrize("id", CALLS)
def test_number_of_threads(id):
    op, sample = CALLS[id]
    torch.set_num_threads(1)
    want = op(*sample.args())
    for threads in (2, 3, 8):
        torch.set_num_threads(threads)
        assert same(op(*sample.args()), want)


def test_several_callers_at_once():
    calls = [(op, sample.args()) for op, sample in CALLS.values()] * 4
    want = [op(*args) for op, args in calls]
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda call: call[0](*call[1]), calls)
        assert all(same(got, one) for got, one in zip(results, want, strict=True))


def test_an_error_in_one_caller_is_its_own():
    good = torch.zeros(1000, 1, dtype=torch.int64)
    bad = good.clone()
    bad[500] = 9

    def call(k):
        try:
            ops.sparse_reshape(bad if k % 2 else good, [3], [3])
        except IndexError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(call, range(200)))
    assert not any(texts[::2])
    assert all("got 9 in dimension 0 of entry 500" in text for text in texts[1::2])
