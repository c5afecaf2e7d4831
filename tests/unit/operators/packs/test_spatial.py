"""Operators over positions: right answers, batches, and one query for many questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tamis.errors import TamisError
from tamis.model.operator import Fault
from tamis.operators.packs.spatial import (
    PlaceError,
    Places,
    distanceFrom,
    locIn,
    locWithin,
    pack,
    placesAt,
    position_of,
)
from tamis.operators.packs.spatial_boundary import Position
from tamis.operators.registry import Operators
from tamis.operators.runner import Runner
from tests.unit.operators.packs.test_spatial_places import GEOD, box

BRONX_ZOO = {"lat": 40.8506, "lon": -73.8770}
WALL_STREET = [-74.0090, 40.7060]
NEWARK = {"type": "Point", "coordinates": [-74.1724, 40.7357]}


CITY = st.tuples(st.floats(-74.4, -73.5), st.floats(40.3, 41.1))
GIVEN = st.one_of(
    CITY.map(list),
    CITY.map(lambda at: {"lat": at[1], "lon": at[0]}),
    st.sampled_from([BRONX_ZOO, WALL_STREET, NEWARK]),
    st.sampled_from(["nowhere", {"lat": 91, "lon": 0}, [1], None, {"lat": "40", "lon": 1}]),
)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"lat": 40.7, "lon": -73}, (-73.0, 40.7)),
        ({"lat": 40.7, "lon": -73, "accuracy": 5}, (-73.0, 40.7)),
        ([-73, 40.7], (-73.0, 40.7)),
        ((-73, 40.7, 120.0), (-73.0, 40.7)),
        ({"type": "Point", "coordinates": [-73, 40.7]}, (-73.0, 40.7)),
        ([180, -90], (180.0, -90.0)),
    ],
)
def test_forms_of_a_position(form: object, expected: Position) -> None:
    assert position_of(form) == expected


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("40.7,-73", "a position is"),
        (12, "a position is"),
        ({}, "a position is"),
        ({"lat": 40.7}, "a position is"),
        ([1.0], "a position is"),
        ([1.0, 2.0, 3.0, 4.0], "a position is"),
        ({"type": "Point"}, "a position is"),
        ({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}, "a position is"),
        ({"type": "Point", "coordinates": [[0, 0], [1, 1]]}, "longitude is a number"),
        ({"lat": "40.7", "lon": -73}, "latitude is a number of degrees, got '40.7'"),
        ([True, 1], "longitude is a number of degrees, got True"),
        ([None, 1], "longitude is a number"),
        ([float("nan"), 1], "longitude is between -180 and 180 degrees, got nan"),
        ([0, float("inf")], "latitude is between -90 and 90 degrees"),
        ([190, 1], "longitude is between -180 and 180 degrees, got 190"),
        ([10**400, 1], "longitude is between"),
        ("x" * 5000, "…"),
    ],
)
def test_malformed_positions(form: object, said: str) -> None:
    with pytest.raises(PlaceError) as refused:
        position_of(form)
    assert isinstance(refused.value, TamisError)
    assert isinstance(refused.value, ValueError)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 250


def test_boroughs() -> None:
    positions = [BRONX_ZOO, WALL_STREET, NEWARK]
    assert locIn(positions, "Bronx") == [True, False, False]
    assert locIn(positions, "Manhattan") == [False, True, False]
    assert placesAt(positions) == [["Bronx"], ["Manhattan"], []]
    assert distanceFrom(positions, "Bronx")[0] == 0.0
    assert sorted(name for name in Places.default() if name.endswith("n")) == [
        "Brooklyn",
        "Manhattan",
    ]


def test_distance_of_landmarks() -> None:
    # From Times Square to the Statue of Liberty it is 9.1 km.
    (metres,) = distanceFrom([[-73.9855, 40.758]], "StatueOfLiberty")
    assert metres == pytest.approx(GEOD.inv(-73.9855, 40.758, -74.0445, 40.6892)[2], rel=1e-12)
    assert 9_000 < metres < 9_300
    assert locWithin([[-73.9855, 40.758]], "StatueOfLiberty", 9_300) == [True]
    assert locWithin([[-73.9855, 40.758]], "StatueOfLiberty", 9_000) == [False]


OPERATORS = {
    "locIn": (locIn, ("Bronx",)),
    "locWithin": (locWithin, ("Queens", 2_500.0)),
    "distanceFrom": (distanceFrom, ("StatueOfLiberty",)),
    "distanceFrom a region": (distanceFrom, ("Staten Island",)),
    "placesAt": (placesAt, ()),
}


def _shown(results: Sequence[Any]) -> list[Any]:
    return [str(each) if isinstance(each, PlaceError) else each for each in results]


@pytest.mark.parametrize("which", OPERATORS)
@settings(max_examples=40)
@given(given=st.lists(GIVEN, max_size=6))
@example(given=[BRONX_ZOO, "nowhere", BRONX_ZOO])
def test_a_batch_is_the_same_as_one_by_one(which: str, given: list[Any]) -> None:
    operator, arguments = OPERATORS[which]
    fresh = {each.name: each for each in pack(Places(Places.default()))}[operator.name]
    one_by_one = [fresh(position=[each], **_named(fresh, arguments))[0] for each in given]
    assert _shown(operator(given, *arguments)) == _shown(one_by_one)


def _named(operator: Any, arguments: Sequence[Any]) -> dict[str, Any]:
    free = [None for each in operator.signature.parameters if each.free]
    found: dict[str, Any] = operator.handed([*arguments, *free])
    return found


def test_a_bad_position_leaves_the_others_of_its_batch_alone() -> None:
    given = Runner().call(locIn, [(BRONX_ZOO,), ("nowhere",), (WALL_STREET,)], ["Bronx"])
    assert given[0] == ((),)
    assert isinstance(given[1], Fault)
    assert "a position is" in given[1].reason
    assert given[2] == ()


def test_rows_of_what_is_given() -> None:
    assert Runner().call(placesAt, [(BRONX_ZOO,), (NEWARK,)], [None]) == [(("Bronx",),), ()]
    (rows,) = Runner().call(distanceFrom, [(BRONX_ZOO,)], ["Bronx", None])
    assert rows == ((0.0,),)  # inside is a distance, not a "no"


def test_what_is_in_a_position_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    find = Places._find

    def counted(self: Places, positions: Sequence[Position]) -> list[tuple[str, ...]]:
        asked.append(len(positions))
        return find(self, positions)

    monkeypatch.setattr(Places, "_find", counted)
    squares = {f"square {n}": box(n / 10, 0, n / 10 + 0.3, 1) for n in range(50)}
    inside, _, metres, at = pack(Places(squares))
    events = [[0.25, 0.5], [4.0, 0.5], [9.0, 9.0], [0.25, 0.5]]
    counts = [sum(inside([event], name)[0] for name in squares) for event in events]
    assert counts == [3, 4, 0, 3]
    assert asked == [1, 1, 1]
    at(events)
    metres(events, "square 7")
    assert asked == [1, 1, 1]
    at([*events, [1.0, 0.5], [2.0, 0.5]])
    assert asked == [1, 1, 1, 2]  # all that is new in one query


@pytest.mark.parametrize(
    ("operator", "arguments", "said"),
    [
        (locIn, ("Bronks",), "unknown place 'Bronks'; did you mean 'Bronx'?"),
        (locIn, ("StatenIsland",), "did you mean 'Staten Island'?"),
        (locIn, ("TimesSquare",), "'TimesSquare' is a point"),
        (locWithin, ("TimeSquare", 5), "did you mean 'TimesSquare'?"),
        (locWithin, ("TimesSquare", -5), "a number of metres, 0 or more, got -5"),
        (distanceFrom, ("Bronks",), "did you mean 'Bronx'?"),
    ],
)
def test_mistakes_of_subscribers(operator: Any, arguments: tuple[Any, ...], said: str) -> None:
    free = [None for each in operator.signature.parameters if each.free]
    assert said in operator.check([*arguments, *free])
    with pytest.raises(PlaceError) as refused:
        operator([BRONX_ZOO], *arguments)
    assert said in str(refused.value)


def test_no_mistake_and_constants_where_a_variable_may_stand() -> None:
    assert locIn.check(["Bronx"]) is None
    assert locWithin.check(["TimesSquare", 0]) is None
    assert distanceFrom.check(["TimesSquare", None]) is None
    assert placesAt.check([None]) is None
    assert placesAt.check(["Bronx"]) is None
    assert placesAt.check(["TimesSquare"]) == locIn.check(["TimesSquare"])
    assert "did you mean 'Bronx'?" in str(placesAt.check(["Bronks"]))
    assert "0 or more, got -1" in str(distanceFrom.check(["Bronx", -1]))


def test_packs_side_by_side() -> None:
    mine = Places({"Depot": box(0, 0, 1, 1)})
    inside, within, metres, at = pack(mine, attribute="van.position", prefix="van_")
    assert [each.name for each in (inside, within, metres, at)] == [
        "van_locIn",
        "van_locWithin",
        "van_distanceFrom",
        "van_placesAt",
    ]
    assert inside.signature.reads == ("van.position",)
    assert inside(van_position=[[0.5, 0.5]], place="Depot") == [True]
    assert Runner().call(within, [([0.5, 2.0],)], ["Depot", 9]) == [()]
    assert inside.check(["Bronx"]) == "unknown place 'Bronx'; known here: Depot"
    assert locIn.check(["Depot"]) is not None


def test_no_places_at_all() -> None:
    places = Places({})
    assert places.at([(0.0, 0.0), (180.0, 90.0)]) == [(), ()]
    assert places.at([]) == []
    assert locIn([], "Bronx") == []
    assert distanceFrom([], "Bronx") == []
    assert locWithin([], "Bronx", 5) == []


def test_known_by_name_and_called() -> None:
    mine = pack(Places({"Depot": box(0, 0, 1, 1)}))
    runner = Runner()
    (rows,) = runner.call(Operators()["locIn"], [(BRONX_ZOO,)], ["Bronx"])
    assert rows == ((),)
    # Those given come before those that are known to everybody.
    (rows,) = runner.call(Operators(*mine)["locIn"], [([0.5, 0.5],)], ["Depot"])
    assert rows == ((),)
    far, bad = runner.call(Operators()["distanceFrom"], [(NEWARK,), ("?",)], ["Manhattan", None])
    assert not isinstance(far, Fault)
    assert 9_000 < far[0][0] < 12_000
    assert isinstance(bad, Fault)
    assert runner.report()["distanceFrom"].faults == 1
