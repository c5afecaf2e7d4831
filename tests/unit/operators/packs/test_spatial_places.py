"""A gazetteer: distances against plain geodesics, the edges of the map, and what is refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod, Transformer
from shapely.geometry.base import BaseGeometry

from tamis.operators.packs import spatial_places
from tamis.operators.packs.spatial_boundary import Position
from tamis.operators.packs.spatial_places import PlaceError, Places

GEOD = Geod(ellps="WGS84")
FIJI_BEYOND = shapely.box(177.0, -19.0, 182.0, -16.0)  # over the antimeridian, in one piece
FIJI_CUT = shapely.union(shapely.box(177, -19, 180, -16), shapely.box(-180, -19, -178, -16))


def box(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    corners = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [corners]}


def around(west: float, south: float, east: float, north: float) -> st.SearchStrategy[Position]:
    return st.tuples(st.floats(west, east), st.floats(south, north))


def _contains(places: Places, name: str, positions: Sequence[Position]) -> list[bool]:
    return places.pairs_in(positions, [name] * len(positions))


def _metres(places: Places, name: str, positions: Sequence[Position]) -> list[float]:
    return places.pairs_apart(positions, [name] * len(positions))


def _within(places: Places, name: str, metres: float, positions: Sequence[Position]) -> list[bool]:
    return places.pairs_within(positions, [(name, metres)] * len(positions))


CITY = around(-74.4, 40.3, -73.5, 41.1)
ANYWHERE = around(-180, -90, 180, 90)


@given(ANYWHERE, ANYWHERE)
def test_a_point_is_as_far_as_its_geodesic(place: Position, position: Position) -> None:
    places = Places({"there": shapely.Point(place)})
    expected = GEOD.inv(*position, *place)[2]
    assert _metres(places, "there", [position]) == pytest.approx([expected], rel=1e-9, abs=1e-6)


def _dense(shape: BaseGeometry) -> Any:
    return shapely.get_coordinates(shapely.boundary(shapely.segmentize(shape, 0.0005)))


REGIONS = {
    "Bronx": Places.default()["Bronx"],
    "Manhattan": Places.default()["Manhattan"],
    "north": shapely.Polygon([(20, 70), (22, 70.2), (21.5, 70.9), (20.2, 70.7)]),
    "south": shapely.Polygon([(-70, -54), (-69, -54.6), (-68.5, -54.1), (-69.3, -53.8)]),
    "fiji": FIJI_BEYOND,
}
DENSE = {name: _dense(shape) for name, shape in REGIONS.items()}
KNOWN = Places(REGIONS)


@st.composite
def near(draw: st.DrawFn, *names: str) -> tuple[str, Position]:
    """A position at most about 100 km from a region, or in it."""
    name = draw(st.sampled_from(names))
    west, south, east, north = REGIONS[name].bounds
    more = 0.9
    wide = more / np.cos(np.radians(max(abs(south), abs(north)) + more))
    longitude, latitude = draw(around(west - wide, south - more, east + wide, north + more))
    return name, ((longitude + 180.0) % 360.0 - 180.0, latitude)


@settings(max_examples=150)
@given(near(*REGIONS))
@pytest.mark.slow
def test_a_region_is_as_far_as_the_nearest_of_many_points_of_its_outline(
    case: tuple[str, Position],
) -> None:
    name, position = case
    (metres,) = _metres(KNOWN, name, [position])
    if _contains(KNOWN, name, [position]) == [True]:
        assert metres == 0.0
        return
    corners = DENSE[name]
    here = np.full(len(corners), position[0]), np.full(len(corners), position[1])
    least = float(GEOD.inv(*here, corners[:, 0], corners[:, 1])[2].min())
    # The nearest of points 56 m apart may lie 28 m beside the nearest of all.
    assert metres <= least * (1 + 1e-6) + 1e-3
    assert least <= np.hypot(metres, 28.0) * (1 + 1e-6) + 1e-3
    if metres > 1_000:
        assert metres == pytest.approx(least, rel=1e-3)


@settings(max_examples=60)
@given(near("north", "south", "fiji"))
@pytest.mark.slow
def test_a_region_is_as_far_as_on_a_map_around_the_position(case: tuple[str, Position]) -> None:
    name, (longitude, latitude) = case
    plane = Transformer.from_crs(
        "EPSG:4326",
        f"+proj=aeqd +lat_0={latitude!r} +lon_0={longitude!r} +ellps=WGS84",
        always_xy=True,
    )
    there = shapely.Polygon(np.stack(plane.transform(*DENSE[name].T), axis=-1))
    (metres,) = _metres(KNOWN, name, [(longitude, latitude)])
    assert metres == pytest.approx(there.distance(shapely.Point(0, 0)), rel=1e-3, abs=0.05)


@settings(max_examples=60)
@given(ANYWHERE)
def test_far_away_it_is_never_too_short_and_hardly_too_long(position: Position) -> None:
    (metres,) = _metres(KNOWN, "Manhattan", [position])
    if metres == 0.0:
        return
    corners = DENSE["Manhattan"]
    here = np.full(len(corners), position[0]), np.full(len(corners), position[1])
    least = float(GEOD.inv(*here, corners[:, 0], corners[:, 1])[2].min())
    assert least - 30 <= metres <= least * 1.001 + 1e-3


@given(st.lists(CITY, max_size=5))
def test_regions_at_a_position(positions: list[Position]) -> None:
    places = Places.default()
    regions = [name for name in sorted(places) if places[name].geom_type != "Point"]
    assert places.at(positions) == [
        tuple(name for name in regions if places[name].covers(shapely.Point(where)))
        for where in positions
    ]


@given(
    st.lists(CITY, max_size=4),
    st.sampled_from(["Queens", "TimesSquare"]),
    st.floats(0, 60_000) | st.sampled_from([0, 5000]),
)
def test_within_is_a_distance_of_at_most(
    positions: list[Position], name: str, metres: float
) -> None:
    places = Places.default()
    expected = [each <= metres for each in _metres(places, name, positions)]
    assert _within(places, name, metres, positions) == expected
    exactly = [_within(places, name, _metres(places, name, [at])[0], [at]) for at in positions]
    assert exactly == [[True]] * len(positions)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial_places, "CACHED", 3)
    places = Places({"square": box(0, 0, 1, 1)})
    positions = [(n / 10, 0.5) for n in range(20)]
    expected = [("square",) if n <= 10 else () for n in range(20)]
    assert [places.at([where])[0] for where in positions] == expected
    assert len(places._at._known) <= 3
    assert places.at(positions) == expected  # more than there is room for, at once


def test_a_border_belongs_to_both_sides_also_at_the_antimeridian() -> None:
    places = Places({"west": box(0, 0, 1, 1), "east": box(1, 0, 2, 1)})
    assert places.at([(1.0, 0.5)]) == [("east", "west")]
    places = Places({"east": box(170, 0, 180, 10), "west": box(-180, 0, -170, 5)})
    assert places.at([(180.0, 7.0), (-180.0, 7.0)]) == [("east",)] * 2
    assert places.at([(180.0, 3.0), (-180.0, 3.0)]) == [("east", "west")] * 2
    assert _metres(places, "east", [(-180.0, 7.0)]) == [0.0]


@pytest.mark.parametrize("shape", [FIJI_BEYOND, FIJI_CUT])
def test_over_the_antimeridian(shape: BaseGeometry) -> None:
    places = Places({"Fiji": shape})
    inside = [(179.0, -17.0), (-179.0, -17.0), (180.0, -17.0), (-180.0, -17.0), (-178.0, -16.0)]
    outside = [(176.0, -17.0), (-177.0, -17.0), (0.0, -17.0), (180.0, -20.0), (-180.0, -20.0)]
    assert _contains(places, "Fiji", inside + outside) == [True] * 5 + [False] * 5
    west, east, _, below, same = _metres(places, "Fiji", outside)
    # The nearest point of a meridian lies a little nearer to the pole than on the same parallel.
    assert west == pytest.approx(GEOD.inv(176, -17, 177, -17)[2], rel=1e-4)
    assert east == pytest.approx(west, rel=1e-9)
    assert below == same == pytest.approx(GEOD.inv(180, -20, 180, -19)[2], rel=1e-6)


def test_a_place_and_a_position_on_different_sides_of_the_antimeridian() -> None:
    places = Places({"buoy": shapely.Point(179.9, 10), "bay": box(179, 9, 179.9, 11)})
    expected = GEOD.inv(-179.9, 10, 179.9, 10)[2]
    assert _metres(places, "buoy", [(-179.9, 10.0)]) == pytest.approx([expected])
    assert _metres(places, "bay", [(-179.9, 10.0)]) == pytest.approx([expected], rel=1e-6)
    assert _within(places, "bay", 22_000, [(-179.9, 10.0)]) == [True]


def test_at_the_poles() -> None:
    places = Places({"cap": box(-180, 80, 180, 90), "wedge": box(10, 60, 40, 90)})
    assert places.at([(77.0, 90.0), (0.0, 85.0), (20.0, 70.0), (0.0, 70.0)]) == [
        ("cap", "wedge"),
        ("cap",),
        ("wedge",),
        (),
    ]
    to_cap, to_wedge = (_metres(places, name, [(0.0, 79.0)])[0] for name in ("cap", "wedge"))
    assert to_cap == pytest.approx(GEOD.inv(0, 79, 0, 80)[2], rel=1e-6)
    # Beside the wedge's meridian, not along the parallel.
    assert to_wedge < GEOD.inv(0, 79, 10, 79)[2]
    assert _metres(places, "wedge", [(-150.0, 89.0)]) == pytest.approx(
        [GEOD.inv(0, 89, 0, 90)[2]], rel=1e-6
    )


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}, "is a LineString"),
        ({"type": "Polygon", "coordinates": []}, "is empty"),
        ({"type": "Polygon"}, "not a GeoJSON geometry"),
        ({"type": "Blob", "coordinates": [0, 0]}, "not a GeoJSON geometry"),
        ({"coordinates": [0, 0]}, "not a GeoJSON geometry"),
        ({"type": "Point", "coordinates": ["a", "b"]}, "not a GeoJSON geometry"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 0]]]}, "not a GeoJSON geometry"),
        ({"type": "Point", "coordinates": [583_960, 4_507_523]}, "degrees of longitude"),
        ({"type": "Point", "coordinates": [190, 0]}, "outside the Earth"),
        (box(0, 80, 10, 95), "outside the Earth"),
        (box(0, 0, 400, 10), "outside the Earth"),
        (box(-170, 0, 170, 10), "antimeridian"),
        (
            {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]},
            "Self-intersection",
        ),
        (shapely.Point(float("nan"), 1), "outside the Earth"),
    ],
)
def test_places_that_are_refused(shape: Any, said: str) -> None:
    with pytest.raises(PlaceError) as refused:
        Places({"Somewhere": shape})
    assert said in str(refused.value)
    assert "'Somewhere'" in str(refused.value)


def feature(geometry: object, **properties: object) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def test_from_geojson(tmp_path: Path) -> None:
    document = {
        "type": "FeatureCollection",
        "features": [feature(box(0, 0, 1, 1), ward="A"), feature(box(1, 0, 2, 1), ward="B")],
    }
    path = tmp_path / "wards.geojson"
    path.write_text(json.dumps(document), encoding="utf-8")
    for source in (document, path, str(path)):
        places = Places.from_geojson(source, name="ward")
        assert list(places) == ["A", "B"]
        assert places.at([(0.5, 0.5)]) == [("A",)]
    only = Places.from_geojson(feature(box(0, 0, 1, 1), name="C"))
    assert list(only | places) == ["C", "A", "B"]
    assert repr(only) == "Places(1 region, 0 points)"
    with pytest.raises(PlaceError, match="both gazetteers have a place called 'A'"):
        places | Places({"A": box(0, 0, 1, 1)})


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"type": "Topology"}, "expected a FeatureCollection or a Feature, got 'Topology'"),
        ({"type": "FeatureCollection"}, "expected a FeatureCollection"),
        ({"type": "FeatureCollection", "features": ["x"]}, "feature 0: expected an object"),
        (feature(box(0, 0, 1, 1), nane="A"), "no property 'name' to name it; did you mean 'nane'"),
        (feature(box(0, 0, 1, 1)), "it has no properties"),
        (feature(box(0, 0, 1, 1), name=7), "the name of a place is text, got 7"),
        (feature(box(0, 0, 1, 1), name=["A"]), "the name of a place is text"),
        (feature(None, name="A"), "'A' has no geometry"),
        (
            {
                "type": "FeatureCollection",
                "features": [feature(box(0, 0, 1, 1), name="A")] * 2,
            },
            "feature 1: a second place is called 'A'",
        ),
    ],
)
def test_geojson_that_is_refused(document: dict[str, Any], said: str) -> None:
    with pytest.raises(PlaceError) as refused:
        Places.from_geojson(document)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, r"a\.geojson: cannot be read"),
        ("[1]", "GeoJSON is an object, got list"),
        ("{", "cannot be read as GeoJSON"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "a.geojson").write_text(text, encoding="utf-8")
    with pytest.raises(PlaceError, match=said):
        Places.from_geojson(tmp_path / "a.geojson")


def test_places_travel() -> None:
    places = pickle.loads(pickle.dumps(Places.default()))
    assert places.at([(-73.877, 40.8506)]) == [("Bronx",)]
    assert len(places._at._known) == 1
