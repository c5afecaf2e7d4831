"""Checks of saving a matcher as arrays and facts, and of restoring it."""

from __future__ import annotations

import json

import numpy as np

from tamis.engine import Engine
from tamis.files.arrays import Arrays
from tamis.match.base import Matcher
from tamis.match.capabilities import restore, saved_form
from tamis.testing import cases
from tamis.testing.checks import Make, check
from tamis.testing.engine_checks import Truths, agree, subscribe_random


def restored(matcher: Matcher, empty: Matcher) -> Matcher:
    """`empty`, restored from the arrays and facts of `matcher`."""
    form = saved_form(matcher)
    wrong = [name for name, array in form.arrays.items() if array.dtype.kind not in "biuf"]
    assert not wrong, f"only arrays of numbers and booleans can be saved, not {wrong}"
    read = json.loads(json.dumps(form.facts, allow_nan=False))
    assert read == form.facts, "facts must survive JSON: text for keys, lists for tuples"
    arrays = Arrays({name: np.array(array, order="C") for name, array in form.arrays.items()})
    restore(empty, arrays, read, len(cases.SCHEMA.attributes))  # what was saved passes all checks
    return empty


@check
def is_restored_as_it_was(make: Make) -> None:
    """A restored matcher gives the same answers, and can be changed further."""
    chooser = cases.RandomChooser(14)
    engine = Engine(cases.SCHEMA, make())
    events = [cases.event(chooser) for _ in range(30)]
    engine.matcher = restored(engine.matcher, make())  # still empty
    conditions = subscribe_random(engine, chooser, 120)
    known: Truths = {}
    for _ in range(3):
        agree(engine, conditions, events, known)
        for id in sorted(conditions)[::3]:
            engine.unsubscribe(id)
            del conditions[id]
        engine.matcher = restored(engine.matcher, make())
        engine.check()
        agree(engine, conditions, events, known)
        conditions |= subscribe_random(engine, chooser, 20)
    engine.check()
    agree(engine, conditions, events, known)
    for id in conditions:
        engine.unsubscribe(id)
    engine.matcher = restored(engine.matcher, make())
    agree(engine, {}, events)
