"""The table of conformance checks, which the modules of checks fill."""

from __future__ import annotations

from collections.abc import Callable

from tamis.match.base import Matcher

Make = Callable[[], Matcher]
Check = Callable[[Make], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Register a check under its name."""
    CHECKS[function.__name__] = function
    return function
