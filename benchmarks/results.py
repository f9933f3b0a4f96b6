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
        times = self.found["peers"].get(peer, {}).get("ms")
        return statistics.median(times) if times else None

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
