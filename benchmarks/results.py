"""Reads the results of a run: who is fastest, and how far from the floor.

{"machine": {...}, "run": {...}, "peers": {name: {"how", "ours", "ranked"}},
 "workloads": {name: {"op", "case", "size", "bytes_moved", "bytes_made",
                      "floor": {"used", "new"},
                      "peers": {name: {"result", "ms": [...]} or {"failed"}
                                or {"skipped"}}}},
 "layers": [...], "memory": [...]}
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS = "torch_sparse_ops"
RAW = f"{OURS} (raw)"
ONE_THREAD = f"{OURS} (1 thread)"
IN_PLACE = "scatter_"


@dataclass(frozen=True)
class Timed:
    """What one workload came to. Times are medians in milliseconds."""

    name: str
    found: dict[str, Any]
    peers: dict[str, Any]  # of the run

    @property
    def floor(self) -> float | None:
        """What counts: results are new memory, except in place."""
        floor = self.found["floor"]
        return floor and floor["used" if self.found["op"] == IN_PLACE else "new"]

    @property
    def family(self) -> str:
        return f"{self.found['op']}/{self.found['case']}"

    def median(self, peer: str) -> float | None:
        return peer_median(self.found, peer)

    def medians(self) -> dict[str, float]:
        """Of every peer that was timed, fastest first."""
        found = {peer: self.median(peer) for peer in self.found["peers"]}
        known = {peer: ms for peer, ms in found.items() if ms is not None}
        return dict(sorted(known.items(), key=lambda item: item[1]))

    def is_rival(self, peer: str) -> bool:
        """Comparable: the same result, in the same storage."""
        about = self.peers[peer]
        right = self.found["peers"][peer].get("result") == "right"
        return right and about["ranked"] and not about["ours"]

    def best(self, word: str = "") -> tuple[str, float] | None:
        """The fastest rival with a word in its name."""
        for peer, ms in self.medians().items():
            if self.is_rival(peer) and word in peer:
                return peer, ms
        return None

    def over_floor(self, peer: str = OURS) -> float | None:
        ms = self.median(peer)
        return ms / self.floor if ms is not None and self.floor else None


def over_runs(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One result of several runs, whose ratios to ours are the medians of those within
    each run: times of different runs do not compare."""
    merged = dict(runs[0])
    names = dict.fromkeys(name for run in runs for name in run["workloads"])
    merged["workloads"] = {
        name: over_times([r["workloads"][name] for r in runs if name in r["workloads"]])
        for name in names
    }
    layers = [run["layers"] for run in runs if run.get("layers")]
    if layers:
        merged["layers"] = [
            {**rows[0], "us": statistics.median(row["us"] for row in rows)}
            for rows in zip(*layers, strict=True)
        ]
    return merged


def over_times(founds: list[dict[str, Any]]) -> dict[str, Any]:
    """The same of one workload: the times of a peer are, for each run, its ratio to
    ours times the median of ours."""
    if len(founds) == 1:
        return founds[0]
    ours = [peer_median(found, OURS) for found in founds]
    if None in ours:
        ours = [1.0] * len(founds)  # no ratios to keep
    scaled = [
        (found, statistics.median(ours) / one)
        for found, one in zip(founds, ours, strict=True)
    ]
    merged = {**founds[0], "peers": {}}
    if all(found["floor"] for found in founds):
        merged["floor"] = {
            kind: statistics.median(found["floor"][kind] * k for found, k in scaled)
            for kind in founds[0]["floor"]
        }
    for peer in dict.fromkeys(peer for found in founds for peer in found["peers"]):
        there = [(found, k) for found, k in scaled if peer in found["peers"]]
        known = [(found, k) for found, k in there if found["peers"][peer].get("ms")]
        status = dict((known or there)[0][0]["peers"][peer])
        if known:
            status["ms"] = [
                statistics.median(f["peers"][peer]["ms"]) * k for f, k in known
            ]
        merged["peers"][peer] = status
    return merged


def peer_median(found: dict[str, Any], peer: str) -> float | None:
    times = found["peers"].get(peer, {}).get("ms")
    return statistics.median(times) if times else None


def timed(results: dict[str, Any]) -> dict[str, Timed]:
    return {
        name: Timed(name, found, results["peers"])
        for name, found in results["workloads"].items()
    }


def families(results: dict[str, Any]) -> dict[str, list[Timed]]:
    """The sizes of each case, ascending."""
    found: dict[str, list[Timed]] = {}
    for work in timed(results).values():
        found.setdefault(work.family, []).append(work)
    for sizes in found.values():
        sizes.sort(key=lambda work: work.found["size"])
    return found


def ours_went_wrong(results: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {peer}: {status.get('failed') or status['result']}"
        for name, found in results["workloads"].items()
        for peer, status in found["peers"].items()
        if results["peers"][peer]["ours"]
        and status.get("result", "right" if "skipped" in status else None) != "right"
    ]


def rounded(value: Any) -> Any:
    """Four digits are more than a time has."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def write(path: Path, results: dict[str, Any]) -> None:
    """One line a workload, to keep the file short and its changes readable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = []
    for key, value in rounded(results).items():
        if isinstance(value, dict) and key in ("workloads", "peers"):
            lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            text = "{\n" + ",\n".join(lines) + "\n}"
        elif isinstance(value, list):
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        else:
            text = json.dumps(value, indent=1)
        parts.append(f"{json.dumps(key)}: {text}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")
