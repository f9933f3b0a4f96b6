"""Arguments as TensorFlow takes them, as tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

OP = "tensor_scatter_nd_update"


def scatter_arguments(
    tensor: Any, indices: Any, updates: Any
) -> tuple[Tensor, Tensor, Tensor]:
    given = (tensor, indices, updates)
    device = next((x.device for x in given if isinstance(x, Tensor)), None)
    tensor = as_tensor("tensor", tensor, device)
    indices_like = as_tensor("indices", indices, device)
    if is_literal(indices) and indices_like.numel() == 0:
        # No number, no dtype: [[]] is as good as int64.
        indices_like = indices_like.long()
    updates_like = as_tensor("updates", updates, device)
    if is_literal(updates) and torch.can_cast(updates_like.dtype, tensor.dtype):
        updates_like = updates_like.to(tensor.dtype)
    return tensor, indices_like, updates_like


def is_literal(x: object) -> bool:
    """Whether the argument has no dtype of its own."""
    return not hasattr(x, "dtype")


def as_tensor(name: str, x: Any, device: torch.device | None) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if has_strings(x):
        raise TypeError(f"{OP}: {name} must hold numbers (got strings)")
    try:
        return torch.as_tensor(x, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{OP}: {name} must be a Tensor or something torch.as_tensor takes "
            f"(got {type(x).__name__}: {error})"
        ) from None


def has_strings(x: object) -> bool:
    if isinstance(x, (str, bytes)):
        return True
    if isinstance(x, (list, tuple)):
        return any(map(has_strings, x))
    return getattr(getattr(x, "dtype", None), "kind", "") in ("U", "S", "O", "T")


def shape_argument(shape: Any) -> Any:
    """An array of sizes as a list; other forms as they are."""
    is_array = hasattr(shape, "__array__") and not isinstance(shape, Tensor)
    return torch.as_tensor(shape) if is_array else shape
