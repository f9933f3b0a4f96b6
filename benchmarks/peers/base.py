"""What a peer is: a library, or a way to use one, that can do some of the workloads."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from answers import Answer
from data import Data


class Task(NamedTuple):
    run: Callable[[], Any]  # does it once, to the end
    read: Callable[[Any], Answer]  # its result as NumPy arrays


class Peer:
    """A subclass has a method for each op that it knows (`scatter_`, `backward_concat`,
    ...), whose docstring tells what is run. It turns the data into the peer's own form,
    which is not timed, and returns a Task, or None for data that the peer cannot take.
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]  # which must be there
    other_storage: ClassVar[bool] = False  # keeps its data in another form than entries
    any_duplicate: ClassVar[bool] = False  # does not say which update of a slice wins
    compiles: ClassVar[bool] = False  # takes seconds to get ready
    ours: ClassVar[bool] = False
    extra: ClassVar[bool] = False  # at the headline sizes of a full run only

    @classmethod
    def usable(cls) -> bool:
        try:
            for package in cls.packages:
                importlib.import_module(package)
        except ImportError:
            return False
        return True

    @classmethod
    def how(cls, op: str) -> str | None:
        method = getattr(cls, method_name(op), None)
        return method and " ".join((method.__doc__ or "").split())

    def prepare(self, op: str, data: Data) -> Task | None:
        method = getattr(self, method_name(op), None)
        return method and method(data)


def method_name(op: str) -> str:
    return op.replace("-", "_")
