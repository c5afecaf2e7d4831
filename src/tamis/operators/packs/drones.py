"""Stand-ins for recognisers of what a drone sees. They recognise markers, not the world.

The example of the paper on expensive operators (Liu et al., DEBS 2007, section 2.1) asks pictures
for police cars that chase cars, for mobs, congestion, accidents and boats. No library has models of
these. So the pictures of `tamis.workload.drones` carry small squares of fixed colours, one for each
thing that is there, and these operators find the squares by their colour: real pictures are decoded
and segmented, the answers vary from event to event, and what is right is known. On a photograph
they find nothing. `faceCount` and `pedestrianCount` of the vision pack are real.

Markers are MARKER pixels wide and lie CELL pixels apart, which PNG keeps and JPEG does not.
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
"""Blue, green and red of what the markers stand for."""

CONGESTION = 15
"""Cars from which on the traffic stands still."""

MOB = 12
"""People, each a cell away from the next, from whom on they are a mob."""

# A chase is a marker between its two cars, the pursuer to the left.
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
    """Stand-in: for each crowd of people who stand close together, how many they are."""
    picture = decoded(image)
    people = _markers(picture, "person")
    reach = 2 * (CELL - MARKER) + 1  # closes the gap between neighbours, no more
    near = cv2.dilate(_mask(picture, "person"), np.ones((reach, reach), np.uint8))
    _, groups = cv2.connectedComponents(near)
    counts = np.bincount(groups[people[:, 1], people[:, 0]].astype(np.int64))
    return sorted({int(count) for count in counts if count >= MOB})


@operator(reads=("image",), gives={"cars": "number"}, cost=1.4, timeout=5.0)
def policeCarCount(image: Any) -> int:  # noqa: N802
    """Stand-in: how many police cars are in the picture."""
    return len(_markers(decoded(image), "policeCar"))


@operator(reads=("image",), gives={"boats": "number"}, cost=1.4, timeout=5.0)
def tourBoatCount(image: Any) -> int:  # noqa: N802
    """Stand-in: how many tour boats are in the picture."""
    return len(_markers(decoded(image), "tourBoat"))


@operator(reads=("image",), gives={"boats": "number"}, cost=1.4, timeout=5.0)
def coastGuardBoatCount(image: Any) -> int:  # noqa: N802
    """Stand-in: how many boats of the coast guard are in the picture."""
    return len(_markers(decoded(image), "coastGuardBoat"))


def _mask(picture: Picture, kind: str) -> Picture:
    colour = np.array(COLOURS[kind], np.uint8)
    return cv2.inRange(picture, colour, colour)


def _markers(picture: Picture, kind: str) -> npt.NDArray[np.int64]:
    """Columns and rows of the middles of a kind's markers; patches of other sizes are none."""
    _, _, patches, middles = cv2.connectedComponentsWithStats(_mask(picture, kind), connectivity=4)
    sides = patches[:, [cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT]]
    whole = (sides == MARKER).all(axis=1) & (patches[:, cv2.CC_STAT_AREA] == MARKER**2)
    whole[0] = False  # the background is the first patch
    found: npt.NDArray[np.int64] = middles[whole].astype(np.int64)
    return found


def _kind(picture: Picture, x: int, y: int) -> str:
    """What the marker at a place stands for; empty where there is none."""
    height, width = picture.shape[:2]
    if not (0 <= x < width and 0 <= y < height):
        return ""
    colour = tuple(picture[y, x].tolist())
    return next((kind for kind, its in COLOURS.items() if its == colour), "")
