"""Compiles what runs CUDA sources on the CPU.

An object file is compiled again when its command or any file that went into it has
changed, by content; all lies in build/cuda_on_host.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "cuda_on_host"
HARNESS = [HERE / name for name in ("block.cpp", "schedule.cpp", "scheduler.cpp")]
INCLUDES = ["-I", str(HERE / "include"), "-I", str(HERE), "-I", str(ROOT / "csrc")]
CXX = shlex.split(os.environ.get("CXX", "g++"))
# Why nothing can be built here, or "".
LACKS = (
    "needs Linux"
    if platform.system() != "Linux"
    else f"needs {CXX[0]}"
    if shutil.which(CXX[0]) is None
    else ""
)
FLAGS = [
    "-std=c++20",
    "-O1",
    "-g1",
    "-fPIC",
    "-pthread",
    "-fvisibility=hidden",
    # Kernels move values of one type as another's; nvcc lets them.
    "-fno-strict-aliasing",
    "-Wall",
    "-Wextra",
    "-Wno-unknown-pragmas",
    "-D_GLIBCXX_ASSERTIONS",
    # Messages name csrc/..., not a folder of the build machine.
    f"-ffile-prefix-map={ROOT}/=",
]


@dataclass(frozen=True)
class Variant:
    """A way to compile; the harness itself is never compiled with the sanitizer."""

    name: str
    defines: tuple[str, ...] = ()
    sanitizer: tuple[str, ...] = ()


PLAIN = Variant("plain")
ASAN = Variant(
    "asan",
    ("-DCUDA_ON_HOST_ASAN",),
    ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
TSAN = Variant("tsan", ("-DCUDA_ON_HOST_TSAN",), ("-fsanitize=thread",))


@cache
def compiler_version() -> str:
    return subprocess.check_output([*CXX, "--version"], text=True).splitlines()[0]


def digest(command: Sequence[str], files: Sequence[Path]) -> str:
    state = hashlib.sha256("\0".join([compiler_version(), *command]).encode())
    for file in files:
        state.update(hashlib.sha256(file.read_bytes()).digest())
    return state.hexdigest()


def run(command: Sequence[str]) -> None:
    result = subprocess.run(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}\n{result.stdout}")
    print(result.stdout, end="")  # warnings


def made_before(stamp: Path, command: Sequence[str]) -> bool:
    """Whether `command` would make the same again. The stamp holds a digest and the
    files that it covers."""
    if not stamp.is_file():
        return False
    known, *files = stamp.read_text().splitlines()
    paths = [Path(file) for file in files]
    return all(p.is_file() for p in paths) and known == digest(command, paths)


def make(output: Path, command: Sequence[str], inputs: Sequence[Path] = ()) -> None:
    """Runs `command` unless its output is there and up to date. Without `inputs`, the
    compiler tells what went in."""
    stamp = output.with_name(output.name + ".made")
    if output.is_file() and made_before(stamp, command):
        return
    stamp.unlink(missing_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    if inputs:
        run(command)
    else:
        depends = output.with_name(output.name + ".d")
        run([*command, "-MMD", "-MF", str(depends)])
        names = depends.read_text().replace("\\\n", " ").split(": ", 1)[1].split()
        inputs = [ROOT / name for name in names]
    stamp.write_text("\n".join([digest(command, inputs), *map(str, inputs)]))


def compile_file(source: Path, folder: Path, flags: Sequence[str]) -> Path:
    output = folder / (source.name + ".o")
    language = ["-include", "cuda_runtime.h"] if source.suffix == ".cu" else []
    make(
        output,
        [*CXX, *FLAGS, *INCLUDES, *flags, *language]
        + ["-x", "c++", "-c", str(source), "-o", str(output)],
    )
    return output


@contextmanager
def locked() -> Iterator[None]:
    """One build at a time, whichever processes ask for it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(
    name: str,
    sources: Sequence[Path],
    variant: Variant = PLAIN,
    flags: Sequence[str] = (),
    link_flags: Sequence[str] = (),
) -> Path:
    """A program, or a library if `name` ends in .so, of `sources` and the harness."""
    folder = BUILD / variant.name
    jobs = [(s, folder, variant.defines) for s in HARNESS]
    jobs += [
        (s, folder / f"for_{name}", (*variant.defines, *variant.sanitizer, *flags))
        for s in sources
    ]
    output = folder / name
    with locked(), ThreadPoolExecutor(os.cpu_count()) as pool:
        # The harness comes first: where others hold the same inline function, the
        # linker takes the harness's, which is not instrumented.
        objects = list(pool.map(lambda job: compile_file(*job), jobs))
        shared = ["-shared", "-Wl,-Bsymbolic"] if output.suffix == ".so" else []
        make(
            output,
            [*CXX, *variant.sanitizer, *shared, "-pthread", *map(str, objects)]
            + [*link_flags, "-o", str(output)],
            objects,
        )
    return output


def build_library(variant: Variant = PLAIN) -> Path:
    """The operators of csrc/cuda for CPU tensors, as torch_sparse_ops_host."""
    import torch
    from torch.utils.cpp_extension import include_paths, library_paths

    sources = sorted((ROOT / "csrc" / "cuda").glob("*.cu"))
    sources += [ROOT / "csrc" / "library.cpp", HERE / "allocations.cpp"]
    flags = [
        *(part for path in include_paths() for part in ("-isystem", path)),
        "-DTORCH_TARGET_VERSION=0x020b000000000000",
        "-DTSO_NAMESPACE=torch_sparse_ops_host",
        "-DTSO_DEVICE_KEY=CPU",
    ]
    link_flags = [
        "-Wl,--wrap=aoti_torch_empty_strided",
        *(f"-L{path}" for path in library_paths()),
        "-ltorch_cpu",
    ]
    name = f"libtorch_sparse_ops_host-{torch.__version__}.so"
    return build(name, sources, variant, flags, link_flags)


def build_driver(variant: Variant) -> Path:
    return build("driver", sorted((HERE / "driver").glob("*.cpp")), variant)


def build_faults(variant: Variant, faulty: bool) -> Path:
    name = "faults_seeded" if faulty else "faults_none"
    return build(name, [HERE / "faults.cu"], variant, [f"-DFAULTY={int(faulty)}"])


SANITIZER_OPTIONS = {
    # Leaks are no concern here, and looking for them fails in some containers.
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "atexit_sleep_ms=0",
}


def address_sanitizer() -> str:
    """What has to be loaded before a program that loads instrumented libraries."""
    paths = []
    # AddressSanitizer looks for __cxa_throw as it loads.
    for name in ("libasan.so", "libstdc++.so.6"):
        command = [*CXX, f"-print-file-name={name}"]
        path = subprocess.check_output(command, text=True).strip()
        if not Path(path).is_file():
            raise RuntimeError(f"{CXX[0]} has no {name}")
        paths.append(path)
    return " ".join(paths)


def run_program(program: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that was built here; its stdout holds stderr too."""
    # ThreadSanitizer needs addresses that recent kernels randomise too much.
    setarch = ["setarch", "-R"] if shutil.which("setarch") else []
    return subprocess.run(
        [*setarch, str(program), *args],
        cwd=ROOT,
        env=os.environ | SANITIZER_OPTIONS,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


@cache
def works(variant: Variant) -> bool:
    """Whether programs with this sanitizer can be built and run here."""
    folder = BUILD / variant.name
    source = folder / "works.cpp"
    with locked():
        folder.mkdir(parents=True, exist_ok=True)
        source.write_text("int main() {}\n")
        program = folder / "works"
        try:
            run([*CXX, *variant.sanitizer, str(source), "-o", str(program)])
        except RuntimeError:
            return False
    return run_program(program).returncode == 0


if __name__ == "__main__":
    print(build_library())
