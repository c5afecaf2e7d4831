"""Why an event satisfies a condition, or why not, predicate by predicate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tamis.model import semantics
from tamis.model.condition import (
    Call,
    Clause,
    Condition,
    Leaf,
    Literal,
    Not,
    Predicate,
    ValueConstraint,
    leaves,
    parts_of,
    variables,
)
from tamis.model.event import Event
from tamis.model.operator import Fault
from tamis.model.printer import to_text
from tamis.model.schema import Schema
from tamis.model.semantics import Answer, OperatorTable

_LOOKED_AT = 1000  # substitutions that are gone through to name the values of variables


@dataclass(frozen=True)
class Verdict:
    """One predicate, call or constraint: whether it holds by itself, over which values, and why.

    `values` are those of the attribute, or the rows that the operator gave. A call or constraint
    holds by itself when it does under some substitution that the calls beside it allow.
    """

    predicate: Leaf
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
    """What holds one by one, but by no one value, or no one substitution, together."""


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


def explain(
    condition: Condition,
    event: Mapping[str, Any] | Event,
    schema: Schema,
    operators: OperatorTable | None = None,
) -> Explanation:
    """The verdict of every predicate of the condition over the event.

    Each call is made once, also where its clause fails without it: an explanation shows it all.
    """
    checked = event if isinstance(event, Event) else schema.event(event)
    calls = (leaf for leaf in leaves(condition) if isinstance(leaf, Call))
    answers = {id(call): semantics.ask(call, checked, operators) for call in calls}
    found = tuple(
        _Explained(clause, checked, schema, answers).branch()
        for clause in semantics.branches(condition)
    )
    return Explanation(any(branch.holds for branch in found), found)


class _Explained:
    """One clause, with what operators gave for its calls."""

    def __init__(
        self, clause: Clause, event: Event, schema: Schema, answers: Mapping[int, Answer]
    ) -> None:
        self.clause, self.event, self.schema = clause, event, schema
        self.ordinary, self.calls, self.constraints = parts_of(clause)
        semantics.refuse_unbound((*self.calls, *self.constraints))
        self.answers = answers
        self.giving = [  # what gives variables their values
            answers[id(literal.predicate)] for literal in self.calls if literal.positive
        ]

    def branch(self) -> Branch:
        verdicts = tuple(self._verdict(literal) for literal in self.clause)
        ordinary_hold = semantics.conjunction_holds(self.ordinary, self.event, self.schema)
        operators_hold = semantics.one_substitution_fits(
            self.calls,
            [self.answers[id(literal.predicate)] for literal in self.calls],
            self.constraints,
        )
        conflicts = _conflicts(self.ordinary, verdicts, self.event, self.schema)
        if not operators_hold and not any(
            isinstance(verdict.predicate, Call | ValueConstraint) and not verdict.holds
            for verdict in verdicts
        ):
            named = _listed(f"?{name}" for name in self._names((*self.calls, *self.constraints)))
            conflicts += (f"no one substitution of {named} satisfies all of them",)
        return Branch(ordinary_hold and operators_hold, verdicts, conflicts)

    def _verdict(self, literal: Literal[Any]) -> Verdict:
        leaf, positive = literal
        if isinstance(leaf, Call):
            return self._called(leaf, positive)
        if isinstance(leaf, ValueConstraint):
            known = self._substitutions(literal)
            holds = any(semantics.constraint_holds(literal, each) for each in known)
            return Verdict(leaf, positive, holds, (), self._values(literal))
        return _verdict(literal, self.event, self.schema)

    def _called(self, call: Call, positive: bool) -> Verdict:
        answer = self.answers[id(call)]
        if answer.rows is None:
            missing = [name for name in answer.signature.reads if name not in self.event.values]
            why = f"the operator reads {_listed(missing)}, which the event does not bind"
            return Verdict(call, positive, False, (), why)
        if isinstance(answer.rows, Fault):
            kind, why = answer.rows.kind, answer.rows.reason
            named = why if why.startswith(kind) else f"{kind}: {why}"
            return Verdict(call, positive, False, (), f"the operator failed: {named}")
        if positive:
            holds = semantics.is_true(answer, {})
        else:
            known = self._substitutions(Literal(call, positive))
            holds = any(not semantics.is_true(answer, each) for each in known)
        if not answer.signature.free:
            reason = f"the operator says {'true' if answer.rows else 'false'}"
        elif answer.rows:
            reason = f"the operator gives {_join(tuple(map(_row, answer.rows)))}"
        else:
            reason = "the operator gives nothing"
        return Verdict(call, positive, holds, answer.rows, reason)

    def _substitutions(self, literal: Literal[Any]) -> Iterable[semantics.Substitution]:
        """Those that the calls allow which share a variable with the literal."""
        wanted = set(self._names((literal,)))
        sharing = [
            answer
            for answer in self.giving
            if wanted & {variable.name for variable in variables(answer.call)}
        ]
        return semantics.substitutions(sharing)

    def _values(self, literal: Literal[ValueConstraint]) -> str:
        """The values that the variables of a constraint can take."""
        known = list(islice(self._substitutions(literal), _LOOKED_AT))
        names = self._names((literal,))
        if not known:
            return f"nothing gives {_listed(f'?{name}' for name in names)} a value"
        found = {name: tuple(dict.fromkeys(_value(each[name]) for each in known)) for name in names}
        return ", ".join(f"?{name} is {_join(values)}" for name, values in found.items())

    def _names(self, literals: Iterable[Literal[Any]]) -> list[str]:
        """The variables of literals, each once."""
        return list(
            dict.fromkeys(
                variable.name for literal in literals for variable in variables(literal.predicate)
            )
        )


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
    failed = {
        verdict.predicate.attribute
        for verdict in verdicts
        if isinstance(verdict.predicate, Predicate) and not verdict.holds
    }
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


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _row(row: tuple[Any, ...]) -> str:
    return _value(row[0]) if len(row) == 1 else f"({', '.join(map(_value, row))})"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as the language writes it
    text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return text if len(text) <= 80 else text[:77] + "…"
