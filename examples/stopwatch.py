"""Measures the time that a run spends in some functions, forward and backward."""

import time
from collections import Counter
from types import ModuleType
from typing import Any

from torch import Tensor


class Stopwatch:
    """`with Stopwatch(module, names):` times these functions of the module."""

    def __init__(self, module: ModuleType, names: list[str]):
        self.module = module
        self.functions = {name: getattr(module, name) for name in names}
        self.calls = Counter()
        self.forward = Counter()
        self.backward = Counter()

    def __enter__(self) -> "Stopwatch":
        self.start = time.perf_counter()
        for name in self.functions:
            setattr(self.module, name, self.timed(name))
        return self

    def __exit__(self, *_: Any) -> None:
        self.total = time.perf_counter() - self.start
        for name, function in self.functions.items():
            setattr(self.module, name, function)

    def timed(self, name: str):
        function = self.functions[name]

        def call(*args: Any, **kwargs: Any) -> Tensor:
            start = time.perf_counter()
            output = function(*args, **kwargs)
            self.forward[name] += time.perf_counter() - start
            self.calls[name] += 1
            if output.requires_grad:
                self.time_backward(name, output, args)
            return output

        return call

    def time_backward(self, name: str, output: Tensor, args: Any) -> None:
        """Time every node of the graph from the output back to the arguments."""
        tensors = [x for arg in args for x in (arg if isinstance(arg, list) else [arg])]
        ends = {x.grad_fn for x in tensors if isinstance(x, Tensor)} | {None}

        def start(*_: Any) -> None:
            self.backward[name] -= time.perf_counter()

        def stop(*_: Any) -> None:
            self.backward[name] += time.perf_counter()

        nodes = [output.grad_fn]
        for node in nodes:
            node.register_prehook(start)
            node.register_hook(stop)
            following = {following for following, _ in node.next_functions}
            nodes += following - ends - set(nodes)

    def table(self) -> str:
        lines = [f"{'':24}{'calls':>8}{'forward':>11}{'backward':>11}{'share':>8}"]
        rest = self.total
        for name, calls in self.calls.items():
            forward, backward = self.forward[name], self.backward[name]
            rest -= forward + backward
            share = (forward + backward) / self.total
            lines.append(
                f"{name:24}{calls:8}{forward:9.2f} s{backward:9.2f} s{share:8.1%}"
            )
        lines.append(f"{'everything else':24}{rest:28.2f} s{rest / self.total:10.1%}")
        return "\n".join(lines)
