"""Every matcher of the registry, under every trial of its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tamis.match.registry import entry, matchers


def _trial(name: str, options: Mapping[str, Any]) -> Any:
    return pytest.param(
        name,
        options,
        id=name + "".join(f"-{key}={value}" for key, value in options.items()),
        # One group a matcher: its kernels are compiled in one process only.
        marks=[pytest.mark.xdist_group(name)]
        + ([pytest.mark.postgresql] if options.get("database") == "postgresql" else []),
    )


TRIALS = [_trial(name, options) for name in matchers() for options in entry(name).trials]
FIRST_TRIALS = [_trial(name, entry(name).trials[0]) for name in matchers()]
