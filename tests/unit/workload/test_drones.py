"""Drones: pictures of scenes, detectors that find them, and subscriptions."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import TamisError
from tamis.language import parse, to_text
from tamis.model.operator import Fault, Rows, Signature
from tamis.model.operator_semantics import Function
from tamis.model.schema import Schema
from tamis.model.semantics import satisfies
from tamis.operators.operator import Operator
from tamis.operators.packs import drones as standins
from tamis.operators.packs.pictures import decoded
from tamis.operators.packs.spatial import position_of
from tamis.operators.results import answers
from tamis.workload import as_dicts, drones
from tamis.workload.drones_images import (
    HEIGHT,
    MOST_CHASES,
    MOST_FACES,
    MOST_PEDESTRIANS,
    WIDTH,
    Scene,
    png,
)
from tamis.workload.drones_places import AT_WATER, LANDMARKS, PLACES, POINTS

CARS = ("car", "policeCar")

SCENES = st.builds(
    Scene,
    mobs=st.lists(st.integers(standins.MOB, 80), max_size=3).map(tuple),
    people=st.integers(0, 30),
    cars=st.integers(0, 30),
    police_cars=st.integers(0, 6),
    tour_boats=st.integers(0, 12),
    coast_guard_boats=st.integers(0, 8),
    wrecks=st.integers(0, 4),
    chases=st.lists(
        st.tuples(st.sampled_from(CARS), st.sampled_from(CARS)), max_size=MOST_CHASES
    ).map(tuple),
    pedestrians=st.integers(0, MOST_PEDESTRIANS),
    faces=st.integers(0, MOST_FACES),
    light=st.floats(0.0, 1.0),
)


def check_standins(image: bytes, scene: Scene) -> None:
    """What the stand-ins find is what is there."""
    assert standins.policeCarCount(image) == scene.count("policeCar")
    assert standins.tourBoatCount(image) == scene.tour_boats
    assert standins.coastGuardBoatCount(image) == scene.coast_guard_boats
    assert standins.mobPattern(image) == sorted(set(scene.mobs))
    traffic = standins.trafficPattern(image)
    assert ("congestion" in traffic) == scene.congestion
    assert ("accident" in traffic) == (scene.wrecks > 0)
    wanted = set()
    for pursuer, pursued in scene.chases:
        wanted |= {(one, two) for one in (pursuer, "anyCar") for two in (pursued, "anyCar")}
    assert set(standins.chasePattern(image)) == wanted


# --- pictures and stand-ins --------------------------------------------------------------------


@given(SCENES, st.integers(0, 2**32))
@settings(max_examples=60)
def test_standins_find_what_any_scene_holds(scene: Scene, seed: int) -> None:
    check_standins(png(scene, np.random.default_rng(seed)), scene)


@pytest.mark.slow
def test_standins_find_what_generated_events_hold() -> None:
    made = drones.make(0, seed=5)
    events, truths = made.events(100), drones.scenes(made, 100)
    for image, scene in zip(events["image"].to_pylist(), truths, strict=True):
        check_standins(image, scene)
    others = drones.scenes(made, 100, seed=1)
    assert others != truths
    check_standins(made.events(100, seed=1)["image"][0].as_py(), others[0])


def test_a_congestion_is_many_cars_of_any_kind() -> None:
    for cars, police in ((14, 0), (15, 0), (10, 5), (10, 4), (0, 15)):
        image = png(Scene(cars=cars, police_cars=police), np.random.default_rng(0))
        assert standins.trafficPattern(image) == ["congestion"] * (cars + police >= 15)


def test_two_mobs_are_two_rows_and_single_people_are_not_a_mob() -> None:
    rng = np.random.default_rng(0)
    assert standins.mobPattern(png(Scene(mobs=(30, 70), people=25), rng)) == [30, 70]
    assert standins.mobPattern(png(Scene(people=80), rng)) == []


def test_standins_find_nothing_where_there_are_no_markers() -> None:
    noise = np.random.default_rng(0).integers(256, size=(HEIGHT, WIDTH, 3), dtype=np.uint8)
    for picture in (noise, np.zeros((1, 1, 3), np.uint8), np.full((9, 9), 255, np.uint8)):
        image = cv2.imencode(".png", picture)[1].tobytes()
        check_standins(image, Scene())


def test_a_patch_of_another_size_and_a_chase_without_its_cars_are_ignored() -> None:
    picture = np.zeros((60, 60, 3), np.uint8)
    picture[10:15, 10:15] = standins.COLOURS["policeCar"]
    picture[30:34, 30:33] = standins.COLOURS["policeCar"]
    picture[50:54, 50:54] = standins.COLOURS["policeCar"]
    assert standins.policeCarCount(cv2.imencode(".png", picture)[1].tobytes()) == 1
    picture[:] = 0
    picture[0:4, 0:4] = picture[40:44, 56:60] = standins.COLOURS["chase"]
    assert standins.chasePattern(cv2.imencode(".png", picture)[1].tobytes()) == []


def test_standins_say_that_they_are() -> None:
    counts = ("policeCarCount", "tourBoatCount", "coastGuardBoatCount")
    for name in ("chasePattern", "trafficPattern", "mobPattern", *counts):
        assert (getattr(standins, name).__doc__ or "").startswith("Stand-in")


@pytest.mark.parametrize(
    "scene",
    [
        Scene(people=91),
        Scene(cars=50, people=41),
        Scene(mobs=(11,)),
        Scene(mobs=(200, 41)),
        Scene(mobs=(12, 12, 12, 12)),
        Scene(chases=(("car", "car"),) * 5),
        Scene(pedestrians=4),
        Scene(faces=4),
    ],
)
def test_a_scene_that_does_not_fit_is_refused(scene: Scene) -> None:
    with pytest.raises(TamisError, match="does not fit into a picture"):
        png(scene, np.random.default_rng(0))


def test_brighter_scenes_are_brighter() -> None:
    means = []
    for light in (0.2, 0.5, 1.0):
        image = png(Scene(light=light), np.random.default_rng(0))
        means.append(decoded(image).mean())
    assert means == sorted(means)
    assert means[0] < 40 < 150 < means[2]


# --- events ------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_events() -> None:
    one, two = (drones.make(200, seed=3) for _ in range(2))
    assert one.subscriptions.equals(two.subscriptions)
    assert one.events(20).equals(two.events(20))
    other = drones.make(200, seed=4)
    assert not one.subscriptions.equals(other.subscriptions)
    assert not one.events(20).equals(other.events(20))
    there = pickle.loads(pickle.dumps(one))
    assert there.events(5).equals(one.events(5))


def test_events_are_consistent_with_the_schema() -> None:
    made = drones.make(0)
    schema = Schema.from_dict(made.schema)
    events = made.events(50)
    events.validate(full=True)
    for row in as_dicts(events):
        event = schema.event(row)
        assert isinstance(row["image"], bytes)
        assert event is not None


def test_events_bind_a_subject_and_facts_now_and_then() -> None:
    events = drones.make(0).events(200)
    assert 0.2 < pc.count(events["subject"]).as_py() / 200 < 0.6
    assert 0.03 < pc.count(events["facts"]).as_py() / 200 < 0.25
    fact = next(each for each in events["facts"].to_pylist() if each is not None)
    assert all(len(each) == 3 for each in fact)


@pytest.mark.slow
def test_many_drones_are_near_a_place_and_boats_near_water() -> None:
    made = drones.make(0, seed=1)
    truths = drones.scenes(made, 300)
    where = [position_of(each) for each in made.events(300)["position"].to_pylist()]

    def near(names: Iterable[str]) -> npt.NDArray[np.bool_]:
        points = np.array([POINTS[name] for name in names])
        apart = (np.array(where)[:, None, :] - points) * (84_400, 111_000)
        metres: npt.NDArray[np.float64] = np.hypot(apart[..., 0], apart[..., 1]).min(axis=1)
        return metres < 2000

    assert near(POINTS).mean() > 0.6
    boats = np.array([scene.tour_boats for scene in truths])
    assert boats[near(AT_WATER)].mean() > 3 * boats[~near(AT_WATER)].mean()


def test_nothing_is_a_workload_too() -> None:
    made = drones.make(0)
    assert made.subscriptions.num_rows == made.events(0).num_rows == 0
    assert made.events(0).schema.field("image").type == pa.binary()
    assert drones.scenes(made, 0) == []
    with pytest.raises(TamisError, match="subscriptions is 0 or more, got -1"):
        drones.make(-1)


# --- places and subscriptions ------------------------------------------------------------------


def test_there_are_fifty_places_and_the_pack_knows_them() -> None:
    assert len(PLACES) == len(set(PLACES)) == 50
    by_name = {each.name: each for each in drones.operators()}
    statue = {"lat": LANDMARKS["StatueOfLiberty"][1], "lon": LANDMARKS["StatueOfLiberty"][0]}
    for place in POINTS:
        metres = by_name["distanceFrom"].function(position=[statue], place=place)[0]
        assert 0 <= metres < 50_000
    # Our coordinates of a landmark are the pack's.
    for place, (longitude, latitude) in LANDMARKS.items():
        here = {"lat": latitude, "lon": longitude}
        assert by_name["distanceFrom"].function(position=[here], place=place)[0] < 100


def test_neighbourhoods_are_in_some_borough() -> None:
    places_at = next(each for each in drones.operators() if each.name == "placesAt")
    where = [{"lat": latitude, "lon": longitude} for longitude, latitude in POINTS.values()]
    found = dict(zip(POINTS, places_at.function(position=where), strict=True))
    # The statue stands on an island, and some points are by or in the water.
    outside = [name for name, boroughs in found.items() if not boroughs]
    assert len(outside) <= 4
    assert found["Fordham"] == ["Bronx"]
    assert found["SoHo"] == ["Manhattan"]
    assert found["RedHook"] == ["Brooklyn"]
    assert found["Flushing"] == ["Queens"]
    assert found["GreatKills"] == ["Staten Island"]


def test_subscriptions_use_only_operators_that_there_are() -> None:
    known = {each.name: each.signature for each in drones.operators()}
    texts = drones.make(2000).subscriptions["condition"].to_pylist()
    texts += [*drones.SUBSCRIPTIONS.values(), *drones.REASONED.values()]
    for text in texts:
        for name, written in re.findall(r"(\w+)\(([^)]*)\)", text):
            assert len(written.split(",")) == len(known[name].parameters)


def test_subscriptions_share_predicates_and_some_are_popular() -> None:
    texts = drones.make(10_000).subscriptions["condition"].to_pylist()
    calls = Counter(call for text in texts for call in re.findall(r"\w+\([^)]*\)", text))
    where = re.compile(r'(?:locIn|locWithin|distanceFrom)\("?([\w ]+)')
    places = {found[1] for found in map(where.match, calls) if found}
    assert places == set(PLACES)
    detectors = {call.split("(")[0] for call in calls} - {"locIn", "locWithin", "distanceFrom"}
    assert detectors == drones.DETECTORS.keys()
    assert len(drones.DETECTORS) == 6
    # The most popular place is in a tenth of all, and most calls are in many subscriptions.
    assert calls.most_common()[0][1] > 1000
    assert np.median(list(calls.values())) >= 5
    assert sum("altitude" in text for text in texts) > 4000
    assert sum("time" in text for text in texts) > 2000
    assert 300 < sum(" or " in text for text in texts) < 700


def test_each_detector_occurs_at_most_once_in_a_clause() -> None:
    """Its variable has one name, and two thresholds for it would be one."""
    for text in drones.make(500).subscriptions["condition"].to_pylist():
        for clause in text.split(" or "):
            calls = re.findall(r"(\w+)\([^)]*\?", clause)
            assert len(calls) == len(set(calls))


def table() -> dict[str, tuple[Signature, Function]]:
    """The operators as the definition of truth takes them."""

    def function(asked: Operator) -> Function:
        def ask(reads: tuple[Any, ...], constants: tuple[Any, ...]) -> Rows | Fault:
            found = answers(asked, [reads], asked.handed(constants))
            return found if isinstance(found, Fault) else found[0]

        return ask

    return {each.name: (each.signature, function(each)) for each in drones.operators()}


SCHEMA = Schema.from_dict(drones.schema())
OPERATORS = table()
SIGNATURES = {name: signature for name, (signature, _) in OPERATORS.items()}


@pytest.mark.slow
def test_the_five_of_the_paper_hold_where_the_truth_says_so() -> None:
    made = drones.make(0, seed=2)
    asked = {name: parse(text, SCHEMA, SIGNATURES) for name, text in drones.SUBSCRIPTIONS.items()}
    rows = as_dicts(made.events(400))
    positions = [row["position"] for row in rows]
    by_name = {each.name: each.function for each in drones.operators()}
    bronx = by_name["locIn"](position=positions, place="Bronx")
    square = by_name["locWithin"](position=positions, place="TimesSquare", metres=5000)
    statue = by_name["distanceFrom"](position=positions, place="StatueOfLiberty")
    matched: Counter[str] = Counter()
    for at, scene in enumerate(drones.scenes(made, 400)):
        chased = any(pursuer == "policeCar" for pursuer, _ in scene.chases)
        accident = scene.congestion and scene.wrecks > 0
        wanted = {
            "S1": bronx[at] and chased,
            "S2": bronx[at] and any(people > 50 for people in scene.mobs),
            # The one that asks a real detector, which may be wrong about the picture.
            "S3": square[at]
            and scene.congestion
            and by_name["pedestrianCount"](image=rows[at]["image"]) > 1,
            "S4": bronx[at] and accident and scene.count("policeCar") < 2,
            "S5": statue[at] < 1000 and scene.tour_boats > 2 * scene.coast_guard_boats,
        }
        if not (bronx[at] or square[at] or statue[at] < 5000):
            continue
        for name, condition in asked.items():
            assert satisfies(condition, rows[at], SCHEMA, OPERATORS) == wanted[name], (name, scene)
            matched[name] += wanted[name]
    assert all(matched[name] for name in asked), matched


def test_the_ontology_knows_what_a_drone_follows() -> None:
    asked = {name: parse(text, SCHEMA, SIGNATURES) for name, text in drones.REASONED.items()}
    event = as_dicts(drones.make(0).events(1))[0]
    event = {name: event[name] for name in ("drone", "time", "altitude", "image")}
    square, statue = ({"lat": at[1], "lon": at[0]} for at in list(LANDMARKS.values())[:2])

    def holding(**bound: object) -> list[str]:
        return [
            name
            for name, condition in asked.items()
            if satisfies(condition, event | bound, SCHEMA, OPERATORS)
        ]

    assert holding(position=square, subject="policeCar") == ["R1"]
    assert holding(position=square, subject="taxi") == []
    assert holding(position=statue, subject="tourBoat") == ["R2"]
    assert holding(position=statue, subject="policeCar") == ["R1"]  # its island is Manhattan's
    assert holding(position=statue, subject="taxi") == []
    assert holding(position=statue) == []
    assert holding(position=statue, facts=[["patrol7", "chases", "x"]]) == ["R3"]
    assert holding(position=statue, facts=[["x", "chases", "patrol7"]]) == []
    assert holding(position=statue, facts=[["libertyBelle", "follows", "x"]]) == []


def test_drawn_subscriptions_are_accepted_by_the_language() -> None:
    for text in drones.make(300).subscriptions["condition"].to_pylist():
        assert to_text(parse(text, SCHEMA, SIGNATURES))
    made = drones.make(50, seed=9, exponent=0.5)
    again = drones.make(seed=made.seed, **made.parameters)
    assert again.subscriptions.equals(made.subscriptions)


def test_a_scene_counts_what_is_in_chases_too() -> None:
    scene = Scene(police_cars=2, cars=1, chases=(("policeCar", "car"), ("policeCar", "policeCar")))
    assert scene.count("policeCar") == 5
    assert scene.count("car") == 2
    assert dataclasses.replace(scene, cars=9, mobs=(20,), people=3).count("person") == 23
    assert not scene.congestion
