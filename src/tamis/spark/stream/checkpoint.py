"""The checkpoint of a stream: Spark's record of the batches, which Spark does not sync.

    CHECKPOINT/metadata      the id of the query
    CHECKPOINT/offsets/7     where batch 7 ends, written before it
    CHECKPOINT/commits/7     written after batch 7
    .metadata.crc, .7.crc    the checksums of these files

Before the sink commits a batch, it syncs the end of the batch. After a power cut, the files that
were written since may be empty or torn, and Spark refuses to start. It also refuses batches without
the metadata, and unfinished files before the first batch. `mend_checkpoint` removes all of these.
That is safe: the sink has not committed such a batch, or it finds its manifest when Spark runs the
batch again.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from pathlib import Path

from tamis.errors import SparkError
from tamis.files.checksum import short_hash
from tamis.files.names import names_in
from tamis.files.sync import sync_file, sync_folder
from tamis.replay.manifests import MANIFESTS, last_merged, manifests
from tamis.spark.stream.progress import query_of

_METADATA, _OFFSETS, _COMMITS = "metadata", "offsets", "commits"
_FACTS = 2  # lines of a file of offsets before the offset of each source
_OTHER_FORMAT = re.compile(rb"v(?!1\n)\d+\n")
_UNFINISHED = re.compile(r"\..*\.(tmp|crc)")
_HEADER = struct.Struct(">4sI")  # magic, bytes of a chunk; then the CRC-32 of each chunk
_MAGIC = b"crc\0"


def read_end(checkpoint: Path, batch: int) -> tuple[str, list[str]]:
    """The query's id and the offsets at which a batch ends, as Spark wrote them before it."""
    query = query_of(checkpoint)
    try:
        lines = (checkpoint / _OFFSETS / str(batch)).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise SparkError(f"{checkpoint}: not the checkpoint of this stream: {error}") from error
    if query is None:
        raise SparkError(f"{checkpoint}: not the checkpoint of this stream: it names no query")
    return query, lines[_FACTS:]


def last_batch(checkpoint: Path) -> tuple[int, bool]:
    """The last batch that Spark has planned, and whether it has committed it; -1 before the first.

    Spark goes on with this batch, or after it.
    """
    last = max((int(n) for n in _names(checkpoint / _OFFSETS) if n.isdecimal()), default=-1)
    return last, str(last) in _names(checkpoint / _COMMITS)


def sync_end(checkpoint: Path, batch: int) -> None:
    """Sync Spark's record of the end of a batch before the batch is committed.

    After a power cut the batch could end elsewhere, and some notifications would come twice.
    """
    for path in (checkpoint / _OFFSETS / str(batch), checkpoint / _METADATA):
        sync_file(path)
        sync_folder(path.parent)
    sync_folder(checkpoint.parent)


def manifest_name(query: str, batch: int, offsets: list[str]) -> str:
    """The name of the manifest of a batch that ends at these offsets."""
    key = short_hash("\n".join(offsets))
    return f"{query}-{batch:010d}-{key}"


def mend_checkpoint(checkpoint: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[Path]:
    """Remove what a power cut or a kill left of a checkpoint unfinished; gives the files.

    `out` is the folder of notifications that the stream writes to. Call this while the stream is
    not running. Raises `SparkError` for a torn file that the sink has synced: a power cut does not
    do that.
    """
    checkpoint, out = Path(checkpoint), Path(out)
    removed: list[Path] = []
    files = _files(checkpoint)
    for path in files:
        content, sums = path.read_bytes() if path.exists() else b"", _sums(path)
        read = _parsed(path, content)
        if _agree(sums, content) and (read is not None or _OTHER_FORMAT.match(content)):
            continue
        torn = [sums, path]
        if path.parent.name != _COMMITS and _is_synced(path, checkpoint, out):
            if read is None or not _is_vouched(path, checkpoint, out, read):
                raise SparkError(
                    f"{path}: is damaged, and {out} has notifications of this stream; restore the "
                    "checkpoint from a backup, or begin from the start with a new checkpoint and a "
                    "new folder"
                )
            torn = [sums]
        removed += torn
    if checkpoint / _METADATA in removed:
        removed += [each for path in files for each in (path, _sums(path))]
    beside = {_sums(path) for path in files}
    for folder in (checkpoint, checkpoint / _OFFSETS, checkpoint / _COMMITS):
        hidden = {folder / name for name in _names(folder) if _UNFINISHED.fullmatch(name)}
        removed += hidden - beside
    found = sorted(each for each in {*removed} if each.exists())
    for each in found:
        each.unlink()
    return found


def _files(checkpoint: Path) -> list[Path]:
    numbered = [
        checkpoint / kind / name
        for kind in (_OFFSETS, _COMMITS)
        for name in sorted(_names(checkpoint / kind))
        if name.isdecimal()
    ]
    metadata = checkpoint / _METADATA
    return [metadata, *numbered] if numbered or metadata.exists() else []


def _sums(path: Path) -> Path:
    """The file with the checksums of a file."""
    return path.with_name(f".{path.name}.crc")


def _names(folder: Path) -> set[str]:
    try:
        return names_in(folder)
    except FileNotFoundError:
        return set()


def _agree(sums: Path, content: bytes) -> bool:
    """Whether the checksums fit. Spark ignores a file of checksums that is missing or no such."""
    try:
        known = sums.read_bytes()
    except FileNotFoundError:
        return True
    if len(known) < _HEADER.size or known[:4] != _MAGIC:
        return True
    chunk = max(1, _HEADER.unpack_from(known)[1])
    found = [zlib.crc32(content[at : at + chunk]) for at in range(0, len(content), chunk)]
    return known[_HEADER.size :] == struct.pack(f">{len(found)}I", *found)


def _parsed(path: Path, content: bytes) -> list[str] | None:
    """The lines of a file, each a JSON object but the first; None if the file is torn."""
    least = {_OFFSETS: _FACTS + 1, _COMMITS: 2}.get(path.parent.name, 1)
    try:
        lines = content.decode().splitlines()
        objects = [json.loads(line) for line in lines[path.name != _METADATA :]]
    except ValueError:
        return None
    whole = len(lines) >= least and all(isinstance(each, dict) for each in objects)
    return lines if whole else None


def _is_synced(path: Path, checkpoint: Path, out: Path) -> bool:
    """Whether the sink has committed a batch that needed a file, and thus has synced the file."""
    query = query_of(checkpoint)
    if path.name == _METADATA:
        known = {each["query"] for each in manifests(out)} - {None}
        return query in known if query is not None else bool(known)
    if query is None:
        return False
    batch = int(path.name)
    begins = f"{query}-{batch:010d}-"
    written = any(name.startswith(begins) for name in _names(out / MANIFESTS))
    return written or batch <= last_merged(out, query)


def _is_vouched(path: Path, checkpoint: Path, out: Path, lines: list[str]) -> bool:
    """Whether the manifest of a batch says that it ended where a file of offsets says."""
    query = query_of(checkpoint)
    if query is None or path.name == _METADATA:
        return query is not None
    batch = int(path.name)
    name = manifest_name(query, batch, lines[_FACTS:])
    return batch <= last_merged(out, query) or f"{name}.json" in _names(out / MANIFESTS)
