"""TensorFlow's ``tf.compat``."""

from torch_sparse_ops.tf.compat import v1

__all__ = ["v1"]
