"""The clauses of many conditions as arrays, and what of them is not intervals.

Conditions are compiled here as when subscribing, but nothing is subscribed: the labels of texts
must be known before the clauses can be compared. What is not intervals of codes is *opaque*: calls
of operators, residuals, patterns of text, elements of lists, and every construct that this file
does not know. An opaque clause has the terms that its events must satisfy, and a mark that only an
identical clause has. So what holds for the terms of a clause holds for its events, but not the
other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encode.bulk_terms import BulkTerms
from tamis.encode.clause import Constraint
from tamis.encode.encoder import Encoder
from tamis.encode.labels import Moved
from tamis.encode.plain_conditions import read_plain
from tamis.encode.terms import Terms, joined
from tamis.engine.bulk_load import condition_of, mention, no_collection
from tamis.engine.compiled_condition import CompiledClause, CompiledCondition
from tamis.engine.ids import Id
from tamis.errors import ConditionError, NeverTrueError
from tamis.files.arrays import Bools, Int64s
from tamis.language.dialects.registry import NATIVE, translate
from tamis.language.limits import PREDICATE_LIMIT, TEXT_LIMIT
from tamis.language.pitfalls import doubtful_words
from tamis.model.condition import (
    FOLDED,
    IS_NULL,
    IS_SCALAR,
    OF_KIND,
    REGULAR,
    SUBSET,
    SUBSTRING,
    SUPERSET,
    WITHIN,
    Call,
    Comparison,
    Condition,
    Now,
    NumberedSome,
    Predicate,
    Some,
    ValueConstraint,
    Word,
    leaves,
    operands,
)
from tamis.model.times.moments import NOW_WORDS, with_now

if TYPE_CHECKING:
    from tamis.engine.engine import Engine

OPERATORS = "calls of operators"
COMPARED = "attributes compared with attributes"
MOMENTS = "times relative to now"
ELEMENTS = "conditions on elements of lists"
PATTERNS = "patterns and tests of text"
RESIDUALS = "an 'and' of so many 'or's that it is not multiplied out"
UNKNOWN = "constructs that the report does not know"

_AT_ONCE = 1 << 16  # conditions
_CLAUSE_FIELDS = ("constraints", "calls", "text", "residual")
_CONSTRAINT_FIELDS = ("attribute", "kind", "intervals", "patterns")
_PLAIN = (int, float, str, bool, Word)
# Named one by one: a comparator that comes later is not decided until somebody looks at it here.
_KNOWN = frozenset(
    (
        *("=", "!=", "in", "<", "<=", ">", ">=", "between", "contains", "excludes"),
        *("exists", "missing", SUBSET, SUPERSET, IS_NULL, IS_SCALAR, OF_KIND),
        *("starts with", "ends with", "like", SUBSTRING, REGULAR, WITHIN, *FOLDED),
    )
)


class CollectedClauses(NamedTuple):
    """The clauses of `ids`. Attributes of marks are those from `marks_from` on."""

    ids: list[Id]
    terms: Terms
    owner: Int64s  # of each clause, a place in ids
    opaque: Bools  # of each clause
    never_true: list[int]  # places in ids: no clause can hold
    reasons: dict[str, list[int]]  # places of what is not decided, by the reason
    marked: dict[int, int]  # a mark's attribute -> the attribute whose codes it has, or -1
    refused: list[tuple[int, str]]  # places of conditions that are no conditions


class ClauseCollector:
    """Compiles conditions against a scratch engine, a table at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine  # nothing is subscribed to it
        self._ids: list[Id] = []
        self._parts: list[Terms] = []
        self._owners: list[Int64s] = []
        self._opaque: list[Bools] = []
        self._never: list[int] = []
        self._refused: list[tuple[int, str]] = []
        self._reasons: dict[str, list[int]] = {}
        self._marks: dict[object, int] = {}
        self._marked: list[int] = []

    @property
    def encoder(self) -> Encoder:
        """The codes of the clauses: complete when everything was added."""
        return self._engine.encoder

    def add(
        self,
        ids: Sequence[Id],
        column: pa.Array,
        languages: Sequence[str | None] | None = None,
        *,
        stored: bool,
        progress: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Add conditions in text, or lists of predicates."""
        for at in range(0, len(ids), _AT_ONCE):
            some = None if languages is None else languages[at : at + _AT_ONCE]
            with no_collection():
                self._add(ids[at : at + _AT_ONCE], column.slice(at, _AT_ONCE), some, stored)
            progress(len(self._ids))

    def _add(
        self,
        ids: Sequence[Id],
        column: pa.Array,
        languages: Sequence[str | None] | None,
        stored: bool,
    ) -> None:
        engine, before = self._engine, len(self._ids)
        texts = not isinstance(column, pa.ListArray | pa.LargeListArray)
        lists = column
        if texts:
            doubtful = NOW_WORDS if stored else doubtful_words(engine.schema)
            native = column
            if languages is not None:  # the others are compiled one by one
                own = pa.array([each in (None, NATIVE) for each in languages])
                native = pc.if_else(own, column.cast(pa.large_string()), None)
            lists = read_plain(native, TEXT_LIMIT, doubtful=doubtful)
        assert isinstance(lists, pa.ListArray | pa.LargeListArray)
        if engine.schema.is_open:
            mention(engine, lists)
        bulk = BulkTerms(engine.encoder, lists, PREDICATE_LIMIT)
        self._ids += ids
        self._follow(engine.encoder.count_texts(bulk.text_uses()))
        self._keep(bulk.terms(), before + bulk.fast, np.zeros(len(bulk.fast), np.bool_))
        clauses: list[tuple[Constraint, ...]] = []
        owners: list[int] = []
        marks: list[list[tuple[int, Constraint | None]]] = []
        for row in bulk.slow.tolist():
            language = (languages[row] if languages is not None else None) or NATIVE
            found = self._compile(column[row].as_py(), before + row, language, stored)
            for each in found:
                clauses.append(each.constraints)
                owners.append(before + row)
                marks.append(each.marks)
        if clauses:
            terms, moved = engine.encoder.terms(clauses)
            self._follow(moved)
            terms = self._with_marks(terms, marks)
            opaque = np.array([bool(each) for each in marks], np.bool_)
            self._keep(terms, np.array(owners, np.int64), opaque)

    def _keep(self, terms: Terms, owners: Int64s, opaque: Bools) -> None:
        self._parts.append(terms)
        self._owners.append(owners)
        self._opaque.append(opaque)

    def _follow(self, moved: Mapping[int, Moved]) -> None:
        """Labels moved to make room for others: earlier terms follow."""
        for attribute, labels in moved.items():
            own = [attribute, *(-1 - at for at, of in enumerate(self._marked) if of == attribute)]
            for part in self._parts:
                mine = np.isin(part.attribute, own)
                part.low[mine] = labels.follow_lower(part.low[mine])
                part.high[mine] = labels.follow_upper(part.high[mine])

    def _compile(self, given: Any, place: int, language: str, stored: bool) -> list[_ReadClause]:
        """The clauses of one condition; none if it can never hold, or is no condition."""
        engine = self._engine
        try:
            if given is None:
                raise ConditionError("the condition is null")
            condition = given if isinstance(given, str) else condition_of(given, engine.schema)
            if condition is None:
                return [_ReadClause((), [])]
            compiled = engine.compile(condition, language, stored=stored)
        except NeverTrueError:
            self._never.append(place)
            return []
        except ConditionError as error:
            self._refused.append((place, str(error)))
            return []
        parsed = (
            translate(condition, engine.schema, language)
            if isinstance(condition, str)
            else condition
        )
        reasons: set[str] = set()
        found = [*self._read(with_now(parsed, engine.schema), compiled, reasons)]
        for reason in reasons:
            self._reasons.setdefault(reason, []).append(place)
        return found

    def _read(
        self, condition: Condition, compiled: CompiledCondition, reasons: set[str]
    ) -> Iterator[_ReadClause]:
        kinds = {_kind(leaf) for leaf in leaves(condition)}
        reasons |= {kind for kind in kinds if kind}
        if UNKNOWN in kinds or not all(map(_known, compiled.clauses)):
            reasons.add(UNKNOWN)
            yield _ReadClause((), [(self._mark(repr(condition)), None)])
            return
        for clause in compiled.clauses:
            marks: list[tuple[int, Constraint | None]] = []
            if clause.calls is not None or clause.residual is not None:
                # One mark for the whole clause: a residual may speak of the same values.
                whole = (repr(clause.constraints), clause.text, repr(clause.residual))
                marks.append((self._mark(whole), None))
                if clause.residual is not None and not kinds & {COMPARED, MOMENTS}:
                    reasons.add(RESIDUALS)
            for each in clause.constraints:
                if each.patterns:
                    reasons.add(PATTERNS)
                    key = each.attribute, frozenset(each.patterns)
                    marks.append((self._mark(key, each.attribute), each))
                if each.attribute in self._engine.encoder.elements and ELEMENTS in kinds:
                    marks = marks or [(self._mark(ELEMENTS), None)]
            yield _ReadClause(clause.constraints, marks)

    def _mark(self, key: object, attribute: int = -1) -> int:
        """The attribute, below 0, that stands for something opaque."""
        if key not in self._marks:
            self._marks[key] = -1 - len(self._marked)
            self._marked.append(attribute)
        return self._marks[key]

    def _with_marks(
        self, terms: Terms, marks: Sequence[Sequence[tuple[int, Constraint | None]]]
    ) -> Terms:
        """The terms with a row for each mark: 0, or the intervals of a constraint with tests."""
        if not any(marks):
            return terms
        flat = [  # the attribute of a mark is higher, the lower its number
            (clause, *mark)
            for clause, each in enumerate(marks)
            for mark in sorted(each, key=lambda mark: -mark[0])
        ]
        tested = [each for _, _, each in flat if each is not None]
        rows = self._engine.encoder.terms([[each._replace(patterns=())] for each in tested]).terms
        owner, attribute, low, high, term = [], [], [], [], []
        at = 0
        for number, (clause, mark, constraint) in enumerate(flat):
            spans = [(0, 0)]
            if constraint is not None:
                part = slice(rows.starts[at], rows.starts[at + 1])
                spans = list(zip(rows.low[part].tolist(), rows.high[part].tolist(), strict=True))
                at += 1
            for span in spans:
                owner.append(clause)
                attribute.append(mark)
                low.append(span[0])
                high.append(span[1])
                term.append(10_000 + number % 10_000)
        every = np.concatenate(
            [np.repeat(np.arange(terms.clauses), np.diff(terms.starts)), np.array(owner, np.int64)]
        )
        order = np.argsort(every, kind="stable")
        columns: list[tuple[Any, list[int]]] = [
            (terms.attribute, attribute),
            (terms.term, term),
            (terms.kind, [0] * len(owner)),
            (terms.low, low),
            (terms.high, high),
        ]
        made: list[Any] = [
            np.concatenate([old, np.array(new, old.dtype)])[order] for old, new in columns
        ]
        starts = np.searchsorted(every[order], np.arange(terms.clauses + 1))
        return Terms(starts.astype(np.int64), *made)

    def collected(self) -> CollectedClauses:
        """Everything that was added."""
        if not self._parts:
            self._keep(*_nothing())
        terms = joined(self._parts)
        self._parts.clear()
        marks_from = 2 * len(self._engine.encoder.codecs)
        attribute = np.where(
            terms.attribute < 0, marks_from - 1 - terms.attribute, terms.attribute
        ).astype(np.int32)
        return CollectedClauses(
            self._ids,
            terms._replace(attribute=attribute),
            np.concatenate(self._owners),
            np.concatenate(self._opaque),
            self._never,
            self._reasons,
            {marks_from + at: of for at, of in enumerate(self._marked)},
            self._refused,
        )


class _ReadClause(NamedTuple):
    constraints: tuple[Constraint, ...]
    marks: list[tuple[int, Constraint | None]]


def _nothing() -> tuple[Terms, Int64s, Bools]:
    empty: list[Any] = [np.zeros(0, kind) for kind in (np.int32, np.int16, np.int8, int, int)]
    return Terms(np.zeros(1, np.int64), *empty), np.zeros(0, np.int64), np.zeros(0, np.bool_)


def _kind(leaf: Any) -> str:
    """Why a leaf is not decided; "" if it is intervals."""
    if isinstance(leaf, Call | ValueConstraint):
        return OPERATORS
    if isinstance(leaf, Comparison):
        return MOMENTS if any(isinstance(each, Now) for each in operands(leaf)) else COMPARED
    if isinstance(leaf, Some | NumberedSome):
        return ELEMENTS
    if type(leaf) is not Predicate or leaf.comparator not in _KNOWN:
        return UNKNOWN
    values = leaf.value if isinstance(leaf.value, tuple) else (leaf.value,)
    return "" if all(each is None or type(each) in _PLAIN for each in values) else UNKNOWN


def _known(clause: CompiledClause) -> bool:
    """Whether a clause has nothing but what this file looks at."""
    more = [name for name in clause._fields if name not in _CLAUSE_FIELDS]
    if any(getattr(clause, name) for name in more):
        return False
    return all(
        not getattr(each, name)
        for each in clause.constraints
        for name in each._fields
        if name not in _CONSTRAINT_FIELDS
    )
