"""All schedulers pass the conformance checks; one that is wrong does not."""

from __future__ import annotations

import pytest

from tamis.files.arrays import Int8s
from tamis.schedule.naive import NaiveScheduler
from tamis.schedule.registry import create
from tamis.schedule.run import Run
from tamis.testing import check_scheduler
from tamis.testing.scheduler_checks import SCHEDULER_CHECKS
from tests.unit.schedule.instances import NAMES


@pytest.mark.parametrize("check", SCHEDULER_CHECKS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_conforms(name: str, check: str) -> None:
    SCHEDULER_CHECKS[check](lambda: create(name))


def test_a_wrong_scheduler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Run._step

    def inverted(self: Run, outcomes: Int8s, predicate: int, outcome: int) -> int:
        return step(self, outcomes, predicate, 1 - outcome if outcome in (0, 1) else outcome)

    monkeypatch.setattr(Run, "_step", inverted)
    with pytest.raises(AssertionError, match=r"agrees_with_the_oracle.*disagrees"):
        check_scheduler(NaiveScheduler)
