"""Running CUDA kernels on the CPU finds what is wrong with them: the same kernels with
and without a fault, in every order of threads and under each sanitizer."""

import re

import pytest
from cuda_on_host import build

pytestmark = pytest.mark.skipif(bool(build.LACKS), reason=build.LACKS)

# For each kernel, what finds its fault, and a pattern of what is said then.
LINE = "tests/cuda_on_host/faults.cu:[0-9]+"
FAULTS = {
    "last_wins": {"plain": "order 1: wrong", "tsan": f"data race {LINE}"},
    "check_then_act": {"tsan": f"data race {LINE}"},
    "barrier": {"plain": "order 0: wrong", "tsan": f"data race {LINE}"},
    "divergence": {"plain": f"__syncthreads: 10 of 64 threads arrived at {LINE}"},
    "past_the_end": {"asan": f"heap-buffer-overflow {LINE}"},
    "past_the_end_of_shared": {"asan": f"{LINE}.*insufficient space|overflow {LINE}"},
    "uninitialised": {"plain": "order 0: wrong"},
    "shuffle": {"plain": f"__shfl_down_sync: 16 of 32 lanes arrived at {LINE}"},
    "double_buffer": {"plain": "order 1: wrong"},
    # These have no fault to seed.
    "primitives": {},
    "refusals": {},
}
VARIANTS = {variant.name: variant for variant in (build.PLAIN, build.ASAN, build.TSAN)}


@pytest.fixture(scope="module", params=VARIANTS)
def programs(request):
    """The kernels as they should be, and with their faults."""
    variant = VARIANTS[request.param]
    if not build.works(variant):
        pytest.skip(f"{build.CXX[0]} {' '.join(variant.sanitizer)} does not work here")
    return variant, [build.build_faults(variant, faulty) for faulty in (False, True)]


@pytest.mark.parametrize("kernel", FAULTS)
def test_faults_are_found(programs, kernel):
    variant, (right, faulty) = programs
    result = build.run_program(right, kernel)
    assert result.returncode == 0, result.stdout
    sign = FAULTS[kernel].get(variant.name)
    if sign is not None:
        result = build.run_program(faulty, kernel)
        assert result.returncode != 0
        assert re.search(sign, result.stdout), result.stdout


KERNEL = "__global__ void kernel(TYPE* at) { atomicMax(at, TYPE{1}); }"


@pytest.mark.parametrize(
    "type, compiles", [("unsigned long long", True), ("int64_t", False)]
)
def test_atomics_are_on_types_of_cuda(tmp_path, type, compiles):
    """nvcc has none for int64_t, which is long here."""
    source = tmp_path / "atomics.cu"
    source.write_text(f"using TYPE = {type};\n{KERNEL}\n")
    if compiles:
        build.compile_file(source, tmp_path, ())
    else:
        with pytest.raises(RuntimeError, match=r"no matching function.*atomicMax"):
            build.compile_file(source, tmp_path, ())
