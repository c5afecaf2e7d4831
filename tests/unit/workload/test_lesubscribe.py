"""Le Subscribe's workload against what section 4 of the paper says."""

from __future__ import annotations

import numpy as np
import pytest

from tamis import workload
from tests.unit.workload.brute import Predicates, match_rate

TEXTS = ["a1", "a2", "a3"]


def expected_rate(p: float) -> float:
    """By hand: six independent attributes, less the subscriptions without any predicate."""
    text = 0.5 + 0.5 * 0.5 / 200
    number = 0.5 + 0.5 * 0.5 * (p / 5000 + (1 - p) * 4999 / 10_000)
    return (text**3 * number**3 - 0.5**6) / (1 - 0.5**6)


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_the_share_that_matches_falls_with_p(p: float) -> None:
    made = workload.make("lesubscribe", 20_000, p=p, seed=1)
    rate = match_rate(made.subscriptions, made.events(400))
    assert rate == pytest.approx(expected_rate(p), rel=0.15)
    assert expected_rate(0.5) == pytest.approx(0.007, abs=0.0002)


def test_predicates_are_as_described() -> None:
    predicates = Predicates(workload.make("lesubscribe", 50_000).subscriptions)
    assert predicates.lengths.min() == 1
    # Six coins, none of them empty.
    assert predicates.lengths.mean() == pytest.approx(3 / (1 - 0.5**6), abs=0.02)
    text = np.isin(predicates.names, TEXTS)
    assert (predicates.comparator[text] == "=").all()
    assert (predicates.text.is_valid().to_numpy(zero_copy_only=False) == text).all()
    assert len(predicates.text.unique()) == 200 + 1  # and null
    comparator = predicates.comparator[~text]
    assert (comparator == "=").mean() == pytest.approx(0.5, abs=0.01)
    assert (comparator == "<").mean() == pytest.approx(0.25, abs=0.01)
    assert (comparator == ">").mean() == pytest.approx(0.25, abs=0.01)
    value = predicates.value.drop_null().to_numpy()
    assert (value.min(), value.max(), len(np.unique(value))) == (1, 5000, 5000)


def test_events_bind_half_of_the_attributes() -> None:
    events = workload.make("lesubscribe", 1).events(5000)
    for column in events.itercolumns():
        assert column.null_count / 5000 == pytest.approx(0.5, abs=0.03)
    assert len(events["a1"].drop_null().unique()) == 200


def test_the_schema_leaves_room_at_the_ends() -> None:
    """`a4 < 1` is drawn, never matches, and must not be refused as never true."""
    kinds = workload.make("lesubscribe", 1, numbers=7).schema["attributes"]
    assert kinds["a4"] == {"kind": "integer", "low": 0, "high": 8}
    assert kinds["a1"] == "text"


def test_types_have_attributes_of_their_own() -> None:
    made = workload.make("lesubscribe", 4_000, types=3, seed=2)
    predicates = Predicates(made.subscriptions)
    kinds = np.array([name.split("_")[0] for name in predicates.names])
    of = np.repeat(np.arange(4_000), predicates.lengths)
    assert all(len(set(kinds[of == row])) == 1 for row in range(200)), "one type a subscription"
    shares = [(kinds == kind).mean() for kind in ("t1", "t2", "t3")]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.05)
    events = made.events(300)
    assert events.column_names == list(made.schema["attributes"])
    for row in events.to_pylist():
        bound = {name.split("_")[0] for name, value in row.items() if value is not None}
        assert len(bound) <= 1, "an event binds attributes of one type"


def test_one_type_is_drawn_as_ever() -> None:
    """A parameter of its own stream would change all earlier results."""
    made = workload.make("lesubscribe", 3, seed=7)
    assert made.subscriptions.equals(workload.make("lesubscribe", 3, seed=7, types=1).subscriptions)
    assert made.events(2).column_names == ["a1", "a2", "a3", "a4", "a5", "a6"]
