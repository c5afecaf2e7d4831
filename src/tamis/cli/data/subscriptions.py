"""Files of subscriptions: one reader for all commands.

A file has a row for each subscription: its id and its condition. A malformed row is named with its
file and line, and refused; the others go on. `docs/command-line.md` describes the formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import pyarrow as pa

from tamis.cli.data.formats import input_files, reading
from tamis.cli.data.subscription_rows import (
    CONDITION,
    FORMATS,
    ID,
    PREDICATES,
    Place,
    RefusedSubscription,
    SubscriptionRows,
    read_rows,
)
from tamis.errors import TamisError, counted
from tamis.model.domain import show

if TYPE_CHECKING:
    from tamis.engine import Engine

SHOWN = 5  # refusals
_NUMBER = re.compile("0|-?[1-9][0-9]{0,17}")  # 007 stays text


strict_option = click.option(
    "--strict", is_flag=True, help="Refuse the whole file if one of its subscriptions is wrong."
)


class SubscriptionTable(NamedTuple):
    """The well-formed rows of files, and the others."""

    table: pa.Table  # id (int64 or string), condition or predicates, perhaps details
    places: Sequence[Place]  # of the rows
    refused: list[RefusedSubscription]
    numbered: bool = False  # whether ids are numbers of rows, because files have no ids

    def refuse(self, rows: Iterable[tuple[int, str]]) -> SubscriptionTable:
        """Without some rows, which are refused for a reason."""
        reasons = dict(rows)
        if not reasons:
            return self
        kept = [row for row in range(self.table.num_rows) if row not in reasons]
        more = [RefusedSubscription(self.places[row], why) for row, why in reasons.items()]
        refused = sorted([*self.refused, *more], key=lambda each: each.place)
        table = self.table.take(pa.array(kept, pa.int64()))
        return self._replace(
            table=table, places=[self.places[row] for row in kept], refused=refused
        )

    def report(self) -> list[str]:
        """Lines that name the refused rows, a few of them."""
        if not self.refused:
            return []
        of = f"of {counted(self.table.num_rows + len(self.refused), 'subscription')}"
        lines = [f"{counted(len(self.refused), f'{of} was', f'{of} were')} refused:"]
        lines += [f"  {line}" for each in self.refused[:SHOWN] for line in str(each).splitlines()]
        more = len(self.refused) - SHOWN
        return [*lines, f"  and {more:,} more"] if more > 0 else lines

    def check(self, path: Path, *, strict: bool, empty: bool = False) -> None:
        """Refuse files without any good row; if `strict`, also files with a bad row.

        With `empty`, files may have no rows at all.
        """
        if strict and self.refused:
            raise TamisError("\n".join([*self.report(), f"{path}: --strict takes all or nothing"]))
        if not self.table.num_rows and (self.refused or not empty):
            what = "there is no subscription left" if self.refused else "has no subscriptions"
            raise TamisError("\n".join([*self.report(), f"{path}: {what}"]))


def read_subscriptions(path: Path) -> SubscriptionTable:
    """The subscriptions of a file, or of a folder of files. They need not be valid conditions.

    Without ids, subscriptions are numbered from 1: by their lines in a .txt file.
    """
    files = input_files(path, FORMATS)
    parts = []
    for each in files:
        with reading(each):
            parts.append(read_rows(each))
    lacking = [file for file, part in zip(files, parts, strict=True) if part.ids is None]
    if lacking and len(lacking) < len(files):
        raise TamisError(f"{lacking[0]}: has no column id, but other files of the folder have one")
    columns = {name for part in parts for name in part.rest.column_names}
    if {CONDITION, PREDICATES} <= columns:
        raise TamisError(f"{path}: some files have conditions, others predicates; use two folders")
    try:
        rest = pa.concat_tables([part.rest for part in parts], promote_options="permissive")
    except pa.ArrowException as why:
        raise TamisError(f"{path}: the files have different columns: {why}") from None
    places = [place for part in parts for place in part.places]
    ids, wrong = _ids(parts, places)
    refused = [each for part in parts for each in part.refused]
    found = SubscriptionTable(rest, places, refused, bool(lacking)).refuse(wrong.items())
    kind = pa.int64() if ids and isinstance(ids[0], int) else pa.string()
    kept = [id for row, id in enumerate(ids) if row not in wrong]
    return found._replace(table=found.table.add_column(0, ID, pa.array(kept, kind)))


def subscribe_file(
    engine: Engine, path: Path, *, strict: bool, empty: bool = False
) -> SubscriptionTable:
    """Subscribe all rows of files; wrong ones are refused, and named in the result."""
    from tamis.replay.live_subscriptions import subscribe_rows

    found = read_subscriptions(path)
    found = found.refuse(subscribe_rows(engine, found.table, stored=False))
    found.check(path, strict=strict, empty=empty)
    return found


def _ids(
    parts: Sequence[SubscriptionRows], places: Sequence[Place]
) -> tuple[list[Any], dict[int, str]]:
    """The ids of all rows, and why rows are refused for their ids."""
    ids: list[Any] = []
    before = 0
    for part in parts:
        if part.ids is None:
            ids += [before + number for number in part.numbers]
            before += max(part.numbers, default=0)
        else:
            ids += part.ids
    if not any(part.typed for part in parts) and all(map(_is_number, ids)):
        ids = [int(id) for id in ids]
    wrong: dict[int, str] = {}
    first: dict[Any, int] = {}
    for row, id in enumerate(ids):
        if type(id) is not type(ids[0]):
            one, other = ("text", "a number") if isinstance(id, str) else ("a number", "text")
            wrong[row] = f"the id {show(id)} is {one}, the first id is {other}"
        elif id in first:
            wrong[row] = f"the id {show(id)} is taken by {places[first[id]]}"
        else:
            first[id] = row
    return ids, wrong


def _is_number(id: Any) -> bool:
    return isinstance(id, int) or _NUMBER.fullmatch(id) is not None
