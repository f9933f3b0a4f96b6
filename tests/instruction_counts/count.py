"""How many instructions the CPU kernels run for each entry.

    python tests/instruction_counts/count.py

Times on a shared machine differ by half from one run to the next; instruction counts
differ by nothing. Each kernel runs once on a small fixed input under valgrind's
callgrind, once with the AVX2 code and once with the portable code. The limits are what
GCC 12 reached and 15 % more: lower them when a kernel gets better.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CSRC = HERE.parents[1] / "csrc"

# Most instructions for an entry: portable code, AVX2 code.
LIMITS = {
    "concat_copies": (24, 12),
    "concat_long_runs": (40, 22),
    "concat_runs_of_two": (61, 44),
    "concat_short_runs": (67, 57),
    "concat_short_runs_rank_3": (93, 71),
    "concat_sparse_prefixes": (71, 61),
    "concat_sparse_prefixes_many": (117, 107),
    "concat_long_runs_rank_4": (98, 44),
    "concat_long_runs_back": (30, 18),
    "concat_short_runs_back": (68, 57),
    "concat_unsorted": (176, 160),
    "concat_few_unsorted_back": (103, 81),
    "reshape_merge": (15, 7),
    "reshape_split": (41, 15),
    "reshape_split_by_powers": (27, 15),
    "reshape_split_wide": (20, 17),
    "scatter_scalars": (43, 38),
    "scatter_rows": (68, 62),
    "scatter_scalars_in_order": (23, 20),
    "scatter_shares": (41, 38),
    "scatter_take_scalars": (80, 72),
    "scatter_take_in_order": (28, 25),
}


def missing_tool() -> str | None:
    """Why counting is impossible here, or None."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        return "the limits are for x86-64 Linux"
    if shutil.which("valgrind") is None:
        return "valgrind was not found"
    if shutil.which(compiler()[0]) is None:
        return f"no C++ compiler: {compiler()[0]} was not found"
    return None


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX") or "c++")


def count(folder: Path) -> dict[str, tuple[float, float | None]]:
    """Instructions for an entry of each kernel, portable and AVX2 (None: no AVX2)."""
    program = folder / "kernels"
    command = [*compiler(), "-std=c++17", "-O3", "-g0", f"-I{CSRC}"]
    subprocess.run([*command, HERE / "kernels.cpp", "-o", program], check=True)
    portable = _run(program, folder / "portable.out", simd="0")
    simd = _run(program, folder / "simd.out", simd="1")
    return {name: (portable[name], simd and simd[name]) for name in portable}


def _run(program: Path, profile: Path, simd: str) -> dict[str, float] | None:
    """None where AVX2 code was asked for and the processor has none."""
    told = subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={profile}",
            "--toggle-collect=measure_*",
            program,
        ],
        env={**os.environ, "TORCH_SPARSE_OPS_SIMD": simd},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    entries = dict(zip(told[::2], map(int, told[1::2]), strict=True))
    if entries.pop("avx2") != int(simd):
        return None
    table = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", profile],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = re.findall(r"^\s*([\d,]+) .*:measure_(\w+)", table, re.MULTILINE)
    totals = {name: int(number.replace(",", "")) for number, name in found}
    return {name: totals[name] / number for name, number in entries.items()}


def too_many(counts: dict[str, tuple[float, float | None]]) -> list[str]:
    """A line for each limit that is passed."""
    return [
        f"{name} ({code}): {number:.1f} instructions for an entry, at most {limit}"
        for name, pair in counts.items()
        for code, number, limit in zip(
            ("portable", "AVX2"), pair, LIMITS[name], strict=True
        )
        if number is not None and number > limit
    ]


def main() -> None:
    why = missing_tool()
    if why is not None:
        sys.exit(why)
    with tempfile.TemporaryDirectory() as folder:
        counts = count(Path(folder))
    print(
        f"{'instructions for an entry':<28}{'portable':>10}{'AVX2':>10}{'limits':>16}"
    )
    for name, (portable, simd) in counts.items():
        shown = "-" if simd is None else f"{simd:.1f}"
        limits = " / ".join(map(str, LIMITS[name]))
        print(f"{name:<28}{portable:>10.1f}{shown:>10}{limits:>16}")
    sys.exit("\n".join(too_many(counts)) or None)


if __name__ == "__main__":
    main()
