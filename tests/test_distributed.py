"""DistributedDataParallel on two gloo processes, and DTensor arguments."""

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import torch_sparse_ops as tso
from torch_sparse_ops import SparseTensor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (dist.is_available() and dist.is_gloo_available()),
        reason="torch is built without gloo",
    ),
]

STEPS, EXAMPLES, CLASSES, WIDTH = 6, 8, 3, 5
SHARES = [slice(0, EXAMPLES // 2), slice(EXAMPLES // 2, EXAMPLES)]


class Model(torch.nn.Module):
    """Scores examples of two sparse blocks, and keeps a memory for each class."""

    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(1)
        self.weight = torch.nn.Parameter(torch.randn(2 * WIDTH, CLASSES, generator=g))
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.memory = torch.nn.Parameter(torch.zeros(CLASSES, CLASSES))

    def forward(self, left, right, labels):
        indices, values, shape = left
        left = SparseTensor(indices, values * self.scale, shape)
        joined = tso.sparse_concat([left, right], 1)
        halves = tso.sparse_reshape(joined, (shape[0], 2, WIDTH)).to_dense()
        scores = halves.flatten(1) @ self.weight
        memory = tso.tensor_scatter_update(self.memory, labels[:, None], scores)
        return scores + memory[labels]


def batches():
    g = torch.Generator().manual_seed(0)
    for _ in range(STEPS):
        x = torch.randn(EXAMPLES, 2 * WIDTH, generator=g)
        yield x, torch.randint(CLASSES, (EXAMPLES,), generator=g)


def loss_of(model, x, labels):
    blocks = []
    for half in x.split(WIDTH, dim=1):
        indices = (half > 0).nonzero()
        blocks.append(SparseTensor(indices, half[indices.unbind(1)], half.shape))
    return torch.nn.functional.cross_entropy(model(*blocks, labels), labels)


def train(model, shares):
    """The losses of each step, one for each share of the examples."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    history = []
    for x, labels in batches():
        optimizer.zero_grad()
        losses = torch.stack([loss_of(model, x[s], labels[s]) for s in shares])
        losses.mean().backward()
        optimizer.step()
        history.append(losses.detach())
    return torch.stack(history)


def join(rank, folder, count):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count
    )


def train_one_of_two(rank, folder):
    join(rank, folder, 2)
    torch.set_num_threads(1)
    losses = train(DistributedDataParallel(Model()), [SHARES[rank]])
    torch.save(losses, f"{folder}/losses{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_learn_as_one_does(tmp_path):
    want = train(Model(), SHARES)
    assert want.mean(1)[-1] < want.mean(1)[0]
    mp.spawn(train_one_of_two, args=(str(tmp_path),), nprocs=2)
    got = torch.cat([torch.load(tmp_path / f"losses{r}.pt") for r in (0, 1)], dim=1)
    # The first losses see no averaged gradient yet.
    assert torch.equal(got[0], want[0])
    torch.testing.assert_close(got, want)


def call_with_dtensors(rank, folder):
    from torch.distributed.tensor import (
        Replicate,
        Shard,
        distribute_tensor,
        init_device_mesh,
    )

    join(rank, folder, 1)
    mesh = init_device_mesh("cpu", (1,))
    tensor, rows, new = torch.zeros(4, 2), torch.tensor([[1], [3]]), torch.ones(2, 2)
    for placement in (Shard(0), Replicate()):
        t, r, u = (distribute_tensor(x, mesh, [placement]) for x in (tensor, rows, new))
        triple = SparseTensor(rows, distribute_tensor(new, mesh, [placement]), (4, 2))
        for call in (
            lambda t=t, r=r, u=u: tso.tensor_scatter_update(t, r, u),
            lambda t=t: tso.tensor_scatter_update(t, rows, new),
            lambda t=t: tso.tensor_scatter_update(
                t.clone().requires_grad_(), rows, new
            ),
            lambda t=t: tso.tensor_scatter_update_(t, rows, new),
            lambda x=triple: tso.sparse_concat([x, x], 0),
        ):
            # NotImplementedError is a RuntimeError.
            with pytest.raises(RuntimeError, match=r"sharding strategy|mixed torch"):
                call()
        assert t.to_local().tolist() == tensor.tolist()
    dist.destroy_process_group()


def test_dtensor_arguments_raise(tmp_path):
    """In a process of its own, which may have a group of its own."""
    mp.spawn(call_with_dtensors, args=(str(tmp_path),), nprocs=1)
