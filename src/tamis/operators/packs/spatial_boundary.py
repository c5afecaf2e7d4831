"""The distance to a place, in metres along the ellipsoid.

The distance to a point is one geodesic. The distance to a region is the geodesic to the nearest
point of its outline, and the work is to find this point. The outline becomes a chain of chords in
space, each of about a kilometre, between points of the ellipsoid; plain Euclidean geometry finds
the nearest chord. Without a map projection there is no seam at the antimeridian, no special case at
the poles, and no distortion.

The point nearest in space is almost the point nearest on the ground: the error is a small part of
the difference between an arc and its chord. The result is never too short, since it is a geodesic
to a point of the place. Compared with the nearest of points every 200 m, it was too long by at most
a factor of 1e-8 up to 5,000 km, and of 4e-6 anywhere on the Earth.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

Position = tuple[float, float]
"""Longitude and latitude in degrees, WGS 84, in that order as in GeoJSON."""

Floats = NDArray[np.float64]

_WGS84 = Geod(ellps="WGS84")
_STEP = 0.01  # degrees; an arc of 1 km is 2 cm above its chord
_SLACK = 0.001  # metres; above any rounding error of a distance on the Earth


def in_space(positions: Floats) -> Floats:
    """Longitudes and latitudes as points of the ellipsoid, in metres from its centre."""
    longitude, latitude = np.radians(positions).T
    squash = _WGS84.es
    normal = _WGS84.a / np.sqrt(1.0 - squash * np.sin(latitude) ** 2)
    return np.stack(
        (
            normal * np.cos(latitude) * np.cos(longitude),
            normal * np.cos(latitude) * np.sin(longitude),
            normal * (1.0 - squash) * np.sin(latitude),
        ),
        axis=-1,
    )


def geodesics(starts: Floats, ends: Floats) -> Floats:
    """Metres along the ellipsoid from each start to its end."""
    _, _, metres = _WGS84.inv(starts[:, 0], starts[:, 1], ends[:, 0], ends[:, 1])
    return np.asarray(metres, dtype=np.float64)


def surely_farther(
    positions: Sequence[Position], balls: Floats, metres: Floats
) -> NDArray[np.bool_]:
    """Whether a ball around a place shows that it is farther away than `metres`.

    Each position has its own ball: centre and radius, from `Boundary.ball`. A straight line is
    never longer than the way along the ground, so True is certain; False needs a closer look.
    """
    away = in_space(np.array(positions, dtype=np.float64)) - balls[:, :3]
    least = np.sqrt((away**2).sum(axis=1)) - balls[:, 3]
    farther: NDArray[np.bool_] = least > metres + _SLACK
    return farther


class Boundary:
    """The outline of a region, or a single point, for distances.

    It does not know whether a position is inside. It takes about 100 bytes per chord; a position
    takes a pass over all chords, 30 µs for a thousand of them.
    """

    __slots__ = ("_along", "_end", "_length", "_start", "_start_in_space", "ball")

    def __init__(self, shape: BaseGeometry) -> None:
        self._start, self._end = _segments(shape)
        self._start_in_space = in_space(self._start)
        self._along = in_space(self._end) - self._start_in_space
        self._length = (self._along**2).sum(axis=1)
        # An edge along a pole is a line on a map, but one point on the Earth.
        self._length[self._length == 0.0] = 1.0
        ends = np.concatenate((self._start_in_space, self._start_in_space + self._along))
        middle = (ends.min(axis=0) + ends.max(axis=0)) / 2
        radius = float(np.sqrt(((ends - middle) ** 2).sum(axis=1).max()))
        self.ball = (*middle.tolist(), radius)

    def distances(self, positions: Sequence[Position]) -> list[float]:
        """Metres from each position to the nearest point of the outline."""
        if not positions:
            return []
        places = np.array(positions, dtype=np.float64)
        nearest = np.array([self._nearest(place) for place in in_space(places)])
        found: list[float] = geodesics(places, nearest).tolist()
        return found

    def _nearest(self, place: Floats) -> Floats:
        away = place - self._start_in_space
        part = np.einsum("ij,ij->i", away, self._along) / self._length
        np.clip(part, 0.0, 1.0, out=part)
        away -= part[:, None] * self._along
        at = int(np.einsum("ij,ij->i", away, away).argmin())
        # On the map an edge is straight in degrees, as GeoJSON defines it.
        nearest: Floats = self._start[at] + part[at] * (self._end[at] - self._start[at])
        return nearest


def _segments(shape: BaseGeometry) -> tuple[Floats, Floats]:
    """Starts and ends of the short edges of an outline."""
    if shape.geom_type == "Point":
        point = shapely.get_coordinates(shape)
        return point, point
    starts, ends = [], []
    for line in shapely.get_parts(shapely.boundary(shapely.segmentize(shape, _STEP))):
        corners = shapely.get_coordinates(line)
        starts.append(corners[:-1])
        ends.append(corners[1:])
    return np.concatenate(starts), np.concatenate(ends)
