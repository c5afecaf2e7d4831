"""An index that was saved before there were guides to cells."""

from __future__ import annotations

import random

from tamis.files.arrays import Arrays
from tamis.match.capabilities import restore, saved_form
from tamis.match.default.matcher import Tamis
from tests.unit.match.default.two_matchers import Both, same_answer, some_clauses, some_events


def test_an_index_saved_without_a_guide_is_given_one() -> None:
    chance = random.Random(3)
    both = Both()
    both.add(some_clauses(chance, 500))
    events = some_events(chance, 200)
    both.agree(events)
    saved = {
        name: each for name, each in saved_form(both.tamis).arrays.items() if "guide" not in name
    }
    assert len(saved) == len(saved_form(both.tamis).arrays) - 4
    other = Tamis()
    restore(other, Arrays(saved), saved_form(both.tamis).facts)
    same_answer(other.match(events), both.naive.match(events))
    assert sorted(saved_form(other).arrays) == sorted(saved_form(both.tamis).arrays)
