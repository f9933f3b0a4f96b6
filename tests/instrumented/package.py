"""Compiles the CPU kernels with a compiler's instruments, and runs tests on them.

The result is a copy of the package, in links, that holds the instrumented library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from cuda_on_host.build import (  # noqa: E402
    CXX,
    SANITIZER_OPTIONS,
    address_sanitizer,
    compile_file,
    make,
    run_program,
)

__all__ = [
    "BUILD",
    "CXX",
    "ROOT",
    "SANITIZER_OPTIONS",
    "address_sanitizer",
    "build",
    "make",
    "run_program",
    "run_tests",
]

BUILD = ROOT / "build" / "instrumented"
LIBRARY = "_C.abi3.so"


def build(name: str, flags: Sequence[str]) -> tuple[Path, list[Path]]:
    """The folder to import the package from, and the object files of its library."""
    from torch.utils.cpp_extension import include_paths, library_paths

    folder = BUILD / name
    sources = [
        ROOT / "csrc" / "library.cpp",
        *sorted((ROOT / "csrc/cpu").glob("*.cpp")),
    ]
    compile_flags = [
        *(part for path in include_paths() for part in ("-isystem", path)),
        "-DTORCH_TARGET_VERSION=0x020b000000000000",
        *flags,
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(
            pool.map(lambda s: compile_file(s, folder, compile_flags), sources)
        )
    package = folder / "package" / "torch_sparse_ops"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for entry in (ROOT / "torch_sparse_ops").iterdir():
        if entry.suffix != ".so":
            (package / entry.name).symlink_to(entry)
    link = [*(f"-L{path}" for path in library_paths()), "-ltorch_cpu"]
    library = folder / LIBRARY
    make(
        library,
        [*CXX, *flags, "-shared", *map(str, objects), *link, "-o", str(library)],
        objects,
    )
    (package / LIBRARY).symlink_to(library)
    return package.parent, objects


def run_tests(
    package: Path, arguments: Sequence[str], env: Mapping[str, str] | None = None
) -> int:
    """The status of pytest with the package of that folder."""
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r}); import pytest;"
        "import torch_sparse_ops as t; assert t.__file__.startswith(sys.path[0]);"
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "-q", "-x", "-rN"]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, env=os.environ | (env or {})
    ).returncode
