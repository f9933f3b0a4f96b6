"""The delay model in dense torch, and the comparison of two training runs."""

from collections.abc import Iterable

import torch
from delay_model import DelayModel, Memory
from flights import Flights
from torch import Tensor
from torch.nn import functional as F


class DenseModel(DelayModel):
    """The same model without torch_sparse_ops and without sparse tensors."""

    def features(self, flights: Flights, memory: Memory) -> Tensor:
        shape = len(flights), -1
        blocks = [x.reshape(shape) for x in self.crosses(flights, memory)]
        return torch.cat(blocks, dim=1)

    def cross(self, a: Tensor, b: Tensor, size: tuple[int, int]) -> Tensor:
        first, second = F.one_hot(a, size[0]), F.one_hot(b, size[1])
        return (first[:, :, None] * second[:, None, :]).to(self.weight.dtype)

    def place(self, states: Tensor, row: Tensor, rows: int) -> Tensor:
        spread = states.new_zeros(len(states), rows, states.shape[1])
        spread[torch.arange(len(states)), row] = states
        return spread

    def project(self, features: Tensor) -> Tensor:
        return features @ self.weight

    def remember(self, flights: Flights, memory: Memory) -> Memory:
        state = self.observe(flights)
        planes, times, boards = (part.clone() for part in memory)
        for i in range(len(flights)):  # one at a time, so that the last one wins
            planes[flights.plane[i]] = state[i]
            times[flights.plane[i]] = flights.time[i]
            boards[flights.origin[i], flights.slot[i]] = state[i]
        return Memory(planes, times, boards)


class DenseProductModel(DelayModel):
    """The sparse model, but for its matrix product, which is that of the dense one."""

    def project(self, features: Tensor) -> Tensor:
        return features.to_dense() @ self.weight


def record(
    model: DelayModel, batches: Iterable[Flights], learning_rate: float, window: int
) -> list[Tensor]:
    """Train, and keep every number: logits, memory, gradients, parameters."""
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    memory = model.empty_memory()
    numbers, losses = [], []
    for batch in batches:
        logits = model(batch, memory)
        target = batch.late.to(logits.dtype)
        losses.append(F.binary_cross_entropy_with_logits(logits, target))
        memory = model.remember(batch, memory)
        numbers += [logits.detach(), *memory.detach()]
        if len(losses) == window:
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()
            optimizer.step()
            losses.clear()
            memory = memory.detach()
            for parameter in model.parameters():
                numbers += [parameter.grad.clone(), parameter.detach().clone()]
    return numbers


def same_bits(a: list[Tensor], b: list[Tensor]) -> bool:
    def bits(x: Tensor) -> Tensor:
        return x.contiguous().view(torch.uint8)

    return all(torch.equal(bits(x), bits(y)) for x, y in zip(a, b, strict=True))


def largest_difference(a: list[Tensor], b: list[Tensor]) -> float:
    return max((x - y).abs().max().item() for x, y in zip(a, b, strict=True))
