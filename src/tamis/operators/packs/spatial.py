"""Operators over the position of an event.

    locIn(Bronx)                            the position is in the region
    locWithin(TimesSquare, 5000)            it is at most 5,000 m from the place
    distanceFrom(StatueOfLiberty, ?metres)  the distance to the place; 0 in a region
    placesAt(?place)                        every region that contains it

The attribute `position` is opaque: `{"lat": 40.7, "lon": -73.9}`, or `[lon, lat]`, or a GeoJSON
Point, in degrees of WGS 84. A gazetteer, `Places`, names the places; the default one has the five
boroughs of New York and some landmarks. `pack` makes the same operators over your own places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tamis.operators.packs.pack_operator import BatchOperator
from tamis.operators.packs.spatial_boundary import Position
from tamis.operators.packs.spatial_places import PlaceError, Places, check_distance
from tamis.operators.registry import register
from tamis.operators.serialization import remember_pack_call

__all__ = ["PlaceError", "Places", "distanceFrom", "locIn", "locWithin", "pack", "placesAt"]

_SHOWN = 80  # characters of a value in a message


def position_of(given: object) -> Position:
    """Longitude and latitude, from any form of a position in an event.

    >>> position_of({"lat": 40.7, "lon": -73.9}), position_of([-73.9, 40.7])
    ((-73.9, 40.7), (-73.9, 40.7))
    >>> position_of({"type": "Point", "coordinates": [-73.9, 40.7, 12.0]})
    (-73.9, 40.7)
    """
    pair = given
    if isinstance(given, Mapping):
        if given.get("type") == "Point":
            pair = given.get("coordinates")
        elif "lat" in given and "lon" in given:
            pair = (given["lon"], given["lat"])
    # GeoJSON allows a third number, the altitude.
    if not isinstance(pair, (list, tuple)) or len(pair) not in (2, 3):
        shown = repr(given)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
        raise PlaceError(
            f'a position is {{"lat": …, "lon": …}}, [lon, lat] or a GeoJSON Point, got {shown}'
        )
    return _degrees("longitude", pair[0], 180.0), _degrees("latitude", pair[1], 90.0)


def pack(
    places: Places | None = None, *, attribute: str = "position", prefix: str = ""
) -> tuple[BatchOperator, ...]:
    """The four operators over your own gazetteer, or over another attribute.

    `prefix` goes before their names, so that one engine can have several packs.

    >>> depots = Places({"North": {"type": "Point", "coordinates": [-73.9, 40.9]}})
    >>> [each.name for each in pack(depots, attribute="van.position", prefix="depot_")]
    ['depot_locIn', 'depot_locWithin', 'depot_distanceFrom', 'depot_placesAt']
    """
    known = Places.default() if places is None else places

    def loc_in(positions: Sequence[Any], place: Sequence[str]) -> list[bool | PlaceError]:
        """Whether the position is in the region."""
        return _each(positions, place, known.pairs_in)

    def loc_within(
        positions: Sequence[Any], place: Sequence[str], metres: Sequence[float]
    ) -> list[bool | PlaceError]:
        """Whether the position is at most this many metres from the place."""
        reaches = list(zip(place, metres, strict=True))
        return _each(positions, reaches, known.pairs_within)

    def distance_from(positions: Sequence[Any], place: Sequence[str]) -> list[float | PlaceError]:
        """The distance from the position to the place in metres; 0 in a region."""
        return _each(positions, place, known.pairs_apart)

    def places_at(positions: Sequence[Any]) -> list[list[str] | PlaceError]:
        """The names of all regions that contain the position."""
        return _each(
            positions, positions, lambda found, _: [list(names) for names in known.at(found)]
        )

    def check_region(place: str | None) -> None:
        if place is not None:
            known.check(place, region=True)

    def check_reach(place: str, metres: float | None) -> None:
        known.check(place)
        if metres is not None:
            check_distance(metres)

    def make(name: str, answer: Callable[..., list[Any]], **rest: Any) -> BatchOperator:
        return BatchOperator(prefix + name, answer, attribute=attribute, **rest)

    text, metres = {"place": "text"}, {"metres": "number"}
    made = (
        make("locIn", loc_in, arguments=text, validate=check_region, cost=0.005, pairs=True),
        make(
            "locWithin",
            loc_within,
            arguments=text | metres,
            validate=check_reach,
            cost=0.02,
            pairs=True,
        ),
        make(
            "distanceFrom",
            distance_from,
            arguments=text,
            gives=metres,
            validate=check_reach,
            cost=0.02,
            pairs=True,
        ),
        make("placesAt", places_at, gives=text, validate=check_region, cost=0.005),
    )
    return remember_pack_call(
        pack, {"places": places, "attribute": attribute, "prefix": prefix}, made
    )


def _each(
    given: Sequence[Any],
    wanted: Sequence[Any],
    ask: Callable[[list[Position], list[Any]], list[Any]],
) -> list[Any | PlaceError]:
    """One question for all positions, with `wanted` for each of them.

    The answer for an invalid position is the error.
    """
    found: list[Position | PlaceError] = []
    for each in given:
        try:
            found.append(position_of(each))
        except PlaceError as error:
            found.append(error)
    good = [(at, each) for at, each in enumerate(found) if isinstance(each, tuple)]
    answers = iter(ask([each for _, each in good], [wanted[at] for at, _ in good]))
    return [next(answers) if isinstance(each, tuple) else each for each in found]


def _degrees(what: str, given: object, most: float) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise PlaceError(f"a {what} is a number of degrees, got {given!r:.{_SHOWN}}")
    if not -most <= given <= most:
        raise PlaceError(
            f"a {what} is between -{most:g} and {most:g} degrees, got {given!r:.{_SHOWN}}"
        )
    return float(given)


locIn, locWithin, distanceFrom, placesAt = map(register, pack())  # noqa: N816 - as in conditions
