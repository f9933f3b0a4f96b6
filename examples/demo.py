"""Trains a small model on real data with the three operators of torch_sparse_ops.

Run it with `make demo`, or, once torch_sparse_ops[examples] is installed, with
`python examples/demo.py`. The model is in delay_model.py.
"""

import copy
import time
from itertools import islice

import delay_model
import torch
from delay_model import DelayModel, Memory
from dense_model import (
    DenseModel,
    DenseProductModel,
    largest_difference,
    record,
    same_bits,
)
from documented_examples import print_documented_examples
from flights import Flights, load_flights
from stopwatch import Stopwatch
from torch import Tensor
from torch.nn import functional as F

BATCH = 128
WINDOW = 8  # batches between two steps of the optimizer; gradients reach this far back
LEARNING_RATE = 0.01
OPERATORS = ["sparse_concat", "sparse_reshape", "tensor_scatter_update"]
PROGRESS_LINES = 8
TOLERANCE = 1e-12


def train(model: DelayModel, flights: Flights, remember: bool = True) -> Memory:
    """Go once through the flights, in their order; returns the memory at the end."""
    start = time.perf_counter()
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    memory = model.empty_memory()
    losses, recent, done, lines = [], [], 0, 0
    for batch in flights.batches(BATCH):
        logits = model(batch, memory)
        losses.append(F.binary_cross_entropy_with_logits(logits, batch.late.float()))
        if remember:
            memory = model.remember(batch, memory)
        done += len(batch)
        if len(losses) == WINDOW or done == len(flights):
            loss = torch.stack(losses).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            memory = memory.detach()
            recent.append(loss.item())
            losses.clear()
        if done / len(flights) >= (lines + 1) / PROGRESS_LINES:
            print(
                f"  {done:7,} flights, loss {sum(recent) / len(recent):.3f}, "
                f"{time.perf_counter() - start:4.1f} s",
                flush=True,
            )
            lines += 1
            recent.clear()
    return memory


@torch.no_grad()
def predict(
    model: DelayModel, flights: Flights, memory: Memory, remember: bool = True
) -> Tensor:
    logits = []
    for batch in flights.batches(BATCH):
        logits.append(model(batch, memory))
        if remember:
            memory = model.remember(batch, memory)
    return torch.cat(logits)


def score(logits: Tensor, late: Tensor) -> str:
    """Accuracy, and how often a late flight is rated above one in time (AUC)."""
    accuracy = ((logits > 0) == late.bool()).double().mean()
    _, place, ties = logits.unique(return_inverse=True, return_counts=True)
    rank = (ties.cumsum(0) - (ties + 1) / 2)[place]
    n_late = late.sum()
    pairs = n_late * (len(late) - n_late)
    above = rank[late.bool()].sum() - n_late * (n_late - 1) / 2
    return f"{accuracy:9.1%}{above / pairs:9.3f}"


def compare_with_dense_torch(model: DelayModel, flights: Flights) -> None:
    batches = list(islice(flights.batches(BATCH), 2 * WINDOW))

    def run(cls: type[DelayModel], dtype: torch.dtype) -> list[Tensor]:
        twin = cls(model.sizes).to(dtype)
        twin.load_state_dict(model.state_dict())
        return record(twin, batches, LEARNING_RATE, WINDOW)

    dense = run(DenseModel, torch.float32)
    ours = run(DenseProductModel, torch.float32)
    equal = same_bits(dense, ours)
    print(
        f"  float32, with the same matrix product in both: {len(dense)} tensors\n"
        "  (logits, memory, gradients, parameters) "
        f"{'are equal' if equal else 'DIFFER'}, bit for bit."
    )

    dense = run(DenseModel, torch.float64)
    ours = run(DelayModel, torch.float64)
    difference = largest_difference(dense, ours)
    close = difference <= TOLERANCE
    print(
        "  float64, with a sparse matrix product, which adds the same terms in another "
        f"order:\n  they differ by {difference:.1e} at most; "
        f"{TOLERANCE:.0e} is {'allowed' if close else 'EXCEEDED'}."
    )
    if not (equal and close):
        raise SystemExit("The two models do not agree.")


def main() -> None:
    start = time.perf_counter()
    # The tensors of a batch are small: more threads would only wait for each other.
    torch.set_num_threads(1)
    torch.manual_seed(0)

    print("The documented examples")
    print_documented_examples()

    print("\nWill a flight from New York arrive more than 15 minutes late?")
    past, future, sizes = load_flights()
    print(
        f"  {len(past):,} flights until October 2013 to learn from, {len(future):,} "
        f"after that to predict;\n  {sizes.carrier} carriers, {sizes.destination} "
        f"destinations, {sizes.plane:,} planes."
    )
    model = DelayModel(sizes)
    untrained, forgetful = copy.deepcopy(model), copy.deepcopy(model)

    print("\nTraining")
    with Stopwatch(delay_model, OPERATORS) as watch:
        memory = train(model, past)
    print("Training without a memory, for comparison")
    blank = train(forgetful, past, remember=False)

    in_time = torch.full((len(future),), -1.0)
    without = predict(forgetful, future, blank, remember=False)
    logits = predict(model, future, memory)
    print(f"\n{'Predictions':34}accuracy      AUC")
    print(f"  {'every flight arrives in time':30}{score(in_time, future.late)}")
    print(f"  {'the model without a memory':30}{score(without, future.late)}")
    print(f"  {'the model':30}{score(logits, future.late)}")

    print(f"\nTime in each operator, of {watch.total:.1f} s of training")
    print(watch.table())

    print(f"\nThe same model in dense torch, trained on {2 * WINDOW} batches")
    compare_with_dense_torch(untrained, past)
    print(f"\nDone in {time.perf_counter() - start:.0f} s.")


if __name__ == "__main__":
    main()
