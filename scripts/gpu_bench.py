"""Times the operators on a GPU, next to what a user would write in torch and to a copy
of as many bytes. Checks that all give the same result. Needs torch alone.

    python scripts/gpu_bench.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch

import torch_sparse_ops as tso

ops = torch.ops.torch_sparse_ops

SIDE = 10**6  # sizes of the sparse shapes: keys of 40 bits, few duplicates
SLICE = 64  # elements of a slice, where slices are not single elements


class Work(NamedTuple):
    """One thing to do in two ways, and the bytes that it has to read and write."""

    name: str
    entries: int
    ours: Callable
    idiom: Callable
    idiom_name: str
    bytes: int
    compares: bool = True  # the idiom has but one possible result


@dataclass
class Row:
    name: str
    entries: int
    ours_ms: float | None
    idiom_ms: float | None
    copy_ms: float | None
    idiom: str
    equal: bool | None


def size_of(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def sorted_input(entries: int) -> torch.Tensor:
    """A coalesced COO tensor, or nearly: its few duplicates are dropped."""
    keys = torch.randint(SIDE * SIDE, (entries,), device="cuda").unique()
    return torch.sparse_coo_tensor(
        torch.stack([keys // SIDE, keys % SIDE]),
        torch.rand(len(keys), device="cuda"),
        (SIDE, SIDE),
        is_coalesced=True,
        check_invariants=False,
    )


def shuffled(t: torch.Tensor) -> torch.Tensor:
    order = torch.randperm(t._nnz(), device="cuda")
    return torch.sparse_coo_tensor(
        t._indices()[:, order], t._values()[order], t.shape, check_invariants=False
    )


def concat(entries: int, inputs: int, axis: int, in_order: bool) -> Work:
    tensors = [sorted_input(entries // inputs) for _ in range(inputs)]
    if not in_order:
        tensors = [shuffled(t) for t in tensors]
    moved = sum(size_of(t._indices(), t._values()) for t in tensors)
    order = "sorted" if in_order else "unsorted"
    return Work(
        f"concat, {inputs} {order} inputs, axis {axis}",
        entries,
        lambda: tso.sparse_concat(tensors, axis),
        lambda: torch.cat(tensors, axis).coalesce(),
        "cat, coalesce",
        2 * moved,
    )


def reshape(entries: int, target: tuple[int, int]) -> Work:
    t = sorted_input(entries)

    def div_mod() -> torch.Tensor:
        row, column = t._indices()
        key = row * SIDE + column
        return torch.sparse_coo_tensor(
            torch.stack([key // target[1], key % target[1]]),
            t._values(),
            target,
            is_coalesced=True,
            check_invariants=False,
        )

    return Work(
        f"reshape to {target[0]} x {target[1]}",
        entries,
        lambda: tso.sparse_reshape(t, target),
        div_mod,
        "div, mod",
        2 * size_of(t._indices()),
    )


def scatter(entries: int, slices: int, slice: int, in_place: bool = False) -> Work:
    """Rows of `entries` elements in all. Each names another slice where there are
    enough of them, so that index_put_ has but one possible result."""
    rows = entries // slice
    tensor = torch.rand(slices, slice, device="cuda")
    if rows == slices:
        picks = torch.randperm(slices, device="cuda")
    else:
        picks = torch.randint(slices, (rows,), device="cuda")
        if rows < slices:
            picks = picks.unique()
            picks = picks[torch.randperm(len(picks), device="cuda")]
    indices = picks[:, None].clone()
    updates = torch.rand(len(picks), slice, device="cuda")

    def ours() -> torch.Tensor:
        return ops.tensor_scatter_update(tensor, indices, updates)

    ours_written = tensor.clone() if in_place else tensor

    def ours_in_place() -> torch.Tensor:
        ops.tensor_scatter_update_(ours_written, indices, updates)
        return ours_written

    def idiom() -> torch.Tensor:
        return tensor.clone().index_put_((indices[:, 0],), updates)

    def idiom_in_place() -> torch.Tensor:
        return tensor.index_put_((indices[:, 0],), updates)

    moved = 2 * (min(len(picks), slices) if in_place else slices)
    return Work(
        f"scatter{'_' if in_place else ''}, {slice} wide, "
        f"{rows / slices:g} rows a slice",
        entries,
        ours_in_place if in_place else ours,
        idiom_in_place if in_place else idiom,
        "index_put_" if in_place else "clone, index_put_",
        size_of(indices) + moved * slice * tensor.itemsize,
        rows <= slices,
    )


def work(entries: int) -> Iterator[Callable[[], Work]]:
    yield lambda: concat(entries, 2, 0, True)
    yield lambda: concat(entries, 2, 1, True)
    yield lambda: concat(entries, 8, 1, True)
    yield lambda: concat(entries, 2, 1, False)
    yield lambda: reshape(entries, (SIDE // 8, SIDE * 8))
    yield lambda: reshape(entries, (SIDE // 5, SIDE * 5))
    yield lambda: scatter(entries, entries, 1)
    yield lambda: scatter(entries, entries // 4, 1)
    yield lambda: scatter(entries, entries * 64, 1, in_place=True)
    yield lambda: scatter(entries, entries // SLICE, SLICE)


def milliseconds(function: Callable, seconds: float) -> float:
    """The median time on the device, over about `seconds` of runs."""

    def once() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    once()
    times = [once(), once()]
    runs = min(50, int(1000 * seconds / max(times[-1], 0.01)))
    times += [once() for _ in range(runs)]
    return statistics.median(times)


def copy_milliseconds(bytes: int, seconds: float) -> float:
    """To read and write so many bytes together."""
    source = torch.zeros(bytes // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return milliseconds(lambda: target.copy_(source), seconds)


def equal(a: torch.Tensor, b: torch.Tensor) -> bool | None:
    """None where the two may differ: where entries had to be added up."""
    if not a.is_sparse:
        return torch.equal(a, b)
    if a._nnz() != b._nnz():
        return None
    return torch.equal(a._indices(), b._indices()) and torch.equal(
        a._values(), b._values()
    )


def measure(task: Work, seconds: float) -> Row:
    row = Row(task.name, task.entries, None, None, None, task.idiom_name, None)
    row.ours_ms = milliseconds(task.ours, seconds)
    row.copy_ms = copy_milliseconds(task.bytes, seconds)
    row.idiom_ms = milliseconds(task.idiom, seconds)
    if task.compares:
        row.equal = equal(task.ours(), task.idiom())
    return row


def show(number: float | None, digits: int = 3) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


def ratio(a: float | None, b: float | None) -> str:
    return "-" if a is None or b is None else f"{a / b:.2f}"


HEADINGS = ("operator", "entries", "ms", "copy ms", "/copy", "idiom ms", "idiom /ours")
LINE = "{:<44}{:>10}{:>10}{:>10}{:>8}{:>10}{:>13}  {}"


def print_row(row: Row) -> None:
    print(
        LINE.format(
            row.name,
            f"{row.entries:.0e}".replace("e+0", "e"),
            show(row.ours_ms),
            show(row.copy_ms),
            ratio(row.ours_ms, row.copy_ms),
            show(row.idiom_ms),
            ratio(row.idiom_ms, row.ours_ms),
            row.idiom + ("" if row.equal is not False else "  RESULTS DIFFER"),
        ),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to 1e7 entries")
    parser.add_argument("--json", metavar="FILE", help="write the numbers here")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("gpu_bench: torch.cuda.is_available() is False")
    torch.manual_seed(0)
    device = torch.cuda.get_device_properties(0)
    about = {
        "device": device.name,
        "multiprocessors": device.multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "torch_sparse_ops": tso.__version__,
    }
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print("ms: median on the device; copy: of as many bytes, device to device")
    print(LINE.format(*HEADINGS, "idiom"))
    rows = []
    sizes = (10**5, 10**6, 10**7) if options.quick else (10**5, 10**6, 10**7, 10**8)
    for entries in sizes:
        for make in work(entries):
            try:
                rows.append(measure(make(), 0.1 if options.quick else 0.25))
                print_row(rows[-1])
            except torch.OutOfMemoryError:
                print(f"  left out at {entries:.0e} entries: not enough memory")
            torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({**about, "rows": [asdict(row) for row in rows]}, file, indent=1)
    if any(row.equal is False for row in rows):
        sys.exit("gpu_bench: results differ")


if __name__ == "__main__":
    main()
