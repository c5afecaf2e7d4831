"""An engine goes over to another matcher, with all its subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.match.registry import create

if TYPE_CHECKING:
    from tamis.engine.engine import Engine


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
