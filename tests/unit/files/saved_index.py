"""A small saved index with arrays of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.array_folder import write
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
