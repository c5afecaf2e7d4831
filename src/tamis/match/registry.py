"""The table of matchers. A new one is one file and one line here.

Users can register their own with `register`; the conformance suite, the engine and the command line
find it by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from tamis.errors import MatcherError, nearest
from tamis.match.base import Matcher


class Entry(NamedTuple):
    """What is known of a matcher without importing it."""

    name: str
    path: str  # module:class, imported when used
    paper: str
    idea: str
    exact: bool = True
    options: tuple[str, ...] = ()
    trials: tuple[Mapping[str, Any], ...] = ({},)  # options under which it is tested


_TABLE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "naive",
            "tamis.match.naive:Naive",
            "Le Subscribe, figure 1",
            "every clause, predicate by predicate, until one is false",
        ),
        Entry(
            "scan",
            "tamis.match.scan:Scan",
            "none: the baseline",
            "columns of bounds, narrowed attribute by attribute in cache-sized tiles",
        ),
        Entry(
            "fair-predicate",
            "tamis.match.fair_predicate:FairPredicate",
            "Le Subscribe, figure 2",
            "count the satisfied predicates of every subscription",
            options=("final",),
            trials=({}, {"final": "all"}),
        ),
    )
}


def matchers() -> list[str]:
    """The names of all matchers."""
    return list(_TABLE)


def entry(name: str) -> Entry:
    """What the registry knows of a matcher."""
    try:
        return _TABLE[name]
    except KeyError:
        hint = nearest(str(name), _TABLE)
        raise MatcherError(f"unknown matcher {name!r}" + (f"; {hint}" if hint else "")) from None


def create(name: str, **options: Any) -> Matcher:
    """A matcher by name."""
    known = entry(name)
    for option in options:
        if option not in known.options:
            takes = ", ".join(known.options) or "none"
            raise MatcherError(f"matcher {name!r} has no option {option!r}; it takes: {takes}")
    module, _, cls = known.path.partition(":")
    made = getattr(import_module(module), cls)(**options)
    assert isinstance(made, Matcher)
    return made


def register(new: Entry) -> None:
    """Make a matcher of your own known by name."""
    if new.name in _TABLE:
        raise MatcherError(f"a matcher named {new.name!r} is registered already")
    _TABLE[new.name] = new
