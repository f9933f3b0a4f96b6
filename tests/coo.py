"""Small COO tensors, written and read as (coordinates, value) in the order stored."""

import torch


def coo(shape, pairs, *, dtype=torch.float32, coalesced=None, device="cpu"):
    """`pairs`: {coordinates: value}, or a list of pairs where some repeat."""
    pairs = list(pairs.items()) if isinstance(pairs, dict) else pairs
    indices = torch.tensor([row for row, _ in pairs], dtype=torch.int64)
    return torch.sparse_coo_tensor(
        indices.reshape(len(pairs), len(shape)).t().to(device),
        torch.tensor([value for _, value in pairs], dtype=dtype, device=device),
        shape,
        is_coalesced=coalesced,
        check_invariants=False,  # a false flag is one of the things to test
    )


def entries(t):
    rows = map(tuple, t._indices().t().tolist())
    return list(zip(rows, t._values().tolist(), strict=True))
