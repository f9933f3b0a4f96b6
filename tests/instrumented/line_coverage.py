"""Shows that the random tests run every line of the CPU kernels.

    python tests/instrumented/line_coverage.py

Compiles csrc/cpu with gcov's counters, runs the random tests with it, and prints the
lines that none of them reached. Ends with status 1 if there are any but those below.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from package import ROOT, build, run_tests

TESTS = ["tests/test_random.py", "tests/test_random_large.py", "tests/test_fuzz.py"]
# Lines that gcov takes for code of their own, where they end what did run.
MISCOUNTED = {
    "}",
    "rows, share * thread, std::min(count, share * (thread + 1)), outside,",
    "rows, begin, std::min(count, begin + partition.share),",
}
# Lines, as they stand in the source, that no valid or wrong call reaches.
UNREACHED = {
    "csrc/cpu/scatter_partition.h": {"++shift;": "tensors of more than 2 GB"},
    "csrc/cpu/simd.h": {"f();": "processors without AVX2"},
    "csrc/cpu/sparse_concat_kernel.h": {
        "scratch.findings.bad = -1;  // blocks are far smaller unless out of order": (
            "blocks of more than 2**31 entries"
        ),
        "return;": "the same",
    },
    "csrc/cpu/scatter_ways.h": {
        "call(uint64_t{});": "more than 2**32 rows",
    },
}


def count_lines(objects: list[Path]) -> Counter[tuple[str, int]]:
    """How often each line of csrc/cpu ran, in all that was made of it."""
    counts: Counter[tuple[str, int]] = Counter()
    for path in objects:
        command = ["gcov", "--json-format", "--stdout", str(path)]
        told = subprocess.check_output(command, cwd=ROOT, text=True)
        for document in told.splitlines():
            for file in json.loads(document)["files"]:
                name = file["file"].removeprefix(f"{ROOT}/")
                if name.startswith("csrc/cpu/"):
                    for line in file["lines"]:
                        counts[name, line["line_number"]] += line["count"]
    return counts


def main() -> None:
    if shutil.which("gcov") is None:
        sys.exit("gcov was not found")
    package, objects = build("coverage", ["--coverage", "-O0"])
    for path in objects[0].parent.glob("*.gcda"):
        path.unlink()
    if run_tests(package, TESTS):
        sys.exit("the tests failed")
    counts = count_lines(objects)
    missed = 0
    for (name, number), count in sorted(counts.items()):
        line = (ROOT / name).read_text().splitlines()[number - 1].strip()
        if count == 0 and line not in MISCOUNTED:
            reason = UNREACHED.get(name, {}).get(line)
            missed += reason is None
            print(f"{name}:{number}: {line}   <- {reason or 'NOT REACHED'}")
    print(f"{len(counts)} lines of csrc/cpu, {missed} not reached that should be")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
