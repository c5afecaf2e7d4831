"""Regular expressions of RE2: what they may cost."""

from __future__ import annotations

from pathlib import Path
from random import Random
from string import ascii_lowercase

from tamis.model.regular_expressions import regular_expression


def _memory() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_hostile_patterns_take_a_megabyte_each_at_most() -> None:
    text = "".join(Random(0).choices(ascii_lowercase, k=100_000))
    patterns = [f"[{first}-n].{{20}}[n-z]x0" for first in "abcdefghijklm"]
    before = _memory()
    for pattern in patterns:
        assert regular_expression(pattern).search(text) is None
    assert _memory() - before < len(patterns) << 20
