"""Arguments for both devices, and the comparison of what comes out."""

import torch
from bits import same_bits


def moved(t, device):
    """A copy with the same strides and gaps."""
    storage = t.untyped_storage().clone()
    storage = storage.cpu() if device == "cpu" else storage.cuda(device)
    empty = torch.empty(0, dtype=t.dtype, device=device)
    return empty.set_(storage, t.storage_offset(), t.shape, t.stride())


def on(device, tree):
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda t: moved(t, device), tree
    )


def assert_same(got, want):
    """The same bits, sizes and strides, whichever device they are on."""
    flat, spec = torch.utils._pytree.tree_flatten(got)
    want_flat, want_spec = torch.utils._pytree.tree_flatten(want)
    assert spec == want_spec
    for a, b in zip(flat, want_flat, strict=True):
        if isinstance(b, torch.Tensor):
            assert same_bits(a.cpu(), b.cpu())
            assert a.stride() == b.stride()
        else:
            assert a == b


def leaf(t):
    return t.detach().clone().requires_grad_()


def coordinates(nnz, shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.stack(
        [torch.randint(size, (nnz,), generator=g) for size in shape], dim=1
    )


def in_order(indices, shape):
    strides = torch.tensor([*shape[1:], 1]).flip(0).cumprod(0).flip(0)
    return indices[(indices * strides).sum(1).argsort(stable=True)]
