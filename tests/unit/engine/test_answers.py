"""The engine's answers against the definition of truth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, parse
from tamis.errors import NeverTrueError
from tamis.model import semantics
from tamis.model.condition import Condition
from tests.unit.engine.world import SCHEMA, conditions, conjunctions, events, expected, fill
from tests.unit.model.test_semantics import CASES
from tests.unit.model.test_semantics import SCHEMA as SENTENCES

MATCHERS = ("naive", "scan")


@pytest.mark.parametrize("matcher", MATCHERS)
@settings(max_examples=120)
@given(given_=st.lists(conditions(), max_size=8), batch=st.lists(events(), max_size=5))
@pytest.mark.slow
def test_a_batch_is_answered_as_the_semantics_say(
    matcher: str, given_: list[Condition], batch: list[dict[str, Any]]
) -> None:
    engine = Engine(SCHEMA, matcher=matcher)
    live = fill(engine, given_)
    engine.check()
    answers = engine.match_batch(batch)
    for event, answer in zip(batch, answers, strict=True):
        assert len(answer) == len(set(answer)), "each subscription once"
        assert set(answer) == expected(live, event)
        assert sorted(engine.match(event)) == sorted(answer), "batch equals one by one"


@pytest.mark.parametrize("matcher", MATCHERS)
def test_every_sentence_of_the_semantics_holds_in_the_engine(matcher: str) -> None:
    """Each condition alone, then all of them at once, over every event of the cases."""
    together = Engine(SENTENCES, matcher=matcher)
    live: dict[Any, Condition] = {}
    for number, (text, _, _) in enumerate(CASES):
        try:
            together.subscribe(text, id=number)
        except NeverTrueError:
            assert not CASES[number][2], text
            continue
        live[number] = parse(text)
    batch = [{"event_type": "antiques", **event} for _, event, _ in CASES]
    for number, (event, answer) in enumerate(zip(batch, together.match_batch(batch), strict=True)):
        assert (number in answer) == CASES[number][2], CASES[number]
        assert set(answer) == expected(live, event, SENTENCES)


@settings(max_examples=150)
@given(condition=conjunctions(), batch=st.lists(events(), min_size=1, max_size=6))
@pytest.mark.slow
def test_what_is_refused_as_never_true_is_never_true(
    condition: Condition, batch: list[dict[str, Any]]
) -> None:
    engine = Engine(SCHEMA)
    try:
        engine.subscribe(condition)
    except NeverTrueError:
        assert not any(semantics.satisfies(condition, event, SCHEMA) for event in batch)


@settings(max_examples=60)
@given(
    given_=st.lists(conditions(), min_size=2, max_size=8),
    data=st.data(),
    batch=st.lists(events(), min_size=1, max_size=4),
)
@pytest.mark.slow
def test_subscriptions_come_and_go_without_a_trace(
    given_: list[Condition], data: st.DataObject, batch: list[dict[str, Any]]
) -> None:
    engine = Engine(SCHEMA)
    empty = engine.matcher.nbytes
    live = fill(engine, given_)
    gone = data.draw(st.lists(st.sampled_from(sorted(live)), unique=True)) if live else []
    for id in gone:
        engine.unsubscribe(id)
        del live[id]
    more = fill(engine, given_[:3])  # slots are recycled
    live.update(more)
    engine.check()
    for event, answer in zip(batch, engine.match_batch(batch), strict=True):
        assert set(answer) == expected(live, event)
    for id in data.draw(st.permutations(sorted(live))):
        engine.unsubscribe(id)
    engine.check()
    assert len(engine) == len(engine.matcher) == 0
    assert engine.matcher.nbytes == empty
    assert all(len(labels) == 0 for labels in engine.encoder.labels.values())
    assert not +engine.encoder.patterned


@settings(max_examples=40)
@given(given_=st.lists(conditions(), min_size=1, max_size=6), event=events())
def test_explain_agrees_with_match(given_: list[Condition], event: dict[str, Any]) -> None:
    engine = Engine(SCHEMA)
    live = fill(engine, given_)
    found = engine.match(event)
    for id in live:
        explanation = engine.explain(id, event)
        assert bool(explanation) == (id in found)
        assert str(explanation).startswith("matches" if id in found else "does not match")
