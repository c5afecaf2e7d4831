"""Workloads by the names of figures, and subscriptions as text."""

from __future__ import annotations

import pytest

from tamis import Engine, Schema, TamisError, workload
from tamis.workload.tables import conditions


@pytest.mark.parametrize("name", workload.VARIANTS)
def test_every_variant_is_a_workload(name: str) -> None:
    made = workload.make_variant(name, 200, seed=3)
    variant = workload.variant(name)
    assert made.name == variant.workload
    assert made.subscriptions.num_rows == 200
    assert variant.parameters.items() <= made.parameters.items()


def test_titles_tell_variants_apart_and_an_unknown_one_is_refused() -> None:
    titles = [variant.title for variant in workload.VARIANTS.values()]
    assert len(set(titles)) == len(titles)
    with pytest.raises(TamisError, match="did you mean 'topss-w4'"):
        workload.make_variant("topss-w5", 10)


@pytest.mark.parametrize("name", ["dexin", "lesubscribe", "topss", "gryphon", "sparse"])
def test_conditions_say_what_predicates_say(name: str) -> None:
    made = workload.make(name, 400, seed=5)
    some = made.subscriptions.slice(100, 200)  # a part of a table has its own rows only
    table, text = (Engine(Schema.from_dict(made.schema)) for _ in range(2))
    table.subscribe_table(some)
    written = conditions(some)
    assert len(written) == 200
    for id, condition in zip(some.column("id").to_pylist(), written.to_pylist(), strict=True):
        text.subscribe(condition, id=id)
    events = made.events(200)
    answers = [set(ids) for ids in table.match_batch(events)]
    assert [set(ids) for ids in text.match_batch(events)] == answers
    if not table.encoder.labels:  # labels of texts depend on the order in which they come
        slots = table.matcher.clauses.live_slots()
        one, two = table.matcher.terms(slots), text.matcher.terms(slots)
        assert one.starts.tolist() == two.starts.tolist()
        assert one.low.tolist() == two.low.tolist(), "to the last bit of a number"
        assert one.high.tolist() == two.high.tolist()
