"""`tamis log subscribe`, `cancel` and `export`: the subscriptions of a log."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from pyarrow import types

from tamis import Engine
from tamis.cli.data.outputs import OUTPUTS, check_output, stdout_lines, table_output
from tamis.cli.data.subscription_rows import CONDITION, DETAILS, FORMATS, ID, LANGUAGE, PREDICATES
from tamis.cli.data.subscriptions import SubscriptionTable, read_subscriptions, strict_option
from tamis.cli.spark.session import declared_operators, operators_option
from tamis.cli.terminal.console import print_lines, spinner, stderr_console
from tamis.cli.terminal.options import PATH, log_argument, option
from tamis.cli.terminal.outcomes import json_option, print_answer
from tamis.errors import TamisError, counted, suggestion
from tamis.language.dialects import NATIVE
from tamis.model.domain import parse_timestamp
from tamis.replay.live_subscriptions import subscribe_rows
from tamis.store.base import live_changes
from tamis.store.changes import ALL, ID_TYPES, SUBSCRIBE, UNTIL
from tamis.store.changes import cancel as cancel_changes
from tamis.store.log import Log
from tamis.store.subscription_snapshot import SubscriptionSnapshot

_UNTIL = "until"


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    found = None if value is None else parse_timestamp(value)
    if isinstance(found, str):
        raise click.BadParameter(f"{value!r} {found}")
    return found


@click.command()
@log_argument
@click.argument("condition", required=False)
@option("--id", "Id of the subscription CONDITION; needed where ids are text.")
@click.option("--language", default=NATIVE, show_default=True, help="Language of CONDITION.")
@option("--file", f"File or folder of subscriptions: {' '.join(FORMATS)}.", PATH)
@option("--until", "When the leases end, ISO 8601.  [default: never]", callback=_moment)
@strict_option
@operators_option
@json_option
def subscribe(
    folder: Path,
    condition: str | None,
    id: str | None,
    language: str,
    file: Path | None,
    until: datetime | None,
    strict: bool,
    modules: tuple[str, ...],
    as_json: bool,
) -> None:
    """Append a subscription with CONDITION to a log, or those of a file, all at once.

    Wrong subscriptions of a file are left out and reported; --strict refuses the file. A
    subscription with the id of a live one replaces it. A column language of a file names the
    languages of its conditions.
    """
    if (condition is None) == (file is None):
        raise click.UsageError("Give either a CONDITION or a --file of subscriptions.")
    if file is not None and id is not None:
        raise click.UsageError("--id belongs to one CONDITION; a file has its own ids.")
    log = Log.open(folder)
    with Engine(log.schema_at(), operators=declared_operators(modules)) as engine:
        if condition is not None:
            if Path(condition).is_file():
                raise click.UsageError(f"{condition} is a file: write --file {condition}")
            engine.compile(condition, language)
            rows = pa.table({ID: _ids([id], log), CONDITION: [condition]})
            if language != NATIVE:
                rows = _with(rows, LANGUAGE, pa.array([language]))
        else:
            assert file is not None
            with spinner(stderr_console(), "Compiling subscriptions"):
                found = _checked(engine, file, strict=strict)
            print_lines(stderr_console(), found.report())
            rows = found.table.set_column(0, ID, _file_ids(found, file, log))
    before = _live(log)
    if until is not None or _UNTIL not in rows.column_names:
        rows = _with(rows, _UNTIL, pa.repeat(pa.scalar(until, UNTIL), rows.num_rows))
    rows = _with(rows, "kind", pa.repeat(SUBSCRIBE, rows.num_rows))
    numbers = log.change(rows.select([name for name in ALL if name in rows.column_names]))
    replaced = sum(1 for each in rows[ID].to_pylist() if each in before)
    many = counted(len(numbers), "subscription")
    said = (
        f"{many}, of which {counted(replaced, 'replaces', 'replace')} a live one"
        if replaced
        else many
    )
    first, last = numbers[0], numbers[-1]
    where = f"number {first:,}" if first == last else f"numbers {first:,} to {last:,}"
    answer = {"added": len(numbers), "replaced": replaced, "first": first, "last": last}
    print_answer(answer, as_json, f"{said}: {where}.")


def _checked(engine: Engine, file: Path, *, strict: bool) -> SubscriptionTable:
    """The subscriptions of a file that are valid, with leases as moments."""
    found = read_subscriptions(file)
    if PREDICATES in found.table.column_names:
        raise TamisError(f"{file}: a log holds conditions in text, not predicates")
    if _UNTIL in found.table.column_names:
        leases, wrong = _leases(found.table[_UNTIL])
        found = found._replace(table=_with(found.table, _UNTIL, leases)).refuse(wrong.items())
    found = found.refuse(subscribe_rows(engine, found.table, stored=False))
    found.check(file, strict=strict)
    return found


def _leases(column: pa.ChunkedArray) -> tuple[Any, dict[int, str]]:
    """The ends of leases, which may be text, and why rows are refused."""
    if types.is_timestamp(column.type):
        return column.cast(UNTIL), {}
    wrong: dict[int, str] = {}
    moments: list[datetime | None] = []
    for row, given in enumerate(column.to_pylist()):
        found = None if given is None else parse_timestamp(str(given))
        if isinstance(found, str):
            wrong[row] = f"{_UNTIL!r}: {given!r} {found}"
        moments.append(None if isinstance(found, str) else found)
    return pa.array(moments, UNTIL), wrong


def _file_ids(found: SubscriptionTable, file: Path, log: Log) -> pa.Array | pa.ChunkedArray:
    kind = ID_TYPES[log.ids]
    if found.numbered:
        if log.ids == "text":
            raise TamisError(
                f"{file}: has no ids, and the ids of the log are text; add a column id"
            )
        return pa.nulls(found.table.num_rows, kind)  # their numbers in the log
    if log.ids == "int64" and types.is_string(found.table[ID].type):
        raise TamisError(f"{file}: has ids in text; the ids of the log are whole numbers")
    return found.table[ID].cast(kind)


def _ids(given: list[str | None] | list[str], log: Log) -> pa.Array:
    """Ids from the command line as the log has them."""
    if log.ids == "text":
        if None in given:
            raise TamisError("give the subscription an --id; the ids of the log are text")
        return pa.array(given, pa.string())
    try:
        return pa.array([None if each is None else int(each) for each in given], pa.int64())
    except (ValueError, OverflowError):
        shown = ", ".join(map(repr, given))
        raise TamisError(f"the ids of the log are 64-bit numbers, got {shown}") from None


def _live(log: Log) -> SubscriptionSnapshot:
    with spinner(stderr_console(), "Reading the log"):
        snapshot = SubscriptionSnapshot()
        snapshot.fold(log.changes(0), log.end)
    return snapshot


def _with(table: pa.Table, name: str, column: Any) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


@click.command()
@log_argument
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@json_option
def cancel(folder: Path, ids: tuple[str, ...], as_json: bool) -> None:
    """End the subscriptions with these ids. If one of them is not live, nothing changes."""
    log = Log.open(folder)
    given = _ids(list(dict.fromkeys(ids)), log)
    live = _live(log)
    for each in given.to_pylist():
        if each not in live:
            hint = suggestion(each, map(str, live))
            raise TamisError(f"{folder}: no live subscription has the id {each!r}{hint}")
    numbers = log.change(cancel_changes(given))
    many = counted(len(numbers), "subscription")
    left = counted(len(live) - len(numbers), "is live", "are live")
    answer = {"ended": len(numbers), "live": len(live) - len(numbers)}
    print_answer(answer, as_json, f"{many} ended; {left}.")


@click.command()
@log_argument
@option("--out", f"File: {' '.join(OUTPUTS)}.  [default: standard output, JSON lines]", PATH)
@option("--at", "Those that were live at this number.  [default: the end]", click.IntRange(0))
@json_option
def export(folder: Path, out: Path | None, at: int | None, as_json: bool) -> None:
    """Write the live subscriptions of a log: id, condition, and what else is known.

    All commands read such a file, `tamis log subscribe` too.
    """
    check_output(out)
    log = Log.open(folder)
    end = log.end if at is None else at
    with spinner(stderr_console(), "Reading the log"):
        rows = live_changes(log.changes(0, end, details=True), end)
    kept = [name for name in DETAILS if rows[name].null_count < rows.num_rows]
    rows = rows.select([ID, CONDITION, *kept])
    if out is None:
        stdout_lines(rows)
        return
    with table_output(out) as write:
        write(rows)
    leases = rows[_UNTIL].to_pylist() if _UNTIL in kept else []
    ended = sum(each is not None and each < datetime.now(UTC) for each in leases)
    note = f"; the leases of {ended:,} have ended" if ended else ""
    many = counted(rows.num_rows, "subscription")
    answer = {"exported": rows.num_rows, "out": out, "leases_ended": ended}
    print_answer(answer, as_json, f"{many} in {out}{note}.")
