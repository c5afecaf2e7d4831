"""A gazetteer: named regions and points, and questions about positions among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import shapely
from shapely.affinity import translate
from shapely.errors import ShapelyError
from shapely.geometry import Point
from shapely.geometry import shape as shape_of
from shapely.geometry.base import BaseGeometry

from tamis.errors import TamisError, counted, nearest, suggestion
from tamis.operators.packs.spatial_boundary import Boundary, Position, geodesics, surely_farther

CACHED = 4096  # positions with cached answers, for each question

_REGIONS = ("Polygon", "MultiPolygon")
_SHIPPED = ("nyc-boroughs.geojson", "nyc-landmarks.geojson")
_Answer = TypeVar("_Answer")


class PlaceError(TamisError, ValueError):
    """An invalid place or position, or an unknown name."""


class Places(Mapping[str, BaseGeometry]):
    """Named places on the Earth: regions (polygons) and points, in WGS 84.

    Shapes are those of shapely, or GeoJSON geometries. Edges are straight in degrees, as GeoJSON
    defines them. A region contains its boundary: a position on the border of two is in both.

    >>> corners = [[0, 0], [1, 0], [0, 1], [0, 0]]
    >>> places = Places({"Park": {"type": "Polygon", "coordinates": [corners]}})
    >>> places.at([(0.2, 0.2), (0.8, 0.8)])
    [('Park',), ()]

    A question is about a list of positions, each with its own place. Answers are cached by
    position: one query of an R-tree finds the regions of all new positions, however many
    subscriptions ask about however many places.

    A region over the antimeridian has two parts, as GeoJSON requires, or longitudes beyond 180.
    """

    def __init__(self, places: Mapping[str, BaseGeometry | Mapping[str, Any]]) -> None:
        self._shapes = {_name(name): _checked(name, shape) for name, shape in places.items()}
        regions = [n for n, shape in self._shapes.items() if shape.geom_type in _REGIONS]
        self._regions = np.array(sorted(regions), dtype=object)
        self._region_shapes = np.array([self._shapes[n] for n in self._regions], dtype=object)
        shapely.prepare(self._region_shapes)
        self._tree = shapely.STRtree(self._region_shapes)
        self._at = _AnswerCache(self._find)
        self._point = {
            name: (shape.x, shape.y)
            for name, shape in self._shapes.items()
            if isinstance(shape, Point)
        }
        self._metres: dict[str, _AnswerCache[float]] = {}
        self._boundaries: dict[str, Boundary] = {}

    @classmethod
    def from_geojson(
        cls, source: str | PathLike[str] | Mapping[str, Any], name: str = "name"
    ) -> Places:
        """The features of a GeoJSON document or file. The property `name` names each of them."""
        document, where = _document(source)
        found: dict[str, Any] = {}
        for at, feature in enumerate(_features(document, where)):
            properties = feature.get("properties") or {}
            if name not in properties:
                hint = nearest(name, map(str, properties)) or "it has no properties"
                raise PlaceError(f"{where}, feature {at}: no property {name!r} to name it; {hint}")
            called = _name(properties[name])
            if called in found:
                raise PlaceError(f"{where}, feature {at}: a second place is called {called!r}")
            if not isinstance(feature.get("geometry"), Mapping):
                raise PlaceError(f"{where}, feature {at}: {called!r} has no geometry")
            found[called] = feature["geometry"]
        return cls(found)

    @staticmethod
    @cache
    def default() -> Places:
        """The places that come with tamis: the boroughs of New York, and some landmarks."""
        found: dict[str, BaseGeometry] = {}
        for name in _SHIPPED:
            text = (files("tamis") / "data" / name).read_text(encoding="utf-8")
            found.update(Places.from_geojson(json.loads(text)))
        return Places(found)

    def __or__(self, others: Places) -> Places:
        """The union of two gazetteers; no name may be in both."""
        twice = sorted(self.keys() & others.keys())
        if twice:
            raise PlaceError(f"both gazetteers have a place called {twice[0]!r}")
        return Places({**self, **others})

    def __reduce__(self) -> tuple[Any, ...]:
        return (Places, (self._shapes,))  # without the caches

    def __getitem__(self, name: str) -> BaseGeometry:
        return self._shapes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def __repr__(self) -> str:
        regions = len(self._regions)
        return f"Places({counted(regions, 'region')}, {counted(len(self) - regions, 'point')})"

    def check(self, name: str, *, region: bool = False) -> None:
        """Raise if a condition cannot use `name`."""
        if name not in self._shapes:
            raise PlaceError(f"unknown place {name!r}{suggestion(name, self)}")
        if region and self._shapes[name].geom_type not in _REGIONS:
            raise PlaceError(
                f"{name!r} is a point, and nothing is in a point; use locWithin or distanceFrom"
            )

    def at(self, positions: Sequence[Position]) -> list[tuple[str, ...]]:
        """For each position the names of the regions that contain it, in alphabetical order."""
        return self._at(positions)

    def pairs_in(self, positions: Sequence[Position], names: Sequence[str]) -> list[bool]:
        """For each position whether it is in its region."""
        for name in set(names):
            self.check(name, region=True)
        return [name in at for name, at in zip(names, self._at(positions), strict=True)]

    def pairs_apart(self, positions: Sequence[Position], names: Sequence[str]) -> list[float]:
        """For each position the distance to its place; 0 inside a region."""
        found = np.zeros(len(names))
        groups: dict[str, list[int]] = {}
        for at, name in enumerate(names):
            groups.setdefault(name, []).append(at)
        points: list[int] = []
        for name, mine in groups.items():
            self.check(name)
            if name in self._point:
                points += mine
            else:
                found[mine] = self._metres_to(name, [positions[at] for at in mine])
        if points:
            ends = np.array([self._point[names[at]] for at in points])
            found[points] = geodesics(np.array([positions[at] for at in points]), ends)
        return found.tolist()

    def pairs_within(
        self, positions: Sequence[Position], reaches: Sequence[tuple[str, float]]
    ) -> list[bool]:
        """For each position whether it is within its distance of its place."""
        for name, metres in set(reaches):
            self.check(name)
            check_distance(metres)
        if not positions:
            return []
        balls = np.array([self._boundary(name).ball for name, _ in reaches])
        most = np.array([metres for _, metres in reaches])
        near = np.flatnonzero(~surely_farther(positions, balls, most)).tolist()
        apart = self.pairs_apart([positions[at] for at in near], [reaches[at][0] for at in near])
        within = np.zeros(len(reaches), np.bool_)
        within[near] = apart <= most[near]
        return within.tolist()

    def _boundary(self, name: str) -> Boundary:
        # Two threads may both make one; either is good.
        if name not in self._boundaries:
            self._boundaries[name] = Boundary(self._shapes[name])
        return self._boundaries[name]

    def _metres_to(self, name: str, positions: Sequence[Position]) -> list[float]:
        """The distances to a region; 0 inside."""
        if name not in self._metres:
            self._metres[name] = _AnswerCache(partial(self._measure, name))
        return self._metres[name](positions)

    def _measure(self, name: str, positions: Sequence[Position]) -> list[float]:
        inside = [name in found for found in self._at(positions)]
        outside = [where for where, within in zip(positions, inside, strict=True) if not within]
        measured = iter(self._boundary(name).distances(outside))
        return [0.0 if within else next(measured) for within in inside]

    def _find(self, positions: Sequence[Position]) -> list[tuple[str, ...]]:
        # At the antimeridian and the poles, one point on the Earth is several points on a map.
        probes = [(at, each) for at, where in enumerate(positions) for each in _on_map(where)]
        points = np.array([each for _, each in probes], dtype=np.float64)
        probe, region = self._tree.query(shapely.points(points))
        inside = shapely.intersects_xy(
            self._region_shapes[region], points[probe, 0], points[probe, 1]
        )
        found: list[set[int]] = [set() for _ in positions]
        for one, which in zip(probe[inside].tolist(), region[inside].tolist(), strict=True):
            found[probes[one][0]].add(which)
        for at, (_, latitude) in enumerate(positions):
            if abs(latitude) == 90.0:
                pole = shapely.linestrings([(-180.0, latitude), (180.0, latitude)])
                found[at].update(self._tree.query(pole, predicate="intersects").tolist())
        return [tuple(self._regions[which] for which in sorted(each)) for each in found]


class _AnswerCache(Generic[_Answer]):
    """Answers by position. A full cache starts empty again; threads need no lock for this."""

    def __init__(self, find: Callable[[Sequence[Position]], list[_Answer]]) -> None:
        self._find = find
        self._known: dict[Position, _Answer] = {}

    def __call__(self, positions: Sequence[Position]) -> list[_Answer]:
        known = self._known
        new = [where for where in dict.fromkeys(positions) if where not in known]
        if len(known) + len(new) > CACHED:
            self._known = known = {}
            new = list(dict.fromkeys(positions))
        if new:
            known.update(zip(new, self._find(new), strict=True))
        return [known[where] for where in positions]


def check_distance(metres: object) -> None:
    """Raise if `metres` is not a distance."""
    if not isinstance(metres, (int, float)) or isinstance(metres, bool) or not metres >= 0:
        raise PlaceError(f"a distance is a number of metres, 0 or more, got {metres!r}")


def _on_map(position: Position) -> tuple[Position, ...]:
    longitude, latitude = position
    if abs(longitude) == 180.0:
        return ((180.0, latitude), (-180.0, latitude))
    return (position,)


def _document(source: str | PathLike[str] | Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    if isinstance(source, Mapping):
        return source, "GeoJSON"
    try:
        document = json.loads(Path(source).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PlaceError(f"{source}: cannot be read as GeoJSON: {error}") from error
    if not isinstance(document, Mapping):
        raise PlaceError(f"{source}: GeoJSON is an object, got {type(document).__name__}")
    return document, str(source)


def _features(document: Mapping[str, Any], where: str) -> list[Mapping[str, Any]]:
    kind = document.get("type")
    if kind == "Feature":
        return [document]
    features = document.get("features")
    if kind != "FeatureCollection" or not isinstance(features, (list, tuple)):
        raise PlaceError(f"{where}: expected a FeatureCollection or a Feature, got {kind!r}")
    for at, feature in enumerate(features):
        if not isinstance(feature, Mapping):
            raise PlaceError(f"{where}, feature {at}: expected an object, got {feature!r}")
    return list(features)


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise PlaceError(f"the name of a place is text, got {name!r}")
    return name


def _checked(name: str, given: BaseGeometry | Mapping[str, Any]) -> BaseGeometry:
    """A valid shape on the map; or an error that names the place."""
    try:
        shape = shapely.force_2d(
            given if isinstance(given, BaseGeometry) else shape_of(dict(given))
        )
    except (ShapelyError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise PlaceError(f"place {name!r} is not a GeoJSON geometry: {error}") from error
    if shape.geom_type not in (*_REGIONS, "Point"):
        raise PlaceError(
            f"place {name!r} is a {shape.geom_type}; it has to be a Polygon, MultiPolygon or Point"
        )
    if shape.is_empty:
        raise PlaceError(f"place {name!r} is empty")
    west, south, east, north = shape.bounds
    widest = 180.0 if shape.geom_type == "Point" else 360.0
    if not (west >= -widest and east <= widest and south >= -90.0 and north <= 90.0):
        raise PlaceError(
            f"place {name!r} reaches from ({west:g}, {south:g}) to ({east:g}, {north:g}), which is "
            "outside the Earth: coordinates are degrees of longitude and latitude (WGS 84)"
        )
    if not shape.is_valid:
        raise PlaceError(
            f"place {name!r} is not a valid region: {shapely.is_valid_reason(shape)}; "
            "shapely.make_valid may repair it"
        )
    if _jumps(shape):
        raise PlaceError(
            f"place {name!r} has an edge over more than half the Earth; if it crosses the "
            "antimeridian, cut it in two, or use longitudes beyond 180"
        )
    return _wrapped(shape)


def _jumps(shape: BaseGeometry) -> bool:
    """Whether an edge seems to go the wrong way around the Earth.

    An edge along a pole may have any length, and a polar cap needs the full turn.
    """
    for line in shapely.get_parts(shapely.boundary(shape)):
        longitudes, latitudes = shapely.get_coordinates(line).T
        turn = np.abs(np.diff(longitudes))
        polar = (np.abs(latitudes[1:]) == 90.0) & (np.abs(latitudes[:-1]) == 90.0)
        if np.any((turn > 180.0) & (turn < 360.0) & ~polar):
            return True
    return False


def _wrapped(shape: BaseGeometry) -> BaseGeometry:
    """The same shape, with the part beyond 180 moved to the other edge of the map."""
    west, _, east, _ = shape.bounds
    if west >= -180.0 and east <= 180.0:
        return shape
    parts: list[BaseGeometry] = []
    for turn in (-360.0, 0.0, 360.0):
        cut = shapely.intersection(shape, shapely.box(turn - 180.0, -90.0, turn + 180.0, 90.0))
        moved = translate(cut, xoff=-turn)
        parts.extend(each for each in shapely.get_parts(moved) if each.geom_type in _REGIONS)
    return shapely.union_all(parts)
