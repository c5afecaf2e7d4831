"""A source of events of one's own: lines of JSON in a text file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis import Schema
from tamis.replay.event_source import EventChunk, RowLayout
from tamis.spark.events.past_events import PastEvents
from tamis.spark.events.time_axis import EventClock
from tamis.spark.events.time_span import TimeSpan
from tamis.spark.runtime.worker_cache import schema_document


class LineEvents(NamedTuple):
    """Lines of a file, which workers read in shares."""

    path: str
    document: str  # of the schema
    shares: tuple[range, ...]

    def rows(self, share: int) -> int:
        return len(self.shares[share])

    def chunks(self, share: int) -> Iterator[EventChunk]:
        numbers = self.shares[share]
        lines = Path(self.path).read_text().splitlines()[numbers.start : numbers.stop]
        yield EventChunk(
            np.array(numbers), pa.table({"json": lines}), RowLayout(None, self.document)
        )


class PastLines(PastEvents):
    """Events in a file of lines; their numbers are those of the lines."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self._path, self.schema, self.files = path, schema, 1
        self._lines = len(path.read_text().splitlines())

    @property
    def where(self) -> str:
        return str(self._path)

    def clock(self, time: str | None, columns: Sequence[str] | None = ()) -> EventClock | None:
        assert time is None
        return None

    def shares(
        self, cores: int, columns: Sequence[str] | None = (), beside: Sequence[str] = ()
    ) -> LineEvents:
        half = self._lines // 2
        shares = (range(half), range(half, self._lines))
        return LineEvents(str(self._path), schema_document(self.schema), shares)

    def numbers(self) -> TimeSpan:
        return TimeSpan(0, self._lines - 1)
