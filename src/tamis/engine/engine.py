"""The engine: from conditions in text to the ids of the subscriptions that an event matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np

from tamis.encode.batch import EventBatch
from tamis.encode.encoder import Encoder
from tamis.encode.tables.frames import ABSENT, check_missing
from tamis.engine import bulk_load, declaration, repair, warm_start
from tamis.engine.bulk_load import parsed
from tamis.engine.calls.call_filter import CallFilter
from tamis.engine.change_matcher import own_matcher
from tamis.engine.clause_placement import place_clauses, remove_subscription
from tamis.engine.compiled_condition import CompiledCondition, compile_condition
from tamis.engine.domain_growth import extend_schema
from tamis.engine.doors.dict_events import DictEvents
from tamis.engine.doors.event_door import BAD, good_events
from tamis.engine.doors.event_moments import Events, GivenMoment, moment_of_call
from tamis.engine.doors.json_door import JsonDoor
from tamis.engine.doors.shared_door import SharedDoor
from tamis.engine.element_engine import element_engine, with_element_engines
from tamis.engine.engine_lock import OPEN, EngineLock
from tamis.engine.explanation import explain_subscription, plan_of, summary_of
from tamis.engine.ids import Id
from tamis.engine.pattern_filter import PatternFilter
from tamis.engine.priorities.first_matches import candidates, first_of
from tamis.engine.priorities.priority_table import check_priority
from tamis.engine.redundancy.redundancy_report import Progress, RedundancyReport
from tamis.engine.residuals.residual_filter import ResidualFilter
from tamis.engine.saved import saved_engine, snapshot
from tamis.engine.slot_table import SlotTable
from tamis.errors import EventError, SchemaError
from tamis.language import to_text
from tamis.language.dialects.registry import NATIVE
from tamis.match.base import Matcher, Matches
from tamis.match.bitmaps import Bitmaps
from tamis.match.capabilities import match_bits
from tamis.match.plan import LINES, Plan
from tamis.model.condition import Condition
from tamis.model.event import Event
from tamis.model.explain import Explanation
from tamis.model.frame_values import without_missing
from tamis.model.schema import Schema
from tamis.model.times.moments import read_moment
from tamis.operators.operator import Operator
from tamis.operators.registry import Operators
from tamis.operators.report import Report
from tamis.operators.result_memory import SIZE

DEFAULT = "tamis"
SCHEDULER = "adaptive"


class Engine(JsonDoor):
    """Live subscriptions over one schema, in memory.

    Without a schema it has the open one: any JSON object is an event, and conditions may mention
    any attribute.

    `matcher` is a name from `tamis.matchers()` (with its options), or a matcher of your own.
    Conditions may call the registered operators and those in `operators`. `scheduler` is a name
    from `tamis.schedulers()`; it decides the order of evaluation. Of the results of operators, at
    most `remember` rows are kept for later events.

    >>> engine = Engine(Schema.from_dict({"attributes": {"price": "decimal", "title": "text"}}))
    >>> engine.subscribe('price < 5 and title starts with "old"', id="bargains")
    'bargains'
    >>> engine.match({"price": 3, "title": "old chair"})
    ['bargains']

    Subscriptions may come and go between any two matches. Several threads may use an engine. They
    match at once, unless conditions call operators or mention `now`, the schema has lists of
    structs, or the matcher is not the default one. A match or a batch has one moment; a change
    waits for those that have begun. Operators must not use the engine that calls them.

    Operators may run in threads and processes, which stay alive for the next event. `close`, or the
    end of a `with` block, stops them.
    """

    def __init__(
        self,
        schema: Schema | None = None,
        matcher: str | Matcher = DEFAULT,
        *,
        operators: Operator | Iterable[Operator] | Operators = (),
        scheduler: str = SCHEDULER,
        remember: int = SIZE,
        **options: Any,
    ) -> None:
        schema = Schema.open() if schema is None else schema
        if not isinstance(schema, Schema):
            raise SchemaError(
                f"expected a Schema, got {type(schema).__name__}; see Schema.from_dict and .load"
            )
        self._lock = EngineLock()
        self.torn = False  # during a change, and after one that was interrupted
        self.encoder: Encoder = Encoder(schema, element_engine)
        self.matcher = own_matcher(matcher, options)
        self.slot_table = SlotTable()
        self.patterns = PatternFilter()
        self.residuals = ResidualFilter()
        self.calls = CallFilter(Operators.of(operators), scheduler, remember)
        self._dicts, self._shared = DictEvents(self), SharedDoor(self)

    @property
    def schema(self) -> Schema:
        """The schema, in its latest version."""
        return self.encoder.schema

    def extend(self, schema: Schema) -> None:
        """Replace the schema by an extension of it; refuse any other schema."""
        with self._lock.mutex:
            self._ready()
            extend_schema(self, schema)

    def declare(self, schema: Schema) -> None:
        """Move to another schema, from the open one for example, with all subscriptions.

        Their conditions are checked against it first. If some do not fit, a `SchemaError` says
        which and why, and nothing changes.
        """
        with self._lock.mutex:
            self._ready()
            declaration.declare(self, schema)

    def _ready(self) -> None:
        """Wait for matches, refuse operators, repair what an interrupt left: first in each call."""
        if self._lock.state >= OPEN:
            self._lock.close()
        if self.torn or self._lock.in_operators.locked():
            self._lock.refuse_operators()
            repair.repair(self)

    def __repr__(self) -> str:
        return summary_of(self)

    def __len__(self) -> int:
        return len(self.slot_table)

    def __contains__(self, id: object) -> bool:
        return id in self.slot_table

    def ids(self) -> list[Id]:
        """The ids of all live subscriptions."""
        return self.slot_table.ids()

    # -- subscriptions -----------------------------------------------------------------------------

    def subscribe(
        self,
        condition: str | Condition,
        id: Id | None = None,
        *,
        priority: int = 0,
        language: str = NATIVE,
        stored: bool = False,
    ) -> Id:
        """Add a subscription and return its id: the one given, or the next number.

        Of the subscriptions that match an event, the one with the highest `priority` is the first.
        `language` is the dialect of a condition in text, a name from `tamis.dialects()`. The engine
        keeps a condition in another dialect translated. A `stored` condition was accepted before
        and keeps its meaning, even if a bare word in it names an attribute by now.
        """
        with self._lock.mutex:
            self._ready()
            checked, priority = self.slot_table.check_new(id), check_priority(priority)
            self.encoder.forget_reserved()
            source, compiled = self.compile(condition, language, stored=stored)
            slots = self.slot_table.reserve(len(compiled))
            self.torn = True
            place_clauses(self, slots, compiled, np.repeat(slots[:1], len(slots)))
            self.slot_table.add(checked, slots, source, priority)
            self.torn = False
            return checked

    def subscribe_table(
        self,
        table: Any,
        progress: Callable[[int, int], object] | None = None,
        *,
        language: str = NATIVE,
        stored: bool = False,
    ) -> int:
        """Add all subscriptions of an Arrow table; on an error, which names the row, add none.

        The table has `id` (int64 or string) and either `condition` (text) or `predicates`: a list
        of structs of attribute, comparator, value (double) and text; value or text is null.
        An empty list of predicates matches every event. There may be a column `priority` (int64).
        `language` is the dialect of the conditions, and `stored` is as in `subscribe`. `progress`
        is called with the rows done and the rows in total. Returns the number of subscriptions.
        """
        with self._lock.mutex:
            self._ready()
            self.encoder.forget_reserved()
            return bulk_load.subscribe_table(self, table, progress, language, stored)

    def unsubscribe(self, id: Id) -> None:
        """Remove a subscription."""
        with self._lock.mutex:
            self._ready()
            remove_subscription(self, id)

    def priority(self, id: Id) -> int:
        """The priority of a subscription."""
        return self.slot_table.priority(id)

    def set_priority(self, id: Id, priority: int) -> None:
        """Give a subscription another priority. Its turn among equal ones stays."""
        with self._lock.mutex:
            self._ready()
            self.slot_table.set_priority(id, check_priority(priority))

    def condition(self, id: Id) -> str | None:
        """The condition of a subscription as text; None if it has no predicates."""
        with self._lock.mutex:
            found = parsed(self.slot_table.source(id), self.schema)
        return None if found is None else to_text(found)

    def compile(
        self, condition: str | Condition, language: str = NATIVE, *, stored: bool = False
    ) -> CompiledCondition:
        """The clauses of a condition. Every refusal of a condition happens here."""
        operators = self.calls.operators
        return compile_condition(condition, self.encoder, operators, language, stored)

    # -- events ------------------------------------------------------------------------------------

    def match(
        self,
        event: Mapping[str, Any],
        *,
        missing: str | None = None,
        now: GivenMoment = None,
        first: bool = False,
    ) -> list[Id]:
        """The ids of all subscriptions that match the event, in any order; see `match_batch`."""
        plain = missing is None and now is None and not first
        if plain and (answer := self._shared.match(event)) is not None:
            return answer
        with self._lock.mutex:
            self._ready()
            if plain and (found := self._dicts.match(event)) is not None:
                return found
            check_missing(missing)
            given = without_missing(event) if missing == ABSENT else event
            batch = self.encoder.events([Event.of(self.schema, given)], moment_of_call(self, now))
            return self.match_batch(batch, first=first)[0]

    def match_batch(
        self,
        events: Events,
        *,
        bad: str = "refuse",
        missing: str | None = None,
        now: GivenMoment = None,
        first: bool = False,
    ) -> Matches:
        """The matches of each event of a list of dicts, a table, or an encoded batch.

        A table is one of Arrow, or a DataFrame of pandas or polars. One bad event refuses them all;
        with `bad="skip"` it matches nothing, and with `bad="report"` the answer also has its row
        and the reason, in `refused`. With `missing="absent"`, NaN, NaT and NA are absent, as in a
        DataFrame; with `missing="refuse"`, they make an event bad, as elsewhere. `now` is the
        moment of all events, for conditions that mention it; the default is the present one. With
        `first`, the answer has one match of each event at most: the one with the highest priority,
        or of several the one that subscribed first.
        """
        if bad not in BAD:
            raise EventError(f"bad is one of {', '.join(map(repr, BAD))}, got {bad!r}")
        plain = bad == "refuse" and missing is None and now is None and not first
        if plain and (answer := self._shared.match_batch(events)) is not None:
            return answer
        with self._lock.mutex:
            self._ready()
            moment = moment_of_call(self, now, events)
            if bad != "refuse" and not isinstance(events, EventBatch):
                good = good_events(self.encoder, events, missing, moment)
                return good.spread(self.match_batch(good.batch, first=first), bad)
            batch = self._dicts.batch(events, missing, moment)
            found = self.matcher.match(batch)
            if first:
                found = candidates(self, found)
            found = self.patterns.filter(batch, found)
            found = self.residuals.filter(batch, found, self.encoder, moment)
            if self.calls:
                with self._lock.in_operators:
                    found = self.calls.filter(batch, found, self.slot_table.owners(found.slots))
            return self.slot_table.with_ids(first_of(self, found) if first else found)

    def match_bitmap(self, events: Events, *, now: GivenMoment = None) -> Bitmaps:
        """The same matches as bits, a row for each event: to count and to combine them."""
        with self._lock.mutex:
            self._ready()
            moment = moment_of_call(self, now, events)
            batch = self._dicts.batch(events, None, moment)
            found = match_bits(self.matcher, batch)
            self.patterns.filter_bits(batch, found)
            self.residuals.filter_bits(batch, found, self.encoder, moment)
            with self._lock.in_operators:
                self.calls.filter_bits(batch, found)
            return self.slot_table.bits_with_ids(found)

    def encode(
        self, events: Events, *, missing: str | None = None, now: GivenMoment = None
    ) -> EventBatch:
        """Validate and encode events, to match the same batch several times; see `match_batch`."""
        if self.torn or self.encoder.elements:  # elements are matched by an engine of their own
            with self._lock.mutex:
                self._ready()
                return self._dicts.batch(events, missing, moment_of_call(self, now))
        moment = None if now is None else read_moment(now)  # else that of the match
        return self._dicts.batch(events, missing, moment)

    def explain(self, id: Id, event: Mapping[str, Any], *, now: GivenMoment = None) -> Explanation:
        """Explain why a subscription matches an event or not, predicate by predicate."""
        with self._lock.mutex:
            self._ready()
            moment = None if now is None else read_moment(now)
            return explain_subscription(self, id, event, self._lock.in_operators, moment)

    def report(self) -> Report:
        """The calls of operators, and the attributes of events that the schema ignores."""
        open_ = sum(each.residuals.undecided for each in with_element_engines(self))
        return replace(self.calls.report(), undecided=open_, ignored=dict(self.encoder.ignored))

    def plan(self, id: Id | None = None, lines: int = LINES) -> Plan:
        """The plan of the matcher: where it keeps the subscriptions, the expected cost, and why.

        With an `id`, also where the clauses of that subscription are, and what other places would
        cost. At most `lines` things of each kind are listed; with 0, only the clauses of `id`. A
        `MatcherError` says that the matcher has no plan, or none before the first events.
        """
        with self._lock.mutex:
            self._ready()
            return plan_of(self, id, lines)

    def expect(self, past: warm_start.PastStatistics) -> None:
        """Prepare for events like past ones (`tamis.store.Stats`), with the present clauses."""
        with self._lock.mutex:
            self._ready()
            warm_start.expect(self, past)

    def redundancy(self, progress: Progress | None = None) -> RedundancyReport:
        """Which subscriptions are copies, covered by another, never true, or always true."""
        from tamis.engine.redundancy.find_redundancy import of_engine

        with self._lock.mutex:
            self._ready()
            return of_engine(self, progress)

    # -- saving and closing ------------------------------------------------------------------------

    def save(self, folder: str | PathLike[str], *, replace: bool = False) -> None:
        """Save the engine to a folder, for `Engine.open`.

        An existing folder is refused. With `replace`, a folder that holds a saved engine is
        replaced; processes that have opened it keep the old one.
        """
        with self._lock.mutex:
            self._ready()
            saved_engine.save(self, folder, replace)

    @classmethod
    def open(
        cls,
        folder: str | PathLike[str],
        *,
        verify: bool = True,
        operators: Operator | Iterable[Operator] | Operators = (),
        scheduler: str | None = None,
        remember: int = SIZE,
        **options: Any,
    ) -> Self:
        """Open a saved engine; a `SavedIndexError` if its folder is damaged.

        The files are mapped into memory: processes that open the same folder share one copy, and
        changes are private to a process. Without `verify`, checksums are not compared; use it when
        another process has verified the folder. `options` override options of the matcher, or add
        those that are not saved, such as a password. Operators are code and are not saved: register
        those that conditions call, or pass them here.
        """
        opened = saved_engine.open_engine(cls, folder, verify, operators, scheduler, options)
        opened.calls.remember(remember)
        return opened

    def close(self) -> None:
        """Stop the threads and processes of operators; a later match starts new ones."""
        with self._lock.mutex:
            self._ready()
            self.calls.runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock.mutex:
            self._ready()
            return snapshot.parts_of(self, leave_out=("_lock", "_dicts", "_shared"))

    def __setstate__(self, parts: dict[str, Any]) -> None:
        for name, part in parts.items():  # a shallow copy still holds snapshots
            vars(self)[name] = part.restored() if isinstance(part, snapshot.Snapshot) else part
        self._lock, self._dicts, self._shared = EngineLock(), DictEvents(self), SharedDoor(self)
        self.encoder.restamp()  # the copies do not exchange batches

    def check(self) -> None:
        """Raise if an invariant is broken. Slow, for tests."""
        with self._lock.mutex:
            self._ready()
            repair.check(self)
