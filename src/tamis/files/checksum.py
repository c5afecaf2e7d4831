"""Checksums of bytes, and of the sections of a file while it is written."""

from __future__ import annotations

import zlib
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Self

_PIECE = 4 << 20  # bytes summed and written at a time: they are still in the processor's cache
DIGEST = 16  # bytes of a digest


def crc32(data: Any) -> str:
    """Return the CRC-32 of bytes as eight hexadecimal digits, which finds damage.

    >>> crc32(b"tamis")
    '74d6896f'
    """
    return f"{zlib.crc32(data):08x}"


def digest(data: bytes) -> bytes:
    """Return a digest of bytes that no other bytes have: 16 bytes of BLAKE2b."""
    return blake2b(data, digest_size=DIGEST).digest()


def short_hash(text: str) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of a text, for names of files.

    >>> short_hash("tamis")
    '3a0b68fba4fd52ca'
    """
    return sha256(text.encode()).hexdigest()[:16]


class SectionWriter:
    """A new file that is written in sections, each with a size and a checksum of its own."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._sum = 0
        self._begin = 0
        self.size = 0

    def begin(self) -> None:
        self._begin, self._sum = self.size, 0

    @property
    def checksum(self) -> str:
        """The `crc32` of the section so far."""
        return f"{self._sum:08x}"

    @property
    def closed(self) -> bool:
        """Whether the file is closed. Arrow asks for this, `flush` and `tell`."""
        return self._file.closed

    def write(self, data: Any) -> int:
        given = memoryview(data).cast("B")
        for start in range(0, len(given), _PIECE):
            piece = given[start : start + _PIECE]
            self._sum = zlib.crc32(piece, self._sum)
            while len(piece):  # a nearly full disk accepts a part
                piece = piece[self._file.write(piece) :]
        self.size += len(given)
        return len(given)

    def flush(self) -> None:
        """Do nothing: the file is not buffered."""

    def tell(self) -> int:
        """Return the size of the section so far."""
        return self.size - self._begin

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()
