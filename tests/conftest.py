"""Fixtures for every test: the device to run on, a fixed seed, switches put back."""

import importlib.util
import random

import pytest
import torch

CUDA_REASON = "needs a CUDA device (torch.cuda.is_available() is False)"
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason=CUDA_REASON)

# `pytest -m cuda` must run where there is nothing but torch and pytest.
collect_ignore = (
    ["test_fuzz.py", "test_random.py"]
    if importlib.util.find_spec("hypothesis") is None
    else []
)


def pytest_configure(config):
    # complex32 and its kin are tested on purpose.
    line = "ignore:B?Complex(Half|32) support is experimental:UserWarning"
    config.addinivalue_line("filterwarnings", line)


@pytest.fixture(
    params=["cpu", pytest.param("cuda", marks=[pytest.mark.cuda, needs_cuda])]
)
def device(request):
    return torch.device(request.param)


class GlobalSwitches:
    """Remembers torch's global switches on entry and puts them back on exit."""

    def __enter__(self):
        self.deterministic = torch.are_deterministic_algorithms_enabled()
        self.warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        self.invariants = torch.sparse.check_sparse_tensor_invariants.is_enabled()
        self.dtype = torch.get_default_dtype()
        self.grad = torch.is_grad_enabled()
        self.threads = torch.get_num_threads()
        return self

    def __exit__(self, *exc):
        torch.use_deterministic_algorithms(self.deterministic, warn_only=self.warn_only)
        switch = torch.sparse.check_sparse_tensor_invariants
        (switch.enable if self.invariants else switch.disable)()
        torch.set_default_dtype(self.dtype)
        torch.set_grad_enabled(self.grad)
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)


@pytest.fixture(autouse=True)
def fixed_state():
    """The same random numbers in every test, and no switch left turned."""
    random.seed(0)
    # torch.manual_seed() asks every backend and takes milliseconds.
    torch.default_generator.manual_seed(0)
    for generator in torch.cuda.default_generators:
        generator.manual_seed(0)
    with GlobalSwitches():
        # Said once for opting out; torch warns when nobody has chosen.
        torch.sparse.check_sparse_tensor_invariants.disable()
        yield


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)


@pytest.fixture
def fresh_compile():
    """No compiled code or recompile limit shared with another test."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
