"""Builds torch_sparse_ops/_C (operators and CPU kernels) and, beside a CUDA build of
torch and a CUDA toolkit, torch_sparse_ops/_C_cuda (CUDA kernels).

    pip install --no-build-isolation .        # or: -e .

Both libraries use torch's ABI-stable headers only, so one build serves every torch
from 2.11 on and every Python from 3.10 on. Switches, all environment variables:

    USE_CUDA=0             leave the CUDA kernels out, and never look for a toolkit
    FORCE_CUDA=1           build the CUDA kernels, or fail and say why
                           (neither set: build them if torch is a CUDA build and a
                           toolkit is found; a visible GPU plays no part)
    CUDA_HOME              the CUDA toolkit (or CUDA_PATH; else where nvcc lies, then
                           /usr/local/cuda)
    TORCH_CUDA_ARCH_LIST   architectures, such as "8.0;9.0+PTX" (default: those of
                           7.5 to 12.0 that the toolkit knows, and PTX of the newest)
    NVCC_FLAGS             more flags for nvcc
    DEBUG=1                -O0 -g and assertions
    WERROR=1               warnings are errors, of the C++ compiler and of nvcc
    MAX_JOBS               how many files are compiled at once
    CXX                    the C++ compiler (default: c++)
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

try:
    import torch
except ImportError:
    sys.exit(
        "torch_sparse_ops: building needs torch >= 2.11 and none is installed; "
        "`pip install 'torch>=2.11'`, then build with --no-build-isolation"
    )

ROOT = Path(__file__).resolve().parent
PACKAGE = "torch_sparse_ops"
MIN_TORCH = (2, 11)
# TORCH_TARGET_VERSION: one byte each for major, minor and patch, from the top.
STABLE_ABI = f"0x{MIN_TORCH[0]:02x}{MIN_TORCH[1]:02x}{0:012x}"
ARCHITECTURES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")


def fail(text: str) -> None:
    sys.exit(f"{PACKAGE}: {text}")


def switch(name: str) -> bool | None:
    """The environment variable `name` as a truth value; None when unset or empty."""
    value = os.environ.get(name, "").strip().lower()
    if value in ("1", "on", "true", "yes", "y"):
        return True
    if value in ("0", "off", "false", "no", "n"):
        return False
    if value:
        fail(f"{name} must be 0 or 1 (got {os.environ[name]!r})")
    return None


DEBUG = bool(switch("DEBUG"))
WERROR = bool(switch("WERROR"))


class Toolkit:
    """A CUDA toolkit that has shown its headers and its compiler."""

    def __init__(self, home: Path):
        self.home = home
        self.nvcc = home / "bin" / "nvcc"
        text = subprocess.check_output([self.nvcc, "--version"], text=True)
        found = re.search(r"release (\d+\.\d+)", text)
        if found is None:
            fail(f"{self.nvcc} --version names no release")
        self.version = found[1]

    @staticmethod
    def is_at(home: Path) -> bool:
        return (home / "include" / "cuda_runtime.h").is_file() and (
            home / "bin" / "nvcc"
        ).is_file()

    def architectures(self) -> str:
        """What to compile for by default, in the form of TORCH_CUDA_ARCH_LIST."""
        text = subprocess.check_output([self.nvcc, "--list-gpu-arch"], text=True)
        known = set(re.findall(r"compute_(\d+)\b", text))
        archs = [a for a in ARCHITECTURES if a.replace(".", "") in known]
        if not archs:
            fail(f"{self.nvcc} compiles for none of {', '.join(ARCHITECTURES)}")
        return ";".join(archs) + "+PTX"


def find_toolkit() -> Toolkit | None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            home = Path(os.environ[name])
            if not Toolkit.is_at(home):
                fail(
                    f"{name}={home} lacks include/cuda_runtime.h or bin/nvcc; set it "
                    "to the toolkit's folder, unset it, or set USE_CUDA=0 to build the "
                    "CPU kernels only"
                )
            return Toolkit(home)
    homes = [Path("/usr/local/cuda")]
    nvcc = shutil.which("nvcc")
    if nvcc:
        # nvcc on PATH may be a wrapper or a link, in a folder without the headers.
        homes = [Path(p).parent.parent for p in (nvcc, os.path.realpath(nvcc))] + homes
    return next((Toolkit(home) for home in homes if Toolkit.is_at(home)), None)


def choose_cuda() -> tuple[Toolkit | None, str]:
    """The toolkit to build the CUDA kernels with, or None and why they are left out."""
    use, force = switch("USE_CUDA"), switch("FORCE_CUDA")
    if use is False:
        if force:
            fail("USE_CUDA=0 and FORCE_CUDA=1 contradict each other")
        return None, "USE_CUDA=0"
    cuda = torch.version.cuda
    toolkit = find_toolkit() if cuda else None
    if toolkit is None:
        why = (
            "no CUDA toolkit (cuda_runtime.h and nvcc) was found; set CUDA_HOME"
            if cuda
            else f"torch {torch.__version__} is not a CUDA build"
        )
        if force or use:
            asked = "FORCE_CUDA=1" if force else "USE_CUDA=1"
            fail(f"{asked}, but the CUDA kernels cannot be built: {why}")
        return None, why
    if toolkit.version.split(".")[0] != cuda.split(".")[0]:
        fail(
            f"the CUDA toolkit in {toolkit.home} is version {toolkit.version}, but "
            f"torch {torch.__version__} is built for CUDA {cuda}; point CUDA_HOME to a "
            f"toolkit of CUDA {cuda.split('.')[0]}, or set USE_CUDA=0 to build the CPU "
            "kernels only"
        )
    return toolkit, ""


def check_machine() -> None:
    found = tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", torch.__version__).groups())
    if found < MIN_TORCH:
        fail(
            f"building needs torch >= 2.11 (found {torch.__version__}); "
            "`pip install --upgrade 'torch>=2.11'`"
        )
    if os.name != "posix":
        fail("only Linux and other POSIX systems are supported")
    if not (ROOT / "csrc" / "library.cpp").is_file():
        fail("csrc/library.cpp is missing; build from a full checkout or sdist")


check_machine()
TOOLKIT, NO_CUDA = choose_cuda()
if TOOLKIT is not None:
    # Both must be set before torch.utils.cpp_extension is imported or used: it guesses
    # its own CUDA_HOME, and without a GPU and an architecture list it crashes.
    os.environ["CUDA_HOME"] = str(TOOLKIT.home)
    if not os.environ.get("TORCH_CUDA_ARCH_LIST"):
        os.environ["TORCH_CUDA_ARCH_LIST"] = TOOLKIT.architectures()
CUDA_ARCHS = (
    tuple(re.split(r"[;, ]+", os.environ["TORCH_CUDA_ARCH_LIST"])) if TOOLKIT else ()
)

from torch.utils.cpp_extension import (  # noqa: E402
    BuildExtension,
    include_paths,
    library_paths,
)

# torch's headers warn under -Wextra; as system headers they do not.
TORCH_INCLUDES = [part for path in include_paths() for part in ("-isystem", path)]
DEFINES = [f"-DTORCH_TARGET_VERSION={STABLE_ABI}"]
# Python's own build flags come first and may define NDEBUG.
LEVEL = ["-O0", "-g", "-UNDEBUG", "-D_GLIBCXX_ASSERTIONS"] if DEBUG else ["-O3", "-g0"]
HOST_FLAGS = [
    "-Wall",
    "-Wextra",
    *(["-Werror"] if WERROR else []),
    "-fvisibility=hidden",
    # Messages that carry __FILE__ name csrc/..., not a folder of the build machine.
    f"-ffile-prefix-map={ROOT}/=",
]
# -g0 last: Python's flags often ask for symbols that triple the size of the library.
CXX_FLAGS = [*TORCH_INCLUDES, *DEFINES, *LEVEL, *HOST_FLAGS]
LINK_FLAGS = (
    ["-Wl,--no-undefined", f"-Wl,--version-script={ROOT / 'csrc' / 'exports.map'}"]
    if sys.platform == "linux"
    else []
)


def sources(pattern: str) -> list[str]:
    return sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(pattern))


def cpu_extension() -> Extension:
    return Extension(
        f"{PACKAGE}._C",
        ["csrc/library.cpp", *sources("csrc/cpu/*.cpp")],
        include_dirs=[str(ROOT / "csrc")],
        library_dirs=library_paths(),
        libraries=["torch_cpu"],
        extra_compile_args=list(CXX_FLAGS),
        extra_link_args=list(LINK_FLAGS),
        language="c++",
        py_limited_api=True,
    )


def cuda_extension() -> Extension:
    nvcc_flags = [
        *TORCH_INCLUDES,
        *DEFINES,
        "-DUSE_CUDA",  # shows torch's stable headers for CUDA
        *(["-g", "-G", "-UNDEBUG"] if DEBUG else ["-O3"]),
        *(["-Werror", "all-warnings"] if WERROR else []),
        *(part for flag in HOST_FLAGS for part in ("-Xcompiler", flag)),
        *shlex.split(os.environ.get("NVCC_FLAGS", "")),
    ]
    return Extension(
        f"{PACKAGE}._C_cuda",
        sources("csrc/cuda/*.cu"),
        include_dirs=[str(ROOT / "csrc")],
        library_dirs=library_paths(device_type="cuda"),
        libraries=["torch_cpu", "torch_cuda", "cudart"],
        extra_compile_args={"cxx": list(CXX_FLAGS), "nvcc": nvcc_flags},
        extra_link_args=list(LINK_FLAGS),
        language="c++",
        py_limited_api=True,
    )


EXTENSIONS = [cpu_extension()]
if TOOLKIT is not None:
    if sources("csrc/cuda/*.cu"):
        EXTENSIONS.append(cuda_extension())
    else:
        fail("csrc/cuda holds no .cu file; build from a full checkout or sdist")


def compiler_version() -> str:
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if shutil.which(compiler[0]) is None:
        fail(
            f"no C++ compiler: {compiler[0]} was not found; install g++ or clang, or "
            "set CXX"
        )
    text = subprocess.check_output([*compiler, "--version"], text=True)
    return text.splitlines()[0].strip()


def configuration() -> dict[str, object]:
    """What is being built, as build_info() will tell it."""
    return {
        "built_with_torch": str(torch.__version__),
        "compiler": compiler_version(),
        "debug": DEBUG,
        "cuda": TOOLKIT.version if TOOLKIT else None,
        "cuda_architectures": CUDA_ARCHS,
        "why_no_cuda": NO_CUDA,
    }


def print_configuration() -> None:
    cuda = f"{TOOLKIT.version} in {TOOLKIT.home}" if TOOLKIT else f"no ({NO_CUDA})"
    rows = [
        ("torch", f"{torch.__version__} in {Path(torch.__file__).parent}"),
        ("stable ABI", "torch >= 2.11, Python >= 3.10"),
        ("C++ compiler", compiler_version()),
        ("CUDA", cuda),
        ("architectures", " ".join(CUDA_ARCHS) or "-"),
        ("mode", ("debug" if DEBUG else "release") + (", -Werror" if WERROR else "")),
        ("jobs", os.environ.get("MAX_JOBS") or "all cores"),
    ]
    lines = [f"{PACKAGE} configuration"] + [f"  {k:<14}{v}" for k, v in rows]
    print("\n".join(lines), flush=True)


class Build(BuildExtension):
    def finalize_options(self) -> None:
        super().finalize_options()
        # A fixed folder, for editable installs too, lets ninja rebuild only what
        # changed. One for each torch: their headers are not the same.
        self.build_temp = str(ROOT / "build" / f"torch-{torch.__version__}")

    def run(self) -> None:
        print_configuration()
        inplace = bool(self.inplace)
        folder = ROOT / PACKAGE if inplace else Path(self.build_lib) / PACKAGE
        made = [Path(self.get_ext_filename(ext.name)).name for ext in self.extensions]
        for library in folder.glob("_C*.so"):
            # Left by an earlier build, it would still be loaded, or packed in a wheel.
            if library.name not in made:
                library.unlink()
        super().run()
        lines = ["# Written by setup.py.\n"]
        lines += [f"{name} = {value!r}\n" for name, value in configuration().items()]
        (folder / "_build_config.py").write_text("".join(lines))

    def get_ext_filename(self, ext_name: str) -> str:
        # Not Python modules: one name everywhere, which _library.py knows too.
        return os.path.join(*ext_name.split(".")) + ".abi3.so"


# A free-threaded Python has no limited API before 3.15, so its wheel names it alone.
LIMITED_API = not sysconfig.get_config_var("Py_GIL_DISABLED")
setup(
    ext_modules=EXTENSIONS,
    cmdclass={"build_ext": Build},
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if LIMITED_API else {},
)
