"""Checks of answers in bits, which must say the same as answers in slots."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.encode.terms import Row
from tamis.engine import Engine
from tamis.match.bitmaps import Bitmaps
from tamis.match.capabilities import match_bits
from tamis.testing import cases
from tamis.testing.checks import Make, check
from tamis.testing.engine_checks import subscribe_random
from tamis.testing.matcher_checks import add, batch_of, random_clause, random_event, remove


def same_bits(engine: Engine, events: Sequence[dict[str, Any]]) -> Bitmaps:
    """Compare an engine's two answers to the same events; gives the answer in bits."""
    lists = [set(ids) for ids in engine.match_batch(list(events))]
    bits = engine.match_bitmap(list(events))
    assert len(bits) == len(events)
    assert [len(ids) for ids in bits] == [len(ids) for ids in lists], "an id occurs once"
    assert [set(ids) for ids in bits] == lists, "bits and lists agree"
    assert [set(ids) for ids in bits.matches()] == lists
    assert bits.counts().tolist() == [len(ids) for ids in lists]
    assert bits.total == sum(len(ids) for ids in lists)
    assert set(bits.union()[0]) == set().union(*lists)
    if lists:
        assert set(bits.intersection()[0]) == set.intersection(*lists)
    ids, counts = bits.per_subscription()
    assert set(ids.tolist()) == set(engine.ids()), "each subscription has a bit"
    assert len(ids) == len(engine), "and only one"
    found = Counter(id for each in lists for id in each)
    assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == {
        id: found[id] for id in engine.ids()
    }
    return bits


@check
def bits_of_slots(make: Make) -> None:
    """Bits and slots agree, after any adds, removes and matches."""
    matcher, chance = make(), random.Random(16)
    clauses: dict[int, list[Row]] = {}
    events = [random_event(chance) for _ in range(20)]
    batch = batch_of(events)
    for gone, more in ((0, 0), (0, 150), (150, 0), (0, 70), (30, 50)):
        leaving = chance.sample(sorted(clauses), gone)
        remove(matcher, leaving)
        for slot in leaving:
            del clauses[slot]
        fresh = {slot: random_clause(chance) for slot in range(500) if slot not in clauses}
        fresh = dict(chance.sample(sorted(fresh.items()), more))
        add(matcher, fresh)
        clauses |= fresh
        bits = match_bits(matcher, batch)
        assert bits.words.dtype == np.uint64
        assert bits.words.shape[0] == len(events)
        assert len(bits.slots) <= 64 * bits.words.shape[1]
        live = bits.slots[bits.slots >= 0]
        assert sorted(live.tolist()) == sorted(clauses), "each live slot has one bit"
        assert [sorted(slots) for slots in bits] == [sorted(s) for s in matcher.match(batch)]
        before, kept = [sorted(slots) for slots in bits.matches()], bits.slots.copy()
        bits.words[:] = 0  # the answer belongs to the caller
        assert [sorted(slots) for slots in match_bits(matcher, batch)] == before
        matcher.check()
        if clauses:
            slot = next(iter(clauses))
            remove(matcher, [slot])
            add(matcher, {slot: clauses[slot]})
        assert (bits.slots == kept).all(), "an answer never changes"


@check
def bits_of_subscriptions(make: Make) -> None:
    """In an engine a subscription has one bit, also with several clauses and patterns."""
    chooser = cases.RandomChooser(17)
    engine = Engine(cases.SCHEMA, make())
    events = [cases.event(chooser) for _ in range(30)]
    same_bits(engine, events)
    subscribe_random(engine, chooser, 120)
    for text in ('title like "%b%" or tags ends with a', 'tags like "_" and title like "%a%"'):
        engine.subscribe(text)
    bits = same_bits(engine, events)
    lists = engine.match_batch(events)
    before = [sorted(ids) for ids in lists]
    for id in engine.ids()[::2]:
        engine.unsubscribe(id)
    for number in range(40):
        engine.subscribe("price exists or number exists", id=f"new {number}")
    assert [sorted(ids) for ids in bits] == before, "an answer never changes"
    assert [sorted(ids) for ids in lists] == before
    same_bits(engine, events)
    same_bits(engine, [])
    engine.check()
