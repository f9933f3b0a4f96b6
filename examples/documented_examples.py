"""Runs the examples in the docstrings of the three operators and prints them."""

import doctest

import torch_sparse_ops


class Printer(doctest.DocTestRunner):
    """Prints each line of an example, then what it gives."""

    def report_start(self, out, test, example):
        first, *others = example.source.rstrip().split("\n")
        out("\n".join([f"    >>> {first}", *(f"    ... {line}" for line in others)]))
        out("\n")

    def report_success(self, out, test, example, got):
        out("".join(f"    {line}\n" for line in got.splitlines()))


def print_documented_examples() -> None:
    """An example that does not give what its docstring says is an error."""
    finder = doctest.DocTestFinder(recurse=False)
    printer = Printer(verbose=False)
    for name in ("sparse_concat", "sparse_reshape", "tensor_scatter_update"):
        (test,) = finder.find(getattr(torch_sparse_ops, name), name)
        print(f"\n{name}")
        if printer.run(test).failed or not test.examples:
            raise SystemExit(f"The documented example of {name} is wrong.")
