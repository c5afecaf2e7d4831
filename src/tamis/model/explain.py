"""Explanations: why an event satisfies a condition or not, predicate by predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tamis.model import operator_semantics, semantics
from tamis.model.condition import (
    And,
    Call,
    Clause,
    Comparison,
    Condition,
    Leaf,
    Literal,
    Not,
    Now,
    Predicate,
    Some,
    ValueConstraint,
    attributes_of,
    leaves,
    operands,
    parts_of,
    variables,
)
from tamis.model.elements.explain_elements import why_elements
from tamis.model.event import Event
from tamis.model.open_schema import schema_for
from tamis.model.operator import Fault
from tamis.model.operator_semantics import CallAnswer, OperatorTable, Substitution
from tamis.model.printer import to_text
from tamis.model.schema import Schema
from tamis.model.times.moments import moment_text
from tamis.model.value_texts import (
    is_quoted,
    joined,
    listed,
    other_kind,
    row_text,
    value_text,
)

_MOST_STEPS = 200_000  # rows visited for all verdicts of a branch, and as many to join its calls
_SHOWN = 64  # branches of a large condition
_COUNTED = 10**9
_LOOKED_AT = 1000  # substitutions examined to list the values of variables

Fits = Callable[
    [Sequence[Literal[Call]], Sequence[CallAnswer], Sequence[Literal[ValueConstraint]]], bool | None
]
"""Whether one substitution satisfies answered calls and constraints; None if the search gave up."""


@dataclass(frozen=True)
class Verdict:
    """One predicate, call or constraint: whether it holds by itself, for which values, and why.

    `values` are those of the attribute, or the rows of the operator. A call or constraint holds by
    itself if it holds under some substitution that the other calls allow. If there are too many
    substitutions to try, it is `given_up`, and not known to hold.
    """

    predicate: Leaf
    positive: bool
    holds: bool
    values: tuple[Any, ...]
    reason: str
    given_up: bool = False


@dataclass(frozen=True)
class Branch:
    """One way to satisfy the condition (one choice within every `or`)."""

    holds: bool
    verdicts: tuple[Verdict, ...]
    conflicts: tuple[str, ...]
    """Parts that hold one by one, but not for one value or substitution together."""
    given_up: bool = False
    """The search for a substitution gave up; the branch counts as failed."""


@dataclass(frozen=True)
class Explanation:
    """All branches. The condition holds if one of them does. `str` shows it to people."""

    holds: bool
    branches: tuple[Branch, ...]
    total: int = 1
    """The number of branches. Of a large condition, `branches` are the nearest to holding."""

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        lines = ["matches" if self.holds else "does not match"]
        for number, branch in enumerate(self.branches, 1):
            if len(self.branches) > 1:
                verdict = "holds" if branch.holds else "fails"
                lines.append(f"branch {number} of {len(self.branches)} {verdict}")
            for verdict_ in branch.verdicts:
                mark = "?  " if verdict_.given_up else "yes" if verdict_.holds else "no "
                lines.append(f"  {mark}  {_shown(verdict_)}: {verdict_.reason}")
            lines.extend(f"  no   {conflict}" for conflict in branch.conflicts)
        if self.total > len(self.branches):
            many = f"{self.total:,}" if self.total < _COUNTED else f"{_COUNTED:,} or more"
            lines.append(f"there are {many} branches; these are the nearest to holding")
        return "\n".join(lines)


def explain(
    condition: Condition,
    event: Mapping[str, Any] | Event,
    schema: Schema,
    operators: OperatorTable | None = None,
    fits: Fits | None = None,
    *,
    moment: int | None = None,
) -> Explanation:
    """The verdict of every predicate of the condition for the event, which may have a moment.

    Each call is made once, even if its clause fails without it. `fits` decides whether one
    substitution satisfies all; an engine passes its own, so that both give up at the same joins.
    """
    schema = schema_for(schema, condition)
    condition = semantics.of_moment(condition, schema, moment)
    checked = event if isinstance(event, Event) else schema.event(event)
    calls = (leaf for leaf in leaves(condition) if isinstance(leaf, Call))
    answers = {id(call): operator_semantics.ask(call, checked, operators) for call in calls}
    chosen = _branches(condition, checked, schema)
    found = tuple(
        _Explained(clause, checked, schema, answers).branch(fits or one_substitution_fits)
        for clause in chosen.clauses
    )
    holds = any(branch.holds for branch in found) or (
        chosen.total > len(found) and semantics.satisfies(condition, checked, schema, operators)
    )
    return Explanation(holds, found, chosen.total)


class _Branches(NamedTuple):
    """Branches to show, and how many there are (at most `_COUNTED`)."""

    clauses: list[Clause]
    total: int


def _branches(condition: Condition, event: Event, schema: Schema) -> _Branches:
    """The branches of a condition; of a large one those that are nearest to holding."""

    def failures(clause: Clause) -> int:
        return sum(
            isinstance(literal.predicate, _READING)
            and not semantics.conjunction_holds((literal,), event, schema)
            for literal in clause
        )

    def nearest(node: Condition, positive: bool) -> _Branches:
        if isinstance(node, Leaf):
            return _Branches([(Literal(node, positive),)], 1)
        if isinstance(node, Not):
            return nearest(node.part, not positive)
        parts = [nearest(part, positive) for part in node.parts]
        if isinstance(node, And) != positive:
            found = [clause for part in parts for clause in part.clauses]
            total = sum(part.total for part in parts)
            return _Branches(_fewest(found, failures), min(total, _COUNTED))
        found, total = [()], 1
        for part in parts:
            found = [(*left, *right) for left in found for right in part.clauses]
            found, total = _fewest(found, failures), min(total * part.total, _COUNTED)
        return _Branches(found, total)

    return nearest(condition, True)


def _fewest(clauses: list[Clause], failures: Callable[[Clause], int]) -> list[Clause]:
    """All of a few clauses, or those with the fewest failures."""
    return clauses if len(clauses) <= _SHOWN else sorted(clauses, key=failures)[:_SHOWN]


class _Explained:
    """One clause, with the answers to its calls."""

    def __init__(
        self, clause: Clause, event: Event, schema: Schema, answers: Mapping[int, CallAnswer]
    ) -> None:
        self.clause, self.event, self.schema = clause, event, schema
        self.ordinary, self.calls, self.constraints, self.comparisons, elements = parts_of(clause)
        self.reading = (*self.ordinary, *self.comparisons, *elements)
        operator_semantics.refuse_unbound((*self.calls, *self.constraints))
        self.answers = answers
        self.giving = [  # the answers that bind variables
            answers[id(literal.predicate)] for literal in self.calls if literal.positive
        ]

    def branch(self, fits: Fits) -> Branch:
        ordinary_hold = semantics.conjunction_holds(self.reading, self.event, self.schema)
        answers = [self.answers[id(literal.predicate)] for literal in self.calls]
        answered = all(isinstance(answer.rows, tuple) for answer in answers)
        fit = fits(self.calls, answers, self.constraints) if answered else False
        verdicts = tuple(self._verdict(literal, fit is True) for literal in self.clause)
        conflicts = _conflicts(self.ordinary, verdicts, self.event, self.schema)
        one_by_one = all(each.holds for each in verdicts if isinstance(each.predicate, _READING))
        if not ordinary_hold and one_by_one and not conflicts:
            names = {name for each in self.comparisons for name in attributes_of(each.predicate)}
            conflicts += (f"no one value of each of {listed(sorted(names))} satisfies all",)
        if fit is None:
            conflicts += (f"given up: too many substitutions of {self._all_names()} to try",)
        elif not fit and not any(
            isinstance(verdict.predicate, Call | ValueConstraint)
            and not (verdict.holds or verdict.given_up)
            for verdict in verdicts
        ):
            conflicts += (f"no one substitution of {self._all_names()} satisfies all of them",)
        return Branch(ordinary_hold and fit is True, verdicts, conflicts, fit is None)

    def _verdict(self, literal: Literal[Any], fit: bool) -> Verdict:
        """If `fit`, one substitution satisfies all; then each literal holds by itself too."""
        leaf, positive = literal
        if isinstance(leaf, Call):
            return self._called(leaf, positive, fit)
        if isinstance(leaf, ValueConstraint):
            tried = self._try(
                literal, lambda known, _: fit or operator_semantics.constraint_holds(literal, known)
            )
            reason = self._values(literal, tried)
            return Verdict(
                leaf, positive, tried.holds or fit, (), reason, tried.given_up and not fit
            )
        return _verdict(literal, self.event, self.schema)

    def _called(self, call: Call, positive: bool, fit: bool) -> Verdict:
        answer = self.answers[id(call)]
        if answer.rows is None:
            missing = [name for name in answer.signature.reads if name not in self.event.values]
            why = f"the operator reads {listed(missing)}, which the event does not bind"
            return Verdict(call, positive, False, (), why)
        if isinstance(answer.rows, Fault):
            kind, why = answer.rows.kind, answer.rows.reason
            named = why if why.startswith(kind) else f"{kind}: {why}"
            return Verdict(call, positive, False, (), f"the operator failed: {named}")
        tried = _Attempt(fit)
        if not fit and positive:
            tried = _Attempt(operator_semantics.is_true(answer, {}))
        elif not fit:
            tried = self._try(
                Literal(call, positive),
                lambda known, steps: not operator_semantics.is_true(answer, known, steps.fitting),
            )
        if not answer.signature.free:
            reason = f"the operator says {'true' if answer.rows else 'false'}"
        elif answer.rows:
            reason = f"the operator gives {joined(tuple(map(row_text, answer.rows)))}"
        else:
            reason = "the operator gives nothing"
        return Verdict(call, positive, tried.holds, answer.rows, reason, tried.given_up)

    def _try(
        self, literal: Literal[Any], holds: Callable[[Substitution, _Steps], bool]
    ) -> _Attempt:
        """Try the substitutions of the calls that share a variable with the literal."""
        wanted = set(self._names((literal,)))
        sharing = [
            answer
            for answer in self.giving
            if wanted & {variable.name for variable in variables(answer.call)}
        ]
        steps = _Steps(_MOST_STEPS // len(self.clause))
        tried = _Attempt(False)
        try:
            for known in operator_semantics.substitutions(sharing, fitting=steps.fitting):
                tried.holds = tried.holds or holds(known, steps)
                if len(tried.known) < _LOOKED_AT:
                    tried.known.append(known)
                elif tried.holds:
                    break
        except _GivenUpError:
            tried.given_up = not tried.holds
        return tried

    def _values(self, literal: Literal[ValueConstraint], tried: _Attempt) -> str:
        """The values that the variables of a constraint can have."""
        names = self._names((literal,))
        if not tried.known:
            shown = listed(f"?{name}" for name in names)
            if tried.given_up:
                return f"given up: too many rows to find values for {shown}"
            return f"no call gives {shown} a value"
        known = tried.known
        found = {
            name: tuple(dict.fromkeys(value_text(each[name]) for each in known)) for name in names
        }
        values = ", ".join(f"?{name} is {joined(values)}" for name, values in found.items())
        return f"{values}; given up: too many of them to try" if tried.given_up else values

    def _all_names(self) -> str:
        return listed(f"?{name}" for name in self._names((*self.calls, *self.constraints)))

    def _names(self, literals: Iterable[Literal[Any]]) -> list[str]:
        """The variables of literals, each once."""
        return list(
            dict.fromkeys(
                variable.name for literal in literals for variable in variables(literal.predicate)
            )
        )


def one_substitution_fits(
    calls: Sequence[Literal[Call]],
    answers: Sequence[CallAnswer],
    constraints: Sequence[Literal[ValueConstraint]],
) -> bool | None:
    """As in `semantics`; None if it would visit more than `_MOST_STEPS` rows."""
    try:
        return operator_semantics.one_substitution_fits(
            calls, answers, constraints, _Steps(_MOST_STEPS).fitting
        )
    except _GivenUpError:
        return None


class _GivenUpError(Exception):
    """The search visited too many rows."""


@dataclass
class _Attempt:
    """The result of trying substitutions: whether one works, and the first ones tried."""

    holds: bool
    given_up: bool = False
    known: list[Substitution] = field(default_factory=list)


@dataclass
class _Steps:
    """Visits the rows of answers, as `semantics` does, until no steps are left."""

    left: int

    def fitting(self, answer: CallAnswer, known: Substitution) -> Iterator[Substitution]:
        # One answer may be visited whole, however long it is: that is just reading it.
        if self.left <= 0:
            raise _GivenUpError
        self.left -= 1 + (len(answer.rows) if isinstance(answer.rows, tuple) else 0)
        return operator_semantics.fitting(answer, known)


_READING = (Predicate, Comparison, Some)


def _compared(literal: Literal[Comparison], event: Event, schema: Schema) -> Verdict:
    names = attributes_of(literal.predicate)
    missing = [name for name in names if name not in event.values]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return Verdict(*literal, False, (), f"{listed(missing)} {verb} not bound")
    holds = semantics.conjunction_holds((literal,), event, schema)
    shown = [f"{name} is {joined(event.values[name], is_quoted(name, schema))}" for name in names]
    moments = {each.moment for each in operands(literal.predicate) if isinstance(each, Now)}
    shown += [f"now is {moment_text(moment)}" for moment in moments if moment is not None]
    return Verdict(*literal, holds, (), listed(shown))


def _verdict(literal: Literal[Any], event: Event, schema: Schema) -> Verdict:
    predicate, positive = literal
    if isinstance(predicate, Comparison):
        return _compared(literal, event, schema)
    if isinstance(predicate, Some):
        holds = semantics.element_holds(literal, event, schema)
        values = event.values.get(predicate.attribute, ())
        return Verdict(*literal, holds, values, why_elements(predicate, event, explain))
    values = event.values.get(predicate.attribute, ())
    if semantics.looks_at_set(literal):
        holds = semantics.set_holds(literal, event, schema)
    else:
        holds = any(semantics.value_holds(literal, value, schema) for value in values)
    if not values:
        reason = f"{predicate.attribute} is not bound"
    else:
        quoted = is_quoted(predicate.attribute, schema)
        reason = f"{predicate.attribute} is {joined(values, quoted)}"
        if quoted and not holds:
            reason += other_kind(predicate, values)
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
        f"no one value of {attribute} ({joined(event.values[attribute])}) satisfies all of them"
        for attribute, group in groups.items()
        if attribute not in failed and not semantics.conjunction_holds(group, event, schema)
    )


def _shown(verdict: Verdict) -> str:
    predicate = verdict.predicate
    text = to_text(predicate if verdict.positive else Not(predicate))
    return text if len(text) <= 200 else text[:197] + "…"
