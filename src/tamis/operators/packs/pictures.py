"""Pictures of events, decoded once for all operators.

A publisher must not be able to exhaust the memory: only PNG and JPEG are accepted, and a picture
whose header announces a huge size is refused before it is decoded.
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

__all__ = ["LARGEST", "Picture", "PictureCache", "PictureError", "cv2", "decoded", "haarcascades"]

Picture = npt.NDArray[np.integer[Any] | np.floating[Any]]
"""Rows, columns, and blue, green, red from 0 to 255; OpenCV declares no narrower type."""

LARGEST = 1 << 26  # pixels, 67 million: more than any camera has, and 200 MB when decoded
_ROOM = 64 << 20  # bytes of cached pictures: about 290 of 320 × 240, or two of 12 million pixels
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
# Segments of a JPEG with its size: all frames, without the three tables among their numbers.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}

# Events run in parallel; threads of OpenCV would compete with them.
cv2.setNumThreads(1)
# The report has the reason of each fault; standard error need not repeat it.
cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)


class PictureError(TamisError, ValueError):
    """A picture that cannot be decoded or compared."""


class PictureCache:
    """The pictures decoded last, by their bytes; the oldest are dropped beyond `room` bytes.

    One cache for the process, since the operators of one event may run in several threads. Two
    threads that need a new picture at the same time both decode it.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self.used = 0
        self._kept: OrderedDict[bytes, Picture] = OrderedDict()
        self._lock = threading.Lock()
        self.decodes = 0

    def picture(self, data: bytes) -> Picture:
        """The picture that `data` encodes, read-only."""
        with self._lock:
            found = self._kept.get(data)
            if found is not None:
                self._kept.move_to_end(data)
                return found
        made = _decode(data)
        made.flags.writeable = False  # threads share it
        with self._lock:
            self.decodes += 1
            if data not in self._kept and _weight(data, made) <= self._room:
                self._kept[data] = made
                self.used += _weight(data, made)
            while self.used > self._room:
                self.used -= _weight(*self._kept.popitem(last=False))
        return made


_cache = PictureCache(_ROOM)


def decoded(image: Any) -> Picture:
    """The picture of a value in an event: bytes of a PNG or JPEG, or their base64."""
    return _cache.picture(_bytes(image))


def _weight(data: bytes, picture: Picture) -> int:
    return len(data) + picture.nbytes


def _bytes(image: Any) -> bytes:
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    if isinstance(image, str):
        try:
            return base64.b64decode("".join(image.split()), validate=True)
        except (binascii.Error, ValueError):
            raise PictureError("an image in text form has to be base64") from None
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
    # It is None when the data are broken, which the type stubs omit.
    if picture is None or picture.dtype != np.uint8:
        raise PictureError(f"the image cannot be decoded: its {len(data)} bytes are broken or cut")
    return picture


def _announced(data: bytes) -> tuple[int, int]:
    """Width and height from the header of the file."""
    if data.startswith(_PNG) and data[12:16] == b"IHDR" and len(data) >= 24:
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if data.startswith(_JPEG):
        return _announced_by_jpeg(data)
    raise PictureError(f"the image is neither PNG nor JPEG: it begins with {data[:8]!r}")


def _announced_by_jpeg(data: bytes) -> tuple[int, int]:
    """A JPEG is a sequence of segments with kind and length, before the pixels."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if kind in _FRAMES:
            height = int.from_bytes(data[at + 5 : at + 7], "big")
            return int.from_bytes(data[at + 7 : at + 9], "big"), height
        # 0xFF may occur several times before a kind.
        at += 1 if kind == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise PictureError("the image cannot be decoded: a JPEG without a frame")
