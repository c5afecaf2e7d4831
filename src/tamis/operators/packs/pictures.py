"""Pictures as they come in events, decoded once for all operators that look at them.

The publisher of an event is not to be trusted with the memory of the machine: of a picture only the
two formats are taken, and one that says it is huge is refused before it is unpacked.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import OperatorError, TamisError

try:
    import cv2
    from cv2.data import haarcascades
except ModuleNotFoundError as missing:
    raise OperatorError(
        "the operators on pictures need OpenCV: pip install 'tamis[vision]'"
    ) from missing

__all__ = ["LARGEST", "Cache", "Picture", "PictureError", "cv2", "decoded", "haarcascades"]

Picture = npt.NDArray[np.integer[Any] | np.floating[Any]]
"""Rows, columns, and blue, green, red from 0 to 255; OpenCV does not promise a narrower type."""

LARGEST = 1 << 26  # pixels, 67 million: more than any camera's, and 200 MB when unpacked
_ROOM = 64 << 20  # bytes of pictures kept: some 290 of 320 × 240, or two of 12 million pixels
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
# Segments of a JPEG that say its size: all frames, but not the three tables among their numbers.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}

# Events are what runs in parallel here; OpenCV's own threads would fight with theirs.
cv2.setNumThreads(1)
# What is wrong with a picture is in the report, and need not be on standard error for each event.
cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)


class PictureError(TamisError, ValueError):
    """A picture that cannot be decoded, or not be compared."""


class Cache:
    """The pictures decoded last, by their bytes; the oldest go when `room` bytes are used.

    One for the process and not one for each thread, since the operators of one event may run in
    several. Two threads that ask for a new picture at the same time both decode it.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self.used = 0
        self._kept: OrderedDict[bytes, Picture] = OrderedDict()
        self._lock = threading.Lock()
        self.decodes = 0

    def picture(self, data: bytes) -> Picture:
        """The picture that `data` encodes, not to be written to."""
        with self._lock:
            found = self._kept.get(data)
            if found is not None:
                self._kept.move_to_end(data)
                return found
        made = _decode(data)
        made.flags.writeable = False  # several threads share it
        with self._lock:
            self.decodes += 1
            if data not in self._kept and _weight(data, made) <= self._room:
                self._kept[data] = made
                self.used += _weight(data, made)
            while self.used > self._room:
                self.used -= _weight(*self._kept.popitem(last=False))
        return made


_cache = Cache(_ROOM)


def decoded(image: Any) -> Picture:
    """The picture that an event's value stands for: bytes of a PNG or JPEG, or their base64."""
    return _cache.picture(_bytes(image))


def _weight(data: bytes, picture: Picture) -> int:
    return len(data) + picture.nbytes


def _bytes(image: Any) -> bytes:
    if isinstance(image, bytes):
        return image
    if isinstance(image, bytearray | memoryview):
        return bytes(image)
    if isinstance(image, str):
        try:
            return base64.b64decode("".join(image.split()), validate=True)
        except (binascii.Error, ValueError):
            raise PictureError("an image given as text is base64, and this is not") from None
    raise PictureError(
        f"an image is the bytes of a PNG or JPEG, or their base64 text, not {type(image).__name__}"
    )


def _decode(data: bytes) -> Picture:
    width, height = _announced(data)
    if width * height > LARGEST:
        raise PictureError(f"an image of {width} × {height} pixels is more than {LARGEST} in all")
    try:
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise PictureError(f"the image cannot be decoded: {error.err}") from None
    # The stubs do not say that it is None when the data are broken.
    if picture is None or picture.dtype != np.uint8:
        raise PictureError(f"the image cannot be decoded: its {len(data)} bytes are broken or cut")
    return picture


def _announced(data: bytes) -> tuple[int, int]:
    """Width and height as the head of the file says."""
    if data.startswith(_PNG) and data[12:16] == b"IHDR" and len(data) >= 24:
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data.startswith(_JPEG):
        return _announced_by_jpeg(data)
    raise PictureError(f"the image is neither PNG nor JPEG: it begins with {data[:8]!r}")


def _announced_by_jpeg(data: bytes) -> tuple[int, int]:
    """A JPEG is a row of segments, each with its kind and length, until the pixels begin."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if kind in _FRAMES:
            height = int.from_bytes(data[at + 5 : at + 7], "big")
            return int.from_bytes(data[at + 7 : at + 9], "big"), height
        # 0xFF may be repeated before a kind.
        at += 1 if kind == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise PictureError("the image cannot be decoded: a JPEG without a frame")
