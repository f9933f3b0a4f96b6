"""Tells what was built."""

from __future__ import annotations

from dataclasses import dataclass

from torch_sparse_ops import _library
from torch_sparse_ops._version import __version__


@dataclass(frozen=True)
class BuildInfo:
    """What this installation of torch_sparse_ops was built with and can run on.

    ``str()`` gives it as a short table.

    Attributes:
        version: the version of torch_sparse_ops.
        built_with_torch: the torch whose headers were used; any torch >= 2.11 runs it.
        compiler: the C++ compiler, as it names itself.
        debug: whether this is a debug build.
        cuda: the version of the CUDA toolkit, or None without CUDA kernels.
        cuda_architectures: what the CUDA kernels were compiled for, in the notation of
            ``TORCH_CUDA_ARCH_LIST``.
        cuda_loaded: whether the CUDA kernels are loaded. They are not when the torch
            at hand is a build without CUDA.
        why_no_cuda: why the CUDA kernels were left out, or "".
    """

    version: str
    built_with_torch: str
    compiler: str
    debug: bool
    cuda: str | None
    cuda_architectures: tuple[str, ...]
    cuda_loaded: bool
    why_no_cuda: str

    def __str__(self) -> str:
        if self.cuda is None:
            cuda = f"not built ({self.why_no_cuda})"
        else:
            loaded = "loaded" if self.cuda_loaded else "not loaded"
            cuda = f"{self.cuda} for {' '.join(self.cuda_architectures)}, {loaded}"
        mode = "debug" if self.debug else "release"
        return (
            f"torch_sparse_ops {self.version}\n"
            f"  CPU   {mode} build, {self.compiler}, torch {self.built_with_torch}\n"
            f"  CUDA  {cuda}"
        )


def build_info() -> BuildInfo:
    """What was built: CPU and CUDA kernels, their architectures and compilers.

    Example:
        >>> import torch_sparse_ops
        >>> print(torch_sparse_ops.build_info())  # doctest: +SKIP
        torch_sparse_ops 0.1.0
          CPU   release build, g++ (Debian 12.2.0-14) 12.2.0, torch 2.13.0+cpu
          CUDA  not built (torch 2.13.0+cpu is not a CUDA build)
    """
    # Written by setup.py beside the libraries.
    from torch_sparse_ops import _build_config as config

    return BuildInfo(
        version=__version__,
        built_with_torch=config.built_with_torch,
        compiler=config.compiler,
        debug=config.debug,
        cuda=config.cuda,
        cuda_architectures=config.cuda_architectures,
        cuda_loaded=_library.cuda_is_wanted(),
        why_no_cuda=config.why_no_cuda,
    )
