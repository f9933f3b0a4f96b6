"""What the machine is, for a reader of the figures."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any


def first_line(path: str) -> str:
    try:
        return Path(path).read_text().strip().split("\n")[0]
    except OSError:
        return ""


def cpu_info() -> dict[str, str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].split("\n")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def caches() -> str:
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, level = first_line(f"{folder}/type"), first_line(f"{folder}/level")
        if kind != "Instruction":
            found.append(f"L{level} {first_line(f'{folder}/size')}")
    return ", ".join(found)


def memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def describe() -> dict[str, Any]:
    cpu = cpu_info()
    huge = first_line("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "cpu": cpu.get("model name") or platform.processor() or platform.machine(),
        "virtual": "hypervisor" in cpu.get("flags", ""),
        "cores": len(os.sched_getaffinity(0)),
        "caches": caches(),
        "memory_gib": round(memory_bytes() / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "huge_pages": huge[huge.find("[") + 1 : huge.find("]")] if huge else "",
        "load": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d"),
    }
