"""The table of schedulers. A new one is one file and one line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from tamis.errors import SchedulerError, nearest
from tamis.schedule.base import Scheduler


class Entry(NamedTuple):
    """What is known of a scheduler without importing it."""

    name: str
    path: str  # module:class, imported when used
    paper: str
    idea: str
    options: tuple[str, ...] = ("statistics",)


_TABLE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "adaptive",
            "tamis.schedule.adaptive:Adaptive",
            "none: the default",
            "next the predicate that is expected to save most for its cost",
        ),
        Entry(
            "sub-order",
            "tamis.schedule.suborder:SubOrder",
            "Liu et al., DEBS 2007, section 4.2",
            "chains, cheapest kill first, in an order that makes most of what they share",
            options=("statistics", "chains"),
        ),
        Entry(
            "sequential",
            "tamis.schedule.sequential:Sequential",
            "Liu et al., DEBS 2007, section 4.1, algorithm 1",
            "all predicates of an undecided clause, then of the next; at most d times the best",
        ),
        Entry(
            "naive",
            "tamis.schedule.naive:Naive",
            "Liu et al., DEBS 2007, section 5.3",
            "clause by clause, remembering results, until a predicate kills",
        ),
    )
}


def schedulers() -> list[str]:
    """The names of all schedulers."""
    return list(_TABLE)


def entry(name: str) -> Entry:
    """What the registry knows of a scheduler."""
    try:
        return _TABLE[name]
    except KeyError:
        hint = nearest(str(name), _TABLE)
        raise SchedulerError(
            f"unknown scheduler {name!r}" + (f"; {hint}" if hint else "")
        ) from None


def create(name: str, **options: Any) -> Scheduler:
    """A scheduler by name."""
    known = entry(name)
    for option in options:
        if option not in known.options:
            takes = ", ".join(known.options) or "none"
            raise SchedulerError(f"scheduler {name!r} has no option {option!r}; it takes: {takes}")
    module, _, cls = known.path.partition(":")
    made = getattr(import_module(module), cls)(**options)
    assert isinstance(made, Scheduler)
    return made


def register(new: Entry) -> None:
    """Make a scheduler of your own known by name."""
    if new.name in _TABLE:
        raise SchedulerError(f"a scheduler named {new.name!r} is registered already")
    _TABLE[new.name] = new
