"""Stand-ins for detectors without a public model. They detect markers, not real objects.

The example of the paper on expensive operators (Liu et al., DEBS 2007, section 2.1) searches
pictures for police cars that chase cars, for mobs, congestion, accidents and boats. No library has
models of these. So the pictures of `tamis.workload.drones` contain small squares of fixed colours,
one for each object, and these operators find the squares by their colour. They decode and segment
real pictures, their answers vary from event to event, and the right answers are known. On a
photograph they find nothing. `faceCount` and `pedestrianCount` of the vision pack are real.

Markers are MARKER pixels wide and lie CELL pixels apart. PNG preserves them, JPEG does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.operators.operator import operator
from tamis.operators.packs.pictures import Picture, cv2, decoded

CELL, MARKER = 6, 4

COLOURS = {
    "person": (0, 255, 255),
    "car": (255, 0, 255),
    "policeCar": (255, 0, 0),
    "tourBoat": (0, 255, 0),
    "coastGuardBoat": (0, 128, 255),
    "wreck": (0, 0, 255),
    "chase": (255, 255, 0),
}
"""Blue, green and red of each kind of marker."""

CONGESTION = 15
"""The least number of cars in a congestion."""

MOB = 12
"""The least number of people in a mob, each a cell away from the next."""

# A chase is a marker between two cars; the pursuer is on the left.
_ALSO = {"car": ("car", "anyCar"), "policeCar": ("policeCar", "anyCar")}


@operator(reads=("image",), gives={"pursuer": "text", "pursued": "text"}, cost=1.4, timeout=5.0)
def chasePattern(image: Any) -> list[tuple[str, str]]:  # noqa: N802
    """Stand-in: which kind of car chases which; `anyCar` stands for every kind."""
    picture = decoded(image)
    found: set[tuple[str, str]] = set()
    for x, y in _markers(picture, "chase"):
        pursuer, pursued = (_ALSO.get(_kind(picture, x + dx, y), ()) for dx in (-CELL, CELL))
        found.update((one, other) for one in pursuer for other in pursued)
    return sorted(found)


@operator(reads=("image",), gives={"kind": "text"}, cost=2.5, timeout=5.0)
def trafficPattern(image: Any) -> list[str]:  # noqa: N802
    """Stand-in: `congestion` where there are many cars, `accident` where there is a wreck."""
    picture = decoded(image)
    cars = sum(len(_markers(picture, kind)) for kind in ("car", "policeCar"))
    patterns = {"congestion": cars >= CONGESTION, "accident": len(_markers(picture, "wreck")) > 0}
    return [kind for kind, there in patterns.items() if there]


@operator(reads=("image",), gives={"people": "number"}, cost=1.5, timeout=5.0)
def mobPattern(image: Any) -> list[int]:  # noqa: N802
    """Stand-in: the size of each crowd of people close to each other."""
    picture = decoded(image)
    people = _markers(picture, "person")
    reach = 2 * (CELL - MARKER) + 1  # closes the gap between neighbours only
    near = cv2.dilate(_mask(picture, "person"), np.ones((reach, reach), np.uint8))
    _, groups = cv2.connectedComponents(near)
    counts = np.bincount(groups[people[:, 1], people[:, 0]].astype(np.int64))
    return sorted({int(count) for count in counts if count >= MOB})


@operator(reads=("image",), gives={"cars": "number"}, cost=1.4, timeout=5.0)
def policeCarCount(image: Any) -> int:  # noqa: N802
    """Stand-in: the number of police cars in the picture."""
    return len(_markers(decoded(image), "policeCar"))


@operator(reads=("image",), gives={"boats": "number"}, cost=1.4, timeout=5.0)
def tourBoatCount(image: Any) -> int:  # noqa: N802
    """Stand-in: the number of tour boats in the picture."""
    return len(_markers(decoded(image), "tourBoat"))


@operator(reads=("image",), gives={"boats": "number"}, cost=1.4, timeout=5.0)
def coastGuardBoatCount(image: Any) -> int:  # noqa: N802
    """Stand-in: the number of coast guard boats in the picture."""
    return len(_markers(decoded(image), "coastGuardBoat"))


def _mask(picture: Picture, kind: str) -> Picture:
    colour = np.array(COLOURS[kind], np.uint8)
    return cv2.inRange(picture, colour, colour)


def _markers(picture: Picture, kind: str) -> npt.NDArray[np.int64]:
    """Columns and rows of the centres of the markers of a kind; ignores other patches."""
    _, _, patches, middles = cv2.connectedComponentsWithStats(_mask(picture, kind), connectivity=4)
    sides = patches[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]]
    whole = (sides == MARKER).all(axis=1) & (patches[:, cv2.CC_STAT_AREA] == MARKER**2)
    whole[0] = False  # the background is the first patch
    found: npt.NDArray[np.int64] = middles[whole].astype(np.int64)
    return found


def _kind(picture: Picture, x: int, y: int) -> str:
    """The kind of the marker at a point; empty without a marker."""
    height, width = picture.shape[:2]
    if not (0 <= x < width and 0 <= y < height):
        return ""
    colour = tuple(picture[y, x].tolist())
    return next((kind for kind, its in COLOURS.items() if its == colour), "")
