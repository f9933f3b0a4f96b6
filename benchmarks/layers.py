"""What a call costs when there is next to nothing to do: each layer of each operator,
beside an ATen operator that takes as many arguments of the same kinds.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

import torch_sparse_ops as tso

CALLS = 200  # at a turn
MANY = 66  # inputs of the long concat
MODES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "inference_mode": torch.inference_mode,
    "no gradient asked": nullcontext,
    "gradient asked": nullcontext,
}


class Layer(NamedTuple):
    op: str
    name: str
    run: Callable[[], Any]
    inputs: int = 1


def matrix() -> Tensor:
    return torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 2], [1, 0, 2]]),
        torch.ones(3),
        (3, 3),
        is_coalesced=True,
        check_invariants=False,
    )


def concat_layers(count: int, grad: bool) -> list[Layer]:
    raw = torch.ops.torch_sparse_ops.sparse_concat.default
    many = torch.ops.aten._foreach_lerp.ScalarList
    coos = [matrix().requires_grad_(grad) for _ in range(count)]
    indices = [x.detach()._indices().t() for x in coos]
    values = [x.detach()._values().requires_grad_(grad) for x in coos]
    floats = [i.t().float().requires_grad_(grad) for i in indices]
    triples = [
        tso.SparseTensor(i, v, (3, 3)) for i, v in zip(indices, values, strict=True)
    ]
    sizes = [3, 3] * count

    weights = [0.5] * count

    def aten() -> Any:
        return many(floats, floats, weights)

    found = [
        Layer(
            "sparse_concat",
            "aten::_foreach_lerp (2 lists of tensors, one of numbers)",
            aten,
            count,
        ),
        Layer(
            "sparse_concat",
            "raw operator",
            lambda: raw(indices, values, sizes, 1, False, True),
            count,
        ),
        Layer(
            "sparse_concat",
            "function, SparseTensors",
            lambda: tso.sparse_concat(triples, 1),
            count,
        ),
        Layer(
            "sparse_concat",
            "function, COO tensors",
            lambda: tso.sparse_concat(coos, 1),
            count,
        ),
    ]
    if not grad:
        cat = Layer(
            "sparse_concat",
            "torch.cat, coalesce of COO tensors",
            lambda: torch.cat(coos, 1).coalesce(),
            count,
        )
        found.append(cat)
    return found


def reshape_layers(grad: bool) -> list[Layer]:
    raw = torch.ops.torch_sparse_ops.sparse_reshape.default
    roll = torch.ops.aten.roll.default
    coo = matrix().requires_grad_(grad)
    indices = matrix()._indices().t()
    floats = matrix()._indices().float().requires_grad_(grad)
    triple = tso.SparseTensor(indices, coo.detach()._values(), (3, 3))
    op = "sparse_reshape"
    return [
        Layer(
            op,
            "aten::roll (a tensor, 2 lists of ints)",
            lambda: roll(floats, [1, 1], [0, 1]),
        ),
        Layer(op, "raw operator", lambda: raw(indices, [3, 3], [9])),
        Layer(op, "function, SparseTensor", lambda: tso.sparse_reshape(triple, (9,))),
        Layer(op, "function, COO tensor", lambda: tso.sparse_reshape(coo, (9,))),
    ]


def scatter_layers(grad: bool) -> list[Layer]:
    raw = torch.ops.torch_sparse_ops.tensor_scatter_update.default
    raw_ = torch.ops.torch_sparse_ops.tensor_scatter_update_.default
    aten = torch.ops.aten.index_copy.default
    aten_ = torch.ops.aten.index_copy_.default
    tensor = torch.zeros(8, 4).requires_grad_(grad)
    rows = torch.tensor([1, 5])
    indices = rows[:, None]
    updates = torch.ones(2, 4).requires_grad_(grad)
    args = tensor, indices, updates
    op, op_ = "tensor_scatter_update", "tensor_scatter_update_"
    found = [
        Layer(
            op, "aten::index_copy (3 tensors)", lambda: aten(tensor, 0, rows, updates)
        ),
        Layer(op, "raw operator", lambda: raw(*args)),
        Layer(op, "function", lambda: tso.tensor_scatter_update(*args)),
    ]
    if grad:
        return found
    return found + [
        Layer(
            op_,
            "aten::index_copy_ (3 tensors)",
            lambda: aten_(tensor, 0, rows, updates),
        ),
        Layer(op_, "raw operator", lambda: raw_(*args)),
        Layer(op_, "function", lambda: tso.tensor_scatter_update_(*args)),
    ]


def all_layers(mode: str) -> list[Layer]:
    grad = mode == "gradient asked"
    return [
        *concat_layers(2, grad),
        *concat_layers(MANY, grad),
        *reshape_layers(grad),
        *scatter_layers(grad),
    ]


def microseconds(run: Callable[[], Any], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls * 1e6


def measure(rounds: int) -> list[dict[str, Any]]:
    """Medians over rounds in which every layer has a turn."""
    rows = []
    for mode, context in MODES.items():
        with context():
            layers = all_layers(mode)
            times: list[list[float]] = [[] for _ in layers]
            gc.disable()
            for turn in range(rounds + 1):
                for layer, found in zip(layers, times, strict=True):
                    calls = max(1, CALLS // layer.inputs)
                    spent = microseconds(layer.run, calls)
                    if turn:  # the first one warms up
                        found.append(spent)
                gc.enable()
                gc.collect()
                gc.disable()
            gc.enable()
        rows += [
            {
                "op": layer.op,
                "layer": layer.name,
                "inputs": layer.inputs,
                "mode": mode,
                "us": statistics.median(found),
                "least_us": min(found),
            }
            for layer, found in zip(layers, times, strict=True)
        ]
    return rows
