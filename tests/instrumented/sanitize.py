"""Runs the CPU kernels under AddressSanitizer and UndefinedBehaviorSanitizer.

python tests/instrumented/sanitize.py
"""

from __future__ import annotations

import sys

from package import (
    BUILD,
    CXX,
    ROOT,
    SANITIZER_OPTIONS,
    address_sanitizer,
    build,
    make,
    run_program,
    run_tests,
)

TESTS = [
    "tests/test_random.py",
    "tests/test_random_large.py",
    "tests/test_fuzz.py",
    "tests/test_sparse_concat.py",
    "tests/test_sparse_reshape.py",
    "tests/test_tensor_scatter_update.py",
]
FLAGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


KERNELS = ROOT / "tests" / "instruction_counts" / "kernels.cpp"


def run_threads() -> bool:
    """Whether ThreadSanitizer has nothing to say."""
    program = BUILD / "kernels"
    flags = ["-std=c++17", "-O1", "-g1", "-fsanitize=thread", "-DKERNEL_THREADS=4"]
    command = [*CXX, *flags, "-pthread", f"-I{ROOT / 'csrc'}", str(KERNELS)]
    make(program, [*command, "-o", str(program)])
    result = run_program(program)
    print(result.stdout, end="")
    return result.returncode == 0


def main() -> None:
    if not run_threads():
        sys.exit("the kernels failed")
    package, _ = build("asan", FLAGS)
    env = SANITIZER_OPTIONS | {"LD_PRELOAD": address_sanitizer()}
    for simd in ("1", "0"):
        # -s: what a sanitizer says before it ends the process is not caught and lost.
        if run_tests(package, ["-s", *TESTS], env | {"TORCH_SPARSE_OPS_SIMD": simd}):
            sys.exit("the tests failed")


if __name__ == "__main__":
    main()
