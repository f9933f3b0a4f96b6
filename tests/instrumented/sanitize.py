"""Runs the CPU kernels under AddressSanitizer and UndefinedBehaviorSanitizer.

python tests/instrumented/sanitize.py
"""

from __future__ import annotations

import sys

from package import SANITIZER_OPTIONS, address_sanitizer, build, run_tests

TESTS = [
    "tests/test_random.py",
    "tests/test_random_large.py",
    "tests/test_fuzz.py",
    "tests/test_sparse_concat.py",
    "tests/test_sparse_reshape.py",
    "tests/test_tensor_scatter_update.py",
]
FLAGS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def main() -> None:
    package, _ = build("asan", FLAGS)
    env = SANITIZER_OPTIONS | {"LD_PRELOAD": address_sanitizer()}
    for simd in ("1", "0"):
        # -s: what a sanitizer says before it ends the process is not caught and lost.
        if run_tests(package, ["-s", *TESTS], env | {"TORCH_SPARSE_OPS_SIMD": simd}):
            sys.exit("the tests failed")


if __name__ == "__main__":
    main()
