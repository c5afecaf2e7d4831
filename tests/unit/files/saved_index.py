"""A small saved index with arrays of every kind."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.array_folder import MANIFEST, write
from tamis.files.checksum import SectionWriter

ARRAYS: dict[str, NDArray[Any]] = {
    "numbers": np.arange(1000, dtype=np.int64),
    "others": np.arange(1000, 2000, dtype=np.int64),
    "part.flags": np.array([True, False, True]),
    "part.small": np.array([[1, 2, 3], [4, 5, 6]], np.int8),
    "reals": np.array([0.5, -0.0, np.inf, 5e-324]),
    "none": np.zeros(0, np.int32),
    "none.wide": np.zeros((0, 7), np.uint16),
    "one": np.array(7, np.uint64),
}
FACTS = {"name": "écu \U0001f4b0", "most": 2**63 - 1, "list": [1, None, True, {"deep": []}]}


def blob(file: SectionWriter) -> None:
    file.write(b"half of it, ")
    file.write(b"and the other half")


def made(folder: Path) -> Path:
    """The index, in a new folder."""
    write(folder, ARRAYS, FACTS, {"words.txt": blob, "empty": lambda file: None})
    return folder


def body_of(folder: Path) -> dict[str, Any]:
    """What the manifest says of the sections and the facts."""
    body: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes().splitlines()[1])
    return body


def edit(
    folder: Path,
    body: Callable[[dict[str, Any]], object] = lambda body: None,
    header: Callable[[dict[str, Any]], object] = lambda header: None,
) -> None:
    """Change the manifest, and compute the checksum again."""
    first, changed = (folder / MANIFEST).read_bytes().splitlines()[0], body_of(folder)
    body(changed)
    said = json.dumps(changed).encode() + b"\n"
    top = {**json.loads(first), "crc32": f"{zlib.crc32(said):08x}"}
    header(top)
    (folder / MANIFEST).write_bytes(json.dumps(top).encode() + b"\n" + said)
