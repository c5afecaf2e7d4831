"""What all workloads share: the table by name, seeds, the shape of the tables."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import workload
from tamis.errors import TamisError
from tamis.workload import topss
from tamis.workload.draw import distinct, stream, weighted, zipf_weights
from tamis.workload.tables import COMPARATORS, SUBSCRIPTIONS_SCHEMA

NAMES = workload.names()
WITH_PREDICATES = [name for name in NAMES if name != "auctions"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_tables(name: str) -> None:
    one, two = (workload.make(name, 500, seed=3) for _ in range(2))
    assert one.subscriptions.equals(two.subscriptions)
    assert one.events(50).equals(two.events(50))
    other = workload.make(name, 500, seed=4)
    assert not one.subscriptions.equals(other.subscriptions)
    assert not one.events(50).equals(other.events(50))


@pytest.mark.parametrize("name", NAMES)
def test_another_event_seed_gives_other_events(name: str) -> None:
    made = workload.make(name, 10)
    streams = [made.events(50), made.events(50, seed=0), made.events(50, seed=1)]
    assert not any(one.equals(two) for one, two in pairwise(streams))
    assert made.events(50, seed=1).equals(streams[2])


def test_events_do_not_depend_on_how_many_subscriptions_there_are() -> None:
    few, many = workload.make("dexin", 1), workload.make("dexin", 1000)
    assert few.events(20).equals(many.events(20))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_make_the_workload_again_and_so_does_a_pickle(name: str) -> None:
    made = workload.make(name, 100, seed=9)
    again = workload.make(name, seed=made.seed, **made.parameters)
    assert again.subscriptions.equals(made.subscriptions)
    known = workload.WORKLOADS[name].parameters.keys()
    assert made.parameters.keys() == {"n"} | known
    there: workload.Workload = pickle.loads(pickle.dumps(made))
    assert there.events(10).equals(made.events(10))
    nothing = workload.make(name, 0)
    assert nothing.subscriptions.num_rows == nothing.events(0).num_rows == 0


@pytest.mark.parametrize("name", WITH_PREDICATES)
def test_subscriptions_have_the_bulk_shape(name: str) -> None:
    table = workload.make(name, 300).subscriptions
    assert table.schema.equals(SUBSCRIPTIONS_SCHEMA)
    assert table["id"].to_pylist() == list(range(300))
    table.validate(full=True)
    schema = workload.make(name, 300).schema
    for predicates in table["predicates"].to_pylist():
        assert predicates
        for predicate in predicates:
            assert predicate["attribute"] in schema["attributes"]
            assert predicate["comparator"] in COMPARATORS
            assert (predicate["value"] is None) != (predicate["text"] is None)


@pytest.mark.parametrize("name", NAMES)
def test_events_are_columns_of_the_schema(name: str) -> None:
    made = workload.make(name, 5)
    events = made.events(200)
    events.validate(full=True)
    assert events.num_rows == 200
    kinds = made.schema["attributes"]
    for field in events.schema:
        if field.name == "event_type":
            assert field.type == pa.list_(pa.string())
            continue
        kind = kinds[field.name]
        kind = kind if isinstance(kind, str) else kind["kind"]
        wanted = {"integer": pa.int64(), "decimal": pa.float64()}.get(kind)
        assert wanted is None or field.type == wanted


def test_dictionaries_have_only_bound_attributes() -> None:
    events = workload.make("lesubscribe", 1).events(100)
    rows = workload.as_dicts(events)
    assert len(rows) == 100
    assert None not in [value for row in rows for value in row.values()]
    assert sum(map(len, rows)) == sum(len(c) - c.null_count for c in events.itercolumns())


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("dexim", {}, "unknown workload 'dexim'; did you mean 'dexin'?"),
        ("liu", {}, "tamis.workload.liu.make"),
        ("dexin", {"atributes": 3}, "no parameter 'atributes'; did you mean 'attributes'?"),
        ("topss", {"p": 0.5}, "no parameter 'p'; known here: setting"),
        ("topss", {"setting": "W5"}, "no setting 'W5'"),
        ("topss", {"setting": topss.TopssSetting(2, 3, 2, ((1, 9),), 1, 1)}, "at most as many"),
        ("lesubscribe", {"p": 1.5}, "p is a probability, got 1.5"),
        ("dexin", {"theta": (0.9, 0.1)}, "theta"),
        ("dexin", {"distribution": "normal"}, "'normal'"),
        ("dexin", {"reading": "third"}, "'third'"),
        ("dexin", {"matching": 0.0001}, "too few"),
        ("gryphon", {"matches": 1e9}, "not 1e+09"),
        ("sparse", {"longest": 6000}, "longest <= attributes"),
        ("auctions", {"start": "tomorrow"}, "ISO 8601"),
        ("dexin", {"seed": -1}, "a seed is a whole number"),
    ],
)
def test_a_refusal_says_what_would_be_right(
    name: str, parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(TamisError) as refused:
        workload.make(name, 100, **parameters)
    assert says in str(refused.value)


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(TamisError, match="subscriptions is 0 or more, got -1"):
        workload.make("dexin", -1)
    with pytest.raises(TamisError, match="events is 0 or more, got -1"):
        workload.make("dexin", 1).events(-1)


def test_distinct_picks_follow_successive_sampling() -> None:
    """Against the closed form: the second pick is j with probability Σ_i p_i p_j / (1 - p_i)."""
    weights = zipf_weights(4, 1.0)
    cumulative = np.cumsum(weights)
    picks = distinct(stream(0), 200_000, 3, lambda rng, size: weighted(rng, cumulative, size))
    assert all(len(set(row)) == 3 for row in picks[:2000].tolist())
    assert (np.diff(np.sort(picks, axis=1), axis=1) > 0).all()
    p = weights / weights.sum()
    second = p * (p / (1 - p)).sum() - p * p / (1 - p)
    assert np.bincount(picks[:, 0], minlength=4) / 200_000 == pytest.approx(p, abs=0.005)
    assert np.bincount(picks[:, 1], minlength=4) / 200_000 == pytest.approx(second, abs=0.005)


def test_a_zipf_law_cut_off_keeps_its_proportions() -> None:
    cumulative = np.cumsum(zipf_weights(10, 1.0))
    last = np.full(100_000, 2)
    picks = weighted(stream(0), cumulative, 100_000, last)
    assert np.bincount(picks) / 100_000 == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.01)
