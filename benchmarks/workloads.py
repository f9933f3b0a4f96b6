"""Named workloads. Their data comes from a seed made of the name, so that every
interpreter times the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from data import (
    Data,
    cubes,
    gradient,
    graphs,
    reshape,
    rows,
    scatter,
    shuffled,
    skewed,
    uneven,
)
from numpy.random import Generator


def size_label(size: int) -> str:
    digits, exponent = f"{size:.1e}".split("e+")
    return f"{float(digits):g}e{int(exponent)}"


@dataclass(frozen=True)
class Workload:
    op: str  # concat, reshape, scatter, scatter_, and the backward of the first three
    case: str
    size: int
    make: Callable[[Generator, int], Data] = field(repr=False)
    headline: bool  # worth the time that peers with a compiler take to get ready
    in_headline: bool  # some size of the case is

    @property
    def family(self) -> str:
        return f"{self.op}/{self.case}"

    @property
    def name(self) -> str:
        return f"{self.family}/{size_label(self.size)}"

    def data(self) -> Data:
        seed = zlib.crc32(self.name.removeprefix("backward-").encode())
        data = self.make(np.random.default_rng(seed), self.size)
        if self.op.startswith("backward-"):
            return replace(data, grad=gradient(data))
        return data


SMALL, MIDDLE, LARGE = 10**4, 10**6, 10**7
QUICK_SWEEP = (10**3, 10**4, 10**5, 10**6)
SWEEP = (*QUICK_SWEEP, 10**7)
LONG_SWEEP = (*SWEEP, 10**8)
CUBE = (1000, 1000, 1000)


@dataclass(frozen=True)
class Case:
    op: str
    name: str
    make: Callable[..., Any]
    full: Sequence[int] = (MIDDLE,)
    quick: Sequence[int] = (MIDDLE,)
    headline: Sequence[int] = ()  # sizes

    def workload(self, size: int) -> Workload:
        headline = size in self.headline
        return Workload(
            self.op, self.name, size, self.make, headline, bool(self.headline)
        )


CASES = (
    Case("concat", "axis0-x2", partial(rows, inputs=2, axis=0), SWEEP, QUICK_SWEEP),
    Case(
        "concat",
        "axis1-x2",
        partial(rows, inputs=2, axis=1),
        LONG_SWEEP,
        SWEEP,
        headline=(MIDDLE, LARGE),
    ),
    Case("concat", "axis1-x8", partial(rows, inputs=8, axis=1), SWEEP),
    Case("concat", "axis1-x64", partial(rows, inputs=64, axis=1), SWEEP, QUICK_SWEEP),
    Case("concat", "axis0-x64", partial(rows, inputs=64, axis=0)),
    Case("concat", "cube-axis0-x2", partial(cubes, inputs=2, axis=0, sides=CUBE)),
    Case("concat", "cube-axis1-x2", partial(cubes, inputs=2, axis=1, sides=CUBE)),
    Case(
        "concat",
        "cube-axis2-x2",
        partial(cubes, inputs=2, axis=2, sides=CUBE),
        full=(MIDDLE, LARGE),
    ),
    Case(
        "concat",
        "rank4-axis2-x2",
        partial(cubes, inputs=2, axis=2, sides=(100, 200, 300, 400)),
    ),
    Case(
        "concat",
        "rank6-axis3-x2",
        partial(cubes, inputs=2, axis=3, sides=(20, 30, 20, 30, 20, 30)),
    ),
    Case(
        "concat",
        "sparse-rows-x2",
        partial(cubes, inputs=2, axis=1, sides=(2_000_000_000, 1000)),
    ),
    Case("concat", "skewed-rows-x2", skewed),
    Case("concat", "uneven-x64", uneven),
    Case("concat", "unsorted-x2", shuffled),
    Case(
        "concat",
        "hybrid64-axis0-x2",
        partial(rows, inputs=2, axis=0, dense=(64,)),
        quick=(10**5,),
    ),
    Case(
        "concat",
        "hybrid64-axis1-x2",
        partial(rows, inputs=2, axis=1, dense=(64,)),
        quick=(10**5,),
    ),
    Case("concat", "graphs-rows", partial(graphs, axis=0), (200_000,), (200_000,)),
    Case("concat", "graphs-columns", partial(graphs, axis=1), (200_000,), (200_000,)),
    Case(
        "reshape",
        "general",
        partial(reshape, shape=(37_500, 32_000), target=(250, 480, 125, 80)),
        LONG_SWEEP,
        SWEEP,
        headline=(MIDDLE, LARGE),
    ),
    Case(
        "reshape",
        "powers-of-two",
        partial(reshape, shape=(32_768, 32_768), target=(64, 4096, 256, 16)),
        SWEEP,
        headline=(LARGE,),
    ),
    Case(
        "reshape",
        "merge",
        partial(reshape, shape=CUBE, target=(10**6, 1000)),
        SWEEP,
    ),
    Case("reshape", "flatten", partial(reshape, shape=CUBE, target=(10**9,))),
    Case("reshape", "unflatten", partial(reshape, shape=(10**9,), target=CUBE)),
    Case(
        "reshape",
        "split-first",
        partial(reshape, shape=(10**6, 1000), target=(10, 10**5, 1000)),
    ),
    Case(
        "scatter",
        "scalars",
        scatter,
        LONG_SWEEP,
        SWEEP,
        headline=(MIDDLE, LARGE),
    ),
    Case("scatter", "scalars-dup30", partial(scatter, duplicates=0.3), (LARGE,)),
    Case("scatter", "scalars-dup99", partial(scatter, duplicates=0.99), (LARGE,)),
    Case("scatter", "bool", partial(scatter, dtype="bool"), (LARGE,)),
    Case("scatter", "int8", partial(scatter, dtype="int8"), (LARGE,)),
    Case(
        "scatter",
        "rows64",
        partial(scatter, slice_=64),
        (*SWEEP, 64 * MIDDLE),
        QUICK_SWEEP,
    ),
    Case(
        "scatter",
        "rows64-dup30",
        partial(scatter, slice_=64, duplicates=0.3),
        (64 * MIDDLE,),
    ),
    Case(
        "scatter",
        "rows64-dup99",
        partial(scatter, slice_=64, duplicates=0.99),
        (64 * MIDDLE,),
    ),
    Case(
        "scatter",
        "depth2-rows16",
        partial(scatter, slice_=16, depth=2, share=0.2),
        (16 * MIDDLE,),
    ),
    Case("scatter_", "scalars-1%", partial(scatter, share=0.01), (MIDDLE, LARGE)),
    Case(
        "scatter_",
        "rows64-1%",
        partial(scatter, slice_=64, share=0.01),
        (MIDDLE, 64 * MIDDLE),
    ),
    Case("scatter", "scalars-1%", partial(scatter, share=0.01), (MIDDLE, LARGE), ()),
    Case(
        "scatter",
        "rows64-1%",
        partial(scatter, slice_=64, share=0.01),
        (MIDDLE, 64 * MIDDLE),
        (),
    ),
)

# The backward of these cases is timed too, at these sizes.
BACKWARD = {
    ("concat", "axis0-x2"): (MIDDLE,),
    ("concat", "axis1-x2"): (SMALL, MIDDLE, LARGE),
    ("concat", "axis1-x64"): (MIDDLE,),
    ("concat", "hybrid64-axis1-x2"): (MIDDLE,),
    ("reshape", "general"): (SMALL, MIDDLE, LARGE),
    ("scatter", "scalars"): (SMALL, MIDDLE, LARGE),
    ("scatter", "scalars-dup30"): (MIDDLE, LARGE),
    ("scatter", "rows64"): (MIDDLE, 64 * MIDDLE),
}
SMOKE_SIZE = 1000


def workloads(extent: str) -> dict[str, Workload]:
    """By name. The extent is "quick", "full", or "smoke": each case once and tiny."""
    found: list[Workload] = []
    for case in CASES:
        sizes = (SMOKE_SIZE,) if extent == "smoke" else getattr(case, extent)
        found += (case.workload(size) for size in sizes)
    for (op, name), sizes in BACKWARD.items():
        case = next(c for c in CASES if (c.op, c.name) == (op, name))
        if extent != "full":
            sizes = (SMOKE_SIZE if extent == "smoke" else MIDDLE,)
        found += (
            replace(case, op=f"backward-{op}", headline=()).workload(size)
            for size in sizes
        )
    return {w.name: w for w in found}
