"""The floor under a workload: the time this machine takes to copy as many bytes.

A copy of n bytes reads n and writes n, so a workload that moves b bytes is held to a
copy of b / 2. It is timed with one thread and with as many as torch takes, into memory
in use and into memory just allocated (with small and with huge pages); the fastest way
counts. The copies take part in the rotation like a peer.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

PLACES = {"used": 0, "new": 1, "new_huge": 2}
SECONDS = 0.003  # of copies at a turn, at least

# Seconds for a copy of so many bytes: (size, threads, place, count).
Copy = Callable[[int, int, int, int], float]


@functools.cache
def compiled() -> Copy | None:
    """copy_seconds of floor.c, or None without a C compiler that knows OpenMP."""
    compiler = os.environ.get("CC") or next(
        filter(shutil.which, ("cc", "gcc", "clang")), None
    )
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/floor.so"
        source = str(Path(__file__).with_name("floor.c"))
        command = [compiler, "-O2", "-fopenmp", "-shared", "-fPIC", source]
        made = subprocess.run([*command, "-o", library], capture_output=True)
        if made.returncode:
            return None
        try:
            function = ctypes.CDLL(library).copy_seconds
        except OSError:  # no OpenMP runtime
            return None
    function.restype = ctypes.c_double
    function.argtypes = ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int
    return function


def by_numpy(size: int, threads: int, place: int, count: int) -> float:
    """One thread and small pages only: a floor a little too high, if anything."""
    source = np.ones(size, np.uint8)
    kept = source.copy()
    begin = time.perf_counter()
    for _ in range(count):
        np.copyto(kept if place == 0 else np.empty_like(source), source)
    return (time.perf_counter() - begin) / count


class Floor:
    """The copies that belong to one workload."""

    def __init__(self, bytes_moved: int, threads: int):
        self.size = max(1, bytes_moved // 2)
        self.copy = compiled() or by_numpy
        ways = sorted({1, threads}) if compiled() else [1]
        self.times: dict[str, list[float]] = {
            f"{place}-{n}": [] for place in PLACES for n in ways
        }

    def measure(self) -> None:
        """One turn."""
        for way, times in self.times.items():
            place, threads = way.split("-")
            args = self.size, int(threads), PLACES[place]
            guess = times[-1] if times else self.copy(*args, 1)
            count = max(1, min(1000, int(SECONDS / max(guess, 1e-9))))
            times.append(self.copy(*args, count))

    def milliseconds(self) -> dict[str, float]:
        """Medians: of the best way into memory in use, and into new memory."""
        medians = {way: statistics.median(t) for way, t in self.times.items()}
        used = min(t for way, t in medians.items() if way.startswith("used"))
        new = min(t for way, t in medians.items() if way.startswith("new"))
        return {"used": used * 1e3, "new": new * 1e3}
