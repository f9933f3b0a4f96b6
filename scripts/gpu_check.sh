#!/usr/bin/env bash
# Checks the CUDA kernels on a machine with an NVIDIA GPU: builds them for that GPU, runs
# the tests that need it, looks for bad accesses and races, and times the operators.
# Needs Python with torch >= 2.11 (a CUDA build) and pytest, and nvcc with a C++ compiler
# unless a wheel is given; nothing is downloaded.
#
#   scripts/gpu_check.sh [--quick] [--wheel FILE] [--json FILE]
#
#   --quick       fewer sizes and cases: under 3 minutes instead of under 8
#   --wheel FILE  check this wheel, made elsewhere, instead of building
#   --json FILE   where to write the numbers (default: build/gpu-check/bench.json)
#   PYTHON        the interpreter (default: python3)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

quick=""
wheel=""
work=build/gpu-check
json=$work/bench.json
while (($#)); do
    case $1 in
        --quick) quick=--quick ;;
        --wheel) wheel=$2; shift ;;
        --json) json=$2; shift ;;
        *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;;
    esac
    shift
done
PYTHON=${PYTHON:-python3}

fail() { echo "gpu_check: $*" >&2; exit 1; }

about='import sys, torch
if not torch.cuda.is_available():
    sys.exit(f"gpu_check: torch {torch.__version__} finds no GPU")
import pytest
print("%d.%d" % torch.cuda.get_device_capability())
print(f"torch {torch.__version__}, CUDA {torch.version.cuda}, {torch.cuda.get_device_name()}")'
found=$("$PYTHON" -c "$about") || exit 1
capability=$(head -1 <<<"$found")
echo "${found#*$'\n'} (compute capability $capability)"

# The package is imported from here, never from the source tree.
site=$PWD/$work/site
rm -rf "$work"
mkdir -p "$site"
export PYTHONPATH=$site PYTHONSAFEPATH=1 PIP_DISABLE_PIP_VERSION_CHECK=1

summary=""
failed=0

step() {
    local name=$1 start=$SECONDS result=ok
    shift
    printf '\n== %s\n' "$name"
    "$@" </dev/null || { result=FAILED; failed=1; }
    summary+=$(printf '%-8s%5d s  %s' "$result" $((SECONDS - start)) "$name")$'\n'
    [[ $result == ok ]]
}

install() {
    if [[ -z $wheel ]]; then
        FORCE_CUDA=1 TORCH_CUDA_ARCH_LIST=$capability "$PYTHON" -m pip wheel -q \
            --no-index --no-build-isolation --no-deps -w "$work" . || return 1
        wheel=$(echo "$work"/*.whl)
    fi
    "$PYTHON" -m pip install -q --no-index --no-deps --target "$site" "$wheel" &&
        "$PYTHON" -c 'import torch_sparse_ops as t; print(t.build_info())
assert t.build_info().cuda_loaded, "the wheel holds no CUDA kernels"'
}

run_tests() { "$PYTHON" -m pytest -q -p no:cacheprovider -m cuda "$@"; }

all_tests() {
    run_tests tests/test_device_*.py tests/test_sparse_*.py tests/test_tensor_*.py
}

# Without torch's cache each tensor is an allocation of its own, with its own bounds.
sanitize() {
    local tool=$1 cases="duplicates or bad_rows or out-of-bounds or rank3"
    [[ -n $quick ]] || cases+=" or many-axis or promise-axis or long- or false_promises"
    PYTORCH_NO_CUDA_MEMORY_CACHING=1 timeout 90 "$sanitizer" --tool "$tool" \
        --error-exitcode 9 --kernel-regex kns=tso "$PYTHON" -m pytest -q -x \
        -p no:cacheprovider tests/test_device_*.py -k "$cases"
}

sanitizer=$(command -v compute-sanitizer ||
    echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")

step "build or install" install || { echo "$summary"; exit 1; }
step "tests on the GPU" all_tests
if [[ -x $sanitizer ]]; then
    step "compute-sanitizer memcheck" sanitize memcheck
    step "compute-sanitizer racecheck" sanitize racecheck
else
    summary+=$(printf '%-16s  %s' skipped "compute-sanitizer: not installed")$'\n'
fi
step "benchmark" "$PYTHON" scripts/gpu_bench.py $quick --json "$json"

printf '\n== summary\n%s%-8s%5d s\n' "$summary" total "$SECONDS"
[[ -f $json ]] && echo "numbers: $json"
exit "$failed"
