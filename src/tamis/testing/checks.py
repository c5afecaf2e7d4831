"""The table of conformance checks, which the modules of checks fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from tamis.match.base import Matcher

Make = Callable[[], Matcher]
Check = Callable[[Make], None]
CHECKS: dict[str, Check] = {}
T = TypeVar("T")


def check(function: Check) -> Check:
    """Register a check under its name."""
    CHECKS[function.__name__] = function
    return function


def run_checks(checks: Mapping[str, Callable[[T], None]], make: T) -> None:
    """Run all checks. The first failure names its check."""
    for name, each in checks.items():
        try:
            each(make)
        except AssertionError as failure:
            raise AssertionError(f"conformance check '{name}': {failure}") from failure
