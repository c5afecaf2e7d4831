"""The encoder of a schema: its codecs, the labels of its text attributes, and their state.

Subscriptions pass through `terms`, and through `release` when they go. Events pass through `events`
or, from Arrow, through `encode.arrow`.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, EventValues, Pairs, Texts
from tamis.encode.clause import MISSING, Constraint, Folded, fold
from tamis.encode.codes import Codec, TextCodec, codec
from tamis.encode.dynamic_codes import DynamicCodec, key_of
from tamis.encode.elements.element_conditions import ElementConditions, ElementEngine, numbers_of
from tamis.encode.labels import HIGHEST, LOWEST, Labels, Moved
from tamis.encode.terms import Terms
from tamis.files.arrays import Int64s
from tamis.model.condition import Clause
from tamis.model.domain import NAME_LIMIT
from tamis.model.elements.structs import Structs
from tamis.model.event import Event
from tamis.model.schema import EVENT_TYPE, Schema

_IGNORED = 1000  # names of ignored attributes
OTHER_NAMES = "…"  # under which all further ones are counted


class EncodedClauses(NamedTuple):
    """Terms, and the labels that moved to make room for their constants, by attribute."""

    terms: Terms
    moved: Mapping[int, Moved]


class Encoder:
    """Codes for one schema. Attributes are identified by their position in the schema."""

    schema: Schema

    def __init__(
        self, schema: Schema, engines: Callable[[Schema], ElementEngine] | None = None
    ) -> None:
        """`engines` makes engines for conditions on elements. Without it such conditions fail."""
        self.labels: dict[int, Labels] = {}
        self.dynamic: set[int] = set()  # attributes whose labels are those of keys
        self.elements: dict[int, ElementConditions] = {}
        self._engines = engines
        self.codecs: list[Codec] = []
        self.positions: dict[str, int] = {}
        self.patterned: Counter[int] = Counter()  # text attributes whose raw texts are needed
        self.ignored: Counter[str] = Counter()  # values of events that the schema ignores, by name
        self.restamp()
        self.extend(schema)

    def extend(self, schema: Schema) -> None:
        """Adopt an extension of the schema: new attributes and event types, and grown domains.

        The names of a grown domain get other codes: the clauses that mention it need new terms.
        """
        codecs, positions = list(self.codecs), dict(self.positions)
        labels, dynamic, elements = dict(self.labels), set(self.dynamic), dict(self.elements)
        for position, (name, domain) in enumerate(schema.attributes.items()):
            if position < len(codecs):
                if position in elements:
                    elements[position].extend(domain)
                elif codecs[position].domain != domain:
                    codecs[position] = codec(domain, grows=name == EVENT_TYPE)
                continue
            positions[name] = position
            codecs.append(codec(domain, grows=name == EVENT_TYPE))
            if isinstance(codecs[-1], TextCodec):
                labels[position] = Labels()
            if isinstance(codecs[-1], DynamicCodec):
                dynamic.add(position)
            if isinstance(domain, Structs):
                elements[position] = ElementConditions(domain.element, self._engines)
        # One step: an interrupt leaves the old schema or the new one.
        fresh = {"codecs": codecs, "positions": positions, "labels": labels, "dynamic": dynamic}
        vars(self).update(fresh, elements=elements, schema=schema)
        self.restamp()

    def restamp(self) -> None:
        """Invalidate all batches so far: from now on their codes would differ.

        The stamp is random, so that no encoder accepts the batches of another.
        """
        self.stamp = secrets.randbits(62)

    # -- subscriptions -----------------------------------------------------------------------------

    def fold(self, clause: Clause, known: Folded | None = None) -> tuple[Constraint, ...]:
        """The constraints of a clause; refuses one that can never hold. Has no side effect.

        `known` keeps what the clauses of one condition share; they must live as long as it does.
        """
        return fold(clause, self.codecs, self.positions, known)

    def terms(self, clauses: Sequence[Sequence[Constraint]]) -> EncodedClauses:
        """The terms of folded clauses; assigns labels to their text constants."""
        texts: dict[int, dict[str, int]] = {}
        for clause in clauses:
            for constraint in clause:
                if constraint.attribute in self.labels:
                    uses = texts.setdefault(constraint.attribute, {})
                    for text in cut_texts(constraint):
                        uses[text] = uses.get(text, 0) + 1
                    if constraint.patterns:
                        self.patterned[constraint.attribute] += 1
                        if self.patterned[constraint.attribute] == 1:
                            self.restamp()  # earlier batches did not keep the raw texts
        moved = self.count_texts(texts) if texts else {}
        if self.elements:
            self._hold(clauses)
        return EncodedClauses(self._terms(clauses), moved)

    def forget_reserved(self) -> None:
        """Forget the numbers of conditions on elements that were compiled and not used."""
        for conditions in self.elements.values():
            conditions.forget_reserved()

    def _hold(self, clauses: Sequence[Sequence[Constraint]]) -> None:
        """Count the uses of conditions on elements."""
        uses: dict[int, Counter[int]] = {}
        for constraint in (each for clause in clauses for each in clause):
            if constraint.attribute in self.elements:
                closed = ((low, high - 1) for low, high in constraint.intervals)
                uses.setdefault(constraint.attribute, Counter()).update(numbers_of(closed))
        for at, numbers in uses.items():
            if self.elements[at].hold(numbers):
                self.restamp()  # earlier batches do not have them

    def count_texts(self, texts: Mapping[int, Mapping[str, int]]) -> dict[int, Moved]:
        """Count uses of texts as constants; return the labels that moved."""
        found: dict[int, Moved] = {}
        fresh = False
        for at, uses in texts.items():
            labels = self.labels[at]
            version = labels.version
            moved = labels.add(uses)
            fresh |= labels.version != version
            if moved is not None:
                found[at] = moved
        if fresh:
            self.restamp()
        return found

    def release(self, terms: Terms, clauses: Sequence[Sequence[Constraint]] = ()) -> None:
        """Release the text constants of terms and the patterns of clauses."""
        for clause in clauses:
            for constraint in clause:
                self.patterned[constraint.attribute] -= bool(constraint.patterns)
        for at, texts in self._texts(terms).items():
            self.labels[at].drop(texts)
        for at, conditions in self.elements.items():
            conditions.release(numbers_in(terms, at))

    def check(self, terms: Terms, clauses: Iterable[Sequence[Constraint]]) -> None:
        """Raise if other constants or patterns are in use than those of the terms and clauses."""
        patterned = Counter(
            each.attribute for clause in clauses for each in clause if each.patterns
        )
        assert +self.patterned == patterned
        uses = self._texts(terms)
        for at, labels in self.labels.items():
            labels.check(Counter(uses.get(at, ())))
        for at, conditions in self.elements.items():
            conditions.check(numbers_in(terms, at))

    def _texts(self, terms: Terms) -> dict[int, list[str]]:
        """The text constants of terms, by attribute.

        Each end of an interval on a text attribute is the label of a constant, or next to it. So
        the terms themselves identify their constants.
        """
        found: dict[int, list[str]] = {}
        for at, _, kind, low, high in zip(*(each.tolist() for each in terms[1:]), strict=True):
            labels = self.labels.get(at)
            if labels is not None and kind != MISSING:
                texts = found.setdefault(at, [])
                if low != LOWEST:
                    texts.append(labels.lower_text(low))
                if high != HIGHEST:
                    texts.append(labels.upper_text(high))
        return found

    def _terms(self, clauses: Sequence[Sequence[Constraint]]) -> Terms:
        known: dict[int, list[tuple[int, ...]]] = {}  # clauses of one condition share constraints
        values: list[int] = []
        numbers: list[int] = []
        starts = [0]
        for clause in clauses:
            for term, constraint in enumerate(clause):
                rows = known.get(id(constraint))
                if rows is None:
                    rows = known[id(constraint)] = self._rows(constraint)
                for row in rows:
                    values += row
                    numbers.append(term)
            starts.append(len(numbers))
        attribute, kind, low, high = np.array(values, np.int64).reshape(-1, 4).T
        return Terms(
            np.array(starts, np.int64),
            attribute.astype(np.int32),
            np.array(numbers, np.int16),
            kind.astype(np.int8),
            low.copy(),
            high.copy(),
        )

    def _rows(self, constraint: Constraint) -> list[tuple[int, ...]]:
        """Attribute, kind, and both ends of each interval of codes."""
        attribute, kind, intervals, _ = constraint
        if kind == MISSING:
            return [(attribute, kind, 0, -1)]
        labels = self.labels.get(attribute)
        if labels is not None:
            return [(attribute, kind, labels.lower(a), labels.upper(b)) for a, b in intervals]
        codec = self.codecs[attribute]
        bottom, top = codec.bottom, codec.top - 1
        return [(attribute, kind, *closed(a, b - 1, bottom, top)) for a, b in intervals]

    # -- events ------------------------------------------------------------------------------------

    def codes(self, attribute: int, values: Iterable[Any]) -> list[int]:
        """The codes of values in normal form."""
        labels = self.labels.get(attribute)
        if attribute in self.dynamic:
            values = map(key_of, values)
        return (
            labels.codes(values)
            if labels is not None
            else [*map(self.codecs[attribute].code, values)]
        )

    def with_patterns(self) -> list[int]:
        """The attributes whose raw texts a batch needs; another thread may add some meanwhile."""
        return [at for at, many in [*self.patterned.items()] if many > 0]

    def count_ignored(self, names: Mapping[str, int]) -> None:
        """Count values that were ignored; publishers choose the names, so few are kept."""
        for given, many in names.items():
            name = given if len(given) <= NAME_LIMIT else f"{given[:NAME_LIMIT]}…"
            known = name in self.ignored or len(self.ignored) < _IGNORED
            self.ignored[name if known else OTHER_NAMES] += many

    def events(self, events: Sequence[Event], moments: Int64s | int | None = None) -> EventBatch:
        """Encode validated events, which may have a moment each, or one for all."""
        stamp = self.stamp
        published = [event.values for event in events]
        bound = self._with_elements(events, moments) if self.elements else published
        ends: list[int] = [0]
        attributes: list[int] = []
        codes: list[int] = []
        # The distinct texts of attributes with patterns, and the values by event.
        raw: dict[int, tuple[dict[str, int], list[int], list[int]]] = {
            at: ({}, [], []) for at in self.with_patterns()
        }
        positions, codecs, labels = self.positions, self.codecs, self.labels
        texts: Sequence[str]
        for row, event in enumerate(events):
            if event.ignored:
                self.count_ignored(Counter(event.ignored))
            for at, values in sorted(
                (positions[name], values) for name, values in bound[row].items()
            ):
                if at in labels:
                    texts = [*map(key_of, values)] if at in self.dynamic else values
                    if at in raw:
                        distinct, which, rows = raw[at]
                        which.extend(distinct.setdefault(text, len(distinct)) for text in texts)
                        rows.extend([row] * len(values))
                    codes.extend(labels[at].codes(texts))
                else:
                    codes.extend(map(codecs[at].code, values))
                attributes.extend([at] * len(values))
            ends.append(len(codes))
        return EventBatch(
            len(events),
            pairs=Pairs(
                np.array(ends, np.int64), np.array(attributes, np.int32), np.array(codes, np.int64)
            ),
            texts={
                at: Texts([*distinct], np.array(which, np.int64), np.array(rows, np.int64))
                for at, (distinct, which, rows) in raw.items()
            },
            stamp=stamp,
            raw=EventValues(published),
            moments=moments,
        )

    def _with_elements(
        self, events: Sequence[Event], moments: Int64s | int | None
    ) -> list[dict[str, tuple[Any, ...]]]:
        """The values of events, with the codes of lists of structs in their place."""
        found = [dict(event.values) for event in events]
        for name in self.schema.lists:
            lists = [event.elements.get(name, ()) for event in events]
            if any(lists):
                every = self.elements[self.positions[name]].codes(lists, moments)
                for values, codes in zip(found, every, strict=True):
                    if codes:
                        values[name] = codes
        return found


def numbers_in(terms: Terms, attribute: int) -> list[int]:
    """The numbers of conditions on the elements of an attribute, with repetitions."""
    mine = np.flatnonzero(terms.attribute == attribute)
    return numbers_of(zip(terms.low[mine].tolist(), terms.high[mine].tolist(), strict=True))


def closed(low: int, high: int, bottom: int, top: int) -> tuple[int, int]:
    """An interval as matchers see it: an end at the end of the domain becomes unbounded.

    The meaning is the same, since no event has a value beyond the domain; but a matcher can tell
    `price < 5` from a range. A single value stays an equality.
    """
    if low == high:
        return low, high
    return LOWEST if low == bottom else low, HIGHEST if high == top else high


def cut_texts(constraint: Constraint) -> list[str]:
    """The text constants of a constraint, one for each bounded end of an interval."""
    found: list[str] = []
    for low, high in constraint.intervals:
        if low[:2] != (0, "") or low[2]:
            found.append(low[1])
        if high[0] == 0:
            found.append(high[1])
    return found
