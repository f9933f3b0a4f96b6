"""Puts the results of a run into docs/performance.md: its tables and its pictures.

    python benchmarks/page.py build/bench/full.json    # these results
    python benchmarks/page.py                          # those kept in docs/performance
    python benchmarks/page.py --check                  # whether the page is theirs

A table stands between <!-- bench NAME --> and <!-- end -->; the text around them is
written by hand and has no figures of its own.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import blocks
import results

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "performance.md"
KEPT = DOCS / "performance" / "results.json"
BLOCK = re.compile(r"(<!-- bench ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, found: dict[str, Any]) -> str:
    """The page with its tables made anew."""
    absent = blocks.BLOCKS.keys() - {match[2] for match in BLOCK.finditer(text)}
    if absent:
        raise ValueError(f"{PAGE.name} has no place for {', '.join(sorted(absent))}")

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n{blocks.BLOCKS[match[2]](found)}\n{match[3]}"

    return BLOCK.sub(fill, text)


def renew(found: dict[str, Any]) -> None:
    import plots

    found = results.rounded(found)
    results.write(KEPT, found)
    PAGE.write_text(filled(PAGE.read_text(), found))
    plots.draw(found, KEPT.parent)
    print(f"Renewed {PAGE} and {KEPT.parent}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="?", type=Path, default=KEPT)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    found = results.read(options.results)
    if not options.check:
        renew(found)
        return 0
    text = PAGE.read_text()
    if filled(text, found) != text:
        print(f"{PAGE} is not what {options.results} gives", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
