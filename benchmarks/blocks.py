"""The tables of docs/performance.md, each made of the results of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tables
from results import IN_PLACE, ONE_THREAD, OURS, RAW, Timed, families, timed
from tables import megabytes, milliseconds, number

Results = dict[str, Any]

TORCH, TENSORFLOW = "torch", "tensorflow"
WITH_HUGE_PAGES = "huge pages"
NOTHING = "Nothing of this was measured.\n"
EVEN = 1.02  # a peer is ahead from here on


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Of Markdown; the first `left` columns are flush left."""
    lines = [list(row) for row in rows]
    if not lines:
        return NOTHING
    rule = ["---" if i < left else "---:" for i in range(len(head))]
    return "".join(f"| {' | '.join(line)} |\n" for line in [list(head), rule, *lines])


def times(value: float | None) -> str:
    """How many times as long as ours."""
    return number(value, "x")


def beside_ours(work: Timed, rival: tuple[str, float] | None) -> str:
    ours = work.median(OURS)
    if rival is None or ours is None:
        return "-"
    return f"{times(rival[1] / ours)} {rival[0]}"


def plain_rival(work: Timed, word: str = "") -> tuple[str, float] | None:
    """The fastest, those with torch's huge pages aside."""
    for peer, ms in work.medians().items():
        if work.is_rival(peer) and word in peer and WITH_HUGE_PAGES not in peer:
            return peer, ms
    return None


def without_torch(work: Timed) -> tuple[str, float] | None:
    for peer, ms in work.medians().items():
        if work.is_rival(peer) and not peer.startswith(TORCH):
            return peer, ms
    return None


# ------------------------------------------------------------------- blocks


def run(results: Results) -> str:
    machine, run = results["machine"], results["run"]
    kind = "virtual machine" if machine["virtual"] else "machine"
    rows = [
        ["command", f"`{run['command']}`"],
        ["date", machine["date"]],
        ["processor", f"{machine['cpu']}, {machine['cores']} cores of a {kind}"],
        ["caches", machine["caches"]],
        ["memory", f"{machine['memory_gib']:g} GiB"],
        ["system", f"{machine['system']}, {machine['libc']}"],
        ["transparent huge pages", machine["huge_pages"]],
        ["threads", f"{run['threads']}, `OMP_WAIT_POLICY=passive`"],
        ["copies of the floor", f"in {run['copies']}"],
        ["runs, of which ratios are medians", str(run["runs"])],
        ["load before the run", f"{machine['load']:g}"],
    ]
    for about in run["interpreters"]:
        versions = (f"{name} {v}" for name, v in about["versions"].items())
        rows.append([f"Python {about['python']}", ", ".join(versions)])
    return table(["", ""], rows, left=2)


def beside_peers(op: str) -> Callable[[Results], str]:
    def block(results: Results) -> str:
        rows = []
        for work in timed(results).values():
            if work.found["op"] != op or work.median(OURS) is None:
                continue
            rows.append(
                [
                    work.name,
                    megabytes(work.found["bytes_moved"]),
                    milliseconds(work.floor),
                    milliseconds(work.median(OURS)),
                    number(work.over_floor()),
                    number(work.over_floor(RAW)),
                    beside_ours(work, plain_rival(work, TORCH)),
                    beside_ours(work, plain_rival(work, TENSORFLOW)),
                    beside_ours(work, without_torch(work)),
                ]
            )
        head = (
            "workload",
            "to move",
            "floor, ms",
            "ours, ms",
            "ours / floor",
            "raw / floor",
            "best of torch",
            "TensorFlow",
            "best of the others",
        )
        return table(head, rows)

    return block


def ahead(results: Results) -> str:
    rows = []
    for work in timed(results).values():
        ours, best = work.median(OURS), work.best()
        if ours and best and ours / best[1] > EVEN:
            raw = work.median(RAW)
            rows.append(
                [
                    work.name,
                    best[0],
                    milliseconds(best[1]),
                    milliseconds(ours),
                    number(ours / best[1], "x"),
                    number(raw and raw / best[1], "x"),
                ]
            )
    if not rows:
        return "In no workload was a peer of the same result and storage faster.\n"
    head = "workload", "peer", "its ms", "ours, ms", "ours / its", "raw / its"
    return table(head, rows, left=2)


def growth(results: Results) -> str:
    """Nanoseconds an entry, at each size."""
    found = {
        family: {w.found["size"]: w.median(OURS) for w in works}
        for family, works in families(results).items()
        if len(works) >= 4
    }
    sizes = sorted({size for by_size in found.values() for size in by_size})
    sizes = [s for s in sizes if sum(s in by_size for by_size in found.values()) > 1]
    rows = []
    for family, by_size in found.items():
        known = {size: ms for size, ms in by_size.items() if ms is not None}
        cells = (number(known[s] / s * 1e6) if s in known else "-" for s in sizes)
        rows.append([family, *cells])
    return table(["case", *(f"{size:.0e}".replace("+0", "") for size in sizes)], rows)


def backward(results: Results) -> str:
    works = timed(results)
    rows = []
    for work in works.values():
        forward = works.get(work.name.removeprefix("backward-"))
        if forward is work:
            continue
        there = forward and forward.median(RAW)
        back = work.median(RAW) or work.median(OURS)
        rows.append(
            [
                work.name,
                milliseconds(there),
                milliseconds(work.median(RAW)),
                number(there and back and back / there),
                milliseconds(forward and forward.median(OURS)),
                milliseconds(work.median(OURS)),
                beside_ours(work, work.best()),
            ]
        )
    head = (
        "workload",
        "raw forward, ms",
        "raw backward, ms",
        "backward / forward",
        "forward, ms",
        "backward, ms",
        "best peer",
    )
    return table(head, rows)


def pairs(
    results: Results, matches: Callable[[Timed], str | None]
) -> Iterable[tuple[Timed, Timed]]:
    works = timed(results)
    for work in works.values():
        other = works.get(matches(work) or "")
        if other and work.median(OURS) and other.median(OURS):
            yield work, other


def in_place(results: Results) -> str:
    def functional(work: Timed) -> str | None:
        is_one = work.found["op"] == IN_PLACE
        return work.name.replace(IN_PLACE, "scatter", 1) if is_one else None

    rows = [
        [
            work.name,
            milliseconds(work.median(OURS)),
            milliseconds(other.median(OURS)),
            number((other.median(OURS) or 0) / (work.median(OURS) or 1), "x"),
            beside_ours(work, plain_rival(work)),
        ]
        for work, other in pairs(results, functional)
    ]
    head = "workload", "in place, ms", "into a copy, ms", "gain", "best peer, in place"
    return table(head, rows)


def duplicates(results: Results) -> str:
    def unique(work: Timed) -> str | None:
        case = work.found["case"]
        plain = case.split("-dup")[0]
        is_one = plain != case and work.found["op"] == "scatter"
        return work.name.replace(case, plain, 1) if is_one else None

    rows = [
        [
            work.name,
            milliseconds(work.median(OURS)),
            milliseconds(other.median(OURS)),
            number((work.median(OURS) or 0) / (other.median(OURS) or 1)),
        ]
        for work, other in pairs(results, unique)
    ]
    return table(["workload", "ms", "without duplicates, ms", "ratio"], rows)


def layers(results: Results) -> str:
    rows = results.get("layers", [])
    if not rows:
        return NOTHING
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        found.setdefault(tables.layer_key(row), {})[row["mode"]] = row["us"]
    lines = [[*key, *(number(us.get(m)) for m in modes)] for key, us in found.items()]
    return table(["operator", "layer", *(f"{m}, us" for m in modes)], lines, left=2)


def inputs(results: Results) -> str:
    """What one more input of a concat adds, in microseconds."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in results.get("layers", []):
        if row["op"] == "sparse_concat":
            found.setdefault((row["layer"], row["mode"]), {})[row["inputs"]] = row["us"]
    modes = list(dict.fromkeys(mode for _, mode in found))
    lines = []
    for layer in dict.fromkeys(layer for layer, _ in found):
        cells = []
        for mode in modes:
            us = found.get((layer, mode), {})
            few, many = min(us, default=0), max(us, default=0)
            more = (us[many] - us[few]) / (many - few) if many > few else None
            cells.append(number(more))
        lines.append([layer, *cells])
    return table(["layer", *(f"{m}, us" for m in modes)], lines)


def memory(results: Results) -> str:
    rows = map(tables.memory_row, results.get("memory", []))
    return table(tables.MEMORY_HEAD, rows, left=2)


def threads(results: Results) -> str:
    rows = [
        [work.name, milliseconds(one), milliseconds(all_), number(one / all_)]
        for work in timed(results).values()
        if (one := work.median(ONE_THREAD)) and (all_ := work.median(OURS))
    ]
    return table(["workload", "1 thread, ms", "all threads, ms", "ratio"], rows)


def huge_pages(results: Results) -> str:
    rows = []
    for work in timed(results).values():
        plain, huge = plain_rival(work, TORCH), work.best(WITH_HUGE_PAGES)
        if huge:
            cells = beside_ours(work, plain), beside_ours(work, huge)
            rows.append([work.name, milliseconds(work.median(OURS)), *cells])
    return table(["workload", "ours, ms", "best of torch", "with huge pages"], rows)


def refused(results: Results) -> str:
    """What peers could not do at all, or did otherwise."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name, work in results["workloads"].items():
        for peer, status in work["peers"].items():
            how = results["peers"][peer]["how"].get(work["op"], "")
            if "failed" in status:
                what = f"fails: {status['failed'].split(' with arguments')[0]}"
            elif status.get("result") == "wrong":
                what = "gives something else"
            elif status.get("result") == "not promised":
                what = "does not say which update wins"
            else:
                continue
            found.setdefault((peer, how, what), []).append(name)
    rows = []
    for key, names in found.items():
        cases = dict.fromkeys(name.rsplit("/", 1)[0] for name in names)
        rows.append([*key, ", ".join(cases)])
    if not rows:
        return "Every peer gave the right result in every workload it took part in.\n"
    return table(["peer", "by", "", "in"], rows, left=4)


def peers(results: Results) -> str:
    """What each of them runs."""
    rows = []
    for name, about in results["peers"].items():
        if WITH_HUGE_PAGES in name:
            continue
        ways = dict.fromkeys(about["how"].values())
        rows.append([name, "; ".join(ways)])
    return table(["peer", "what is timed"], rows, left=2)


BLOCKS: dict[str, Callable[[Results], str]] = {
    "run": run,
    "concat": beside_peers("concat"),
    "reshape": beside_peers("reshape"),
    "scatter": beside_peers("scatter"),
    "ahead": ahead,
    "growth": growth,
    "backward": backward,
    "in-place": in_place,
    "duplicates": duplicates,
    "layers": layers,
    "inputs": inputs,
    "memory": memory,
    "threads": threads,
    "huge-pages": huge_pages,
    "refused": refused,
    "peers": peers,
}
