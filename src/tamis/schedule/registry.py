"""The table of schedulers. A new one is one file and one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from tamis.errors import nearest
from tamis.schedule.base import Scheduler, SchedulerError


class Entry(NamedTuple):
    """What is known of a scheduler without importing it."""

    name: str
    path: str  # module:class, imported when used
    paper: str
    idea: str


_TABLE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "adaptive",
            "tamis.schedule.adaptive:Adaptive",
            "none: the default",
            "next what is expected to decide most for its cost, given what is known so far",
        ),
        Entry(
            "naive",
            "tamis.schedule.naive:Naive",
            "Liu et al. 2007, section 4",
            "one subscription after the other, and nothing twice",
        ),
        Entry(
            "sequential",
            "tamis.schedule.sequential:Sequential",
            "Liu et al. 2007, section 4.1",
            "all predicates of any undecided subscription: within d times the best",
        ),
        Entry(
            "sub-order",
            "tamis.schedule.suborder:SubOrder",
            "Liu et al. 2007, section 4.2",
            "linked chains, in an order by what evaluating one before the other saves",
        ),
    )
}


def schedulers() -> list[str]:
    """The names of all schedulers, the default first."""
    return list(_TABLE)


def entry(name: str) -> Entry:
    """What is known of a scheduler; a `SchedulerError` where there is none of that name."""
    if name not in _TABLE:
        raise SchedulerError(f"there is no scheduler {name!r}; {nearest(name, _TABLE)}")
    return _TABLE[name]


def create(name: str, **options: Any) -> Scheduler:
    """A new scheduler."""
    module, _, kind = entry(name).path.partition(":")
    made = getattr(import_module(module), kind)(**options)
    assert isinstance(made, Scheduler)
    return made
