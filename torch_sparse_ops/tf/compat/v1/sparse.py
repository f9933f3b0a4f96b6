"""TensorFlow's ``tf.compat.v1.sparse``."""

from torch_sparse_ops.tf.compat.v1 import sparse_concat as concat
from torch_sparse_ops.tf.compat.v1 import sparse_reshape as reshape

__all__ = ["concat", "reshape"]
