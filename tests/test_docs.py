"""The examples in the docstrings, the README and docs/ do what they say."""

import doctest
import re
from pathlib import Path

import pytest
import torch

import torch_sparse_ops as tso

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]

FUNCTIONS = {
    "sparse_concat": tso.sparse_concat,
    "sparse_reshape": tso.sparse_reshape,
    "tensor_scatter_update": tso.tensor_scatter_update,
    "tensor_scatter_update_": tso.tensor_scatter_update_,
    "concat_shape": tso.concat_shape,
    "reshape_shape": tso.reshape_shape,
    "SparseTensor": tso.SparseTensor,
    "tf.sparse.concat": tso.tf.sparse.concat,
    "tf.sparse.reshape": tso.tf.sparse.reshape,
    "tf.tensor_scatter_nd_update": tso.tf.tensor_scatter_nd_update,
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_docstring_examples(function):
    found = doctest.DocTestFinder(recurse=False).find(
        function,
        getattr(function, "__name__", None),
        globs={"torch": torch, "torch_sparse_ops": tso},
    )
    examples = [example for test in found for example in test.examples]
    assert examples, "no example in the docstring"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    for test in found:
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def blocks(page):
    """The examples of a page: fenced blocks of a Python session."""
    return re.findall(
        r"^```pycon\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
    )


def test_readme_has_examples():
    text = "".join(blocks(README))
    for name in ("sparse_concat", "sparse_reshape", "tensor_scatter_update"):
        assert name in text


@pytest.mark.parametrize(
    "name, block",
    [(page.name, block) for page in PAGES for block in blocks(page)],
    ids=lambda text: text.split("\n")[0][:40],
)
@pytest.mark.usefixtures("fresh_compile")
def test_page_examples(name, block):
    test = doctest.DocTestParser().get_doctest(block, {}, name, name, 0)
    report = []
    runner = doctest.DocTestRunner()
    # Code that torch compiles in a block looks at its globals even after it.
    result = runner.run(test, out=report.append, clear_globs=False)
    assert result.attempted
    assert not result.failed, "".join(report)
