"""Times the operators of torch_sparse_ops beside their peers, in turns.

    python benchmarks/run.py                       # in less than three minutes
    python benchmarks/run.py --full --python .venv-tensorflow/bin/python
    python benchmarks/run.py concat/axis1 layers   # what has a word in its name

Peers come from this interpreter and from those named with --python; one that is not
installed is left out. README.md in this folder tells how to read the results.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import floor
import machine
import memory
import results
import rotation
import tables
from peers import PEERS
from rotation import Team, Worker
from workloads import LARGE, MIDDLE, Workload, workloads

ROOT = Path(__file__).resolve().parents[1]
MINUTES = {"quick": 2.2, "full": 30.0}  # for the workloads and layers
LAYER_ROUNDS = {"smoke": 2, "quick": 20, "full": 60}
SLOWEST = {"smoke": 60.0, "quick": 1.5, "full": 15.0}  # seconds a call

# torch asks for huge pages itself when this is set.
HUGE_PAGES = {"THP_MEM_ALLOC_ENABLE": "1"}
WITH_HUGE_PAGES = " +huge pages"
TORCH_IDIOMS = ("torch", "torch (expert)", "torch.compile")

MUCH = 2 * 10**9  # bytes to move from which on only torch's peers are measured
NEEDED = 3  # times the bytes to move, of memory

PEAKS = ("concat/axis1-x2", "concat/axis1-x64", "reshape/general", "scatter/scalars")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="parts of names; none: everything")
    extent = parser.add_mutually_exclusive_group()
    for name, text in (
        ("full", "all sizes and cases"),
        ("smoke", "each case once and tiny, to see that it works"),
    ):
        extent.add_argument(
            f"--{name}", dest="extent", action="store_const", const=name, help=text
        )
    parser.set_defaults(extent="quick")
    parser.add_argument(
        "--python", action="append", default=[], help="another interpreter with peers"
    )
    parser.add_argument("--peers", help="only these, with commas between")
    parser.add_argument(
        "--minutes", type=float, help="how long to measure, about, in all runs"
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="how often, each with fresh processes"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "bench", help="folder to write to"
    )
    parser.add_argument("--no-plots", action="store_true")
    parser.add_argument("--docs", action="store_true", help="renew docs/performance.md")
    parser.add_argument(
        "--list", action="store_true", help="show names, measure nothing"
    )
    return parser.parse_args()


def shown_path(path: str) -> str:
    """Without what is private to a machine."""
    full = Path(os.path.abspath(path))
    return str(full.relative_to(ROOT)) if full.is_relative_to(ROOT) else full.name


def shown_command(options: argparse.Namespace) -> str:
    parts = ["python benchmarks/run.py", *options.words]
    if options.extent != "quick":
        parts.append(f"--{options.extent}")
    parts += [f"--python {shown_path(path)}" for path in options.python]
    if options.peers:
        parts.append(f"--peers '{options.peers}'")
    if options.minutes:
        parts.append(f"--minutes {options.minutes:g}")
    if options.runs > 1:
        parts.append(f"--runs {options.runs}")
    return " ".join(parts)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Run:
    def __init__(self, options: argparse.Namespace, log: Any):
        self.options = options
        self.extent = options.extent
        minutes = options.minutes or MINUTES.get(self.extent, math.inf) * options.runs
        self.deadline = time.monotonic() + 60 * minutes / options.runs
        self.wanted = options.peers.split(",") if options.peers else []
        pythons = [sys.executable, *options.python]
        workers = [Worker(python, self.extent, log) for python in pythons]
        if self.extent == "full":
            extra = HUGE_PAGES, WITH_HUGE_PAGES, TORCH_IDIOMS
            workers.append(Worker(sys.executable, self.extent, log, *extra))
        self.team = Team(workers, self.wanted)
        self.results: dict[str, Any] = {
            "machine": machine.describe(),
            "run": {
                "command": shown_command(options),
                "extent": self.extent,
                "runs": options.runs,
                "threads": self.team.threads,
                "copies": "C" if floor.compiled() else "NumPy, one thread",
                "interpreters": self.team.about[: len(pythons)],
            },
            "peers": {
                name: {
                    "how": {op: PEERS[peer].how(op) for op in self.ops(peer)},
                    "ours": PEERS[peer].ours,
                    "ranked": not PEERS[peer].other_storage,
                }
                for name, (_, peer) in self.team.home.items()
            },
            "workloads": {},
        }

    @staticmethod
    def ops(peer: str) -> list[str]:
        names = dict.fromkeys(w.op for w in workloads("smoke").values())
        return [op for op in names if PEERS[peer].how(op)]

    def measure_all(self, picked: list[Workload], sections: list[str]) -> None:
        try:
            there = results.OURS in self.team.home
            if there and "layers" in sections:
                self.measure_layers()
            self.measure_workloads(picked)
            if there and "memory" in sections:
                self.measure_memory()
        finally:
            self.team.stop()

    # ------------------------------------------------------------ workloads

    def smaller(self, workload: Workload) -> dict[str, Any] | None:
        """What the next smaller size of the case came to."""
        sizes = [
            found
            for found in self.results["workloads"].values()
            if (found["op"], found["case"]) == (workload.op, workload.case)
        ]
        return max(sizes, key=lambda found: found["size"], default=None)

    def expected(self, workload: Workload) -> tuple[float, dict[str, float]]:
        """Bytes to move, and seconds a call of each peer, by the next smaller size."""
        last = self.smaller(workload)
        if last is None:
            return 0, {}
        factor = workload.size / last["size"]
        seconds = {
            peer: factor * statistics.median(status["ms"]) / 1e3
            for peer, status in last["peers"].items()
            if status.get("ms")
        }
        return factor * last["bytes_moved"], seconds

    def takes_part(self, name: str, workload: Workload, moved: float) -> bool:
        peer = PEERS[self.team.home[name][1]]
        if name.endswith(WITH_HUGE_PAGES) and workload.size < LARGE:
            return False
        if moved > MUCH and peer.packages[0] != "torch":
            return False
        if self.wanted or self.extent == "smoke":
            return bool(self.wanted) or not (peer.compiles or peer.extra)
        if peer.extra:
            return self.extent == "full" and workload.headline
        if peer.compiles:
            return workload.headline or (self.extent == "full" and workload.in_headline)
        return True

    def measure(self, workload: Workload, seconds: float) -> None:
        moved, expected = self.expected(workload)
        if NEEDED * moved > memory.available():
            note(f"{workload.name}: left out, for want of memory")
            return
        names, skipped = [], {}
        for name in self.team.home:
            if not self.takes_part(name, workload, moved):
                continue
            if expected.get(name, 0) > SLOWEST[self.extent]:
                skipped[name] = {"skipped": f"about {expected[name]:.0f} s a call"}
            else:
                names.append(name)
        found = rotation.measure(self.team, workload, names, seconds)
        if found:
            found["peers"].update(skipped)
            self.results["workloads"][workload.name] = found
            work = results.timed(self.results)[workload.name]
            print(tables.workload(work), end="\n\n", flush=True)

    def measure_workloads(self, chosen: list[Workload]) -> None:
        """Those that take long come last: when the time is up, less is lost."""
        chosen = sorted(chosen, key=lambda workload: workload.size >= LARGE)
        for i, workload in enumerate(chosen):
            left = self.deadline - time.monotonic()
            if left < 0:
                names = ", ".join(w.name for w in chosen[i:])
                note(f"The time is up. Not measured: {names}")
                break
            share = 0 if self.extent == "smoke" else left / (len(chosen) - i)
            self.measure(workload, share)

    # --------------------------------------------------------------- others

    def measure_layers(self) -> None:
        worker, _ = self.team.home[results.OURS]
        rows = worker("layers", LAYER_ROUNDS[self.extent])
        self.results["layers"] = rows
        print(tables.layers(rows), end="\n\n", flush=True)

    def measure_memory(self) -> None:
        """Each in a process of its own, which has no memory left from others."""
        worker, _ = self.team.home[results.OURS]
        most = LARGE if self.extent == "full" else MIDDLE
        rows: list[dict[str, Any]] = []
        for family in PEAKS:
            works = (w for w in workloads(self.extent).values() if w.family == family)
            works = sorted((w for w in works if w.size <= most), key=lambda w: w.size)
            warm_up, work = works[0].name, works[-1].name
            for peer in (results.OURS, "torch") if most == LARGE else (results.OURS,):
                fresh = Worker(worker.command[0], self.extent, worker.log)
                found = fresh("peak", work, peer, warm_up)
                fresh.stop()
                if found:
                    rows.append({"workload": work, "peer": peer, **found})
        self.results["memory"] = rows
        if rows:
            print(tables.memory(rows), end="\n\n", flush=True)


def chosen(words: list[str], name: str) -> bool:
    return not words or any(word in name for word in words)


def main() -> int:
    options = arguments()
    known = workloads(options.extent)
    picked = [w for name, w in known.items() if chosen(options.words, name)]
    sections = [s for s in ("layers", "memory") if chosen(options.words, s)]
    if options.list:
        print("\n".join([*(w.name for w in picked), *sections]))
        return 0
    if not picked and not sections:
        note(f"Nothing has {' or '.join(map(repr, options.words))} in its name")
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read as floor.c is loaded
    runs: list[dict[str, Any]] = []
    with open(options.out / "workers.log", "w") as log:
        try:
            for _ in range(options.runs):
                run = Run(options, log)
                runs.append(run.results)
                run.measure_all(picked, sections)
        except KeyboardInterrupt:
            if not runs:
                raise
            note("Stopped; what was measured is kept")
    return report(results.over_runs(runs), options)


def report(found: dict[str, Any], options: argparse.Namespace) -> int:
    in_order = (n for n in workloads(options.extent) if n in found["workloads"])
    found["workloads"] = {name: found["workloads"][name] for name in in_order}
    path = options.out / f"{options.extent}.json"
    results.write(path, found)
    print(tables.summary(results.timed(found).values()))
    note(f"\nWrote {path}")
    if not options.no_plots:
        try:
            import plots
        except ImportError:
            note("No plots: matplotlib is not installed")
        else:
            for picture in plots.draw(found, options.out):
                note(f"Wrote {picture}")
    if options.docs:
        import page

        page.renew(found)
    wrong = results.ours_went_wrong(found)
    for text in wrong:
        note(f"WRONG: {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
