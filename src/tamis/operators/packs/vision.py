"""Operators on pictures, with OpenCV: `pip install 'tamis[vision]'`.

    faceCount(?n) and ?n >= 1
    brightness(?b) and ?b < 40 and pedestrianCount(?n) and ?n > 2

They read the opaque attribute `image`: a PNG or JPEG as bytes, or as base64 text where events are
JSON. A picture is decoded once for all operators (`tamis.operators.packs.pictures`). A picture that
cannot be decoded is a fault, with the reason.

The two detectors are those that OpenCV 4 ships: a cascade of Haar features for frontal faces, and a
support vector machine on histograms of oriented gradients for people who stand or walk. Neither is
as accurate as current models; both run on any machine, and return the same count for the same
picture. OpenCV has no such model of cars, hence no `carCount`.

Costs are medians on one core, with decoding, of pictures of 320 × 240 pixels, and grow with the
number of pixels. OpenCV releases the interpreter, so the detectors run in threads.
"""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tamis.operators.operator import operator
from tamis.operators.packs.pictures import Picture, PictureError, cv2, decoded, haarcascades

LONGEST = 640
"""Detectors reduce a larger picture to this many pixels on its longer side.

In a larger one they would find more false faces than small true ones, and take far longer.
"""

_FACE = "haarcascade_frontalface_default.xml"
_SMALLEST_FACE = (24, 24)  # the training size of the cascade
_AGREEING = 6  # neighbouring windows that have to agree on a face
_WINDOW = (64, 128)  # of the people detector: it finds nobody in a smaller one
_MARGIN = 16  # pixels added on each side for people near the edge
_STEP = 1.1  # from one size of a face or person to the next
_NOISE = 25  # grey levels by which a pixel may differ without having moved


# Operators have the names that conditions use, in camel case: hence the noqa.
@operator(reads=("image",), gives={"luminance": "number"}, cost=0.8, timeout=5.0)
def brightness(image: Any) -> float:
    """The mean luminance of the picture, from 0 (black) to 255 (white)."""
    return float(_grey(decoded(image)).mean())


@operator(reads=("image",), gives={"width": "number", "height": "number"}, cost=0.6, timeout=5.0)
def imageSize(image: Any) -> tuple[int, int]:  # noqa: N802
    """Width and height in pixels, after the rotation that the camera recorded."""
    height, width = decoded(image).shape[:2]
    return width, height


@operator(reads=("image", "previous"), gives={"share": "number"}, cost=1.6, timeout=5.0)
def motion(image: Any, previous: Any) -> float:
    """The share of pixels, from 0 to 1, that changed between `previous` and `image`.

    The event contains both pictures. An operator that kept the last picture of each camera would
    answer differently for a repeated event, for a replayed log, and when the events of a camera
    go to several machines.
    """
    before, now = decoded(previous), decoded(image)
    if before.shape != now.shape:
        raise PictureError(
            f"motion compares pictures of one size, not {_size(before)} with {_size(now)}"
        )
    difference = cv2.absdiff(_smooth(before), _smooth(now))
    return float((difference > _NOISE).mean())


@operator(reads=("image",), gives={"faces": "number"}, cost=25.0, timeout=10.0)
def faceCount(image: Any) -> int:  # noqa: N802
    """The number of frontal faces of at least 24 pixels."""
    grey = _grey(_reduced(decoded(image)))
    found = _detectors.faces.detectMultiScale(
        grey, scaleFactor=_STEP, minNeighbors=_AGREEING, minSize=_SMALLEST_FACE
    )
    return len(found)


@operator(reads=("image",), gives={"people": "number"}, cost=15.0, timeout=10.0)
def pedestrianCount(image: Any) -> int:  # noqa: N802
    """The number of people who stand or walk, at least about 100 pixels high."""
    picture = _reduced(decoded(image))
    height, width = picture.shape[:2]
    if width + 2 * _MARGIN < _WINDOW[0] or height + 2 * _MARGIN < _WINDOW[1]:
        return 0
    found, _ = _detectors.people.detectMultiScale(
        picture, winStride=(8, 8), padding=(_MARGIN, _MARGIN), scale=_STEP
    )
    return len(found)


class _Detectors(threading.local):
    """The models, loaded at first use, separately for each thread: a cascade has state."""

    @cached_property
    def faces(self) -> cv2.CascadeClassifier:
        return cv2.CascadeClassifier(str(Path(haarcascades) / _FACE))

    @cached_property
    def people(self) -> cv2.HOGDescriptor:
        found = cv2.HOGDescriptor()
        found.setSVMDetector(np.asarray(found.getDefaultPeopleDetector(), np.float32))
        return found


_detectors = _Detectors()


def _grey(picture: Picture) -> Picture:
    return cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)


def _smooth(picture: Picture) -> Picture:
    """In grey, without the noise of single pixels."""
    return cv2.GaussianBlur(_grey(picture), (5, 5), 0)


def _reduced(picture: Picture) -> Picture:
    factor = LONGEST / max(picture.shape[:2])
    if factor >= 1:
        return picture
    # At least one pixel per side: rounding must not give 0.
    height, width = (max(1, round(factor * side)) for side in picture.shape[:2])
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)


def _size(picture: Picture) -> str:
    return f"{picture.shape[1]} × {picture.shape[0]}"
