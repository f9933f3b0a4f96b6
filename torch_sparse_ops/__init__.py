"""TensorFlow's sparse concat, sparse reshape and tensor scatter update for PyTorch.

The operators are ``torch.ops.torch_sparse_ops.*``; the functions here take sparse COO
tensors, `SparseTensor` and dense tensors. `torch_sparse_ops.tf` has them under
TensorFlow's names.
"""

# The libraries define the operators that everything else refers to.
from torch_sparse_ops import _library  # isort: skip
from torch_sparse_ops import _fake, _install, tf
from torch_sparse_ops._build_info import BuildInfo, build_info
from torch_sparse_ops._version import __version__
from torch_sparse_ops.functional import (
    concat_shape,
    reshape_shape,
    sparse_concat,
    sparse_reshape,
    tensor_scatter_update,
    tensor_scatter_update_,
)
from torch_sparse_ops.sparse_tensor import SparseTensor

__all__ = [
    "sparse_concat",
    "sparse_reshape",
    "tensor_scatter_update",
    "tensor_scatter_update_",
    "concat_shape",
    "reshape_shape",
    "SparseTensor",
    "tf",
    "BuildInfo",
    "build_info",
    "__version__",
]

del _library, _fake, _install
