"""Why an event satisfies a condition, or why not, predicate by predicate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tamis.model import semantics
from tamis.model.condition import Condition, Literal, Not, Predicate
from tamis.model.event import Event
from tamis.model.printer import to_text
from tamis.model.schema import Schema


@dataclass(frozen=True)
class Verdict:
    """One predicate: whether it holds by itself, over which values, and if not, why."""

    predicate: Predicate
    positive: bool
    holds: bool
    values: tuple[Any, ...]
    reason: str


@dataclass(frozen=True)
class Branch:
    """One way to satisfy the condition (one choice within every `or`)."""

    holds: bool
    verdicts: tuple[Verdict, ...]
    conflicts: tuple[str, ...]
    """Attributes whose predicates hold one by one, but by no one value together."""


@dataclass(frozen=True)
class Explanation:
    """All branches; the condition holds when one of them does. Printed, it is for people."""

    holds: bool
    branches: tuple[Branch, ...]

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        lines = ["matches" if self.holds else "does not match"]
        for number, branch in enumerate(self.branches, 1):
            if len(self.branches) > 1:
                verdict = "holds" if branch.holds else "fails"
                lines.append(f"branch {number} of {len(self.branches)} {verdict}")
            for verdict_ in branch.verdicts:
                mark = "yes" if verdict_.holds else "no "
                lines.append(f"  {mark}  {_shown(verdict_)}: {verdict_.reason}")
            lines.extend(f"  no   {conflict}" for conflict in branch.conflicts)
        return "\n".join(lines)


def explain(condition: Condition, event: Mapping[str, Any] | Event, schema: Schema) -> Explanation:
    """The verdict of every predicate of the condition over the event."""
    checked = event if isinstance(event, Event) else schema.event(event)
    found = tuple(_branch(literals, checked, schema) for literals in semantics.branches(condition))
    return Explanation(any(branch.holds for branch in found), found)


def _branch(literals: tuple[Literal, ...], event: Event, schema: Schema) -> Branch:
    verdicts = tuple(_verdict(literal, event, schema) for literal in literals)
    holds = semantics.conjunction_holds(literals, event, schema)
    return Branch(holds, verdicts, _conflicts(literals, verdicts, event, schema))


def _verdict(literal: Literal, event: Event, schema: Schema) -> Verdict:
    predicate, positive = literal
    values = event.values.get(predicate.attribute, ())
    if semantics.looks_at_set(literal):
        holds = semantics.set_holds(literal, event, schema)
    else:
        holds = any(semantics.value_holds(literal, value, schema) for value in values)
    if not values:
        reason = f"{predicate.attribute} is not bound"
    else:
        reason = f"{predicate.attribute} is {_join(values)}"
    return Verdict(predicate, positive, holds, values, reason)


def _conflicts(
    literals: tuple[Literal, ...], verdicts: tuple[Verdict, ...], event: Event, schema: Schema
) -> tuple[str, ...]:
    groups: dict[str, list[Literal]] = {}
    failed = {v.predicate.attribute for v in verdicts if not v.holds}
    for literal in literals:
        if not semantics.looks_at_set(literal):
            groups.setdefault(literal.predicate.attribute, []).append(literal)
    return tuple(
        f"no one value of {attribute} ({_join(event.values[attribute])}) satisfies all of them"
        for attribute, group in groups.items()
        if attribute not in failed and not semantics.conjunction_holds(group, event, schema)
    )


def _shown(verdict: Verdict) -> str:
    predicate = verdict.predicate
    text = to_text(predicate if verdict.positive else Not(predicate))
    return text if len(text) <= 200 else text[:197] + "…"


def _join(values: tuple[Any, ...]) -> str:
    shown = ", ".join(_value(value) for value in values[:10])
    return shown if len(values) <= 10 else f"{shown}, … ({len(values)} values)"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as the language writes it
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return text if len(text) <= 80 else text[:77] + "…"
