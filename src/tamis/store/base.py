"""The base of a trimmed log: the subscriptions that were live where the log now begins.

    LOG/base     a pack with a change for each live subscription, and the schemas

Without the base, trimming the changes of a subscription would lose the subscription. The first
schema is the one that holds where the log now begins. The others, with the numbers of their
records, are those by which the changes are read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import StoreError
from tamis.files.atomic import atomic_file
from tamis.store.changes import UNTIL
from tamis.store.pack import (
    CHANGES,
    SCHEMAS,
    BadPackError,
    Pack,
    decode_header,
    decode_table,
    encode_table,
    make_pack,
)
from tamis.store.segment import opened_segment
from tamis.store.subscription_snapshot import SubscriptionSnapshot

BASE = "base"


class Base(NamedTuple):
    """The state of a log at the first sequence number that is kept."""

    begin: int
    schema: int  # the number of the schema record that holds there; -1: the log's own
    chain: bytes  # `chain_after` of the pack before
    changes: pa.Table  # a subscribe for each live subscription, with its sequence number
    document: dict[str, Any]  # of the schema
    # Earlier ones by the numbers of their records; None: an earlier tamis did not keep them.
    earlier: dict[int, dict[str, Any]] | None


def live_changes(changes: pa.Table, end: int) -> pa.Table:
    """The changes before `end` that made the live subscriptions, with their current leases."""
    snapshot = SubscriptionSnapshot()
    snapshot.fold(changes, end)
    until = {live.added: live.until for live in snapshot.values()}
    made = np.isin(np.asarray(changes["sequence"]), list(until))
    rows = changes.filter(pa.array(made))
    leases = pa.array([until[number] for number in rows["sequence"].to_pylist()], pa.int64())
    return rows.set_column(rows.column_names.index("until"), "until", leases.cast(UNTIL))


def write_base(path: Path, base: Base, identity: bytes, appended: int) -> None:
    """Replace the base of a log and sync it."""
    kept = {base.schema: base.document, **(base.earlier or {})}
    texts = [json.dumps(each, ensure_ascii=False) for each in kept.values()]
    schemas = pa.table({"schema": texts, "number": pa.array(list(kept), pa.int64())})
    sections = {SCHEMAS: (len(kept), encode_table(schemas))}
    if base.changes.num_rows:
        sections[CHANGES] = base.changes.num_rows, encode_table(base.changes)
    _, parts = make_pack(
        identity, base.begin, base.chain, sections, appended=appended, schema=base.schema,
        chain_after=base.chain,
    )  # fmt: skip
    with atomic_file(path) as file:
        for part in parts:
            file.write(part)


def read_begin(path: Path, identity: bytes) -> Pack | None:
    """The header of the base, if the log was trimmed; cheap."""
    try:
        with path.open("rb") as file:
            return decode_header(file.read(256), identity)
    except FileNotFoundError:
        return None
    except BadPackError as why:
        raise StoreError(f"{path}: is damaged: {why}") from None
    except OSError as why:
        raise StoreError(f"{path}: cannot be read: {why.strerror}") from why


def read_base(path: Path, identity: bytes, empty: pa.Table) -> Base:
    """The base. `empty` is a table of changes without rows."""
    try:
        with opened_segment(path) as opened:
            pack = opened.pack_at(0, identity)
            if opened.size != pack.size:
                raise BadPackError("something follows on it")
            tables = {
                each.kind: decode_table(each, opened.content(each.offset, each.size))
                for each in pack.sections(path.name, opened.inode, 0)
            }
        documents = [json.loads(each) for each in tables[SCHEMAS]["schema"].to_pylist()]
        earlier = None
        if "number" in tables[SCHEMAS].column_names:
            numbers = tables[SCHEMAS]["number"].to_pylist()
            earlier = dict(zip(numbers[1:], documents[1:], strict=True))
    except (BadPackError, LookupError, TypeError, ValueError) as why:
        raise StoreError(f"{path}: is damaged: {why}") from None
    except OSError as why:
        raise StoreError(f"{path}: cannot be read: {why.strerror}") from why
    changes = tables.get(CHANGES, empty)
    return Base(pack.first, pack.schema, pack.chain_after, changes, documents[0], earlier)
