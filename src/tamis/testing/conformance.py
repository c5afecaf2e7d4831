"""The conformance checks of matchers, which raise `AssertionError`.

A check takes a function that makes an empty matcher. `matcher_checks` test the matcher alone,
`engine_checks` an engine with that matcher, `bitmap_checks` its answers in bits, and
`saving_checks` saving and restoring.
"""

from __future__ import annotations

from tamis.testing import bitmap_checks, engine_checks, matcher_checks, saving_checks
from tamis.testing.checks import CHECKS, Make, run_checks

__all__ = [
    "CHECKS",
    "bitmap_checks",
    "check_matcher",
    "engine_checks",
    "matcher_checks",
    "saving_checks",
]


def check_matcher(make: Make) -> None:
    """Run all checks on matchers made by `make`; the first failure names its check."""
    run_checks(CHECKS, make)
