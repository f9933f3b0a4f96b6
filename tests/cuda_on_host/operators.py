"""The operators for CPU tensors that run the CUDA kernels, and the order of threads."""

import ctypes
from pathlib import Path

import torch

# Arguments of cuda_on_host_set_order: the kind of order, a seed, the most blocks of a
# grid (0: as many as asked for).
ORDERS = {
    "forward": (0, 0, 0),
    "reverse": (1, 0, 2),
    "shuffle 1": (2, 1, 0),
    "shuffle 2": (2, 2, 1),
    "shuffle 3": (2, 3, 3),
    "shuffle 4": (2, 4, 0),
}
COUNTS = ("launches", "device_wide", "transfers", "host_reads", "allocations")


class Host:
    """`path` is what build.build_library() made."""

    def __init__(self, path: Path):
        torch.ops.load_library(path)
        self.ops = torch.ops.torch_sparse_ops_host
        library = ctypes.CDLL(str(path))
        self._set_order = library.cuda_on_host_set_order
        self._set_order.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint]
        self._take_counts = library.cuda_on_host_take_counts

    def set_order(self, name: str) -> None:
        self._set_order(*ORDERS[name])

    def counts(self) -> dict[str, int]:
        """What was asked of the device since the last call."""
        result = (ctypes.c_int64 * len(COUNTS))()
        self._take_counts(result)
        return dict(zip(COUNTS, result, strict=True))
