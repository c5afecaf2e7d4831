"""The constructs that real events need: engines give the answers of `satisfies`.

TAMIS_CONSTRUCTS is the number of pairs to compare; `make soak CAMPAIGNS=constructs` asks for many.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial

from tamis.engine import Engine
from tamis.match.registry import create, entry, matchers
from tamis.testing import cases
from tamis.testing.constructs import (
    COMPARISONS,
    CONSTRUCTS,
    DYNAMIC,
    ELEMENTS,
    compare_constructs,
    constructs_of,
)
from tamis.testing.engine_checks import subscribe_random
from tests.campaign import SEED, campaign

PAIRS = int(os.environ.get("TAMIS_CONSTRUCTS", "130000"))
ALWAYS = ("tamis", "scan")
IN_TURN = [
    name
    for name in matchers()
    if name not in ALWAYS and entry(name).exact and entry(name).effort == 1
]


def test_engines_agree_with_satisfies() -> None:
    # One more matcher in each round of a soak; a short test compiles no others.
    names = (*ALWAYS, IN_TURN[SEED % len(IN_TURN)]) if SEED else ALWAYS
    makers = {name: partial(create, name, **entry(name).trials[0]) for name in names}
    with campaign("constructs") as running:
        done = compare_constructs(makers, PAIRS, SEED)
        running.tried = done.pairs
    assert done.pairs >= PAIRS
    for construct in (
        CONSTRUCTS if done.pairs > 100_000 else ()
    ):  # a short round has not all of them
        assert done.pairs_with[construct] > done.pairs / 50, construct
        assert 0 < done.matches_with[construct] < done.pairs_with[construct], construct


def test_the_checks_of_every_matcher_draw_all_constructs() -> None:
    """`agrees_with_satisfies`, `open_schema` and `domains_grow` are as wide as this."""
    for seed, number in ((11, 150), (14, 60)):
        engine = Engine(cases.SCHEMA, "scan")
        drawn = subscribe_random(engine, cases.RandomChooser(seed), number)
        used = Counter(
            each
            for condition in drawn.values()
            for each in set(constructs_of(condition, cases.SCHEMA))
        )
        assert min(used[each] for each in (DYNAMIC, ELEMENTS, COMPARISONS)) > 5
        assert len(engine.residuals) > 5
    chooser = cases.RandomChooser(16)
    used = Counter(
        each
        for _ in range(120)
        for each in set(constructs_of(cases.condition(chooser, schema=cases.OPEN), cases.OPEN))
    )
    assert min(used[each] for each in (DYNAMIC, ELEMENTS, COMPARISONS)) > 5
