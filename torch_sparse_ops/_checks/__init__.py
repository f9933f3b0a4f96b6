"""The checks of arguments and the texts of their errors.

The public functions, the fake kernels and SparseTensor share them; the C++ sources
say the same of the raw operators. A wrong dtype is a TypeError in the public
functions and a ValueError elsewhere: `dtype_error` says which.

Comparisons of symbolic sizes become guards or run-time assertions where the shape of
a result depends on them. Symbolic sizes of sparse shapes, on which no result depends,
are left to the kernel.
"""

from torch_sparse_ops._checks import concat, raw, reshape, scatter, sparse

__all__ = ["concat", "raw", "reshape", "scatter", "sparse"]
