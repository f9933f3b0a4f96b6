"""How setup.py decides what to build, seen with stand-ins for torch and the toolkit."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.py").is_file(), reason="needs the source tree"
)

TORCH = """
__version__ = {version!r}
class version:
    cuda = {cuda!r}
"""
CPP_EXTENSION = """
import os
from setuptools.command.build_ext import build_ext as BuildExtension
def include_paths(): return ["/torch/include"]
def library_paths(device_type="cpu"): return ["/torch/lib"]
print("CUDA_HOME", os.environ.get("CUDA_HOME"))
print("ARCHITECTURES", os.environ.get("TORCH_CUDA_ARCH_LIST"))
"""
# Answers as nvcc does, and leaves a trace of having been asked.
NVCC = """#!/bin/sh
touch "$0.used"
case $1 in
--version) echo "Cuda compilation tools, release {release}, V{release}.1" ;;
--list-gpu-arch) printf 'compute_%s\\n' {known} ;;
esac
"""
KNOWN = "75 80 86 87 89 90 100 103 120 121"


class Machine:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "PYTHONPATH": str(folder / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def torch(self, version="2.13.0", cuda=None):
        package = self.folder / "python" / "torch"
        (package / "utils").mkdir(parents=True)
        (package / "utils" / "__init__.py").touch()
        (package / "__init__.py").write_text(TORCH.format(version=version, cuda=cuda))
        (package / "utils" / "cpp_extension.py").write_text(CPP_EXTENSION)
        return self

    def toolkit(self, name="cuda", release="13.0", known=KNOWN, headers=True):
        home = self.folder / name
        (home / "bin").mkdir(parents=True)
        (home / "include").mkdir()
        if headers:
            (home / "include" / "cuda_runtime.h").touch()
        nvcc = home / "bin" / "nvcc"
        nvcc.write_text(NVCC.format(release=release, known=known))
        nvcc.chmod(0o755)
        return home

    def on_path(self, home):
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "nvcc").symlink_to(home / "bin" / "nvcc")

    def setup(self, **switches):
        return subprocess.run(
            [sys.executable, "setup.py", "--name"],
            env={**self.environment, **switches},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def chosen(self, **switches):
        """CUDA_HOME and the architectures that torch's build code is given."""
        run = self.setup(**switches)
        assert run.returncode == 0, run.stderr
        return re.findall(r"^(?:CUDA_HOME|ARCHITECTURES) (.*)$", run.stdout, re.M)

    def refusal(self, **switches):
        run = self.setup(**switches)
        assert run.returncode == 1
        assert len(run.stderr.splitlines()) == 1, run.stderr
        return run.stderr.strip()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_cpu_torch_never_looks_for_a_toolkit(machine):
    home = machine.torch().toolkit()
    machine.on_path(home)
    assert machine.chosen() == ["None", "None"]
    assert not list(machine.folder.rglob("*.used"))


def test_cuda_torch_with_a_toolkit(machine):
    home = machine.torch(cuda="13.0").toolkit()
    expected = [str(home), "7.5;8.0;8.6;8.9;9.0;10.0;12.0+PTX"]
    assert machine.chosen(CUDA_HOME=str(home)) == expected
    assert machine.chosen(CUDA_PATH=str(home)) == expected
    assert machine.chosen(CUDA_HOME=str(home), FORCE_CUDA="1") == expected
    machine.on_path(home)
    assert machine.chosen() == expected


def test_minor_versions_may_differ(machine):
    home = machine.torch(cuda="13.2").toolkit(release="13.0")
    assert machine.chosen(CUDA_HOME=str(home))[0] == str(home)


@pytest.mark.parametrize(
    "known, expected",
    [("70 75 80 86 89 90", "7.5;8.0;8.6;8.9;9.0+PTX"), ("90 100", "9.0;10.0+PTX")],
)
def test_architectures_are_those_the_toolkit_knows(machine, known, expected):
    home = machine.torch(cuda="13.0").toolkit(known=known)
    assert machine.chosen(CUDA_HOME=str(home)) == [str(home), expected]


def test_architectures_of_the_user(machine):
    home = machine.torch(cuda="13.0").toolkit()
    found = machine.chosen(CUDA_HOME=str(home), TORCH_CUDA_ARCH_LIST="9.0a;10.0")
    assert found == [str(home), "9.0a;10.0"]


def test_use_cuda_0(machine):
    home = machine.torch(cuda="13.0").toolkit()
    machine.on_path(home)
    assert machine.chosen(USE_CUDA="0") == ["None", "None"]
    assert not list(machine.folder.rglob("*.used"))


def test_force_cuda_on_a_cpu_torch(machine):
    home = machine.torch().toolkit()
    for name in ("FORCE_CUDA", "USE_CUDA"):
        assert machine.refusal(**{name: "1"}, CUDA_HOME=str(home)) == (
            f"torch_sparse_ops: {name}=1, but the CUDA kernels cannot be built: torch "
            "2.13.0 is not a CUDA build"
        )


@pytest.mark.skipif(
    Path("/usr/local/cuda/bin/nvcc").exists(), reason="a toolkit is installed here"
)
def test_force_cuda_without_a_toolkit(machine):
    machine.torch(cuda="13.0")
    assert machine.refusal(FORCE_CUDA="1") == (
        "torch_sparse_ops: FORCE_CUDA=1, but the CUDA kernels cannot be built: no CUDA "
        "toolkit (cuda_runtime.h and nvcc) was found; set CUDA_HOME"
    )


def test_cuda_home_without_headers(machine):
    home = machine.torch(cuda="13.0").toolkit(headers=False)
    assert machine.refusal(CUDA_HOME=str(home)) == (
        f"torch_sparse_ops: CUDA_HOME={home} lacks include/cuda_runtime.h or bin/nvcc; "
        "set it to the toolkit's folder, unset it, or set USE_CUDA=0 to build the CPU "
        "kernels only"
    )


def test_toolkit_of_another_major(machine):
    home = machine.torch(cuda="13.0").toolkit(release="12.8")
    assert machine.refusal(CUDA_HOME=str(home)) == (
        f"torch_sparse_ops: the CUDA toolkit in {home} is version 12.8, but torch "
        "2.13.0 is built for CUDA 13.0; point CUDA_HOME to a toolkit of CUDA 13, or "
        "set USE_CUDA=0 to build the CPU kernels only"
    )


def test_switches_that_contradict(machine):
    machine.torch()
    assert machine.refusal(USE_CUDA="0", FORCE_CUDA="1") == (
        "torch_sparse_ops: USE_CUDA=0 and FORCE_CUDA=1 contradict each other"
    )


@pytest.mark.parametrize("name", ["USE_CUDA", "FORCE_CUDA", "DEBUG", "WERROR"])
def test_switch_with_another_value(machine, name):
    machine.torch()
    assert machine.refusal(**{name: "maybe"}) == (
        f"torch_sparse_ops: {name} must be 0 or 1 (got 'maybe')"
    )


def test_old_torch(machine):
    machine.torch(version="2.10.1+cpu")
    assert machine.refusal() == (
        "torch_sparse_ops: building needs torch >= 2.11 (found 2.10.1+cpu); "
        "`pip install --upgrade 'torch>=2.11'`"
    )


def test_no_torch(machine):
    (machine.folder / "python").mkdir()
    (machine.folder / "python" / "torch.py").write_text("raise ImportError")
    assert machine.refusal() == (
        "torch_sparse_ops: building needs torch >= 2.11 and none is installed; "
        "`pip install 'torch>=2.11'`, then build with --no-build-isolation"
    )
