"""What results say together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from tamis.lab.results.records import AS_DRAWN, COSTS, SCHEDULERS, SchedulerResult


def by_setting(found: Sequence[SchedulerResult]) -> list[list[SchedulerResult]]:
    """The results of schedulers, grouped by setting."""
    groups: dict[tuple[str, str], list[SchedulerResult]] = defaultdict(list)
    for each in found:
        groups[each.figure, each.title].append(each)
    return list(groups.values())


def order_exceptions(found: Sequence[SchedulerResult]) -> list[str]:
    """Settings in which a scheduler evaluates more, or costs more, than the one before it."""
    exceptions = []
    for each in by_setting(found):
        drawn = {one.scheduler: one for one in each if one.written == AS_DRAWN}
        for worse, better in pairwise(name for name in SCHEDULERS if name in drawn):
            less, more = (_spent(drawn[name]) for name in (worse, better))
            if more > less:
                exceptions.append(
                    f"{each[0].figure}, {each[0].title}: {better} {more:,.0f}, {worse} {less:,.0f}"
                )
    return exceptions


def _spent(found: SchedulerResult) -> float:
    return found.cost if found.figure == COSTS else found.evaluated
