"""No CPU kernel runs more instructions for an entry than it is allowed to."""

from __future__ import annotations

import pytest
from instruction_counts import count

pytestmark = pytest.mark.slow


def test_within_limits(tmp_path):
    why = count.missing_tool()
    if why is not None:
        pytest.skip(why)
    counts = count.count(tmp_path)
    assert counts.keys() == count.LIMITS.keys()
    assert not count.too_many(counts), "\n".join(count.too_many(counts))
