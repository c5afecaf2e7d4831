"""The workload of expensive operators: lengths, popularity, and 0.2 % that match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tamis.errors import TamisError
from tamis.workload import OperatorWorkload, liu


def flat(made: OperatorWorkload) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All predicates one after the other, and where each subscription's begin."""
    lists = made.subscriptions["predicates"]
    lengths = np.asarray(pc.list_value_length(lists))
    return np.asarray(pc.list_flatten(lists)), np.cumsum(lengths) - lengths


@pytest.mark.parametrize("probabilities", ["equal", "heterogeneous"])
@pytest.mark.parametrize("popularity", ["uniform", "zipf"])
@pytest.mark.parametrize("longest", [5, 11])
def test_the_mean_product_is_the_matching_rate(
    probabilities: str, popularity: str, longest: int
) -> None:
    made = liu.make(
        5000,
        predicates=2000,
        longest=longest,
        popularity=popularity,
        probabilities=probabilities,
    )
    picks, starts = flat(made)
    products = np.multiply.reduceat(made.probabilities[picks], starts)
    assert products.mean() == pytest.approx(0.002, rel=1e-6)
    assert ((made.probabilities > 0) & (made.probabilities <= 1)).all()


@pytest.mark.parametrize("probabilities", ["equal", "heterogeneous"])
def test_events_match_two_in_a_thousand(probabilities: str) -> None:
    made = liu.make(20_000, predicates=5000, probabilities=probabilities)
    picks, starts = flat(made)
    truths = made.truths(300)
    assert truths.shape == (300, 5000)
    matched = [np.logical_and.reduceat(event[picks], starts).mean() for event in truths]
    assert np.mean(matched) == pytest.approx(0.002, rel=0.1)


def test_equal_probabilities_are_about_a_sixth_and_zipf_does_not_use_all() -> None:
    made = liu.make(20_000, predicates=5000, probabilities="equal")
    assert len(np.unique(made.probabilities)) == 1
    assert made.probabilities[0] == pytest.approx(0.17, abs=0.01)
    assert 12_000 < liu.make(20_000, predicates=30_000, popularity="zipf").used < 16_000


def test_subscriptions_are_lists_of_different_predicates() -> None:
    made = liu.make(5000, predicates=300, longest=9, popularity="zipf", exponent=1.2)
    lists = made.subscriptions["predicates"].to_pylist()
    assert made.subscriptions.schema.field("predicates").type == pa.list_(pa.int32())
    assert {len(some) for some in lists} == set(range(3, 10))
    assert all(len(set(some)) == len(some) for some in lists)
    assert made.subscriptions["id"].to_pylist() == list(range(5000))


def test_popularity_is_uniform_or_zipf() -> None:
    uniform = np.bincount(flat(liu.make(50_000, predicates=1000))[0], minlength=1000)
    zipf = np.bincount(flat(liu.make(50_000, predicates=1000, popularity="zipf"))[0])
    # Weights uniform in [0, 1] have a standard deviation of 0.58 of their mean.
    assert uniform.std() / uniform.mean() == pytest.approx(0.58, abs=0.06)
    # Drawing without repetition flattens the very top, the rest keeps 1/rank.
    assert zipf[20:30].sum() / zipf[200:300].sum() == pytest.approx(1.0, abs=0.1)


def test_the_same_seed_gives_the_same_workload() -> None:
    one, two = (liu.make(500, predicates=100, seed=5) for _ in range(2))
    assert one.subscriptions.equals(two.subscriptions)
    assert (one.probabilities == two.probabilities).all()
    assert (one.truths(20) == two.truths(20)).all()
    assert (one.truths(20) != one.truths(20, seed=1)).any()


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"popularity": "normal"}, "popularity is"),
        ({"probabilities": "same"}, "probabilities are"),
        ({"longest": 2}, "shortest <= longest"),
        ({"matching": 0.0}, "matching is a share"),
    ],
)
def test_a_refusal_says_what_would_be_right(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(TamisError, match=says):
        liu.make(10, **parameters)
