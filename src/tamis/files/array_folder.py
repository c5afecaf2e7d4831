"""Arrays saved to a folder, and mapped back into memory.

A saved index is a folder of two files. `data` has a section for each array and for each blob (bytes
in a format that somebody else reads, such as Arrow's); `manifest` says where each lies, with its
checksum. Reading maps `data`: nothing is copied, processes that read the same folder share its
pages, and a page that somebody writes to becomes private to him. The format is described in
docs/saved-index.md.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, TypeVar, cast, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.errors import SavedIndexError
from tamis.files.placement import Summed, placed

MAGIC = "tamis saved index"
FORMAT = 1
MANIFEST, DATA = "manifest", "data"
PAGE = 4096  # sections begin at a multiple of this, so that one can be mapped by itself
Bytes = NDArray[np.uint8]
Record = TypeVar("Record")
WriteBlob = Callable[[Summed], object]
"""Writes a blob to a file."""

_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,199}")  # they may become files' names one day
_DTYPES = frozenset(np.dtype(kind).str for kind in "?bBhHiIqQefd")
_LINE = 4096  # the manifest's first line is shorter
_ATTEMPTS = 10


class Arrays(dict[str, NDArray[Any]]):
    """Arrays by name. One that is asked for and is not there is a fault of the saved index."""

    def __missing__(self, name: str) -> NDArray[Any]:
        raise SavedIndexError(f"the saved index has no array {name!r}")


class Saved(NamedTuple):
    """What was read. Arrays and blobs may be written to; the files stay as they are."""

    arrays: Arrays
    facts: dict[str, Any]
    blobs: dict[str, Bytes]


def under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of a part, as the whole names them."""
    return Arrays({f"{prefix}.{name}": array for name, array in arrays.items()})


def part(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays of a part of the whole, as the part names them."""
    stem = f"{prefix}."
    return Arrays(
        {name.removeprefix(stem): each for name, each in arrays.items() if name.startswith(stem)}
    )


def flat(record: Any) -> Arrays:
    """The arrays of a named tuple, and of named tuples within it."""
    found = Arrays()
    for name, each in record._asdict().items():
        found.update(under(name, flat(each)) if isinstance(each, tuple) else {name: each})
    return found


def filled(kind: type[Record], arrays: Mapping[str, NDArray[Any]]) -> Record:
    """A named tuple of a kind, with the arrays that `flat` gave."""
    found = {
        name: filled(hint, part(name, arrays))
        if hasattr(hint, "_fields")
        else _fitting(name, arrays[name], hint)
        for name, hint in get_type_hints(kind).items()
    }
    return kind(**found)


def _fitting(name: str, array: NDArray[Any], hint: Any) -> NDArray[Any]:
    """An array, if it is of the kind that the hint says: kernels take that for granted."""
    kind = get_args(get_args(hint)[1])[0]
    if array.ndim != 1 or array.dtype != kind:
        raise SavedIndexError(f"{name} is {array.ndim} × {array.dtype}, not 1 × {np.dtype(kind)}")
    return array


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
    """Save arrays, facts (whatever JSON can say) and blobs as one folder.

    All of it is written beside the folder and renamed once it is on disk: under the folder's name
    there is never a part of an index. A folder that exists is refused; with `replace`, if it is a
    saved index, it is exchanged for the new one, and whoever has it mapped keeps what he has.
    `written_by` is a version, for people.
    """
    target = Path(folder).resolve()
    _check(target, arrays, blobs or {})
    try:
        json.dumps(facts, allow_nan=False)
    except (TypeError, ValueError) as why:
        raise SavedIndexError(f"{target}: the facts are not such as JSON can say: {why}") from None
    if replace and os.path.lexists(target):
        _check_replaceable(target)
    with placed(target, replace) as temporary:
        with Summed(temporary / DATA) as file:
            found = {name: _write_array(file, array) for name, array in arrays.items()}
            others = {name: _write_blob(file, each) for name, each in (blobs or {}).items()}
        body = {
            "tamis": written_by,
            "byte_order": sys.byteorder,
            "bytes": file.size,
            "arrays": found,
            "blobs": others,
            "facts": facts,
        }
        _write_manifest(temporary / MANIFEST, body)


def _check(
    target: Path, arrays: Mapping[str, NDArray[Any]], blobs: Mapping[str, WriteBlob]
) -> None:
    for name in (*arrays, *blobs):
        if _NAME.fullmatch(name) is None:
            raise SavedIndexError(
                f"{target}: {name!r} is no name for a part; it takes small letters, digits, "
                "'_', '-' and '.', and does not begin with '.'"
            )
    for name, array in arrays.items():
        if array.dtype.newbyteorder("=").str not in _DTYPES:
            raise SavedIndexError(
                f"{target}: the array {name!r} holds {array.dtype}; only numbers and booleans are "
                "saved"
            )


def _write_array(file: Summed, given: NDArray[Any]) -> dict[str, Any]:
    array = np.ascontiguousarray(given, given.dtype.newbyteorder("="))

    def write(file: Summed) -> None:
        if array.size:
            file.write(array.reshape(-1).view(np.uint8).data)

    form = {"dtype": array.dtype.str, "shape": list(given.shape)}
    return {**form, **_write_blob(file, write)}


def _write_blob(file: Summed, write_blob: WriteBlob) -> dict[str, Any]:
    file.begin()
    offset = file.size
    write_blob(file)
    size = file.tell()
    file.write(bytes(-size % PAGE))
    return {"offset": offset, "bytes": size, "crc32": file.checksum}


def _write_manifest(path: Path, body: dict[str, Any]) -> None:
    said = json.dumps(body).encode() + b"\n"
    header = {"magic": MAGIC, "format": FORMAT, "crc32": f"{zlib.crc32(said):08x}"}
    with Summed(path) as file:
        file.write(json.dumps(header, separators=(",", ":")).encode() + b"\n")
        file.write(said)


def _check_replaceable(target: Path) -> None:
    """Refuse to throw away what is no saved index, or more than that."""
    with _opened(target) as place:
        place.manifest()
    for other in sorted({each.name for each in target.iterdir()} - {MANIFEST, DATA}):
        raise SavedIndexError(f"{target}: is not replaced, since it also holds {other!r}")


# -- reading ---------------------------------------------------------------------------------------


def read(folder: str | os.PathLike[str], *, verify: bool = True) -> Saved:
    """What a folder holds, mapped into memory; a `SavedIndexError` where it is not as written.

    `verify` reads every byte and compares checksums, which takes about half a second for a
    gigabyte. Without it only the manifest is checked, and that `data` has the size it says: for
    processes that open what another has verified.
    """
    path = Path(folder)
    for _ in range(_ATTEMPTS):
        with _opened(path) as place:
            try:
                return place.read(verify)
            except SavedIndexError:
                if not place.replaced():
                    raise
    raise SavedIndexError(f"{path}: was replaced again and again while it was read")


@contextmanager
def _opened(path: Path) -> Iterator[_Place]:
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        raise SavedIndexError(f"{path}: there is no such folder") from None
    except NotADirectoryError:
        raise SavedIndexError(f"{path}: a saved index is a folder, and this is none") from None
    except OSError as why:
        raise SavedIndexError(f"{path}: cannot be read: {why.strerror}") from None
    try:
        yield _Place(path, folder)
    finally:
        os.close(folder)


class _Place:
    """One folder, held open: the same one to the end, whatever gets its name meanwhile."""

    def __init__(self, path: Path, folder: int) -> None:
        self._path, self._folder = path, folder

    def replaced(self) -> bool:
        """Whether the name leads to another folder by now."""
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(self._folder))
        except OSError:
            return False

    def read(self, verify: bool) -> Saved:
        """All of it."""
        body = self.manifest()
        data = self._map(body["bytes"])
        arrays, blobs = Arrays(), {}
        for name, given in body["arrays"].items():
            section = self._section(f"the array {name!r}", name, given, data, verify)
            arrays[name] = self._array(name, given, section)
        for name, given in body["blobs"].items():
            blobs[name] = self._section(f"the blob {name!r}", name, given, data, verify)
        return Saved(arrays, body["facts"], blobs)

    def manifest(self) -> dict[str, Any]:
        """The body of the manifest; that of a stranger, of another time or damaged is refused."""
        try:
            with os.fdopen(self._open(MANIFEST), "rb") as file:
                checksum = self._checksum(file.readline(_LINE))
                said = file.read()
        except FileNotFoundError:
            raise self._wrong(f"is no saved index: it has no {MANIFEST}") from None
        except OSError as why:
            raise self._wrong(f"its {MANIFEST} cannot be read: {why.strerror}") from None
        if f"{zlib.crc32(said):08x}" != checksum:
            raise self._wrong(f"its {MANIFEST} is damaged: its content has another checksum")
        body = _json(said)
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
        """What the manifest's first line says is the checksum of the others."""
        header = _json(line)
        if not isinstance(header, dict) or header.get("magic") != MAGIC:
            raise self._wrong(f"is no saved index, or its {MANIFEST} is damaged: it begins oddly")
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
        """The bytes of `data`. Pages are shared with other processes until they are written to."""
        try:
            opened = self._open(DATA)
            try:
                found = os.fstat(opened).st_size
                if found != size:
                    raise self._wrong(
                        f"the file {DATA!r} is damaged: it has {found} bytes instead of {size}"
                    )
                if not size:
                    return np.zeros(0, np.uint8)  # nothing cannot be mapped
                pages = mmap.mmap(opened, size, access=mmap.ACCESS_COPY)
            finally:
                os.close(opened)
        except FileNotFoundError:
            raise self._wrong(f"the file {DATA!r} is missing") from None
        except OSError as why:
            raise self._wrong(f"the file {DATA!r} cannot be read: {why.strerror}") from None
        return np.frombuffer(pages, np.uint8)

    def _section(self, what: str, name: str, given: Any, data: Bytes, verify: bool) -> Bytes:
        """The bytes of an array or a blob."""
        if _NAME.fullmatch(name) is None:
            raise self._wrong(f"its {MANIFEST} names a part {name!r}, which is no name for one")
        entry: dict[str, Any] = given if isinstance(given, dict) else {}
        offset, size = entry.get("offset"), entry.get("bytes")
        if not (_is_size(offset) and _is_size(size)) or offset % PAGE:
            raise self._wrong(f"its {MANIFEST} does not say where {what} lies")
        end = offset + size + -size % PAGE  # with the zeros that fill its last page
        if end > len(data):
            raise self._wrong(
                f"its {MANIFEST} contradicts itself: {what} would end at byte {end} of {len(data)}"
            )
        if verify and f"{zlib.crc32(data[offset:end].data):08x}" != entry.get("crc32"):
            raise self._wrong(f"{what} is damaged: its content has another checksum")
        return data[offset : offset + size]

    def _array(self, name: str, entry: dict[str, Any], section: Bytes) -> NDArray[Any]:
        kind, shape = entry.get("dtype"), cast(Any, entry.get("shape"))
        if not isinstance(kind, str) or kind not in _DTYPES:
            raise self._wrong(f"the array {name!r} holds {kind!r}; only numbers and booleans do")
        fits = isinstance(shape, list) and all(map(_is_size, shape))
        if not fits or math.prod(shape) * np.dtype(kind).itemsize != len(section):
            raise self._wrong(
                f"its {MANIFEST} contradicts itself: the array {name!r} has {len(section)} bytes, "
                f"and its shape is {shape}"
            )
        try:
            return section.view(kind).reshape(shape)
        except ValueError as why:  # more dimensions than NumPy has
            raise self._wrong(f"the array {name!r} has no possible shape: {why}") from None

    def _open(self, file: str) -> int:
        return os.open(file, os.O_RDONLY, dir_fd=self._folder)

    def _wrong(self, what: str) -> SavedIndexError:
        return SavedIndexError(f"{self._path}: {what}")


def _json(said: bytes) -> Any:
    """The value of a JSON text; None where it is none."""
    try:
        return json.loads(said)
    except (ValueError, RecursionError):
        return None


def _is_size(given: Any) -> TypeGuard[int]:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 1 << 62
