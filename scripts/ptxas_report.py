"""Sums up what `nvcc -Xptxas -v` said in a build log; fails when our kernels spill.

    python scripts/ptxas_report.py LOG

CUB's kernels are counted apart: their registers are CUB's to choose.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes")
REGISTERS = re.compile(r"Used (\d+) registers")


class Kernel(NamedTuple):
    name: str
    architecture: str
    stack: int
    spilled: int
    registers: int

    @property
    def ours(self) -> bool:
        return "3cub" not in self.name

    @property
    def short_name(self) -> str:
        """The function's own name, out of the mangled one."""
        length = re.match(r"_ZN3tso(\d+)", self.name) or re.match(r"_Z(\d+)", self.name)
        if length is None:
            return self.name
        return self.name[length.end() : length.end() + int(length[1])]


def read(log: str) -> list[Kernel]:
    kernels = []
    for part in re.split(r"(?=Compiling entry function)", log)[1:]:
        entry, spills, used = (p.search(part) for p in (ENTRY, SPILLS, REGISTERS))
        if entry and spills and used:
            stack, stored, loaded = map(int, spills.groups())
            kernels.append(
                Kernel(*entry.groups(), stack, stored + loaded, int(used[1]))
            )
    return kernels


def main() -> None:
    kernels = read(Path(sys.argv[1]).read_text())
    ours = [k for k in kernels if k.ours]
    if not ours:
        sys.exit("ptxas reported no kernel of ours: was NVCC_FLAGS='-Xptxas -v' set?")
    print(f"{'kernel':<36}{'compiled':>9}{'registers':>11}{'stack':>7}{'spilled':>9}")
    for name in sorted({k.short_name for k in ours}):
        same = [k for k in ours if k.short_name == name]
        low, high = (f(k.registers for k in same) for f in (min, max))
        print(
            f"{name:<36}{len(same):>9}{f'{low}-{high}':>11}"
            f"{max(k.stack for k in same):>7}{max(k.spilled for k in same):>9}"
        )
    cub = len(kernels) - len(ours)
    print(f"and {cub} of CUB; architectures: ", end="")
    print(
        *sorted({k.architecture for k in ours}, key=lambda a: int(a[3:].rstrip("af")))
    )
    spilling = [k for k in ours if k.spilled]
    for k in spilling:
        print(f"spills: {k.name} for {k.architecture}, {k.spilled} bytes")
    sys.exit(bool(spilling))


if __name__ == "__main__":
    main()
