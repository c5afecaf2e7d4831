"""Footers of parts: a flipped bit is found, and parts of earlier versions are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis.broker.matching.notification_files import NotificationFiles, NotificationPairs
from tamis.errors import StoreError
from tamis.replay.parts import NOTIFICATIONS, PartWriter, read_part

_TABLE = pa.table({"sequence": [1, 2, 2, 7], "subscription": [30, 10, 20, 10]})


def _part(folder: Path) -> Path:
    writer = PartWriter(folder, "part-1.parquet")
    writer.write(_TABLE)
    return folder / str(writer.close()["name"])


def test_every_flipped_byte_of_a_footer_is_found(tmp_path: Path) -> None:
    path = _part(tmp_path)
    whole = path.read_bytes()
    assert read_part(path).to_pydict() == _TABLE.to_pydict()
    assert parquet.read_table(path).to_pydict() == _TABLE.to_pydict()  # as any reader does
    footer = int.from_bytes(whole[-8:-4], "little") + 8 + 4  # with its end and its checksum
    for at in range(len(whole) - footer, len(whole)):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :])
        with pytest.raises(StoreError, match="cannot be read"):
            read_part(path)


def test_a_lost_checksum_damages_nothing(tmp_path: Path) -> None:
    """If the mark itself is damaged, the part is read like an earlier one."""
    path = _part(tmp_path)
    whole = bytearray(path.read_bytes())
    whole[whole.rindex(b"TAMISCRC")] ^= 4
    path.write_bytes(whole)
    assert read_part(path).to_pydict() == _TABLE.to_pydict()


def test_parts_of_earlier_versions_are_read(tmp_path: Path) -> None:
    files = NotificationFiles(tmp_path, pa.int64())
    (tmp_path / NOTIFICATIONS).mkdir()
    parquet.write_table(_TABLE, tmp_path / NOTIFICATIONS / "old.parquet")
    old = {"folder": NOTIFICATIONS, "name": "old.parquet", "rows": 4}
    files.commit("q", 0, 8, [old])
    ids = pa.array([50], pa.int64())
    files.write("q", 8, 10, [NotificationPairs(8, 10, pa.array([9]).to_numpy(), ids)], [])
    found = [
        (number, id)
        for pairs in files.read(-1, 10)
        for number, id in zip(pairs.numbers.tolist(), pairs.ids.to_pylist(), strict=True)
    ]
    assert found == [(1, 30), (2, 10), (2, 20), (7, 10), (9, 50)]


def test_a_damaged_span_is_not_believed(tmp_path: Path) -> None:
    """The span of numbers in a footer says which parts are read at all."""
    files = NotificationFiles(tmp_path, pa.int64())
    ids = pa.array([5], pa.int64())
    files.write("q", 0, 10, [NotificationPairs(0, 10, pa.array([9]).to_numpy(), ids)], [])
    (path,) = (tmp_path / NOTIFICATIONS).iterdir()
    whole = path.read_bytes()
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    number = (9).to_bytes(8, "little")
    assert number in whole[begin:]  # the statistics
    damaged = whole[:begin] + whole[begin:].replace(number, (3).to_bytes(8, "little"))
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="footer"):
        list(files.read(4, 10))
