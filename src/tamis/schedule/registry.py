"""The table of schedulers. A new one is one file and one line here.

Users add their own with `register`. The conformance checks, the engine and the command line find
every scheduler by its name.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import SchedulerError
from tamis.registry import Registry

if TYPE_CHECKING:
    from tamis.schedule.base import Scheduler


class SchedulerEntry(NamedTuple):
    """What the table says about a scheduler, without importing it."""

    name: str
    path: str  # module:class, imported when used
    paper: str
    idea: str


_TABLE: dict[str, SchedulerEntry] = {
    entry.name: entry
    for entry in (
        SchedulerEntry(
            "adaptive",
            "tamis.schedule.adaptive:AdaptiveScheduler",
            "none: the default",
            "next the predicate that is expected to save most for its cost",
        ),
        SchedulerEntry(
            "sub-order",
            "tamis.schedule.suborder:SubOrderScheduler",
            "Liu et al., DEBS 2007, section 4.2",
            "chains, cheapest kill first, in an order that makes the most of common predicates",
        ),
        SchedulerEntry(
            "sequential",
            "tamis.schedule.sequential:SequentialScheduler",
            "Liu et al., DEBS 2007, section 4.1, algorithm 1",
            "all predicates of an undecided clause, then of the next; at most d times the optimum",
        ),
        SchedulerEntry(
            "naive",
            "tamis.schedule.naive:NaiveScheduler",
            "Liu et al., DEBS 2007, section 5.3",
            "clause by clause, with results kept, until a predicate kills",
        ),
    )
}

_REGISTRY = Registry("scheduler", SchedulerError, _TABLE)
schedulers, entry, register = _REGISTRY.names, _REGISTRY.entry, _REGISTRY.register


def create(name: str, **options: Any) -> Scheduler:
    """A scheduler by name. Its options are the parameters of its class."""
    from tamis.schedule.base import Scheduler

    made = _REGISTRY.load(name)
    if not (isinstance(made, type) and issubclass(made, Scheduler)):
        raise SchedulerError(f"scheduler {name!r}: {made!r} is not a subclass of Scheduler")
    _REGISTRY.check_options(name, options, signature(made).parameters)
    return made(**options)
