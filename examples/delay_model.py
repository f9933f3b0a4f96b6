"""A small model with a memory: will a flight arrive late?

The three operators of torch_sparse_ops appear where such models need them:

- `sparse_reshape` flattens crossed features, [flight, carrier, hour], into columns;
- `sparse_concat` joins the blocks of columns side by side;
- `tensor_scatter_update` writes what was seen into the memory. A plane or a line of
  a board may be named many times in one batch: the last flight wins.

The gradient of a batch's loss flows through all three into the batches before it: it
teaches the model what is worth remembering.
"""

from typing import NamedTuple

import torch
from flights import SLOTS, Flights, Sizes
from torch import Tensor, nn

from torch_sparse_ops import sparse_concat, sparse_reshape, tensor_scatter_update

STATE = 8  # numbers remembered of a flight
HIDDEN = 32
AGES = torch.tensor([4, 8, 12, 24, 48]) * 60  # bounds of the classes of age, in minutes
LONG_AGO = -(10**6)


class Memory(NamedTuple):
    planes: Tensor  # [plane, STATE]: of each plane's last flight
    times: Tensor  # [plane]: when that was
    boards: Tensor  # [origin, SLOTS, STATE]: of each airport's last flights

    def detach(self) -> "Memory":
        return Memory(*(part.detach() for part in self))


def coalesced(indices: Tensor, values: Tensor, size: tuple[int, ...]) -> Tensor:
    """A COO tensor of entries that are already in order and in bounds."""
    return torch.sparse_coo_tensor(
        indices, values, size, is_coalesced=True, check_invariants=False
    )


class DelayModel(nn.Module):
    def __init__(self, sizes: Sizes):
        super().__init__()
        self.sizes = sizes
        columns = (
            sizes.carrier * sizes.hour
            + sizes.origin * sizes.destination
            + sizes.weekday * sizes.hour
            + (len(AGES) + 1) * STATE
            + sizes.hour * STATE
        )
        self.weight = nn.Parameter(torch.randn(columns, HIDDEN) / 10)
        self.bias = nn.Parameter(torch.zeros(HIDDEN))
        self.out = nn.Linear(HIDDEN, 1)
        self.encode = nn.Linear(3, STATE)

    def empty_memory(self) -> Memory:
        new = self.weight.new_zeros
        return Memory(
            planes=new(self.sizes.plane, STATE),
            times=torch.full((self.sizes.plane,), LONG_AGO),
            boards=new(self.sizes.origin, SLOTS, STATE),
        )

    def forward(self, flights: Flights, memory: Memory) -> Tensor:
        hidden = self.project(self.features(flights, memory))
        return self.out(torch.relu(hidden + self.bias)).squeeze(1)

    def recall(self, flights: Flights, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        """The last state of each flight's plane, its class of age, its board's mean."""
        state = memory.planes[flights.plane]
        age = torch.bucketize(flights.time - memory.times[flights.plane], AGES)
        return state, age, memory.boards.mean(1)[flights.origin]

    def crosses(self, flights: Flights, memory: Memory) -> list[Tensor]:
        """What is known of each flight, two by two, [flight, one, other]."""
        sizes = self.sizes
        state, age, board = self.recall(flights, memory)
        return [
            self.cross(flights.carrier, flights.hour, (sizes.carrier, sizes.hour)),
            self.cross(
                flights.origin, flights.destination, (sizes.origin, sizes.destination)
            ),
            self.cross(flights.weekday, flights.hour, (sizes.weekday, sizes.hour)),
            self.place(state, age, len(AGES) + 1),
            self.place(board, flights.hour, sizes.hour),
        ]

    def features(self, flights: Flights, memory: Memory) -> Tensor:
        """A sparse matrix, [flight, column]."""
        shape = len(flights), -1
        blocks = [sparse_reshape(x, shape) for x in self.crosses(flights, memory)]
        return sparse_concat(blocks, axis=1)

    def cross(self, a: Tensor, b: Tensor, size: tuple[int, int]) -> Tensor:
        """[flight, *size]: 1 at (flight, a, b)."""
        n = len(a)
        indices = torch.stack([torch.arange(n), a, b])
        return coalesced(indices, self.weight.new_ones(n), (n, *size))

    def place(self, states: Tensor, row: Tensor, rows: int) -> Tensor:
        """[flight, rows, STATE]: each flight's state in one of the rows."""
        n, width = states.shape
        flight = torch.arange(n).repeat_interleave(width)
        row = row.repeat_interleave(width)
        indices = torch.stack([flight, row, torch.arange(width).repeat(n)])
        return coalesced(indices, states.flatten(), (n, rows, width))

    def project(self, features: Tensor) -> Tensor:
        return torch.sparse.mm(features, self.weight)

    def remember(self, flights: Flights, memory: Memory) -> Memory:
        """The memory after these flights, in their order: the last one wins."""
        state = self.observe(flights)
        plane = flights.plane.unsqueeze(1)
        line = torch.stack([flights.origin, flights.slot], 1)
        return Memory(
            planes=tensor_scatter_update(memory.planes, plane, state),
            times=tensor_scatter_update(memory.times, plane, flights.time),
            boards=tensor_scatter_update(memory.boards, line, state),
        )

    def observe(self, flights: Flights) -> Tensor:
        """What to remember of each flight, from its delay as far as it was seen."""
        hours = flights.seen.clamp(-30, 180).to(self.weight.dtype) / 60
        waits = (hours > 0.25).to(hours.dtype)
        return torch.tanh(self.encode(torch.stack([hours, waits, waits * hours], 1)))
