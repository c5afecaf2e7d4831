"""Drones over New York (Liu et al., DEBS 2007, section 2.1): positions, pictures, subscriptions.

The paper's running example: cameras on drones publish a picture with position, altitude and time,
and people subscribe to places and to what is seen there. `SUBSCRIPTIONS` are the paper's five.
`make` draws more of the same kind, over 50 places and six detectors. The paper has no generator for
them, so the choices are ours: Zipf's law for places, detectors and thresholds, so that many
subscriptions share a predicate, and ordinary predicates on altitude and time beside the operators.

Pictures are generated (`tamis.workload.drones_images`) and encode a scene, which `scenes` returns.
Faces and pedestrians are for the real detectors of the vision pack, the rest for
the stand-ins of `tamis.operators.packs.drones`. Many events are near a place, and boats are near
water.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.workload import draw
from tamis.workload.base import Workload, plain_schema
from tamis.workload.draw import (
    Bools,
    Floats,
    Ints,
    by_weight,
    distinct,
    event_stream,
    require,
    require_count,
    stream,
    weighted,
    zipf_weights,
)
from tamis.workload.drones_places import AT_WATER, BOROUGHS, NEIGHBOURHOODS, POINTS
from tamis.workload.tables import conditions_table, events_table, joined, keep, moments, words

if TYPE_CHECKING:
    from tamis.operators.operator import Operator
    from tamis.workload.drones_images import Scene

SUBSCRIPTIONS = {
    "S1": "locIn(Bronx) and chasePattern(policeCar, anyCar)",
    "S2": "locIn(Bronx) and mobPattern(?people) and ?people > 50",
    # The paper has 250. The detector is a real one, and finds at most three in such small
    # pictures.
    "S3": "locWithin(TimesSquare, 5000) and trafficPattern(congestion)"
    " and pedestrianCount(?ped) and ?ped > 1",
    "S4": "locIn(Bronx) and trafficPattern(congestion) and trafficPattern(accident)"
    " and policeCarCount(?pol) and ?pol < 2",
    "S5": "distanceFrom(StatueOfLiberty, ?x) and ?x < 1000"
    " and tourBoatCount(?y) and coastGuardBoatCount(?z) and ?y > 2 * ?z",
}
"""The paper's five subscriptions."""

REASONED = {
    "R1": "isA(emergencyVehicle) and locIn(Manhattan)",
    "R2": "isA(boat) and distanceFrom(StatueOfLiberty, ?metres) and ?metres < 2000",
    "R3": "holds(?who, follows, ?whom)"
    " and known(?who, operatedBy, ?by) and known(?by, type, authority)",
}
"""Three of our own, which use the ontology of vehicles."""

DETECTORS = {
    "brightness": [f"brightness(?light) and ?light {bound}" for bound in ("< 60", "> 120", "< 90")],
    "faceCount": [f"faceCount(?faces) and ?faces {bound}" for bound in (">= 1", ">= 2", "= 0")],
    "pedestrianCount": [
        f"pedestrianCount(?walking) and ?walking {bound}" for bound in (">= 1", ">= 2", "= 0")
    ],
    "mobPattern": [f"mobPattern(?mob) and ?mob > {people}" for people in (50, 20, 100)],
    "trafficPattern": [
        "trafficPattern(congestion)",
        "trafficPattern(accident)",
        "not trafficPattern(congestion)",
        "trafficPattern(congestion) and trafficPattern(accident)",
    ],
    "policeCarCount": [
        f"policeCarCount(?police) and ?police {bound}" for bound in (">= 1", "< 2", ">= 3", "= 0")
    ],
}
"""Predicates on pictures, the most popular first: three real detectors, three stand-ins."""

START = datetime(2026, 6, 1, tzinfo=UTC)
_DAYS = 7
_DRONES = 40
_METRES = (1000, 500, 2000, 5000)
# The places of S1 to S5 come first, so they are the most popular.
_NEAR = ("TimesSquare", "StatueOfLiberty", "YankeeStadium", "Fordham", "HuntsPoint")
_POINTS = (*_NEAR, *(name for name in POINTS if name not in _NEAR))
_WHERE = [
    *(f'locIn("{name}")' for name in ("Bronx", *(each for each in BOROUGHS if each != "Bronx"))),
    *(f"locWithin({name}, {metres})" for metres in _METRES for name in _POINTS),
    *(
        f"distanceFrom({name}, ?metres) and ?metres < {metres}"
        for metres in _METRES
        for name in _POINTS
    ),
]
_ALTITUDE = [
    *(f"altitude < {metres}" for metres in (200, 100, 300)),
    *(f"altitude between {low} and {low + 100}" for low in (0, 100, 200, 300)),
]
_TIME = [
    *(f"time >= 2026-06-0{day}" for day in range(2, 8)),
    *(f"time < 2026-06-0{day}" for day in range(2, 8)),
]
_BOX = (-74.26, 40.49, -73.70, 40.92)  # west, south, east, north
_SUBJECTS = ("policeCar", "tourBoat", "coastGuardBoat", "taxi", "bus", "cutter12", "patrol7", "car")
_FACTS = (
    [["patrol7", "chases", "unknown1"]],
    [["cutter12", "escorts", "libertyBelle"], ["libertyBelle", "locatedIn", "upperBay"]],
    [["unknown2", "follows", "patrol7"]],
)


def make(n: int, *, seed: int = 0, exponent: float = 1.0, place: str = "first") -> Workload:
    """`n` subscriptions to what drones see.

    Args:
        n: number of subscriptions.
        seed: the same seed gives the same workload.
        exponent: of the Zipf law of places, detectors and thresholds.
        place: position of the place in a condition, "first" as in the paper's five, or "last".
    """
    require(place in ("first", "last"), f'the place is written "first" or "last", got {place!r}')
    require_count(n)
    conditions = _conditions(stream(seed, draw.SUBSCRIPTIONS), n, exponent, place)
    return Workload(
        "drones",
        schema(),
        conditions_table(conditions),
        seed,
        {"n": n, "exponent": exponent, "place": place},
        _events,
    )


def schema() -> dict[str, Any]:
    """The schema document: one event type. Only operators read the opaque attributes."""
    mandatory = {
        "drone": "text",
        "time": "timestamp",
        "altitude": "decimal",
        "position": "opaque",
        "image": "opaque",
    }
    made = plain_schema(mandatory, "mandatory")
    optional = {"subject": "text", "facts": "opaque"}
    made["attributes"] |= optional
    made["event_types"]["event"] |= dict.fromkeys(optional, "optional")
    return made


def operators() -> tuple[Operator, ...]:
    """The operators of the subscriptions: spatial over all 50 places, vision, stand-ins."""
    from tamis.operators.packs import drones, reasoning, spatial, vision

    points = {
        name: {"type": "Point", "coordinates": list(where)}
        for name, where in NEIGHBOURHOODS.items()
    }
    places = spatial.Places.default() | spatial.Places(points)
    return (
        *spatial.pack(places),
        *(vision.brightness, vision.faceCount, vision.pedestrianCount),
        *(drones.chasePattern, drones.trafficPattern, drones.mobPattern),
        *(drones.policeCarCount, drones.tourBoatCount, drones.coastGuardBoatCount),
        *reasoning.pack(),
    )


def scenes(made: Workload, n: int, seed: int | None = None) -> list[Scene]:
    """The scenes in the pictures of `made.events(n, seed)`."""
    rng = event_stream(made.seed, seed)
    _, minutes, water = _flights(rng, n)
    return _scenes(rng, minutes, water)


# --- subscriptions ---------------------------------------------------------------------------


def _conditions(rng: np.random.Generator, n: int, exponent: float, place: str) -> pa.Array:
    one = _conjunctions(rng, n, exponent, place)
    # One in twenty conditions has an `or`.
    other = keep(_conjunctions(rng, n, exponent, place), rng.random(n) < 0.05)
    return joined(" or ", one, other)


def _conjunctions(rng: np.random.Generator, n: int, exponent: float, written: str) -> pa.Array:
    """A place, one to three detectors, and often an altitude or a time."""
    popular = np.cumsum(zipf_weights(len(DETECTORS), exponent))
    picked = distinct(rng, n, 3, by_weight(popular))
    lengths = rng.integers(1, 4, size=n)
    columns = [_zipf(rng, n, _WHERE, exponent)]
    for place in range(3):
        there = lengths > place
        for at, predicates in enumerate(DETECTORS.values()):
            text = _zipf(rng, n, predicates, exponent)
            columns.append(keep(text, there & (picked[:, place] == at)))
    columns.append(keep(_zipf(rng, n, _ALTITUDE, exponent), rng.random(n) < 0.5))
    columns.append(keep(_zipf(rng, n, _TIME, exponent), rng.random(n) < 0.3))
    if written == "last":
        columns.append(columns.pop(0))
    return joined(" and ", *columns)


def _zipf(rng: np.random.Generator, n: int, texts: Sequence[str], exponent: float) -> pa.Array:
    return words(weighted(rng, np.cumsum(zipf_weights(len(texts), exponent)), n), texts)


# --- events ----------------------------------------------------------------------------------


def _events(rng: np.random.Generator, n: int) -> pa.Table:
    from tamis.workload.drones_images import png

    position, minutes, water = _flights(rng, n)
    seen = _scenes(rng, minutes, water)
    followed = rng.random(n) < 0.4
    stated = rng.random(n) < 0.1
    facts = [
        _FACTS[at] if there else None
        for at, there in zip(rng.integers(3, size=n), stated, strict=True)
    ]
    return events_table(
        {
            "drone": words(rng.integers(_DRONES, size=n), [f"d{k:02}" for k in range(_DRONES)]),
            "time": moments(START, minutes),
            "altitude": np.round(rng.uniform(20.0, 400.0, size=n), 1),
            "position": pa.StructArray.from_arrays(
                [pa.array(position[:, 1]), pa.array(position[:, 0])], ["lat", "lon"]
            ),
            "subject": words(rng.integers(len(_SUBJECTS), size=n), _SUBJECTS, absent=~followed),
            "facts": pa.array(facts, pa.list_(pa.list_(pa.string()))),
            "image": pa.array([png(scene, rng) for scene in seen], pa.binary()),
        }
    )


def _flights(rng: np.random.Generator, n: int) -> tuple[Floats, Ints, Bools]:
    """Positions (longitude, latitude), times (minutes), and whether there is water."""
    places = np.array([POINTS[name] for name in _POINTS])
    nearest = weighted(rng, np.cumsum(zipf_weights(len(places), 0.7)), n)
    # Some 700 m around a place; a degree of longitude is three quarters of one of latitude here.
    around = places[nearest] + rng.normal(0.0, 1.0, (n, 2)) * (0.0085, 0.0064)
    west, south, east, north = _BOX
    anywhere = rng.uniform((west, south), (east, north), (n, 2))
    close = rng.random(n) < 0.7
    position: Floats = np.where(close[:, None], around, anywhere).round(6)
    water = close & np.isin(nearest, [_POINTS.index(name) for name in AT_WATER])
    return position, rng.integers(_DAYS * 24 * 60, size=n), water | (rng.random(n) < 0.1)


def _scenes(rng: np.random.Generator, minutes: Ints, water: Bools) -> list[Scene]:
    from tamis.workload.drones_images import MOST_FACES, MOST_PEDESTRIANS, Scene

    n = len(minutes)
    hour = minutes % (24 * 60) / 60.0
    light = 0.3 + 0.7 * np.clip(np.sin((hour - 5.0) / 16.0 * np.pi), 0.0, 1.0)
    busy = rng.random(n) < 0.35
    crowded = rng.random(n) < 0.2
    mobs = np.where(rng.random(n) < 0.5, rng.integers(12, 60, size=n), rng.integers(60, 130, n))
    second = rng.integers(12, 100, size=n)
    two = rng.random(n) < 0.2
    cars = np.where(busy, rng.integers(12, 30, size=n), rng.integers(0, 12, size=n))
    boats = np.where(water, rng.poisson(4.0, size=n), 0).clip(max=12)
    guards = np.where(water, rng.poisson(1.0, size=n), 0).clip(max=6)
    chase = rng.random(n) < 0.12
    by_police = rng.random(n) < 0.8
    columns = {
        "people": rng.integers(0, 25, size=n),
        "cars": cars,
        "police_cars": rng.poisson(0.8, size=n).clip(max=5),
        "tour_boats": boats,
        "coast_guard_boats": guards,
        "wrecks": (rng.random(n) < np.where(busy, 0.3, 0.05)).astype(np.int64),
        "pedestrians": rng.integers(0, MOST_PEDESTRIANS + 1, size=n),
        "faces": np.where(rng.random(n) < 0.3, rng.integers(1, MOST_FACES + 1, size=n), 0),
    }
    return [
        Scene(
            mobs=((int(mobs[at]), int(second[at])) if two[at] else (int(mobs[at]),))
            if crowded[at]
            else (),
            chases=(("policeCar" if by_police[at] else "car", "car"),) if chase[at] else (),
            light=float(light[at]),
            **{name: int(column[at]) for name, column in columns.items()},
        )
        for at in range(n)
    ]
