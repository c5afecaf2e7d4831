"""Past events of a log."""

from __future__ import annotations

from collections.abc import Sequence

from tamis.encode.lines.event_columns import multiple
from tamis.encode.validation import extends
from tamis.errors import SchemaError, SparkError
from tamis.model.domain import Decimal, Integer, Timestamp
from tamis.model.schema import Schema
from tamis.replay.log_events import LogEvents, log_shares
from tamis.spark.events.past_events import PastEvents, check_sample_columns
from tamis.spark.events.time_axis import DECIMAL, TIME, WHOLE, EventClock
from tamis.spark.events.time_span import TimeSpan
from tamis.spark.frames.frame_columns import check_attributes
from tamis.spark.runtime.worker_cache import schema_document
from tamis.store.log import Log
from tamis.store.pack import EVENTS, appended
from tamis.store.stats import LogPosition

_SHARES = 4  # a core: the last ones to end leave the others idle for a short while only
_LARGEST = 1 << 20  # events of a share
_TIMES = {Timestamp: TIME, Integer: WHOLE, Decimal: DECIMAL}


class PastLog(PastEvents):
    """Events of a log, up to where it ended when this was made.

    Each is read by the schema of its number. `schema` is the last one, or a later one.
    """

    appended = True

    def __init__(self, log: Log, schema: Schema) -> None:
        self.log, self.end, self.schema = log, log.end, schema
        latest = log.schema_at(self.end)
        if not extends(schema, latest):
            self.schema = latest
            try:
                latest.check_extends(schema)
            except SchemaError as why:
                raise SparkError(
                    f"{log.folder}: its events are of another schema than the subscriptions: {why}"
                ) from None

    @property
    def where(self) -> str:
        return str(self.log.folder)

    def clock(self, time: str | None, columns: Sequence[str] | None = ()) -> EventClock | None:
        """An attribute, read by the rules of its domain."""
        names = list(self.schema.attributes)
        check_attributes([*(columns or ()), *([] if time is None else [time])], names, self.where)
        check_sample_columns(columns, names)
        if time is None:
            return None
        domain = self.schema.attributes[time]
        kind = _TIMES.get(type(domain))
        if kind is None or time in multiple(self.schema):
            what = f"is {domain.kind}" if kind is None else "may have several values"
            raise SparkError(
                f"the attribute {time!r} {what}, which is not a time: expected timestamp or number"
            )
        rules = schema_document(self.schema) if kind == TIME else ""
        return EventClock(tuple(time.split(".")), kind, zone=kind == TIME, schema=rules)

    def shares(
        self, cores: int, columns: Sequence[str] | None = (), beside: Sequence[str] = ()
    ) -> LogEvents:
        events = self.log.counts(0, self.end)[0]
        most = max(_SHARES * cores, -(-events // _LARGEST))
        return LogEvents(self.where, tuple(log_shares(self.log, 0, self.end, most)))

    def numbers(self) -> TimeSpan:
        for first, _ in self.log.events(0, self.end):
            return TimeSpan(first, self.end - 1)
        return TimeSpan()

    def ends(self) -> tuple[LogPosition | None, LogPosition | None]:
        segments = [each for each in self.log.boundaries() if each.kind == EVENTS]
        if not segments:
            return None, None
        ends = []
        for sequence in (segments[0].first, segments[-1].end - 1):
            _, table = next(self.log.events(sequence, sequence + 1))
            ends.append(LogPosition(sequence, appended(table).isoformat()))
        return ends[0], ends[1]
