"""Every matcher of the registry, under every trial of its options."""

from __future__ import annotations

import pytest

from tamis.match.registry import entry, matchers

TRIALS = [
    pytest.param(
        name,
        options,
        id=name + "".join(f"-{key}={value}" for key, value in options.items()),
        # One group a matcher: its kernels are compiled in one process only.
        marks=[pytest.mark.xdist_group(name)]
        + ([pytest.mark.postgresql] if options.get("database") == "postgresql" else []),
    )
    for name in matchers()
    for options in entry(name).trials
]
