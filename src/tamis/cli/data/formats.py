"""The suffixes of files, and the mistakes that users make with files."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from tamis.encode.arrow_checks import check_table
from tamis.errors import TamisError

ARROW = (".arrow", ".feather", ".ipc")
JSON = (".jsonl", ".ndjson", ".json")
DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET, TEXT = ".parquet", ".txt"
TABLES = (PARQUET, *ARROW)
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4")


def check_suffix(path: Path, known: Sequence[str]) -> str:
    """The suffix of a path, in small letters; refuse one that is not known."""
    suffix = path.suffix.lower()
    if suffix in _COMPRESSED:
        raise TamisError(f"{path}: is compressed; unpack it first")
    if suffix not in known:
        raise TamisError(f"{path}: the format is unknown; expected one of {' '.join(known)}")
    return suffix


def input_files(path: Path, known: Sequence[str]) -> list[Path]:
    """The file, or the files of a folder in the order of their names."""
    if not path.is_dir():
        if not path.exists():
            raise TamisError(f"{path}: there is no such file or folder")
        check_suffix(path, known)
        with path.open("rb"):  # Arrow would not name a file that may not be read
            return [path]
    files = sorted(
        each
        for each in path.iterdir()
        if each.suffix.lower() in known and each.name[0] not in "._" and each.is_file()
    )
    if not files:
        raise TamisError(f"{path}: the folder has no files with the suffix {' '.join(known)}")
    return files


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Within the block, a file that is not what its suffix says raises a `TamisError`."""
    try:
        yield
    # Arrow raises OSError too, for content that it cannot read.
    except (pa.ArrowException, UnicodeDecodeError, OSError) as why:
        if isinstance(why, OSError) and why.errno not in (None, errno.EINVAL):
            raise TamisError(f"{path}: {why.strerror or why}") from None
        raise TamisError(f"{path}: is not valid {path.suffix[1:].lower()}: {why}") from None


def check_arrow(path: Path, table: pa.Table | pa.RecordBatch) -> None:
    """Refuse a damaged table of an Arrow file, which Arrow itself does not look at."""
    try:
        check_table(table, TamisError)
        _ = table.schema.names  # which need not be text
    except TamisError as why:
        raise TamisError(f"{path}: {why}") from None


def is_arrow_file(path: Path) -> bool:
    """Whether a file of Arrow data is in the file format, not the stream format."""
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


def check_not_input(out: Path, inputs: Sequence[Path | None]) -> None:
    """Refuse an output that would replace an input."""
    for given in inputs:
        if given is not None and out.exists() and given.exists() and out.samefile(given):
            raise TamisError(f"{out}: is read by this command; name another file for the output")
