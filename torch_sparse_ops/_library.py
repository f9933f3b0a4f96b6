"""Loads the compiled libraries, which register the operators with torch."""

from __future__ import annotations

import re
from pathlib import Path

try:
    import torch
except ImportError as error:
    raise ImportError(
        "torch_sparse_ops needs torch >= 2.11, but no torch can be imported "
        f"({error}); install it with `pip install 'torch>=2.11'`"
    ) from error

MIN_TORCH = (2, 11)
FOLDER = Path(__file__).parent
CPU_LIBRARY = FOLDER / "_C.abi3.so"
CUDA_LIBRARY = FOLDER / "_C_cuda.abi3.so"


def check_torch() -> None:
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if found and (int(found[1]), int(found[2])) < MIN_TORCH:
        raise ImportError(
            f"torch_sparse_ops needs torch >= 2.11, but torch {torch.__version__} is "
            "installed; upgrade it with `pip install --upgrade 'torch>=2.11'`"
        )


def load_library(path: Path) -> None:
    if not path.is_file():
        raise ImportError(
            f"torch_sparse_ops is not built: {path} is missing (torch "
            f"{torch.__version__} found, torch >= 2.11 needed); install a wheel, or "
            "build it with `pip install --no-build-isolation .` in the source folder"
        )
    try:
        torch.ops.load_library(path)
    except OSError as error:
        # torch's own text names the file; the loader's, its cause, says what is wrong.
        why = error.__cause__ or error
        raise ImportError(
            f"torch_sparse_ops cannot load {path.name} with torch {torch.__version__} "
            f"(torch >= 2.11 needed): {why}; reinstall torch_sparse_ops for this "
            "torch with `pip install --force-reinstall --no-deps "
            "--no-build-isolation .` in the source folder"
        ) from error


def cuda_is_wanted() -> bool:
    """Whether the CUDA kernels are here and torch is a build that can use them."""
    return torch.version.cuda is not None and CUDA_LIBRARY.is_file()


def load() -> None:
    """Load the libraries; an ImportError says what is wrong and what to do."""
    check_torch()
    load_library(CPU_LIBRARY)
    if cuda_is_wanted():
        load_library(CUDA_LIBRARY)


load()
