"""How much memory a call takes, as Linux counts it."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

RESET, STATUS = "/proc/self/clear_refs", "/proc/self/status"
RESET_PEAK = "5"


def can_reset_peak() -> bool:
    try:
        reset_peak()
    except OSError:
        return False
    return True


def reset_peak() -> None:
    with open(RESET, "w") as file:
        file.write(RESET_PEAK)


def resident(field: str) -> int:
    """Bytes: now (VmRSS) or at most since the reset (VmHWM)."""
    with open(STATUS) as file:
        line = next(line for line in file if line.startswith(field))
    return int(line.split()[1]) * 1024


def peak_of(run: Callable[[], Any]) -> int:
    """The most that a call had at one time, its result included, in bytes."""
    gc.collect()
    reset_peak()
    before = resident("VmRSS")
    result = run()
    peak = resident("VmHWM") - before
    del result
    return peak


def available() -> int:
    """Bytes that processes may still take; a great many where nobody tells."""
    try:
        with open("/proc/meminfo") as file:
            line = next(line for line in file if line.startswith("MemAvailable"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return 2**62
