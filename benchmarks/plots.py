"""Pictures of the results, by matplotlib.

time.png    milliseconds against the number of entries
floor.png   the same as multiples of the floor
cases.png   every case at its largest size: how far each peer is from the floor
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from results import IN_PLACE, OURS, RAW, Timed, families

LEAST_SIZES = 4  # of a case, for a curve
MOST_SIZE = 10**8  # from here on few peers are measured
COLUMNS = 3
DOTS_PER_INCH = 110
FLOOR = "copy of the bytes (floor)"

# Colour, marker; the peers that are not here take what is left.
LOOKS = {
    OURS: ("#d62728", "o"),
    RAW: ("#ff9896", "o"),
    "torch": ("#1f77b4", "s"),
    "torch (expert)": ("#17becf", "D"),
    "torch (deterministic)": ("#aec7e8", "P"),
    "torch.compile": ("#393b79", "^"),
    "numpy": ("#2ca02c", "v"),
    "scipy (COO)": ("#8c564b", "<"),
    "scipy (CSR)": ("#c49c94", "<"),
    "pydata/sparse": ("#e377c2", ">"),
    "tensorflow": ("#ff7f0e", "p"),
    "tensorflow (function)": ("#ffbb78", "p"),
    "jax": ("#9467bd", "X"),
}
TITLES = {
    "concat/axis0-x2": "concat, axis 0, 2 inputs",
    "concat/axis1-x2": "concat, axis 1, 2 inputs",
    "concat/axis1-x8": "concat, axis 1, 8 inputs",
    "concat/axis1-x64": "concat, axis 1, 64 inputs",
    "reshape/general": "reshape, 2 to 4 dimensions",
    "reshape/powers-of-two": "reshape, powers of two",
    "reshape/merge": "reshape, two dimensions merged",
    "scatter/scalars": "scatter of scalars, 10 % written",
    "scatter/rows64": "scatter of rows of 64, 10 % written",
}


def is_drawn(peer: str) -> bool:
    return peer in LOOKS  # others are the same code in another setting


def plain(value: float, _: Any = None) -> str:
    return f"{value:g}"


def style(axes: Axes, y_label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(plain))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_ylabel(y_label)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def curves(sizes: Sequence[Timed]) -> dict[str, list[tuple[int, float, float]]]:
    """Of each peer: size, milliseconds, multiple of the floor."""
    found: dict[str, list[tuple[int, float, float]]] = {}
    for work in sizes:
        for peer, ms in work.medians().items():
            ratio = work.over_floor(peer)
            if is_drawn(peer) and work.found["peers"][peer]["result"] != "wrong":
                point = work.found["size"], ms, ratio or 0
                found.setdefault(peer, []).append(point)
    return {peer: found[peer] for peer in LOOKS if peer in found}


def sweeps(results: dict[str, Any]) -> list[tuple[str, list[Timed]]]:
    return [
        (family, sizes)
        for family, sizes in families(results).items()
        if len(sizes) >= LEAST_SIZES and family in TITLES
    ]


def draw_sweeps(
    results: dict[str, Any], path: Path, ratio: bool, y_label: str, title: str
) -> None:
    panels = sweeps(results)
    rows = -(-len(panels) // COLUMNS)
    figure, grid = plt.subplots(
        rows, COLUMNS, figsize=(4.3 * COLUMNS, 3.6 * rows + 1.1), squeeze=False
    )
    handles: dict[str, Any] = {}
    for axes, (family, sizes) in zip(grid.flat, panels, strict=False):
        for peer, points in curves(sizes).items():
            colour, marker = LOOKS[peer]
            xs, ms, ratios = zip(*points, strict=True)
            (line,) = axes.plot(
                xs,
                ratios if ratio else ms,
                color=colour,
                marker=marker,
                markersize=5 if peer == OURS else 4,
                linewidth=2.6 if peer == OURS else 1.2,
                zorder=3 if peer == OURS else 2,
            )
            handles.setdefault(peer, line)
        xs = [work.found["size"] for work in sizes]
        floors = [1 if ratio else work.floor for work in sizes]
        (line,) = axes.plot(xs, floors, color="black", linestyle="--", linewidth=1.2)
        handles[FLOOR] = line
        axes.set_title(TITLES[family], fontsize=10)
        axes.set_xlabel("elements" if family.startswith("scatter") else "entries")
        style(axes, y_label)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    order = [peer for peer in (*LOOKS, FLOOR) if peer in handles]
    figure.suptitle(title, fontsize=12)
    figure.legend(
        [handles[peer] for peer in order],
        order,
        loc="lower center",
        ncols=min(5, len(order)),
        frameon=False,
        fontsize=9,
    )
    figure.tight_layout(rect=(0, 0.9 / (3.6 * rows + 1.1), 1, 1))
    save(figure, path)


def draw_cases(results: dict[str, Any], path: Path) -> None:
    largest = [
        [work for work in sizes if work.found["size"] < MOST_SIZE or len(sizes) == 1][
            -1
        ]
        for sizes in families(results).values()
    ]
    works = [w for w in largest if w.floor and w.median(OURS) is not None][::-1]
    figure, axes = plt.subplots(figsize=(10, 0.27 * len(works) + 1.9))
    handles: dict[str, Any] = {}
    for y, work in enumerate(works):
        for peer in reversed(LOOKS):
            value = work.over_floor(peer)
            if value is None or work.found["peers"][peer]["result"] == "wrong":
                continue
            colour, marker = LOOKS[peer]
            size = 46 if peer == OURS else 26
            zorder = 4 if peer == OURS else 3
            dot = axes.scatter(
                value, y, s=size, color=colour, marker=marker, zorder=zorder
            )
            handles.setdefault(peer, dot)
    axes.axvline(1, color="black", linestyle="--", linewidth=1.2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.set_yticks(range(len(works)), [work.name for work in works], fontsize=8)
    axes.set_ylim(-0.7, len(works) - 0.3)
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(
        "time as a multiple of the floor, a copy of the same bytes "
        f"(into memory in use for {IN_PLACE}, else into new memory)",
        fontsize=9,
    )
    order = [peer for peer in LOOKS if peer in handles]
    axes.legend(
        [handles[peer] for peer in order],
        order,
        loc="lower center",
        bbox_to_anchor=(0.4, 1),
        ncols=5,
        frameon=False,
        fontsize=8,
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    # No date and no version within: the same results give the same file.
    figure.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})
    plt.close(figure)


def draw(results: dict[str, Any], folder: Path) -> list[Path]:
    """Draws what the results allow, and returns the files."""
    drawn: list[Path] = []

    def one(name: str, function: Callable[..., None], *args: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        function(results, folder / name, *args)
        drawn.append(folder / name)

    if sweeps(results):
        one("time.png", draw_sweeps, False, "ms", "Time of a call (log scales)")
        label, title = "multiple of the floor", "Time over that of a copy (log scales)"
        one("floor.png", draw_sweeps, True, label, title)
    if any(work for work in results["workloads"]):
        one("cases.png", draw_cases)
    return drawn
