"""A scene that a drone sees, and a picture of it.

A picture of 320 × 240 pixels: a sky with posters of faces, a square with crowds, and the ground
with cars, boats and passers-by. Faces and pedestrians are drawn so that OpenCV's detectors see them
in daylight. Everything else is a marker that the stand-ins of `tamis.operators.packs.drones` count.
Bands and slots keep things from hiding each other, so that a picture shows the whole scene.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tamis.errors import TamisError
from tamis.operators.packs.drones import CELL, COLOURS, CONGESTION, MARKER, MOB
from tamis.operators.packs.pictures import Picture, cv2

WIDTH, HEIGHT = 320, 240
MOST_FACES = MOST_PEDESTRIANS = 3
MOST_IN_MOBS = 240
MOST_CHASES = 4
MOST_MARKERS = 90
"""Cars, boats, wrecks and single people together."""

_SKY = 60  # pixels down to where it ends
_SLOTS = (52, 160, 268)  # centres of faces and pedestrians, in pixels
_ASIDE = 34  # pixels beside a pedestrian that the detector needs
# Rows of cells. The ground uses every other row: single people must not touch.
_SQUARE = range(11, 17)
_ROAD = 18
_GROUND = range(20, 39, 2)
_COLUMNS = range(0, WIDTH // CELL, 2)


@dataclass(frozen=True)
class Scene:
    """A scene: what detectors should find.

    `mobs` are the sizes of crowds, `chases` pairs of pursuer and pursued, `light` is 1 at noon and
    near 0 at night. Cars count without those in a chase.
    """

    mobs: tuple[int, ...] = ()
    people: int = 0
    cars: int = 0
    police_cars: int = 0
    tour_boats: int = 0
    coast_guard_boats: int = 0
    wrecks: int = 0
    chases: tuple[tuple[str, str], ...] = ()
    pedestrians: int = 0
    faces: int = 0
    light: float = 1.0

    def count(self, kind: str) -> int:
        """How many markers of a kind there are, those in a chase included."""
        alone = {
            "person": self.people + sum(self.mobs),
            "car": self.cars,
            "policeCar": self.police_cars,
            "tourBoat": self.tour_boats,
            "coastGuardBoat": self.coast_guard_boats,
            "wreck": self.wrecks,
            "chase": len(self.chases),
        }
        return alone[kind] + sum(pair.count(kind) for pair in self.chases)

    @property
    def congestion(self) -> bool:
        """Whether the traffic stands still."""
        return self.count("car") + self.count("policeCar") >= CONGESTION

    def check(self) -> None:
        """Raise if the scene does not fit into a picture."""
        alone = self.people + self.cars + self.police_cars + self.tour_boats
        alone += self.coast_guard_boats + self.wrecks
        fits = {
            f"at most {MOST_MARKERS} single things": alone <= MOST_MARKERS,
            f"mobs of {MOB} or more": all(size >= MOB for size in self.mobs),
            f"at most {MOST_IN_MOBS} people in at most 3 mobs": sum(self.mobs) <= MOST_IN_MOBS
            and len(self.mobs) <= 3,
            f"at most {MOST_CHASES} chases": len(self.chases) <= MOST_CHASES,
            f"at most {MOST_PEDESTRIANS} pedestrians": self.pedestrians <= MOST_PEDESTRIANS,
            f"at most {MOST_FACES} faces": self.faces <= MOST_FACES,
        }
        broken = [what for what, holds in fits.items() if not holds]
        if broken:
            raise TamisError(f"the scene does not fit into a picture, which takes {broken[0]}")


def png(scene: Scene, rng: np.random.Generator) -> bytes:
    """A picture of the scene, as the bytes of a PNG."""
    done, data = cv2.imencode(".png", paint(scene, rng), [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert done
    return data.tobytes()


def paint(scene: Scene, rng: np.random.Generator) -> Picture:
    """A picture of the scene; positions and sizes are drawn from `rng`."""
    scene.check()
    picture = _background(scene.light, rng)
    for at in rng.permutation(_SLOTS)[: scene.faces]:
        _face(picture, int(at), 32, int(rng.integers(24, 28)))
    walking = rng.permutation(_SLOTS)[: scene.pedestrians]
    for at in walking:
        _pedestrian(picture, int(at), int(rng.integers(222, 230)), int(rng.integers(104, 112)))
    _mobs(picture, scene, rng)
    _chases(picture, scene, rng)
    _rest(picture, scene, rng, walking)
    return picture


def _background(light: float, rng: np.random.Generator) -> Picture:
    """Sky over ground with soft shades, in colours that no marker has."""
    base = np.empty((HEIGHT, WIDTH, 3), np.float32)
    base[:_SKY], base[_SKY:] = (205, 185, 165), (150, 158, 150)
    shades = rng.normal(0.0, 6.0, (6, 8, 1)).astype(np.float32)
    soft = cv2.resize(shades, (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
    shaded: Picture = np.clip((base + soft[:, :, None]) * light, 0, 240).astype(np.uint8)
    return shaded


def _pedestrian(picture: Picture, x: int, y: int, tall: int) -> None:
    """A person with feet at (x, y): a head, a trunk, two arms and two legs."""
    unit, dark = tall / 96, (12, 12, 16)
    limbs = (
        ((-14, 74), (14, 74), (12, 40), (-12, 40)),
        ((-14, 74), (-20, 42), (-15, 40), (-9, 70)),
        ((14, 74), (20, 42), (15, 40), (9, 70)),
        ((-12, 42), (0, 42), (-4, 0), (-12, 0)),
        ((12, 42), (0, 42), (4, 0), (12, 0)),
    )
    for limb in limbs:
        corners = [(round(x + across * unit), round(y - up * unit)) for across, up in limb]
        cv2.fillPoly(picture, [np.array(corners)], dark, cv2.LINE_AA)
    cv2.circle(picture, (x, round(y - 86 * unit)), round(9 * unit), dark, -1, cv2.LINE_AA)


def _face(picture: Picture, x: int, y: int, radius: int) -> None:
    """A face from the front. A cascade looks for its light and dark areas."""

    def oval(across: float, down: float, wide: float, high: float, colour: tuple[int, ...]) -> None:
        middle = (x + round(across * radius), y + round(down * radius))
        size = (max(1, round(wide * radius)), max(1, round(high * radius)))
        cv2.ellipse(picture, middle, size, 0, 0, 360, colour, -1, cv2.LINE_AA)

    oval(0, -0.3, 0.84, 0.8, (30, 40, 50))  # hair
    oval(0, 0.1, 0.78, 0.9, (150, 180, 215))
    for side in (-1, 1):
        oval(side * 0.33, -0.15, 0.2, 0.1, (40, 40, 40))
        oval(side * 0.33, -0.33, 0.24, 0.06, (60, 70, 80))
    oval(0, 0.2, 0.13, 0.07, (100, 120, 150))
    oval(0, 0.5, 0.32, 0.09, (70, 70, 140))


def _mark(picture: Picture, row: int, column: int, kind: str) -> None:
    top, left = row * CELL + 1, column * CELL + 1
    picture[top : top + MARKER, left : left + MARKER] = COLOURS[kind]


def _mobs(picture: Picture, scene: Scene, rng: np.random.Generator) -> None:
    """Each mob in a block of cells as high as the square, with a gap to the next."""
    high = len(_SQUARE)
    widths = [-(-size // high) for size in scene.mobs]
    spare = WIDTH // CELL - sum(widths) - max(0, len(widths) - 1)
    column = int(rng.integers(spare + 1))
    for size, width in zip(scene.mobs, widths, strict=True):
        for person in range(size):
            _mark(picture, _SQUARE[person % high], column + person // high, "person")
        column += width + 1


def _chases(picture: Picture, scene: Scene, rng: np.random.Generator) -> None:
    step = WIDTH // CELL // MOST_CHASES
    for place, pair in zip(rng.permutation(MOST_CHASES), scene.chases, strict=False):
        for further, kind in enumerate((pair[0], "chase", pair[1])):
            _mark(picture, _ROAD, int(place) * step + 2 + further, kind)


def _rest(
    picture: Picture, scene: Scene, rng: np.random.Generator, walking: npt.NDArray[np.int64]
) -> None:
    """Everything else, scattered over the ground where no pedestrian is."""
    free = [
        (row, column)
        for row in _GROUND
        for column in _COLUMNS
        if all(abs(column * CELL + CELL // 2 - at) > _ASIDE for at in walking)
    ]
    kinds = [kind for kind in COLOURS if kind != "chase"]
    alone = [
        scene.people
        if kind == "person"
        else scene.count(kind) - sum(pair.count(kind) for pair in scene.chases)
        for kind in kinds
    ]
    places = iter(rng.permutation(len(free)))
    for kind, count in zip(kinds, alone, strict=True):
        for _ in range(count):
            row, column = free[next(places)]
            _mark(picture, row, column, kind)
