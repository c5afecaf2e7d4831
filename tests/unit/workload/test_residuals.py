"""Conditions with residuals: drawn by the seed, possible, and neither always nor never true."""

from __future__ import annotations

import pytest

from tamis import Engine, Schema, TamisError, parse, workload
from tamis.language.normal_form import clauses
from tamis.workload.residuals import with_residuals


def test_every_tenth_subscription_has_a_residual() -> None:
    made = workload.make("dexin", 95, seed=3)
    found = with_residuals(made)
    assert found.column("id").to_pylist() == list(range(0, 95, 10))
    for text in found.column("condition").to_pylist():
        parts = clauses(parse(text))
        assert [len(each.residual) for each in parts] == [1] * 5
    again = with_residuals(workload.make("dexin", 95, seed=3))
    other = with_residuals(workload.make("dexin", 95, seed=4))
    assert again.equals(found)
    assert not other.equals(found)


def test_no_subscriptions_give_no_conditions() -> None:
    assert with_residuals(workload.make("dexin", 0)).num_rows == 0


def test_residuals_keep_some_events_and_drop_some() -> None:
    made = workload.make("dexin", 2_000, seed=5, matching=0.05)
    texts, plain = (Engine(Schema.from_dict(made.schema), "scan") for _ in range(2))
    texts.subscribe_table(with_residuals(made, every=1))
    assert len(texts.matcher) == 5 * 2_000, "every combination is possible"
    plain.subscribe_table(made.subscriptions)
    events = made.events(50)
    kept, all_of_them = texts.match_batch(events), plain.match_batch(events)
    assert all(set(some) <= set(ids) for some, ids in zip(kept, all_of_them, strict=True))
    share = len(kept.subscriptions) / len(all_of_them.subscriptions)
    assert 0.2 < share < 0.9
    candidates = texts.matcher.match(texts.encode(events)).slots
    assert len({*candidates.tolist()}) > len({*kept.slots.tolist()})


def test_other_predicates_are_refused() -> None:
    with pytest.raises(TamisError, match="=, <= and >= only"):
        with_residuals(workload.make("lesubscribe", 100, seed=1))
    with pytest.raises(TamisError, match="needs 5 attributes, got 4"):
        with_residuals(workload.make("dexin", 10, attributes=4))
