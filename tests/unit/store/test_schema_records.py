"""Schema records: which schema a row is read by, whatever happens to the files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tamis import Schema
from tamis.errors import SchemaError
from tamis.store import Log, subscribe
from tamis.store.base import BASE, read_base
from tamis.store.pack import CHANGES, SCHEMAS, encode_table, make_pack
from tamis.store.repair import repair
from tamis.store.verification import verify
from tests.unit.store.world import SCHEMA, files, prices


def _wider(log: Log, name: str) -> Schema:
    return log.schema_at().create_attribute(name, "integer")


def _versions(log: Log) -> list[tuple[int, int, int]]:
    return [(part.start, part.end, part.schema.version) for part in log.schemas()]


@pytest.fixture
def grown(log: Log, small_segments: None) -> Log:
    """Records at 3 and 7 of eleven rows, and a subscription in each part."""
    for part in range(3):
        log.change(subscribe([f"id {part}"], ["price < 5"]))
        log.publish(prices(1, 2))
        if part < 2:
            assert log.extend(_wider(log, f"size {part}")) == 4 * part + 3
    return log


WHOLE = [(0, 4, 1), (4, 8, 2), (8, 11, 3)]


def test_every_row_has_its_schema(grown: Log) -> None:
    for log in (grown, Log.open(grown.folder)):
        assert _versions(log) == WHOLE
        for start, end, version in WHOLE:
            assert {log.schema_at(n).version for n in range(start, end)} == {version}
        parts = log.schemas(2, 9)
        assert [(part.start, part.end) for part in parts] == [(2, 4), (4, 8), (8, 9)]
        assert [part.start for part in log.schemas(4, 8)] == [4]
        assert log.schemas(5, 5) == []
        assert log.schema_at().version == 3


def test_what_is_no_extension_changes_nothing(grown: Log) -> None:
    end = grown.end
    with pytest.raises(SchemaError, match="has this schema already"):
        grown.extend(grown.schema_at())
    with pytest.raises(SchemaError, match="dropped"):
        grown.extend(Schema.from_dict(SCHEMA))
    with pytest.raises(SchemaError, match="dropped"):
        grown.append(events=prices(1), schema=Schema.from_dict(SCHEMA))
    assert (grown.end, _versions(grown)) == (end, WHOLE)


def test_a_schema_without_a_version_gets_the_next_one(log: Log) -> None:
    document = SCHEMA | {"attributes": SCHEMA["attributes"] | {"size": "integer"}}
    log.extend(Schema.from_dict(document))
    assert log.schema == Schema.from_dict(document | {"version": 2}).to_dict()


def test_merged_packs_keep_their_schemas(grown: Log) -> None:
    for _ in range(8):
        grown.publish(prices(3))
    assert grown.compact(grown.end) > 0
    for log in (grown, Log.open(grown.folder)):
        assert _versions(log) == [*WHOLE[:2], (8, 19, 3)]
    assert verify(grown).good


def test_a_trimmed_log_reads_what_is_live_by_earlier_schemas(grown: Log) -> None:
    for _ in range(8):
        grown.publish(prices(3))
    begin = grown.trim(grown.end)
    assert begin > 8
    for log in (grown, Log.open(grown.folder)):
        numbers = log.changes(0)["sequence"].to_pylist()
        assert [log.schema_at(n).version for n in numbers] == [1, 2, 3]
        assert _versions(log) == [*WHOLE[:2], (8, 19, 3)]
    assert verify(grown).good
    grown.extend(_wider(grown, "more"))
    for _ in range(8):
        grown.publish(prices(3))
    grown.trim(grown.end)
    assert [part.schema.version for part in Log.open(grown.folder).schemas()] == [1, 2, 3, 4]


def test_a_base_of_an_earlier_tamis_has_one_schema(
    grown: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        grown.publish(prices(3))
    begin = grown.trim(grown.end)
    path, identity = grown.folder / BASE, bytes.fromhex(str(grown.identity))
    empty = grown.changes(0, details=True).schema.empty_table()
    base = read_base(path, identity, empty)
    assert base.earlier is not None
    documents = pa.table({"schema": [json.dumps(base.document)]})
    sections = {CHANGES: (3, encode_table(base.changes)), SCHEMAS: (1, encode_table(documents))}
    _, parts = make_pack(
        identity, begin, base.chain, sections, appended=0, schema=base.schema,
        chain_after=base.chain,
    )  # fmt: skip
    path.write_bytes(b"".join(bytes(part) for part in parts))
    log = Log.open(grown.folder)
    assert [part.schema.version for part in log.schemas()] == [3]
    assert log.schema_at(begin).version == 3
    assert [log.schema_at(n).version for n in log.changes(0)["sequence"].to_pylist()] == [3] * 3


def test_a_lost_record_leaves_the_schema_before_it(grown: Log) -> None:
    """Somebody chose to go on without the rows; the next record holds a whole schema again."""
    for _ in range(8):
        grown.publish(prices(3))
    path = grown.folder / "segments" / files(grown)[1]
    whole = bytearray(path.read_bytes())
    at = whole.index(json.dumps("size 1").encode())
    whole[at] ^= 1
    path.write_bytes(whole)
    repair(Log.open(grown.folder), skip_lost=True)
    log = Log.open(grown.folder)
    assert log.schema_at().version == 2
    assert log.extend(_wider(log, "size 1")) == 19
    assert log.schema_at().version == 3


def test_a_record_that_was_not_acknowledged_counts_once_it_is_kept(grown: Log) -> None:
    """Killed between the pack and the head: the next append keeps the pack."""
    first, second = _wider(grown, "first"), _wider(grown, "second")
    head = (grown.folder / "head").read_bytes()
    grown.extend(first)
    opened = os.open(grown.folder / "head", os.O_WRONLY)
    os.write(opened, head)
    os.close(opened)
    log = Log.open(grown.folder)
    with pytest.raises(SchemaError, match="'first'"):
        log.extend(second)
    assert log.schema_at() == first


def test_the_first_schema_of_a_new_log(tmp_path: Path) -> None:
    log = Log.create(tmp_path / "log", SCHEMA)
    assert log.schemas() == []
    assert log.schema_at(0) == log.schema_at() == Schema.from_dict(SCHEMA)
