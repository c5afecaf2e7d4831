"""What every matcher must do, as plain checks that raise `AssertionError`.

A check takes a function that makes an empty matcher. Some hold for a matcher by itself
(`matcher_checks`), others for an engine with that matcher (`engine_checks`), some for answers in
bits (`bitmap_checks`), and one for what is saved of it (`saving_checks`).
"""

from __future__ import annotations

from tamis.testing import bitmap_checks, engine_checks, matcher_checks, saving_checks
from tamis.testing.checks import CHECKS, Make

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
    for name, check in CHECKS.items():
        try:
            check(make)
        except AssertionError as failure:
            raise AssertionError(f"conformance check '{name}': {failure}") from failure
