"""The matcher of an engine: the one it begins with, and how it goes over to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import MatcherError
from tamis.match.base import Matcher
from tamis.match.registry import create

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


def own_matcher(matcher: str | Matcher, options: dict[str, Any]) -> Matcher:
    """The matcher of a new engine: a name with its options, or an object."""
    if not isinstance(matcher, Matcher):
        return create(matcher, **options)
    if options:
        raise MatcherError(f"a matcher object takes no options: {', '.join(options)}")
    if len(matcher):
        raise MatcherError("the matcher holds clauses already; each engine needs its own")
    return matcher


def change_matcher(engine: Engine, matcher: str, **options: Any) -> None:
    """Move all clauses to a new matcher, by its name and options. The answers stay the same.

    Conditions on elements have matchers of their own, which stay.
    """
    with engine._lock.mutex:
        engine._ready()
        made = create(matcher, **options)
        slots = engine.matcher.clauses.live_slots()
        made.add(slots, engine.matcher.terms(slots))
        engine.matcher = made
        engine._lock.changed()
