"""What an error says, from each way to call an operator."""

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_map_only

ORDINARY = (ValueError, IndexError, TypeError, NotImplementedError)


def told(call, *args, **kwargs):
    """'Class: text' of the error that a call raises."""
    with pytest.raises(ORDINARY) as error:
        call(*args, **kwargs)
    return f"{error.type.__name__}: {error.value}"


def transcript(faults, op):
    return "\n".join(f"{id}: {told(op, *args)}" for id, args in faults.items())


def as_raw(text):
    """A wrong dtype is a TypeError from Python and a ValueError elsewhere."""
    return text.replace("TypeError: ", "ValueError: ", 1)


def fakes(args):
    mode = FakeTensorMode()
    return mode, tree_map_only(torch.Tensor, mode.from_tensor, args)


def metas(args):
    return tree_map_only(torch.Tensor, lambda t: t.to("meta"), args)


def parametrize(faults):
    return pytest.mark.parametrize("fault", list(faults))
