"""The table of docs/transforms.md: every cell is run."""

from pathlib import Path

import modes
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "transforms.md"


def written():
    """{mode: {function: cell}} as the page has it."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text().splitlines()
        if line.startswith("|") and not line.startswith("| ---")
    ]
    functions = rows[0][1:]
    return {
        title: dict(zip(functions, cells, strict=True)) for title, *cells in rows[1:]
    }


def test_the_page_has_every_mode_and_function():
    page = written()
    assert list(page) == list(modes.MODES)
    assert all(list(cells) == list(modes.FUNCTIONS) for cells in page.values())


@pytest.mark.usefixtures("fresh_compile")
@pytest.mark.parametrize("function", modes.FUNCTIONS)
@pytest.mark.parametrize("mode", modes.MODES)
def test_cell(mode, function):
    found = modes.outcome(modes.MODES[mode], modes.FUNCTIONS[function])
    assert found == written()[mode][function]
