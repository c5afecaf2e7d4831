"""Arrays saved to a folder, and mapped back into memory: the container of a saved index.

The folder has two files. `data` has a section for each array and for each blob (bytes in another
format, such as Arrow's). `manifest` says where each section lies, with its checksum.
Reading maps `data`: nothing is copied, processes that read the same folder share its pages, and a
page that a process writes to becomes private to it. docs/saved-index.md describes the format.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from tamis.errors import SavedIndexError
from tamis.files.arrays import Arrays
from tamis.files.atomic import atomic_folder
from tamis.files.checksum import SectionWriter, crc32
from tamis.files.names import names_in
from tamis.files.os_errors import os_errors_as

MAGIC = "tamis saved index"
FORMAT = 1
MANIFEST, DATA = "manifest", "data"
PAGE = 4096  # sections begin at a multiple of this, so that each can be mapped by itself
Bytes = NDArray[np.uint8]
WriteBlob = Callable[[SectionWriter], object]
"""Writes a blob to a file."""

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,199}")  # a section may become a file one day
_DTYPES = frozenset(np.dtype(kind).str for kind in "?bBhHiIqQefd")
_LINE = 4096  # the manifest's first line is shorter
_ATTEMPTS = 10


class Saved(NamedTuple):
    """The content of a folder. Arrays and blobs are writable; the files do not change."""

    arrays: Arrays
    facts: dict[str, Any]
    blobs: dict[str, Bytes]


# -- writing ---------------------------------------------------------------------------------------


def write(
    folder: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    facts: Mapping[str, Any],
    blobs: Mapping[str, WriteBlob] | None = None,
    *,
    replace: bool = False,
    written_by: str = "",
) -> None:
    """Save arrays, facts (a JSON object) and blobs as one folder, complete or not at all.

    A folder that exists is refused. With `replace`, a saved index is exchanged for the new one;
    processes that have the old one mapped keep it. `written_by` is a version, for people.
    """
    target = Path(folder).resolve()
    _check(target, arrays, blobs or {})
    try:
        json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError) as why:
        raise SavedIndexError(f"{target}: the facts cannot be written as JSON: {why}") from None
    if replace and os.path.lexists(target):
        _check_replaceable(target)
    if not target.parent.is_dir():
        raise SavedIndexError(f"{target}: cannot be written: there is no folder {target.parent}")
    with os_errors_as(SavedIndexError, f"{target}: cannot be written"):
        try:
            with atomic_folder(target, replace=replace) as draft:
                sections = _write_data(draft / DATA, arrays, blobs or {})
                by = {"tamis": written_by, "byte_order": sys.byteorder}
                _write_manifest(draft / MANIFEST, {**by, **sections, "facts": facts})
        except FileExistsError:
            raise SavedIndexError(
                f"{target}: exists already; choose another name, or replace a saved index with "
                "replace=True"
            ) from None


def _check(
    target: Path, arrays: Mapping[str, NDArray[Any]], blobs: Mapping[str, WriteBlob]
) -> None:
    for name in (*arrays, *blobs):
        if _NAME.fullmatch(name) is None:
            raise SavedIndexError(
                f"{target}: an array or blob cannot be named {name!r}; a name has small letters, "
                "digits, '_', '-' and '.', and does not begin with '.' or '-'"
            )
    for name, array in arrays.items():
        if array.dtype.newbyteorder("=").str not in _DTYPES:
            raise SavedIndexError(
                f"{target}: the array {name!r} holds {array.dtype}; only numbers and booleans are "
                "saved"
            )


def _write_data(
    path: Path, arrays: Mapping[str, NDArray[Any]], blobs: Mapping[str, WriteBlob]
) -> dict[str, Any]:
    """Write all sections; where they lie, as the manifest says it."""
    with SectionWriter(path) as file:
        found = {name: _write_array(file, each) for name, each in arrays.items()}
        others = {name: _write_blob(file, each) for name, each in blobs.items()}
    return {"bytes": file.size, "arrays": found, "blobs": others}


def _write_array(file: SectionWriter, given: NDArray[Any]) -> dict[str, Any]:
    array = np.ascontiguousarray(given, given.dtype.newbyteorder("="))

    def write(file: SectionWriter) -> None:
        if array.size:
            file.write(array.reshape(-1).view(np.uint8).data)

    form = {"dtype": array.dtype.str, "shape": list(given.shape)}
    return {**form, **_write_blob(file, write)}


def _write_blob(file: SectionWriter, write_blob: WriteBlob) -> dict[str, Any]:
    file.begin()
    offset = file.size
    write_blob(file)
    size = file.tell()
    file.write(bytes(-size % PAGE))
    return {"offset": offset, "bytes": size, "crc32": file.checksum}


def _write_manifest(path: Path, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode() + b"\n"
    header = {"magic": MAGIC, "format": FORMAT, "crc32": crc32(content)}
    path.write_bytes(json.dumps(header, separators=(",", ":")).encode() + b"\n" + content)


def _check_replaceable(target: Path) -> None:
    """Refuse to delete a folder that is not a saved index, or holds other files too."""
    with _opened(target) as place:
        place.manifest()
    for other in sorted(names_in(target) - {MANIFEST, DATA}):
        raise SavedIndexError(f"{target}: is not replaced, because it also holds {other!r}")


# -- reading ---------------------------------------------------------------------------------------


def fingerprint(folder: str | os.PathLike[str]) -> bytes:
    """Return what tells a saved index from another one in its place.

    It is the first line of the manifest, with a checksum of all others. A time is not enough: the
    clock of a file system ticks slowly, and the number of a deleted folder is given out again.
    """
    with _opened(Path(folder)) as place:
        return place.header()


def read(folder: str | os.PathLike[str], *, verify: bool = True) -> Saved:
    """Map the content of a folder into memory; raise `SavedIndexError` if it is damaged.

    `verify` reads every byte and compares checksums, which takes about half a second per
    gigabyte. Without it, only the manifest and the size of `data` are checked: for processes that
    open a folder that another one has verified.
    """
    path = Path(folder)
    for _ in range(_ATTEMPTS):
        with _opened(path) as place:
            try:
                return place.read(verify)
            except SavedIndexError:
                if not place.replaced():
                    raise
    raise SavedIndexError(f"{path}: was replaced each time it was read; try again")


@contextmanager
def _opened(path: Path) -> Iterator[_OpenFolder]:
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        raise SavedIndexError(f"{path}: there is no such folder") from None
    except NotADirectoryError:
        raise SavedIndexError(f"{path}: is a file; a saved index is a folder") from None
    except OSError as why:
        raise SavedIndexError(f"{path}: cannot be read: {why.strerror}") from None
    try:
        yield _OpenFolder(path, folder)
    finally:
        os.close(folder)


class _OpenFolder:
    """A folder held open: it stays the same one if another folder takes its name meanwhile."""

    def __init__(self, path: Path, folder: int) -> None:
        self._path, self._folder = path, folder

    def replaced(self) -> bool:
        """Whether another folder has the name by now."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._folder))
        except FileNotFoundError:
            return True  # another one is about to get the name, or nothing is left to read
        except OSError:
            return False

    def read(self, verify: bool) -> Saved:
        """Return all arrays, facts and blobs."""
        body = self.manifest()
        data = self._map(body["bytes"])
        arrays, blobs = Arrays(), {}
        for name, given in body["arrays"].items():
            section = self._section(f"the array {name!r}", name, given, data, verify)
            arrays[name] = self._array(name, given, section)
        for name, given in body["blobs"].items():
            blobs[name] = self._section(f"the blob {name!r}", name, given, data, verify)
        return Saved(arrays, body["facts"], blobs)

    def header(self) -> bytes:
        """Return the first line of the manifest; empty if the folder has no manifest."""
        with suppress(OSError), os.fdopen(self._open(MANIFEST), "rb") as file:
            return file.readline(_LINE)
        return b""

    def manifest(self) -> dict[str, Any]:
        """Return the body of the manifest; refuse a damaged, foreign or newer one."""
        try:
            with os.fdopen(self._open(MANIFEST), "rb") as file:
                checksum = self._checksum(file.readline(_LINE))
                content = file.read()
        except FileNotFoundError:
            raise self._wrong(f"is not a saved index: it has no {MANIFEST}") from None
        except OSError as why:
            raise self._wrong(f"its {MANIFEST} cannot be read: {why.strerror}") from None
        if crc32(content) != checksum:
            raise self._wrong(f"its {MANIFEST} is damaged: the checksum does not match")
        body = _json(content)
        forms = {"byte_order": str, "bytes": int, "arrays": dict, "blobs": dict, "facts": dict}
        if not isinstance(body, dict) or not all(
            isinstance(body.get(name), form) for name, form in forms.items()
        ):
            raise self._wrong(f"its {MANIFEST} lacks one of {', '.join(forms)}")
        if body["byte_order"] != sys.byteorder:
            raise self._wrong(
                f"was written on a {body['byte_order']}-endian machine and this one is "
                f"{sys.byteorder}-endian; save it on a machine like this one"
            )
        return body

    def _checksum(self, line: bytes) -> Any:
        """Return the checksum in the manifest's first line, which covers the other lines."""
        header = _json(line)
        if not isinstance(header, dict) or header.get("magic") != MAGIC:
            raise self._wrong(f"is not a saved index, or its {MANIFEST} is damaged")
        written = header.get("format")
        if not isinstance(written, int) or written < 1:
            raise self._wrong(f"its {MANIFEST} is damaged: the format is {written!r}")
        if written > FORMAT:
            raise self._wrong(
                f"was saved in format {written}, and this tamis reads formats up to {FORMAT}; "
                "open it with the newer tamis that wrote it"
            )
        return header.get("crc32")

    def _map(self, size: int) -> Bytes:
        """Map `data`. Processes share its pages until one writes to them."""
        try:
            opened = self._open(DATA)
            try:
                found = os.fstat(opened).st_size
                if found != size:
                    raise self._wrong(
                        f"the file {DATA!r} is damaged: it has {found} bytes instead of {size}"
                    )
                if not size:
                    return np.zeros(0, np.uint8)  # an empty file cannot be mapped
                pages = mmap.mmap(opened, size, access=mmap.ACCESS_COPY)
            finally:
                os.close(opened)
        except FileNotFoundError:
            raise self._wrong(f"the file {DATA!r} is missing") from None
        except OSError as why:
            raise self._wrong(f"the file {DATA!r} cannot be read: {why.strerror}") from None
        return np.frombuffer(pages, np.uint8)

    def _section(self, what: str, name: str, given: Any, data: Bytes, verify: bool) -> Bytes:
        """Return the bytes of an array or a blob."""
        if _NAME.fullmatch(name) is None:
            raise self._wrong(f"its {MANIFEST} is damaged: {what} cannot have this name")
        entry: dict[str, Any] = given if isinstance(given, dict) else {}
        offset, size = entry.get("offset"), entry.get("bytes")
        if not (_is_size(offset) and _is_size(size)) or offset % PAGE:
            raise self._wrong(f"its {MANIFEST} does not say where {what} lies")
        end = offset + size + -size % PAGE  # with the zeros that fill its last page
        if end > len(data):
            raise self._wrong(
                f"its {MANIFEST} contradicts itself: {what} would end at byte {end} of {len(data)}"
            )
        if verify and crc32(data[offset:end].data) != entry.get("crc32"):
            raise self._wrong(f"{what} is damaged: the checksum does not match")
        return data[offset : offset + size]

    def _array(self, name: str, entry: dict[str, Any], section: Bytes) -> NDArray[Any]:
        kind, shape = entry.get("dtype"), cast(Any, entry.get("shape"))
        if not isinstance(kind, str) or kind not in _DTYPES:
            raise self._wrong(f"the array {name!r} holds {kind!r}, not numbers or booleans")
        fits = isinstance(shape, list) and all(map(_is_size, shape))
        if not fits or math.prod(shape) * np.dtype(kind).itemsize != len(section):
            raise self._wrong(
                f"its {MANIFEST} contradicts itself: the array {name!r} has {len(section)} bytes, "
                f"and its shape is {shape}"
            )
        try:
            return section.view(kind).reshape(shape)
        except ValueError as why:  # more dimensions than NumPy has
            raise self._wrong(f"the array {name!r} has an impossible shape: {why}") from None

    def _open(self, file: str) -> int:
        return os.open(file, os.O_RDONLY, dir_fd=self._folder)

    def _wrong(self, what: str) -> SavedIndexError:
        return SavedIndexError(f"{self._path}: {what}")


def _json(text: bytes) -> Any:
    """Parse JSON; None if that fails."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_size(given: Any) -> TypeGuard[int]:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 1 << 62
