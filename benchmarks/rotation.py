"""Worker processes, and the timing of their peers in turns.

Peers take turns, so that a slow moment of the machine falls on all of them, the copies
of the floor included. Each round has an order of its own, since it matters who came
before: its memory and its code may still be near. Ratios of one run mean something;
times of different runs do not compare.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from floor import Floor
from workloads import Workload

PAUSE = 0.005  # seconds before a turn, for threads to go to sleep
LEAST_TURNS = 3
SLOW = 1000.0  # milliseconds a call: more turns only while the workload has time
MOST_TURNS = 25

WORKER = Path(__file__).with_name("worker.py")


class WorkerEnded(RuntimeError):
    """The process is gone: killed for its memory, or crashed."""


class Worker:
    """`suffix` tells apart two workers of one interpreter; `only` limits its peers."""

    def __init__(
        self,
        python: str,
        extent: str,
        log: IO[str],
        environment: dict[str, str] | None = None,
        suffix: str = "",
        only: Sequence[str] = (),
    ):
        self.command = [python, str(WORKER), extent]
        self.log = log
        self.suffix = suffix
        self.only = only
        self.environment = {
            **os.environ,
            "OMP_WAIT_POLICY": "passive",  # else idle threads spin in others' turns
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
            "JAX_PLATFORMS": "cpu",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environment or {}),
        }
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command,
            env=self.environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    def __call__(self, command: str, *args: Any) -> Any:
        if self.process is None:
            self.process = self.start()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps([command, *args]), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            self.process = None  # the next command starts another
            raise WorkerEnded(f"its process ended with code {code}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def stop(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()
            self.process = None


class Team:
    """The workers, and which of them has which peer."""

    def __init__(self, workers: Sequence[Worker], wanted: Sequence[str]):
        self.workers = workers
        self.home: dict[str, tuple[Worker, str]] = {}
        self.about: list[dict[str, Any]] = []
        self.threads = 1
        for worker in workers:
            hello = worker("hello")
            self.about.append({**hello["about"], "versions": hello["versions"]})
            self.threads = max(self.threads, hello["about"].get("threads", 1))
            for peer in hello["peers"]:
                name = peer + worker.suffix
                if (
                    name not in self.home
                    and (not wanted or name in wanted)
                    and (not worker.only or peer in worker.only)
                ):
                    self.home[name] = worker, peer

    def call(self, command: str, name: str) -> Any:
        worker, peer = self.home[name]
        return worker(command, peer)

    def load(self, workload: Workload, names: Sequence[str]) -> dict[str, Any]:
        """Gets ready those peers that can, in all workers at once."""

        def one(worker: Worker) -> dict[str, Any]:
            mine = {name: peer for name, (w, peer) in self.home.items() if w is worker}
            mine = {name: peer for name, peer in mine.items() if name in names}
            if not mine:
                return {"peers": {}}
            try:
                found = worker("load", workload.name, list(mine.values()))
            except RuntimeError as error:
                return {"peers": {name: {"failed": str(error)} for name in mine}}
            peers = found.pop("peers")
            mine = {name: peer for name, peer in mine.items() if peer in peers}
            return {**found, "peers": {n: peers[peer] for n, peer in mine.items()}}

        with ThreadPoolExecutor(len(self.workers)) as pool:
            answers = list(pool.map(one, self.workers))
        merged: dict[str, Any] = {}
        for answer in answers:
            peers = {**merged.get("peers", {}), **answer["peers"]}
            merged = {**merged, **answer, "peers": peers}
        return merged

    def drop(self) -> None:
        for worker in self.workers:
            if worker.process is not None:
                worker("drop")

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()


def measure(
    team: Team, workload: Workload, names: Sequence[str], seconds: float
) -> dict[str, Any] | None:
    """Times of each peer in `seconds` or a little more; None if no peer can."""
    begin = time.monotonic()
    found = team.load(workload, names)
    if "bytes_moved" not in found:
        return None
    peers = found["peers"]
    running = [name for name, status in peers.items() if "failed" not in status]
    for name in running:
        peers[name]["ms"] = []
    floor = Floor(found["bytes_moved"], team.threads) if found["bytes_moved"] else None
    for turn in range(MOST_TURNS):
        if turn >= LEAST_TURNS and time.monotonic() - begin > seconds:
            break
        if floor:
            floor.measure()
        for name in random.Random(turn).sample(running, len(running)):
            late = time.monotonic() - begin > seconds
            if late and max(peers[name]["ms"], default=0) > SLOW:
                continue  # lest other workloads go without
            time.sleep(PAUSE)
            try:
                peers[name]["ms"].append(team.call("time", name))
            except WorkerEnded as ended:
                gone = team.home[name][0]
                for other in [n for n in running if team.home[n][0] is gone]:
                    peers[other] = {"failed": str(ended)}
                    running.remove(other)
                break
    team.drop()
    return {
        "op": workload.op,
        "case": workload.case,
        "size": workload.size,
        "bytes_moved": found["bytes_moved"],
        "bytes_made": found["bytes_made"],
        "floor": floor and floor.milliseconds(),
        "peers": peers,
    }
