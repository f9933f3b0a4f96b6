"""An autograd.Function that costs less to call."""

from __future__ import annotations

from typing import Any

import torch
from torch._functorch.utils import unwrap_dead_wrappers

_under_transforms = torch._C._are_functorch_transforms_active


class Function(torch.autograd.Function):
    @classmethod
    def call(cls, *args: Any) -> Any:
        """`apply`, which first binds its arguments by means of `inspect`. That alone
        takes longer than an operator on small tensors."""
        if _under_transforms():
            return cls.apply(*args)
        missing = cls.forward.__code__.co_argcount - len(args)
        if missing > 0:
            args += cls.forward.__defaults__[-missing:]  # type: ignore[index]
        args = unwrap_dead_wrappers(args)
        return super(torch.autograd.Function, cls).apply(*args)  # type: ignore[misc]
