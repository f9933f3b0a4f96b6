"""What was built: symbols, kernels, what build_info() says, and how a failure reads."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import torch
from elf import Elf

import torch_sparse_ops

PACKAGE = Path(torch_sparse_ops.__file__).parent
ROOT = Path(__file__).parents[1]
CPU_LIBRARY = PACKAGE / "_C.abi3.so"
CUDA_LIBRARY = PACKAGE / "_C_cuda.abi3.so"

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")
libraries = pytest.mark.parametrize(
    "library",
    [
        CPU_LIBRARY,
        pytest.param(
            CUDA_LIBRARY,
            marks=pytest.mark.skipif(
                not CUDA_LIBRARY.is_file(), reason="the CUDA kernels are not built"
            ),
        ),
    ],
    ids=lambda path: path.name.split(".")[0],
)
# The libraries that versioned symbols may come from.
VERSIONS = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC)_[\d.]+|libcudart\.so\.\d+")
TORCH_SHIM = re.compile(r"(aoti_)?torch_\w+")


def operators():
    prefix = "torch_sparse_ops::"
    names = torch._C._dispatch_get_all_op_names()
    return sorted(n for n in names if n.startswith(prefix))


def python(code, *, path, cwd, **variables):
    """Run code in a new interpreter that finds the package under path."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(path), **variables},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


# ---- the libraries -------------------------------------------------------------------


@linux
@libraries
def test_undefined_symbols_are_stable(library):
    """Only torch's C shim is asked for: no C++ of torch, nothing of Python."""
    undefined = [s for s in Elf(library).symbols() if not s.defined and not s.weak]
    assert any(TORCH_SHIM.fullmatch(s.name) for s in undefined)
    unstable = [
        s.name
        for s in undefined
        if not (VERSIONS if s.version else TORCH_SHIM).fullmatch(s.version or s.name)
    ]
    assert unstable == []


@linux
@libraries
def test_exported_symbols(library):
    """None, so none can clash with, or replace, a symbol of another library."""
    assert [s.name for s in Elf(library).symbols() if s.defined] == []


@linux
@libraries
def test_needed_libraries(library):
    allowed = re.compile(
        r"libtorch_cpu\.so|lib(stdc\+\+|gcc_s|c|m|pthread)\.so\.\d+|ld-linux\S+"
        + (r"|libtorch_cuda\.so|libcudart\.so\.\d+" if "cuda" in library.name else "")
    )
    assert [n for n in Elf(library).needed() if not allowed.fullmatch(n)] == []


@libraries
def test_library_does_not_name_the_build_folder(library):
    assert os.fsencode(ROOT / "csrc") not in library.read_bytes()


def test_every_operator_has_a_cpu_kernel():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert len(operators()) >= 4
    assert [op for op in operators() if not has(op, "CPU")] == []


@pytest.mark.skipif(
    not torch_sparse_ops.build_info().cuda_loaded,
    reason="the CUDA kernels are not built, or torch is a build without CUDA",
)
def test_every_operator_has_a_cuda_kernel():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert [op for op in operators() if not has(op, "CUDA")] == []


# ---- what the package says of itself -------------------------------------------------


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", torch_sparse_ops.__version__)
    try:
        installed = metadata.version("torch_sparse_ops")
    except metadata.PackageNotFoundError:
        pytest.skip("the package is used from its folder, not installed")
    assert installed == torch_sparse_ops.__version__


def test_build_info():
    info = torch_sparse_ops.build_info()
    assert info.version == torch_sparse_ops.__version__
    assert re.match(r"\d+\.\d+", info.built_with_torch)
    assert info.compiler
    assert isinstance(info.debug, bool)
    assert (info.cuda is not None) == CUDA_LIBRARY.is_file()
    assert info.cuda_loaded == (info.cuda is not None and bool(torch.version.cuda))
    assert bool(info.cuda_architectures) == (info.cuda is not None)
    assert bool(info.why_no_cuda) == (info.cuda is None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.debug = True


def test_build_info_prints_as_a_table():
    info = dataclasses.replace(
        torch_sparse_ops.build_info(),
        version="1.2.3",
        built_with_torch="2.13.0",
        compiler="c++ 12.2.0",
        debug=False,
        cuda="13.0",
        cuda_architectures=("8.0", "9.0+PTX"),
        cuda_loaded=False,
        why_no_cuda="",
    )
    assert str(info).splitlines() == [
        "torch_sparse_ops 1.2.3",
        "  CPU   release build, c++ 12.2.0, torch 2.13.0",
        "  CUDA  13.0 for 8.0 9.0+PTX, not loaded",
    ]
    info = dataclasses.replace(info, cuda=None, why_no_cuda="USE_CUDA=0", debug=True)
    assert str(info).splitlines()[1:] == [
        "  CPU   debug build, c++ 12.2.0, torch 2.13.0",
        "  CUDA  not built (USE_CUDA=0)",
    ]


# ---- importing -----------------------------------------------------------------------


def test_import_from_elsewhere_leaves_cuda_alone(tmp_path):
    run = python(
        """
        import torch, torch_sparse_ops
        indices = torch.tensor([[0, 1]])
        print(torch.ops.torch_sparse_ops.sparse_reshape(indices, [2, 3], [6]).tolist())
        print(torch.cuda.is_initialized())
        """,
        path=PACKAGE.parent,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["[[1]]", "False"]


@pytest.fixture
def broken_package(tmp_path):
    """A copy of the package without its libraries, and how its import fails."""
    shutil.copytree(
        PACKAGE,
        tmp_path / "torch_sparse_ops",
        ignore=shutil.ignore_patterns("*.so", "__pycache__"),
    )

    def text():
        run = python(
            """
            try:
                import torch_sparse_ops
            except ImportError as error:
                print(error)
            """,
            path=tmp_path,
            cwd=tmp_path,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.removesuffix("\n")

    return tmp_path / "torch_sparse_ops", text


def reinstall():
    return (
        "reinstall torch_sparse_ops for this torch with `pip install "
        "--force-reinstall --no-deps --no-build-isolation .` in the source folder"
    )


def test_import_without_library(broken_package):
    folder, text = broken_package
    assert text() == (
        f"torch_sparse_ops is not built: {folder / '_C.abi3.so'} is missing (torch "
        f"{torch.__version__} found, torch >= 2.11 needed); install a wheel, or build "
        "it with `pip install --no-build-isolation .` in the source folder"
    )


def test_import_with_a_file_that_is_no_library(broken_package):
    folder, text = broken_package
    (folder / "_C.abi3.so").write_text("not a library")
    found = text()
    assert found.startswith(
        f"torch_sparse_ops cannot load _C.abi3.so with torch {torch.__version__} "
        f"(torch >= 2.11 needed): {folder / '_C.abi3.so'}: "
    )
    assert found.endswith("; " + reinstall())
    assert len(found.splitlines()) == 1


@linux
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_import_with_a_library_for_another_torch(broken_package):
    folder, text = broken_package
    library = folder / "_C.abi3.so"
    source = folder / "late.cpp"
    source.write_text(
        'extern "C" void torch_from_the_future();\n'
        "static int x = (torch_from_the_future(), 0);\n"
    )
    subprocess.run(
        ["c++", "-shared", "-fPIC", "-z", "now", source, "-o", library], check=True
    )
    assert text() == (
        f"torch_sparse_ops cannot load _C.abi3.so with torch {torch.__version__} "
        f"(torch >= 2.11 needed): {library}: undefined symbol: torch_from_the_future; "
        + reinstall()
    )


@pytest.mark.parametrize("version", ["1.13.1", "2.9.1+cu128", "2.10.0"])
def test_import_with_an_old_torch(broken_package, version):
    folder, text = broken_package
    (folder.parent / "torch.py").write_text(f"__version__ = {version!r}\n")
    assert text() == (
        f"torch_sparse_ops needs torch >= 2.11, but torch {version} is installed; "
        "upgrade it with `pip install --upgrade 'torch>=2.11'`"
    )


def test_import_without_torch(broken_package):
    folder, text = broken_package
    (folder.parent / "torch.py").write_text("raise ImportError('No torch here')\n")
    assert text() == (
        "torch_sparse_ops needs torch >= 2.11, but no torch can be imported (No torch "
        "here); install it with `pip install 'torch>=2.11'`"
    )


# ---- packaging -----------------------------------------------------------------------


def run_quietly(*command, cwd):
    run = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "setup.py").is_file(), reason="needs the source tree")
def test_wheel_from_sdist(tmp_path, monkeypatch):
    """The sdist holds all it takes to build the wheel; the wheel fits every Python."""
    monkeypatch.setenv("USE_CUDA", "0")
    sdist = "from setuptools import build_meta; build_meta.build_sdist('..')"
    tree = tmp_path / "tree"
    shutil.copytree(
        ROOT,
        tree,
        ignore=shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info"),
    )
    run_quietly(sys.executable, "-c", sdist, cwd=tree)
    (archive,) = tmp_path.glob("torch_sparse_ops-*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    generated = ["*.so", "_build_config.py", "__pycache__"]
    assert [p for pattern in generated for p in unpacked.rglob(pattern)] == []

    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "-v", "--no-build-isolation", "--no-deps", "-w", str(tmp_path)]
    log = run_quietly(*pip, *build, str(unpacked), cwd=tmp_path)
    assert log.count("torch_sparse_ops configuration") == 1
    assert re.search(r"CUDA +no \(USE_CUDA=0\)", log)
    assert "warning: unused" not in log

    (wheel,) = tmp_path.glob("*.whl")
    version = torch_sparse_ops.__version__
    assert re.fullmatch(rf"torch_sparse_ops-{version}-cp310-abi3-\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    compiled = [n for n in names if n.endswith(".so")]
    assert compiled == ["torch_sparse_ops/_C.abi3.so"]
    assert "torch_sparse_ops/py.typed" in names
    tops = {n.split("/")[0] for n in names}
    assert tops == {"torch_sparse_ops", f"torch_sparse_ops-{version}.dist-info"}

    site = tmp_path / "site"
    run_quietly(*pip, "install", "--no-deps", f"--target={site}", wheel, cwd=tmp_path)
    run = python(
        "import torch_sparse_ops as t; print(t.__file__); print(t.build_info().cuda)",
        path=site,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    expected = site / "torch_sparse_ops" / "__init__.py"
    assert run.stdout.splitlines() == [str(expected), "None"]
