#!/usr/bin/env bash
# Compiles the CUDA kernels with nvcc for every architecture, warnings and register
# spills being errors; no GPU is needed. Then, in an environment of its own with a CUDA
# build of torch, runs the test suite on the one wheel that holds both libraries. Its CPU
# library is the one built against the torch of the first environment, to show that one
# build serves both. Last, that wheel must work on that first, CPU-only torch.
#
# `make cuda-build` calls this with VENV (built), VENV_CUDA and TORCH_CUDA_SPEC set.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ -n ${CUDA_HOME:-} ]]; then
    nvcc=$CUDA_HOME/bin/nvcc
else
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
fi
if [[ ! -x $nvcc ]]; then
    echo "cuda-build skipped: no nvcc on PATH, in CUDA_HOME or in /usr/local/cuda"
    exit 0
fi

python=$VENV/bin/python
python_cuda=$VENV_CUDA/bin/python
work=build/cuda-build
export PIP_DISABLE_PIP_VERSION_CHECK=1 MAX_JOBS=${MAX_JOBS:-$(nproc)}
# Imports must find the installed wheel, never the source tree.
export PYTHONSAFEPATH=1

say() { printf '\n-- %s (%d s)\n' "$*" "$SECONDS"; }

# build_wheel PYTHON FOLDER: one wheel, with the build's configuration block shown.
build_wheel() {
    rm -rf build/lib* "$2"
    mkdir -p "$2"
    "$1" -m pip wheel -v --no-build-isolation --no-deps -w "$2" . > "$2/log" 2>&1 || {
        cat "$2/log"
        exit 1
    }
    sed -n '/configuration$/,/jobs  /p' "$2/log"
}

say "environment $VENV_CUDA with $TORCH_CUDA_SPEC"
if [[ ! -f $VENV_CUDA/.torch ]]; then
    "$python" -m venv "$VENV_CUDA"
    # Compiling torch's Python files at once would double the time.
    "$python_cuda" -m pip install -q --no-compile 'setuptools>=77' wheel ninja \
        "$TORCH_CUDA_SPEC"
    touch "$VENV_CUDA/.torch"
fi

say "wheel for the CPU, against the torch of $VENV"
USE_CUDA=0 build_wheel "$python" "$work/cpu"

say "wheel with CUDA, against $TORCH_CUDA_SPEC"
# Compiled anew each time: only then is there a report of registers.
find build -path '*/csrc/cuda/*.o' -delete
NVCC_FLAGS="-Xptxas -v ${NVCC_FLAGS:-}" WERROR=1 FORCE_CUDA=1 USE_CUDA=1 \
    build_wheel "$python_cuda" "$work/cuda"
"$python" scripts/ptxas_report.py "$work/cuda/log"

say "both libraries, the CPU's from $VENV, in one installation"
wheels=("$work"/cuda/*.whl)
"$python_cuda" -m pip install -q --force-reinstall --no-deps "${wheels[0]}"
"$python_cuda" -m pip install -q "${wheels[0]}[test]"
site=$("$python_cuda" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
unzip_library='import glob, sys, zipfile
wheel = glob.glob(sys.argv[1] + "/*.whl")[0]
zipfile.ZipFile(wheel).extract("torch_sparse_ops/_C.abi3.so", sys.argv[2])'
"$python" -c "$unzip_library" "$work/cpu" "$site"

check='import sys, torch, torch_sparse_ops
info = torch_sparse_ops.build_info()
print("torch", torch.__version__, "-", torch_sparse_ops.__file__)
print(info)
assert torch_sparse_ops.__file__.startswith(sys.argv[1]), "not the installed wheel"
assert info.cuda_loaded == (sys.argv[2] == "cuda"), "CUDA kernels: not as expected"'
"$python_cuda" -c "$check" "$site" cuda

say "the test suite, with both libraries loaded"
# The kernels' run on the host is no matter of torch's version: `make test` has it.
"$python_cuda" -m pytest -q --ignore=tests/test_cuda_on_host.py

say "the same wheel on the CPU-only torch of $VENV"
rm -rf "$work/site"
"$python" -m pip install -q --no-deps --target "$work/site" "${wheels[0]}"
export PYTHONPATH=$PWD/$work/site
"$python" -c "$check" "$PYTHONPATH" cpu
"$python" -m pytest -q tests/test_build.py tests/test_golden.py
