"""Results as text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from results import OURS, Timed


def number(value: float | None, unit: str = "") -> str:
    """Two or three digits."""
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{unit}"


def milliseconds(value: float | None) -> str:
    """Three digits, whatever the size."""
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def megabytes(count: int) -> str:
    return f"{milliseconds(count / 1e6)} MB"


def grid(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> str:
    """Columns, the first `left` of them flush left."""
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def workload(work: Timed) -> str:
    """All peers of one workload, fastest first."""
    found, ours = work.found, work.median(OURS)
    head = f"{work.name}: {megabytes(found['bytes_moved'])} to move"
    if found["floor"]:
        new, used = (milliseconds(found["floor"][k]) for k in ("new", "used"))
        head += f"; a copy takes {new} ms into new memory, {used} ms into used"
    rows = []
    for peer, ms in work.medians().items():
        status = found["peers"][peer]
        remarks = [] if status["result"] == "right" else [f"result {status['result']}"]
        if not work.peers[peer]["ranked"]:
            remarks.append("another storage")
        rows.append(
            [
                f"  {peer}",
                milliseconds(ms),
                milliseconds(min(status["ms"])),
                milliseconds(max(status["ms"])),
                number(work.over_floor(peer)),
                number(ms / ours) if ours else "-",
                ", ".join(remarks),
            ]
        )
    lines = [head]
    if rows:
        columns = "  peer", "ms", "least", "most", "/floor", "/ours", ""
        lines.append(grid(columns, rows))
    lines += [
        f"  {peer}: {status.get('failed') or status['skipped']}"
        for peer, status in found["peers"].items()
        if "ms" not in status
    ]
    return "\n".join(lines)


def summary(works: Iterable[Timed]) -> str:
    rows = []
    for work in works:
        ours, best = work.median(OURS), work.best()
        if ours is None:
            continue
        rows.append(
            [
                work.name,
                best[0] if best else "-",
                milliseconds(work.floor),
                milliseconds(ours),
                number(work.over_floor()),
                milliseconds(best and best[1]),
                number(best and best[1] / ours, "x"),
            ]
        )
    head = "workload", "best peer", "floor ms", "ours ms", "/floor", "peer ms", "ahead"
    return grid(head, rows, left=2)


def layers(rows: list[dict[str, Any]]) -> str:
    """Microseconds a call, by mode."""
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        cells.setdefault(layer_key(row), {})[row["mode"]] = row["us"]
    return grid(
        ["operator", "layer", *modes],
        [
            [*key, *(number(us.get(m), " us") for m in modes)]
            for key, us in cells.items()
        ],
        left=2,
    )


def layer_key(row: dict[str, Any]) -> tuple[str, str]:
    count = row["inputs"]
    return row["op"] if count == 1 else f"{row['op']}, {count} inputs", row["layer"]


MEMORY_HEAD = ("workload", "library", "arguments", "results", "peak", "peak / needed")


def memory_row(row: dict[str, Any]) -> list[str]:
    """What a call held at most, arguments included, over what it must hold."""
    read, made, peak = row["bytes_read"], row["bytes_made"], row["peak_bytes"]
    sizes = [megabytes(size) for size in (read, made, read + peak)]
    ratio = number((read + peak) / (read + made))
    return [row["workload"], row["peer"], *sizes, ratio]


def memory(rows: list[dict[str, Any]]) -> str:
    return grid(MEMORY_HEAD, map(memory_row, rows), left=2)
