"""A process of one interpreter that runs its peers when told to. Started by run.py.

Commands come as lines of JSON on the standard input, and answers go back as lines of
JSON on the standard output.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import answers
import memory
from peers import PEERS
from workloads import Workload, workloads

SECONDS = 0.004  # of calls at a turn, at least
MOST_CALLS = 1000
SLOW = 5.0  # seconds of one call
DISTRIBUTIONS = (
    "torch",
    "torch_sparse_ops",
    "numpy",
    "scipy",
    "sparse",
    "numba",
    "jax",
    "tensorflow",
    "tensorflow-cpu",
)


def version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


class Worker:
    def __init__(self, extent: str):
        self.workloads = workloads(extent)
        self.running: dict[str, tuple[Callable[[], Any], int]] = {}

    def hello(self) -> dict[str, Any]:
        """What this interpreter has."""
        usable = [name for name, peer in PEERS.items() if peer.usable()]
        versions = {name: version(name) for name in DISTRIBUTIONS}
        about = {"python": platform.python_version()}
        if "torch" in usable:
            import torch

            about["threads"] = torch.get_num_threads()
            about["torch_capability"] = torch.backends.cpu.get_cpu_capability()
        return {
            "peers": usable,
            "versions": {name: v for name, v in versions.items() if v},
            "about": about,
        }

    def load(self, name: str, peers: list[str]) -> dict[str, Any]:
        """Gets the peers ready, and checks what each gives."""
        self.running.clear()
        workload = self.workloads[name]
        data = workload.data()
        want = answers.answer(data)
        status = {peer: self.prepare(workload, data, want, peer) for peer in peers}
        return {
            "bytes_moved": answers.bytes_moved(workload.op, data),
            "bytes_made": answers.bytes_made(workload.op, data),
            "peers": {peer: s for peer, s in status.items() if s},
        }

    def prepare(
        self, workload: Workload, data: Any, want: answers.Answer, name: str
    ) -> dict[str, Any] | None:
        kind = PEERS[name]
        try:
            task = kind().prepare(workload.op, data)
            if task is None:
                return None
            begin = time.perf_counter()
            result = task.run()
            seconds = time.perf_counter() - begin
            right = answers.equal(task.read(result), want)
            del result
        except Exception as error:  # that a peer fails is a finding
            text = str(error).strip().split("\n")[0]
            return {"failed": f"{type(error).__name__}: {text[:160]}"}
        self.running[name] = task.run, 1
        if seconds < SLOW:  # the first call may have set things up
            seconds = self.time(name) / 1e3
            count = max(1, min(MOST_CALLS, int(SECONDS / max(seconds, 1e-7))))
            self.running[name] = task.run, count
        if kind.any_duplicate and not getattr(data, "unique", True):
            return {"result": "not promised"}
        return {"result": "right" if right else "wrong"}

    def time(self, name: str) -> float:
        """Milliseconds a call, over one turn. The result is freed within that."""
        run, count = self.running[name]
        gc.disable()
        begin = time.perf_counter()
        for _ in range(count):
            run()
        spent = time.perf_counter() - begin
        gc.enable()
        return spent / count * 1e3

    def drop(self) -> None:
        self.running.clear()
        gc.collect()

    def layers(self, rounds: int) -> list[dict[str, Any]]:
        import layers

        return layers.measure(rounds)

    def peak(self, name: str, peer: str, warm_up: str) -> dict[str, Any] | None:
        """The memory that one call takes on top of what was there. The first call of
        a process would count what a library sets up for good: `warm_up` goes first."""
        if not memory.can_reset_peak():
            return None
        for workload in self.workloads[warm_up], self.workloads[name]:
            data = workload.data()
            task = PEERS[peer]().prepare(workload.op, data)
            if task is None:
                return None
            peak = memory.peak_of(task.run)
        made = answers.bytes_made(workload.op, data)
        return {
            "peak_bytes": peak,
            "bytes_made": made,
            "bytes_read": answers.bytes_moved(workload.op, data) - made,
        }


def main() -> None:
    # What libraries print must not get between the answers.
    reply = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        name, *args = json.loads(line)
        try:
            result = {"result": getattr(worker, name)(*args)}
        except Exception as error:
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), file=reply)


if __name__ == "__main__":
    main()
