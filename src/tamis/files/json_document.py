"""JSON documents: files that hold one JSON object, often with the number of its format."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from tamis.errors import TamisError
from tamis.files.atomic import atomic_file


def write_json(path: Path, document: Any, *, indent: int | None = 1) -> None:
    """Replace `path` with a document in one step; it is on disk when this returns."""
    with atomic_file(path) as file:
        file.write(encode_json(document, indent=indent))


def encode_json(document: Any, *, indent: int | None = 1) -> bytes:
    """The bytes of a document, as `write_json` writes them."""
    return json.dumps(document, indent=indent, ensure_ascii=False).encode() + b"\n"


def read_json(
    path: Path, what: str, error: type[TamisError], *, newest: int | None = None
) -> dict[str, Any]:
    """Read the object in a JSON file; raise `error` if it is missing or damaged.

    `what` is what the folder around the file should be, such as "a log". `newest` is the newest
    format that the caller reads; the document then needs a "format" of at most that.
    """
    try:
        document = read_object(path, error)
    except FileNotFoundError:
        raise error(f"{path.parent} is not {what}: {_found_instead(path)}") from None
    except NotADirectoryError:
        raise error(f"{path.parent} is not {what}: it is a file, not a folder") from None
    except OSError as why:
        raise error(f"{path}: cannot be read: {why.strerror}") from why
    if newest is not None:
        check_format(path, document.get("format"), newest, error)
    return document


def read_object(path: Path, error: type[TamisError]) -> dict[str, Any]:
    """Read the object in a JSON file; raise `error` if it is damaged, `OSError` if it is gone.

    A file whose name ends in `.gz` is unpacked.
    """
    written = path.read_bytes()
    try:
        document = json.loads(gzip.decompress(written) if path.suffix == ".gz" else written)
    except (ValueError, RecursionError, EOFError, gzip.BadGzipFile, zlib.error) as why:
        raise error(f"{path}: is damaged, it is not valid JSON: {why}") from None
    if not isinstance(document, dict):
        raise error(f"{path}: is damaged, it does not hold a JSON object")
    return document


def _found_instead(path: Path) -> str:
    if not path.parent.is_dir():
        return "there is no such folder"
    names = sorted(each.name for each in path.parent.iterdir())
    listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"it has no {path.name}, only: {listed}" if names else "the folder is empty"


def check_format(path: Path, written: Any, newest: int, error: type[TamisError]) -> None:
    """Refuse a format number that is damaged, or newer than the caller reads."""
    if isinstance(written, bool) or not isinstance(written, int) or written < 1:
        raise error(f"{path}: is damaged, the format is {written!r}")
    if written > newest:
        raise error(
            f"{path}: has format {written}, and this tamis reads formats up to {newest}; use the "
            "newer tamis that wrote it"
        )
