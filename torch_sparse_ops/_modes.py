"""Which derivatives may be asked of a call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._guards import detect_fake_mode
from torch.autograd import forward_ad

below_autograd = torch._C._AutoDispatchBelowADInplaceOrView

_grad_enabled = torch.is_grad_enabled
_any_requires_grad = torch._C._any_requires_grad
_under_transforms = torch._C._are_functorch_transforms_active


class HiddenLevels:
    """Whether compiled code may have entered a forward-mode level of its own.

    `forward_ad` knows the levels that Python enters. A graph traced inside one enters
    it again, each time it runs, behind Python's back.
    """

    possible = False


def has_tangent(*args: Any) -> bool:
    return any(
        has_tangent(*x) if isinstance(x, (list, tuple)) else _has_tangent(x)
        for x in args
    )


def _has_tangent(x: Any) -> bool:
    # torch has no tangents of sparse tensors, nor can they be asked for one.
    return (
        isinstance(x, Tensor)
        and x.layout == torch.strided
        and torch._VF._unpack_dual(x, level=0).tangent is not None
    )


def _tangents_are_possible(*args: Any) -> bool:
    if forward_ad._current_level >= 0:
        if detect_fake_mode(args) is not None:
            HiddenLevels.possible = True
        return True
    return has_tangent(*args)


def is_differentiated(*args: Any) -> bool:
    """Whether the call of an operator may need its derivative. Every call pays for
    the answer, hence the cheap questions first."""
    if _grad_enabled() and _any_requires_grad(*args):
        return True
    return (
        forward_ad._current_level >= 0 or HiddenLevels.possible
    ) and _tangents_are_possible(*args)


def is_plain(*args: Any) -> bool:
    """Whether a public function may call its operators below autograd: nothing is
    differentiated, transformed or compiled."""
    return not (
        torch.compiler.is_compiling() or _under_transforms() or is_differentiated(*args)
    )
