"""The constructs that real events need: engines give the answers of `satisfies`.

TAMIS_CONSTRUCTS is the number of pairs to compare; `make soak CAMPAIGNS=constructs` asks for many.
"""

from __future__ import annotations

import os
from functools import partial

from tamis.match.registry import create, entry, matchers
from tamis.testing.constructs import CONSTRUCTS, compare_constructs
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
    for construct in CONSTRUCTS:
        assert done.pairs_with[construct] > done.pairs / 50, construct
        assert 0 < done.matches_with[construct] < done.pairs_with[construct], construct
