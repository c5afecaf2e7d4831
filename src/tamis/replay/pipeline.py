"""The walk of events through a task: read, validated once, matched, and handed to its end.

Jobs differ at the two ends alone: where chunks of events come from, who matches them, and what
becomes of the answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

from tamis.encode.encoder import Encoder
from tamis.encode.validation import ValidEvents, validate
from tamis.engine import Engine
from tamis.match.answers import Matches
from tamis.replay.event_source import READ, EventChunk, Int64s
from tamis.replay.json_lines import LineReader
from tamis.replay.parts import RAW, REASON

_FEWEST = 1 << 10  # events that are matched at once
_PAIRS = 1 << 21  # about how many pairs one step should give


class ReadEvents(NamedTuple):
    """Rows that were read and validated."""

    chunk: EventChunk
    table: pa.Table  # of all rows, a column for each attribute
    valid: ValidEvents

    @property
    def numbers(self) -> Int64s:
        """The numbers of the valid events."""
        valid, numbers = self.valid, self.chunk.numbers
        return numbers[valid.rows] if valid.refused else numbers

    def refusals(self) -> dict[str, pa.Array]:
        """Why rows were refused, and the rows as they came."""
        reasons = pa.array([reason for _, reason in self.valid.refused], pa.string())
        return {REASON: reasons, RAW: self.raw_texts()}

    def raw_texts(self) -> pa.Array:
        """The refused rows as they came: the line, or the columns as JSON."""
        rows = pa.array([row for row, _ in self.valid.refused], pa.int64())
        if self.chunk.lines is not None:
            # As bytes: the lines of a damaged segment need not be text.
            lines = self.chunk.lines.take(rows).cast(pa.binary()).to_pylist()
            texts = [None if each is None else each.decode(errors="replace") for each in lines]
        else:
            events = self.chunk.layout.events(self.chunk.table.take(rows)).to_pylist()
            texts = [json.dumps(each, default=str, ensure_ascii=False) for each in events]
        return pa.array(texts, pa.string())


class BatchPace:
    """How many events are matched at once: as many as give a good number of pairs.

    With `first` and `most` the same, it is always that many.
    """

    def __init__(self, first: int = _FEWEST, most: int = READ) -> None:
        self._first, self._most = first, most
        self.step = first

    def note(self, events: int, pairs: int) -> None:
        """Choose the next step by what the last one gave."""
        fitting = int(_PAIRS / max(pairs / events, 1e-9)) // _FEWEST * _FEWEST
        self.step = min(max(fitting, self._first), 4 * self.step, self._most)


def read_events(
    chunks: Iterable[EventChunk], encoder: Encoder, pace: BatchPace, *, partial: bool = False
) -> Iterator[ReadEvents]:
    """Validate the rows of chunks, some at a time."""
    for chunk in chunks:
        at = 0
        while at < len(chunk.numbers):
            some = chunk.slice(at, pace.step)
            at += len(some.numbers)
            yield _validated(some, encoder, partial)


def _validated(chunk: EventChunk, encoder: Encoder, partial: bool) -> ReadEvents:
    if chunk.lines is not None:
        parsed = LineReader(encoder).parse(chunk.lines)
        return ReadEvents(chunk, parsed.events, parsed.valid)
    events = chunk.layout.events(chunk.table)
    return ReadEvents(chunk, chunk.table, validate(encoder, events, partial=partial))


def match_with(
    engine: Engine, chunks: Iterable[EventChunk], pace: BatchPace, *, partial: bool = False
) -> Iterator[tuple[ReadEvents, Matches]]:
    """Validate the rows of chunks and match the events with one engine, some at a time."""
    for events in read_events(chunks, engine.encoder, pace, partial=partial):
        found = engine.match_batch(events.valid.batch(engine.encoder))
        pace.note(len(events.chunk.numbers), found.total)
        yield events, found
