"""The driver of a stream as Spark runs it, in one process: for thousands of starts a minute.

The source, the tasks and the sink are real. Only Spark's loop is imitated, with the files of its
checkpoint: it renames them into place and does not sync them, and refuses those that are torn.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadMaxRows

from tamis.spark.stream.log_source import TamisDataSource
from tamis.spark.stream.notification_sink import NotificationsDataSource

_CHUNK = 512  # bytes with a checksum of their own, as Hadoop's local files have
_RETAINED = 2  # batches
_CONF = {f"spark.sql.setting.{number}": "as it was" for number in range(20)}


class BrokenCheckpointError(Exception):
    """Spark refuses a file of its checkpoint."""


def write_new(path: Path, content: bytes) -> None:
    """Create a file as Hadoop's local file system does, with its checksums beside it."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft.open("wb", 0) as file, _sums(draft).open("wb", 0) as sums:
        chunks = [content[at : at + _CHUNK] for at in range(0, len(content), _CHUNK)]
        sums.write(b"crc\0" + struct.pack(f">{1 + len(chunks)}I", _CHUNK, *map(zlib.crc32, chunks)))
        file.write(content)
    draft.rename(path)
    _sums(draft).rename(_sums(path))


def _sums(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _read(path: Path) -> list[str]:
    content = path.read_bytes()
    sums = _sums(path).read_bytes() if _sums(path).exists() else b""
    if sums[:8] == b"crc\0" + struct.pack(">I", _CHUNK):  # others are ignored, with a warning
        for number, at in enumerate(range(0, len(content), _CHUNK)):
            known = sums[8 + 4 * number : 12 + 4 * number]
            if known != struct.pack(">I", zlib.crc32(content[at : at + _CHUNK])):
                raise BrokenCheckpointError(f"{path}: checksum")
    lines = content.decode(errors="replace").split("\n")
    try:
        for line in lines[1:] if lines[0] == "v1" else lines:
            json.loads(line)
    except ValueError as why:
        raise BrokenCheckpointError(f"{path}: {why}") from None
    return lines


class StreamModel:
    """A stream that reads all there is, batch by batch."""

    def __init__(
        self, log: Path, index: Path, out: Path, checkpoint: Path, most: int, start: str
    ) -> None:
        self._checkpoint, self._most = checkpoint, most
        source = {"path": str(log), "index": str(index), "name": "model", "partitions": "2"}
        read = TamisDataSource({**source, "startingsequence": start})
        self._source = read.streamReader(read.schema())
        self._sink = NotificationsDataSource(
            {"path": str(out), "checkpointlocation": str(checkpoint)}
        )
        self._schema = read.schema()
        metadata = checkpoint / "metadata"
        if not metadata.exists():
            if self._numbers("offsets") or self._numbers("commits"):
                raise BrokenCheckpointError("the metadata file is missing")
            write_new(metadata, json.dumps({"id": str(uuid.uuid4())}).encode())
        _read(metadata)

    def run(self, batches: int) -> None:
        """Run so many batches, or fewer if nothing is left to read."""
        offsets, commits = self._numbers("offsets"), self._numbers("commits")
        batch, again = 0, False
        start: dict[str, Any] | None = None
        if offsets:
            batch = offsets[-1]
            done = commits[-1] if commits else -1
            if commits:
                _read(self._checkpoint / "commits" / str(done))
            again, end = done != batch, self._offset(batch)
            if batch:
                start = self._offset(batch - 1)
            if not again:
                batch, start = batch + 1, end
        if start is None:
            start = self._source.initialOffset()
        for _ in range(batches):
            if not again:
                end = self._source.latestOffset(start, ReadMaxRows(self._most))
                if end == start:
                    return
                facts = {"batchWatermarkMs": 0, "conf": _CONF}
                if not batch and any((self._checkpoint / "offsets").glob("*")):
                    raise BrokenCheckpointError("offsets should be empty on batch 0")
                lines = ("v1", json.dumps(facts), json.dumps(end))
                write_new(self._checkpoint / "offsets" / str(batch), "\n".join(lines).encode())
                if batch:
                    self._source.commit(self._offset(batch - 1))
                self._purge(batch - _RETAINED)
            self._do(start, end, batch)
            content = b'v1\n{"nextBatchWatermarkMs":0}'
            write_new(self._checkpoint / "commits" / str(batch), content)
            batch, start, again = batch + 1, end, False

    def _do(self, start: dict[str, Any], end: dict[str, Any], batch: int) -> None:
        writer = self._sink.streamWriter(self._schema, overwrite=False)
        parts = self._source.partitions(start, end)
        written = [writer.write(self._source.read(part)) for part in parts]
        writer.commit(written, batch)

    def _offset(self, batch: int) -> dict[str, Any]:
        path = self._checkpoint / "offsets" / str(batch)
        if not path.exists():
            raise BrokenCheckpointError(f"batch {batch} doesn't exist")
        found: dict[str, Any] = json.loads(_read(path)[2])
        return found

    def _numbers(self, kind: str) -> list[int]:
        folder = self._checkpoint / kind
        names = [each.name for each in folder.iterdir()] if folder.exists() else []
        return sorted(int(name) for name in names if name.isdigit())

    def _purge(self, before: int) -> None:
        for kind in ("offsets", "commits"):
            for number in self._numbers(kind):
                if number < before:
                    (self._checkpoint / kind / str(number)).unlink()
                    _sums(self._checkpoint / kind / str(number)).unlink(missing_ok=True)
