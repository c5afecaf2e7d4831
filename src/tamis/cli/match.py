"""`tamis match`: match events in files against subscriptions in files, without Spark."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.text import Text

from tamis import Engine, Schema
from tamis.cli.data import events as event_files
from tamis.cli.data import subscription_rows
from tamis.cli.data.bad_events import BadEvents, absent_option, bad_option
from tamis.cli.data.delimited import is_encodable
from tamis.cli.data.events import EventFiles, check_events, event_of
from tamis.cli.data.formats import check_not_input
from tamis.cli.data.outputs import OUTPUTS, check_output, stdout_lines, table_output
from tamis.cli.data.subscriptions import (
    SubscriptionTable,
    read_subscriptions,
    strict_option,
    subscribe_file,
)
from tamis.cli.language import explanation_text
from tamis.cli.spark.session import declared_operators, operators_option, print_operators
from tamis.cli.terminal.console import (
    print_lines,
    report_console,
    spinner,
    stderr_console,
    stdout_console,
)
from tamis.cli.terminal.numbers import rate
from tamis.cli.terminal.options import PATH, now_option, option, split_names
from tamis.cli.terminal.outcomes import json_option, json_text, print_answer
from tamis.cli.terminal.tables import table
from tamis.encode.json_events import has_dynamic
from tamis.encode.lines.event_columns import column_at
from tamis.engine.doors.event_moments import depends_on_now
from tamis.engine.ids import Id
from tamis.errors import TamisError, counted, suggestion
from tamis.match.answers import Matches
from tamis.model.schema import IGNORE
from tamis.model.times.moments import clock, moment_text, read_moment
from tamis.replay.pipeline import BatchPace, ReadEvents, match_with

_EVENT, _SUBSCRIPTION = "event", "subscription"
_SHOWN = 20  # pairs in a terminal
_EXPLAINED = 3  # events that match, and as many that do not


@click.command()
@option(
    "--schema",
    "Schema of the events, YAML or JSON.  [default: events have any attributes]",
    click.Path(path_type=Path, dir_okay=False),
)
@option(
    "--subscriptions",
    f"File or folder of subscriptions: {' '.join(subscription_rows.FORMATS)}.",
    PATH,
    required=True,
)
@option(
    "--events",
    f"File or folder of events: {' '.join(event_files.FORMATS)}; - reads JSON lines from standard "
    "input.",
    PATH,
    required=True,
)
@option("--out", f"File for the matches: {' '.join(OUTPUTS)}.  [default: standard output]", PATH)
@option("--id", "Column that identifies events.  [default: their number, from 0]")
@click.option("--columns", default="", help="Columns to add to the matches, separated by commas.")
@bad_option
@absent_option
@strict_option
@click.option("--explain", "explained", help="Explain why events match this subscription, or not.")
@now_option
@operators_option
@json_option
def match(
    schema: Path | None,
    subscriptions: Path,
    events: Path,
    out: Path | None,
    id: str | None,
    columns: str,
    bad: str,
    absent: tuple[str, ...],
    strict: bool,
    explained: str | None,
    now: str | None,
    modules: tuple[str, ...],
    as_json: bool,
) -> None:
    """Match events in files against subscriptions in files.

    Without --schema, events may have any attributes, each a number, text, boolean or null, as the
    event has it.

    Writes a row for each match: the number of the event and the id of the subscription. Without
    --out, the rows go to standard output, as JSON lines; in a terminal, as a table of the first.
    The summary goes to standard error. The file OUT appears when all is done, or not at all.
    With --json, a terminal gets JSON lines too, and the summary is JSON.

    Wrong subscriptions are left out and reported; --strict refuses the file. Cells of CSV are read
    by the domains of the schema; an empty cell is absent.

    The exit code is 0 if all is well, 1 if --bad report has found bad events, and 2 if something is
    refused.
    """
    if explained is not None and out is not None:
        raise click.UsageError("--explain writes no matches: leave --out out.")
    check_output(out)
    if out is not None:
        check_not_input(out, (schema, subscriptions, events))
    moment = clock() if now is None else read_moment(now)
    console = stderr_console()
    check_events(events)
    known = None if schema is None else Schema.load(schema)
    with Engine(known, operators=declared_operators(modules)) as engine:
        if explained is not None:
            id_ = _subscribe_one(engine, subscriptions, explained)
            source = EventFiles(events, engine.schema, absent)
            console = report_console(as_json)
            with spinner(console, "Matching"):
                why = _explain(console, engine, source, id_, moment)
            print_answer(why, as_json, "")
            return
        with spinner(console, "Compiling subscriptions"):
            found = subscribe_file(engine, subscriptions, strict=strict)
        # Only now: the attributes of an open schema are those that conditions mention.
        source = EventFiles(events, engine.schema, absent)
        print_lines(console, found.report())
        summary = _Summary(console, engine, source, BadEvents(console, bad))
        rows = PairRows(engine, id, split_names(columns))
        with _output(out, summary, as_json) as write:
            part = None
            when = moment if depends_on_now(engine) else None
            matched = match_with(engine, source.chunks(), BatchPace(), when=lambda _: when)
            for part, answer in summary.watch(matched):
                write(rows.table(part, answer))
            if part is None:
                write(rows.none())
        if summary.matches and rows.unseen:
            summary.unseen = sorted(rows.unseen)
        if as_json:
            click.echo(json_text(summary.facts(found)), err=True)
        else:
            summary.show(found)
    summary.bad.leave()


class PairRows:
    """Matches as tables: the event, the subscription, and columns of the event."""

    def __init__(self, engine: Engine, id: str | None, columns: Sequence[str]) -> None:
        self._texts = any(isinstance(each, str) for each in engine.ids()[:1])
        self._id, self._columns, self._dynamic = id, columns, has_dynamic(engine.schema)
        self.unseen = {*columns, *([id] if id is not None else [])}  # names that no match had yet
        for name in columns:
            if name in (_EVENT, _SUBSCRIPTION):
                raise TamisError(f"--columns: {name!r} is a column of the matches themselves")

    def none(self) -> pa.Table:
        """A table without rows, where there are no events."""
        kinds = {_EVENT: pa.int64() if self._id is None else pa.string()}
        kinds[_SUBSCRIPTION] = pa.string() if self._texts else pa.int64()
        kinds |= dict.fromkeys(self._columns, pa.string())
        return pa.schema(list(kinds.items())).empty_table()

    def table(self, events: ReadEvents, found: Matches) -> pa.Table:
        rows = pa.array(events.valid.rows[found.events])
        numbers = pa.array(events.numbers[found.events])
        id = numbers if self._id is None else self._column(events, self._id, rows)
        made = {_EVENT: id, _SUBSCRIPTION: found.arrow_ids(self._texts)}
        made |= {name: self._column(events, name, rows) for name in self._columns}
        return pa.table(made)

    def _column(self, events: ReadEvents, name: str, rows: pa.Array) -> Any:
        found = self._whole_column(events, name).take(rows)
        if found.null_count < len(found):
            self.unseen.discard(name)
        return found

    def _whole_column(self, events: ReadEvents, name: str) -> Any:
        if self._dynamic and events.chunk.lines is not None:
            return _texts_at(events.chunk.lines, name)
        found = column_at(events.table, name.split("."))
        if found is None:
            known = events.table.column_names
            raise TamisError(f"the events have no column {name!r}{suggestion(name, known)}")
        return found


def _texts_at(lines: pa.ChunkedArray, name: str) -> pa.Array:
    """An attribute of lines of JSON as text, which holds values of any kind."""
    found: list[str | None] = []
    for line in lines.to_pylist():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):  # a bad event
            value = None
        value = _inner(value, name)
        text = value if isinstance(value, str | None) else json_text(value)
        found.append(text if text is None or is_encodable(text) else None)  # of a bad event
    return pa.array(found, pa.string())


def _inner(value: Any, name: str) -> Any:
    """The value of an attribute, which may be in objects within the event."""
    if not isinstance(value, dict):
        return None
    if name in value:
        return value[name]
    outer, _, rest = name.partition(".")
    return _inner(value.get(outer), rest) if rest else None


class _Summary:
    """What was read and found, and the progress meanwhile."""

    def __init__(
        self, console: Console, engine: Engine, source: EventFiles, bad: BadEvents
    ) -> None:
        self._console, self._engine, self._source, self.bad = console, engine, source, bad
        self.events = self.matches = self.matched = 0
        self.hidden = 0  # matches that a terminal does not show
        self.unseen: list[str] = []  # names of columns that no match had
        self._begun = perf_counter()

    def watch(
        self, parts: Iterator[tuple[ReadEvents, Matches]]
    ) -> Iterator[tuple[ReadEvents, Matches]]:
        """Count what passes."""
        with self._console.status("Matching") if self._console.is_terminal else nullcontext() as at:
            for events, found in parts:
                self.bad.take(self._source.bad(events))
                self.events += len(events.valid)
                self.matches += found.total
                self.matched += int(np.count_nonzero(np.diff(found.starts)))
                yield events, found
                if at is not None:
                    share = f"{self._source.read:.0%}, " if self._source.read else ""
                    so_far = f"{counted(self.events, 'event')}, {counted(self.matches, 'match')}"
                    at.update(f"{share}{so_far}")
            self.bad.take(self._source.bad())

    def facts(self, subscriptions: SubscriptionTable) -> dict[str, Any]:
        return {
            "events": self.events,
            "matched": self.matched,
            "matches": self.matches,
            "bad": self.bad.count,
            "subscriptions": subscriptions.table.num_rows,
            "refused": len(subscriptions.refused),
            "unseen": self.unseen,
            "seconds": perf_counter() - self._begun,
            "operators": self._engine.report(),
        }

    def show(self, subscriptions: SubscriptionTable) -> None:
        seconds = perf_counter() - self._begun
        many = counted(self.events, "event")
        lines = [f"{many} in {seconds:.1f} s, {rate(self.events, seconds)}"]
        lines.append(
            f"{counted(self.matches, 'match')} with "
            f"{counted(subscriptions.table.num_rows, 'subscription')}; "
            f"{counted(self.matched, 'event')} matched, {self.events - self.matched:,} did not"
        )
        lines += self.bad.report()
        schema = self._engine.schema
        ignored = [name for name in self._source.columns if name not in schema.attributes]
        ignored = [name for name in ignored if name not in schema.stems]
        if schema.unknown == IGNORE and ignored:
            more = ", …" if len(ignored) > 12 else ""
            lines.append(f"not in the schema, and ignored: {', '.join(ignored[:12])}{more}")
        lines += [f"no event that matched has {name!r}" for name in self.unseen]
        if self.hidden:
            hidden = counted(self.hidden, "match is", "matches are")
            lines.append(f"{hidden} not shown; --out FILE writes all of them")
        print_lines(self._console, lines)
        print_operators(self._console, self._engine.report())


@contextmanager
def _output(out: Path | None, summary: _Summary, as_json: bool) -> Iterator[Any]:
    """A function that writes tables of matches."""
    if out is not None:
        with table_output(out) as write:
            yield write
    elif as_json or not sys.stdout.isatty():
        yield stdout_lines
    else:
        shown: list[pa.Table] = []

        def show(rows: pa.Table) -> None:
            room = _SHOWN - sum(each.num_rows for each in shown)
            if room > 0:
                shown.append(rows.slice(0, room))
            summary.hidden += max(0, rows.num_rows - room)

        yield show
        _show_table(shown)


def _show_table(shown: Sequence[pa.Table]) -> None:
    if shown:
        rows = pa.concat_tables(shown, promote_options="permissive")
        cells = [["" if each is None else str(each) for each in row.values()]
                 for row in rows.to_pylist()]  # fmt: skip
        stdout_console().print(table("s" * rows.num_columns, rows.column_names, cells))


# -- explaining -----------------------------------------------------------------------------------


def _subscribe_one(engine: Engine, subscriptions: Path, id: str) -> Id:
    """Subscribe one of a file's subscriptions."""
    from tamis.replay.live_subscriptions import subscribe_rows

    found = read_subscriptions(subscriptions)
    ids = [str(each) for each in found.table["id"].to_pylist()]
    if id not in ids:
        hint = suggestion(id, ids)
        raise TamisError(f"{subscriptions}: no subscription has the id {id!r}{hint}")
    row = ids.index(id)
    for _, why in subscribe_rows(engine, found.table.slice(row, 1), stored=False):
        raise TamisError(f"{found.places[row]}: {why}")
    (known,) = engine.ids()
    return known


def _explain(
    console: Console, engine: Engine, source: EventFiles, id: Id, moment: int
) -> dict[str, Any]:
    """Print why some events match a subscription, and why some others do not; gives it too."""
    examples: list[dict[str, Any]] = []
    left = {True: _EXPLAINED, False: _EXPLAINED}
    counts = Counter[bool]()
    for events, answer in match_with(engine, source.chunks(), BatchPace(), when=lambda _: moment):
        for bad in source.bad(events):
            print_lines(stderr_console(), [str(bad)])
        for at, number in enumerate(events.numbers.tolist()):
            matches = bool(answer.starts[at + 1] - answer.starts[at])
            counts[matches] += 1
            if left[matches]:
                left[matches] -= 1
                console.print(Text(f"event {number:,} ({source.place(number)})", "bold"))
                explained = engine.explain(id, event_of(events, at), now=moment_text(moment))
                text = explanation_text(explained)
                console.print(text, soft_wrap=True)
                where = {"event": number, "place": source.place(number)}
                examples.append({**where, "matches": matches, "explanation": str(explained)})
    every = counts[True] + counts[False]
    of = f"of {counted(every, 'event')}"
    matching = counted(counts[True], f"{of} matches", f"{of} match")
    said = f"{matching} {id}: {engine.condition(id)}"
    console.print(Text(said), soft_wrap=True)
    found = {"id": id, "condition": engine.condition(id), "events": every}
    return {**found, "matched": counts[True], "examples": examples}
