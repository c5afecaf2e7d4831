"""Explanations of conditions on elements: which one satisfies it, or which is the nearest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tamis.model.condition import Condition, Not, Some
from tamis.model.elements.element_names import with_variable
from tamis.model.elements.structs import list_name
from tamis.model.event import Event
from tamis.model.printer import to_text
from tamis.model.schema import Schema

if TYPE_CHECKING:
    from tamis.model.explain import Explanation, Verdict


def why_elements(
    some: Some, event: Event, explain: Callable[[Condition, Event, Schema], Explanation]
) -> str:
    """Which element satisfies a condition, or what keeps the nearest one from it."""
    elements = event.elements.get(list_name(some.attribute, event.schema), ())
    if not elements:
        return f"{some.attribute} is not bound"
    nearest: list[str] | None = None
    for number, element in enumerate(elements, 1):
        which = f"element {number}" if len(elements) > 1 else "the only element"
        found = explain(some.condition, element, element.schema)
        if found.holds:
            return f"{which} satisfies it"
        for branch in found.branches:
            why = [_of_element(each, some) for each in branch.verdicts if not each.holds]
            why += branch.conflicts
            if nearest is None or len(why) < len(nearest) - 1:
                nearest = [which, *why]
    assert nearest is not None
    which, *reasons = nearest
    if len(elements) > 1:
        which = f"none of {len(elements)} elements satisfies it; the nearest is {which}"
    return f"{which}: {', '.join(f'no {each}' for each in reasons)}"


def _of_element(verdict: Verdict, some: Some) -> str:
    written = with_variable(verdict.predicate, some.variable)
    text = to_text(written if verdict.positive else Not(written))
    return f"{text} ({verdict.reason})"
