"""Sample arguments for each operator, shared by all tests.

`concat_samples()`, `reshape_samples()` and `scatter_samples()` return lists of
samples on the CPU; `sample.to(device)` moves one. Each call makes the same tensors
anew, so that a test may do what it likes with them. All samples are valid: where
rows lie out of bounds, the policy is "IGNORE".
"""

import dataclasses
import math
import random
from dataclasses import dataclass

import torch
from bits import DTYPES, LAYOUTS, coordinates, name_of, random_bits

# ------------------------------------------------------------------- concat


@dataclass(frozen=True)
class ConcatSample:
    id: str
    indices: list
    values: list
    shapes: list
    axis: int
    expand: bool = False
    sorted: bool = False

    def args(self):
        """Arguments of the raw operator."""
        flat = [size for shape in self.shapes for size in shape]
        return (self.indices, self.values, flat, self.axis, self.expand, self.sorted)

    def to(self, device):
        return dataclasses.replace(
            self,
            indices=[t.to(device) for t in self.indices],
            values=[t.to(device) for t in self.values],
        )

    @property
    def dtype(self):
        return self.values[0].dtype


def make_concat(
    id,
    shapes,
    axis,
    *,
    nnz=5,
    dtype=torch.float32,
    dense=(),
    order="any",
    expand=False,
    promise=False,
    index_layout=None,
    value_layout=None,
):
    g = random.Random(id)
    counts = nnz if isinstance(nnz, list) else [nnz] * len(shapes)
    indices = [
        coordinates(g, shape, n if 0 not in shape else 0, order)
        for shape, n in zip(shapes, counts, strict=True)
    ]
    values = [random_bits(g, dtype, t.shape[0], *dense) for t in indices]
    if index_layout:
        indices = [LAYOUTS[index_layout](t) for t in indices]
    if value_layout:
        values = [LAYOUTS[value_layout](t) for t in values]
    return ConcatSample(id, indices, values, shapes, axis, expand, promise)


def concat_samples():
    two = [(3, 4), (3, 5)]
    make = make_concat
    samples = [
        make(f"dtype-{name_of(dtype)}", two, 1, nnz=9, dtype=dtype) for dtype in DTYPES
    ]
    for rank in range(1, 9):
        shape = (2, 3, 2, 1, 2, 3, 2, 2)[:rank]
        samples += [make(f"rank{rank}-axis{a}", [shape] * 2, a) for a in range(rank)]
    for dense in [(1,), (2,), (3,), (2, 3), (0,), (2, 0), (1500,)]:
        for dtype in (torch.uint8, torch.bfloat16, torch.complex128):
            id = f"dense{'x'.join(map(str, dense))}-{name_of(dtype)}"
            samples.append(make(id, two, 1, dtype=dtype, dense=dense))
    for axis in (0, 1):
        same = [(40, 30), (40, 30), (40, 30)]
        samples += [
            make(f"sorted-axis{axis}", same, axis, nnz=200, order="sorted"),
            make(f"strict-axis{axis}", same, axis, nnz=200, order="strict"),
            make(
                f"promise-axis{axis}",
                same,
                axis,
                nnz=200,
                order="sorted",
                promise=True,
            ),
            make(f"shuffled-axis{axis}", same, axis, nnz=200),
            make(f"duplicates-axis{axis}", [(2, 2)] * 3, axis, nnz=40),
            make(f"one-input-axis{axis}", [(6, 5)], axis, nnz=12),
            make(f"no-entries-axis{axis}", same, axis, nnz=0),
            make(f"some-empty-axis{axis}", same, axis, nnz=[0, 7, 0]),
            make(f"one-entry-axis{axis}", same, axis, nnz=[0, 1, 0]),
            make(f"many-axis{axis}", [(3, 3)] * 300, axis, nnz=[0, 1, 2] * 100),
        ]
    samples += [
        make("negative-axis", two, -1),
        make("expand", [(3, 4), (5, 2), (1, 7)], 1, expand=True),
        make("expand-axis0", [(3, 4), (5, 2), (1, 7)], 0, expand=True),
        make("zero-axis", [(3, 0), (3, 4), (3, 0)], 1),
        make("zero-other", [(0, 3), (0, 4)], 1),
        make("zero-all", [(0, 0), (0, 0)], 0),
        make("zero-expand", [(0, 3), (2, 4)], 1, expand=True),
        make("past-int32", [(2, 2**31 - 1), (2, 2**31 + 9)], 1),
        make("large-dims", [(2**30, 2**31), (2**30, 2**31)], 1),
        make("near-limit", [(2**61, 1), (2**61 - 1, 1)], 0),
        make("one-large-dim", [(2**62 - 1,), (2**62,)], 0),
        make("zero-hides-limit", [(2**40, 2**40, 0)] * 2, 2),
    ]
    for layout in LAYOUTS:
        samples += [
            make(f"indices-{layout}", two, 1, index_layout=layout),
            make(f"values-{layout}", two, 1, dense=(3,), value_layout=layout),
            make(
                f"values-{layout}-int16",
                two,
                0 if layout == "spaced" else 1,
                dtype=torch.int16,
                value_layout=layout,
                expand=True,
            ),
        ]
    # Long enough for every threaded path, and for blocks with a short last one.
    for axis, order in [(0, "sorted"), (1, "sorted"), (1, "any"), (2, "strict")]:
        samples.append(
            make(
                f"long-axis{axis}-{order}",
                [(50, 60, 70), (50, 60, 70)],
                axis,
                nnz=[17_003, 16_384],
                order=order,
                dtype=torch.int16,
                expand=True,
            )
        )
    samples.append(
        make("long-3-inputs", [(900, 7)] * 3, 1, nnz=[9_000, 1, 12_345], order="sorted")
    )
    samples.append(make("long-skewed", [(1, 9)] * 2, 1, nnz=12_000, order="sorted"))
    return samples


# ------------------------------------------------------------------ reshape


@dataclass(frozen=True)
class ReshapeSample:
    id: str
    indices: torch.Tensor
    shape: tuple
    new_shape: tuple

    def args(self):
        return (self.indices, self.shape, self.new_shape)

    def to(self, device):
        return dataclasses.replace(self, indices=self.indices.to(device))


def make_reshape(id, shape, new_shape, *, nnz=7, order="any", layout=None):
    g = random.Random(id)
    indices = coordinates(g, shape, 0 if 0 in shape else nnz, order)
    if layout:
        indices = LAYOUTS[layout](indices)
    return ReshapeSample(id, indices, shape, new_shape)


RESHAPES = {
    "infer-last": ((4, 6), (3, -1)),
    "infer-first": ((4, 6), (-1, 3)),
    "infer-middle": ((4, 6), (2, -1, 3)),
    "infer-one": ((4, 6), (4, -1, 6)),
    "same": ((4, 6), (4, 6)),
    "flatten": ((2, 3, 4), (24,)),
    "split": ((24,), (2, 3, 4)),
    "transposed-sizes": ((3, 5, 7), (7, 5, 3)),
    "prime-sizes": ((11, 13), (13, 11)),
    "keep-first": ((5, 4, 6), (5, 24)),
    "keep-last": ((4, 6, 5), (24, 5)),
    "keep-middle": ((2, 3, 5, 4), (3, 2, 5, 2, 2)),
    "powers-of-two": ((16, 32), (8, 4, 16)),
    "ones-added": ((4, 2), (1, 1, 8, 1)),
    "ones-removed": ((1, 4, 1, 2), (4, 2)),
    "to-rank0": ((1, 1), ()),
    "from-rank0": ((), (1, 1, 1)),
    "rank0-to-rank0": ((), ()),
    "from-rank0-infer": ((), (-1,)),
    "rank8": ((2, 3, 2, 1, 2, 3, 2, 2), (3, 2, 2, 2, 1, 2, 2, 3)),
    "rank8-to-1": ((2, 3, 2, 1, 2, 3, 2, 2), (-1,)),
    "rank1-to-8": ((288,), (2, 3, 2, 1, 2, 3, 2, 2)),
    "zero": ((0, 3), (-1, 3)),
    "zero-moved": ((0, 3), (0, 5, 7)),
    "zero-hides-limit": ((2**40, 2**40, 0), (0,)),
    "past-int32": ((70000, 70000), (140000, 35000)),
    "past-uint32": ((65536, 65536), (16, -1)),
    "billion": ((10**9, 10**9), (-1, 4 * 10**9)),
    "near-limit": ((2**63 - 1,), (7, -1)),
    "near-limit-merge": ((7, (2**63 - 1) // 7), (-1, 73)),
    "near-limit-power": ((2**31, 2**31), (2**62,)),
    "near-limit-split": ((2**62,), (2**31, 2**31)),
    "large-divisor": ((4611686018427387847, 2), (2, -1)),
    "large-odd": ((3037000499, 3037000493), (3037000493, 3037000499)),
}


def reshape_samples():
    make = make_reshape
    samples = [make(id, *shapes) for id, shapes in RESHAPES.items()]
    samples += [make(f"{id}-empty", *RESHAPES[id], nnz=0) for id in ("split", "same")]
    samples += [make(f"{id}-one", *RESHAPES[id], nnz=1) for id in ("split", "same")]
    samples += [make(f"{id}-many", *RESHAPES[id], nnz=300) for id in RESHAPES]
    for layout in LAYOUTS:
        samples += [
            make(f"{id}-{layout}", *RESHAPES[id], layout=layout)
            for id in ("infer-last", "split", "flatten", "keep-middle", "same")
        ]
    samples += [
        make("long", (300, 500, 7), (500, -1), nnz=33_001),
        make("long-powers", (256, 512, 8), (512, -1), nnz=33_001, order="sorted"),
    ]
    return samples


# ------------------------------------------------------------------ scatter


@dataclass(frozen=True)
class ScatterSample:
    id: str
    tensor: torch.Tensor
    indices: torch.Tensor
    updates: torch.Tensor
    policy: str = ""

    def args(self):
        return (self.tensor, self.indices, self.updates, self.policy)

    def to(self, device):
        return dataclasses.replace(
            self,
            tensor=self.tensor.to(device),
            indices=self.indices.to(device),
            updates=self.updates.to(device),
        )

    @property
    def dtype(self):
        return self.tensor.dtype


def make_scatter(
    id,
    shape,
    depth,
    batch=(6,),
    *,
    dtype=torch.float32,
    index_dtype=torch.int64,
    out_of_bounds=False,
    policy="",
    layouts=(None, None, None),
):
    g = random.Random(id)
    low, high = (-2, 2) if out_of_bounds else (0, 0)
    rows = [
        [g.randrange(low, size + high) for size in shape[:depth]]
        for _ in range(math.prod(batch))
    ]
    indices = torch.tensor(rows, dtype=index_dtype).reshape(*batch, depth)
    tensor = random_bits(g, dtype, *shape)
    updates = random_bits(g, dtype, *batch, *shape[depth:])
    args = [
        LAYOUTS[layout](t) if layout else t
        for t, layout in zip((tensor, indices, updates), layouts, strict=True)
    ]
    return ScatterSample(id, *args, "IGNORE" if out_of_bounds else policy)


def scatter_samples():
    make = make_scatter
    samples = [
        make(f"dtype-{name_of(dtype)}", (5, 3), 1, (9,), dtype=dtype)
        for dtype in DTYPES
    ]
    for rank in range(1, 9):
        shape = (3, 2, 2, 1, 2, 3, 2, 2)[:rank]
        samples += [
            make(f"rank{rank}-depth{depth}", shape, depth)
            for depth in range(1, rank + 1)
        ]
    for index_dtype in (torch.int32, torch.int64):
        name = name_of(index_dtype)
        samples += [
            make(f"elements-{name}", (50,), 1, (80,), index_dtype=index_dtype),
            make(f"batch-{name}", (4, 5), 2, (2, 3, 4), index_dtype=index_dtype),
            make(f"rows-{name}", (4, 5), 1, (2, 3), index_dtype=index_dtype),
            make(
                f"out-of-bounds-{name}",
                (4, 3, 2),
                2,
                (40,),
                index_dtype=index_dtype,
                out_of_bounds=True,
            ),
            make(
                f"mostly-out-{name}",
                (1, 1, 1),
                3,
                (30,),
                index_dtype=index_dtype,
                out_of_bounds=True,
            ),
        ]
    for width in (1, 2, 3, 5, 8, 17, 1024):
        samples.append(make(f"bytes{width}", (7, width), 1, (20,), dtype=torch.uint8))
    samples += [
        make("policy-DEFAULT", (4,), 1, policy="DEFAULT"),
        make("policy-ERROR", (4,), 1, policy="ERROR"),
        make("policy-IGNORE", (4,), 1, policy="IGNORE"),
        make("no-rows", (3, 2), 2, (0,)),
        make("no-rows-batch", (3, 2), 1, (4, 0)),
        make("zero-width", (10, 0), 1, (3,)),
        make("empty-tensor", (0, 3), 1, (0,)),
        make("empty-tensor-ignored", (0, 3), 1, (5,), out_of_bounds=True),
        make("one-element", (2, 1), 1, (1,)),
        make("all-duplicates", (1, 3), 1, (50,)),
        make("wide-rows", (3, 4096), 1, (64,), dtype=torch.int16),
        # Long enough for every threaded path; few slices and many.
        make("long-elements", (20_011,), 1, (33_000,), dtype=torch.int16),
        make("long-few-slices", (3, 5), 1, (33_000,), dtype=torch.uint8),
        make("long-tensor", (70_001,), 1, (50,), dtype=torch.uint8),
        make(
            "long-out", (200, 100), 2, (33_000,), dtype=torch.int8, out_of_bounds=True
        ),
    ]
    for layout in LAYOUTS:
        for place, argument in enumerate(("tensor", "indices", "updates")):
            layouts = [None] * 3
            layouts[place] = layout
            samples += [
                make(f"{argument}-{layout}", (4, 3), 1, (2, 5), layouts=layouts),
                make(f"{argument}-{layout}-elements", (4, 3), 2, layouts=layouts),
            ]
        samples.append(make(f"all-{layout}", (4, 3, 2), 2, layouts=[layout] * 3))
    return samples
