"""Runs the CUDA kernels on the CPU under sanitizers.

    python tests/cuda_on_host/sanitize.py

AddressSanitizer and UndefinedBehaviorSanitizer: the kernels on random cases without
torch, and the operators of test_cuda_on_host.py with it. ThreadSanitizer: the kernels
on small random cases.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import build


def step(name: str, call, *args) -> None:
    print(f"== {name}", flush=True)
    begin = time.monotonic()
    failure = call(*args)
    if failure:
        sys.exit(f"{failure}\n== {name}: failed")
    print(f"== {name}: {time.monotonic() - begin:.0f} s", flush=True)


def run_driver(variant: build.Variant, *args: str) -> str | None:
    result = build.run_program(build.build_driver(variant), *args)
    if result.returncode != 0:
        return result.stdout
    print(result.stdout, end="")
    return None


def run_tests() -> str | None:
    env = os.environ | build.SANITIZER_OPTIONS
    env |= {"LD_PRELOAD": build.address_sanitizer()}
    env |= {"CUDA_ON_HOST_SANITIZER": "address"}
    build.build_library(build.ASAN)
    tests = build.ROOT / "tests" / "test_cuda_on_host.py"
    # -s: what a sanitizer says before it ends the process is not caught and lost.
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-x", str(tests)]
    result = subprocess.run(command, cwd=build.ROOT, env=env)
    return "the tests failed" if result.returncode else None


def main() -> None:
    for variant in (build.ASAN, build.TSAN):
        if not build.works(variant):
            sys.exit(f"{build.CXX[0]} {' '.join(variant.sanitizer)} does not work here")
    step("kernels, address and undefined", run_driver, build.ASAN, "250", "large")
    step("kernels, thread", run_driver, build.TSAN, "250", "small")
    step("operators, address and undefined", run_tests)


if __name__ == "__main__":
    main()
