"""Erases one owner or one event from a data folder, for good.

The rows of the log become a recorded gap, notifications and dead letters are written anew without
them, and records go. Compiled subscriptions are deleted; the next start compiles them again. Each
step may be repeated: after a crash, erase once more.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.data_folder import DataFolder
from tamis.broker.maintenance.own_folder import own_folder
from tamis.broker.state import State
from tamis.errors import BrokerError
from tamis.files.json_document import write_json
from tamis.replay.manifests import MANIFESTS, list_manifests
from tamis.replay.parts import DEAD, NOTIFICATIONS, SEQUENCE, SUBSCRIPTION, PartWriter, read_part
from tamis.store.base import BASE
from tamis.store.log import Log
from tamis.store.maintenance.erase_rows import erase_rows
from tamis.store.pack import CHANGES, EVENTS
from tamis.store.repair import DAMAGED
from tamis.store.subscription_snapshot import Id


class ErasureReport(NamedTuple):
    """What was erased, and where copies may be left."""

    rows: int
    notifications: int
    records: int
    out_of_reach: list[str]


def erase_event(folder: Path, number: int) -> ErasureReport:
    """Erase one event. Nobody may serve the folder meanwhile."""
    places = own_folder(folder)
    with places.served():
        log = Log.open(places.log)
        if not log.begin <= number < log.end or not list(log.events(number, number + 1)):
            raise BrokerError(f"{folder}: the log keeps no event with the number {number}")

        def wanted(kind: str, first: int, table: pa.Table) -> list[int]:
            here = kind == EVENTS and first <= number < first + table.num_rows
            return [number - first] if here else []

        notifications = _erase_pairs(places.notifications, lambda table: _is(table, number))
        records = _erase_records(
            places,
            log,
            [(f"DELETE FROM {each} WHERE sequence = ?", (number,)) for each in _DELIVERIES],
        )
        # The log comes last: after a crash, the event is found again.
        rows = erase_rows(log, wanted, "an event was erased on request")
        return ErasureReport(rows, notifications, records, _out_of_reach(places))


def erase_owner(folder: Path, owner: str) -> ErasureReport:
    """Erase an owner: all subscriptions, with what was done with them. Nobody may serve it."""
    places = own_folder(folder)
    with places.served():
        log = Log.open(places.log)
        ids = _ids_of(log, places, owner)

        def wanted(kind: str, first: int, table: pa.Table) -> list[int]:
            if kind not in (CHANGES, BASE) or not ids:
                return []
            return [row for row, id in enumerate(table["id"].to_pylist()) if id in ids]

        rows = erase_rows(log, wanted, "an owner was erased on request")
        notifications = _erase_pairs(
            places.notifications, lambda table: _is_any(table, ids) if ids else None
        )
        shutil.rmtree(places.index, ignore_errors=True)
        statements: list[tuple[str, tuple[Any, ...]]] = [
            (f"DELETE FROM {each} WHERE owner = ?", (owner,))
            for each in ("subscriptions", "ended", "requests", "consumers")
        ]
        statements.append(("DELETE FROM keys WHERE name = ?", (owner,)))
        statements += [
            (f"DELETE FROM {each} WHERE subscription = ?", (id,))
            for each in (*_DELIVERIES, "sink_rotations")
            for id in ids
        ]
        records = _erase_records(places, log, statements)
        return ErasureReport(rows, notifications, records, _out_of_reach(places))


_DELIVERIES = ("deliveries", "dead_deliveries")


def _ids_of(log: Log, places: DataFolder, owner: str) -> set[Id]:
    """The subscriptions that an owner has or had, by the log and by the records.

    After a crash halfway, the log knows them no more. Records go last, and still do.
    """
    changes = log.changes(0, log.end, details=True)
    mine = changes.filter(pc.equal(changes["owner"], owner))
    state = State(places.state, log.ids, str(log.identity))
    try:
        return {*mine["id"].to_pylist(), *state.ids_of(owner)}
    finally:
        state.close()


def _is(table: pa.Table, number: int) -> Any:
    return pc.equal(table[SEQUENCE], number)


def _is_any(table: pa.Table, ids: Collection[Id]) -> Any:
    if SUBSCRIPTION not in table.column_names:
        return None
    column = table[SUBSCRIPTION]
    return pc.is_in(column, value_set=pa.array(list(ids), column.type))


def _erase_pairs(folder: Path, which: Callable[[pa.Table], Any]) -> int:
    """Write the parts anew that hold such rows, and the manifests that name them."""
    erased = 0
    for name, manifest in list_manifests(folder).items() if folder.is_dir() else ():
        parts: list[dict[str, Any]] = []
        old: list[Path] = []
        for part in manifest["parts"]:
            path = folder / part["folder"] / part["name"]
            table = read_part(path)
            mask = which(table)
            count = 0 if mask is None else pc.sum(mask).as_py() or 0
            if not count:
                parts.append(part)
                continue
            erased += count if part["folder"] == NOTIFICATIONS else 0
            old.append(path)
            kept = table.filter(pc.invert(mask))
            if kept.num_rows:
                writer = PartWriter(path.parent, f"part-{uuid.uuid4().hex}.parquet")
                writer.write(kept)
                parts.append(writer.close())
        if old:
            counts = {
                kind: sum(int(each["rows"]) for each in parts if each["folder"] == kind)
                for kind in (NOTIFICATIONS, DEAD)
            }
            document = {**manifest, **counts, "parts": parts}
            write_json(folder / MANIFESTS / name, document, indent=None)
            for path in old:
                path.unlink(missing_ok=True)
    return erased


def _erase_records(
    places: DataFolder, log: Log, statements: list[tuple[str, tuple[Any, ...]]]
) -> int:
    """Delete records, and overwrite where they were."""
    state = State(places.state, log.ids, str(log.identity))
    gone = 0
    try:
        with state.transaction() as base:
            for statement, values in statements:
                base.execute(statement, values)
                gone += base.changes()
    finally:
        state.close()
    try:
        base = apsw.Connection(str(places.state))
        base.pragma("secure_delete", True)
        base.execute("VACUUM")
        base.pragma("wal_checkpoint", "TRUNCATE")
        base.close()
    except apsw.Error as why:
        raise BrokerError(f"{places.state}: cannot be overwritten: {why}") from why
    return gone


def _out_of_reach(places: DataFolder) -> list[str]:
    found = [
        "backups, copies of the log, and what webhooks and readers have received",
        "what the disk may still hold of deleted files",
    ]
    if (places.log / DAMAGED).exists():
        found.append(f"{places.log / DAMAGED}: damaged files that a repair has put aside")
    return found
