"""Routes: where clauses go, what they leave there, and that nothing stays when they leave."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.encode.terms import Row
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.match.default import index_updates as growth
from tamis.match.default.index_updates import insert_all, remove_all
from tamis.match.default.passes.batch_pass import insert_framed
from tamis.match.default.passes.frame import Frame, Framed
from tamis.match.default.planning.survey import survey
from tamis.match.default.structure.buckets import COMBINED, GRAINS, KEYS, run_of
from tamis.match.default.structure.buckets import LIVE as ENTRIES
from tamis.match.default.structure.cells import HIGHEST, LOWEST
from tamis.match.default.structure.family import LIVE, make_family
from tamis.match.default.structure.packed_clauses import PackedClauses, PackedTable
from tamis.match.default.structure.routes import (
    BIT,
    BUCKET,
    CHECK,
    COPIES,
    DENSE,
    DENSE_FROM,
    DENSE_LINES,
    LINE,
    NOWHERE,
    PROBE,
    SPARSE,
    SPARSE_LINES,
    TERMS,
    VERIFY,
    VISIT,
    WHOLE,
    RoutedIndex,
    Schemes,
)
from tamis.match.default.workers import MatchWorker
from tamis.testing.matcher_checks import PlainEvent, batch_of, random_clause, random_event
from tests.unit.match.default.families import Clause, cells_for, index_of, table_of, true_pairs

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
GRAINS_ALL = (1 << (WHOLE + 1)) - 1
FAR = 1e15  # nanoseconds: so that anything else is cheaper


def costs_of(columns: int, *, keys_only: bool = False) -> Floats:
    costs = np.zeros(9)
    for which, ns in ((PROBE, 20), (VISIT, 3), (VERIFY, 25), (LINE, 0.5), (CHECK, 12), (BIT, 0.6)):
        costs[which] = ns
    costs[[SPARSE_LINES, DENSE_LINES]] = FAR if keys_only else columns * 0.5 / 512
    costs[DENSE_FROM] = 1 / 64
    return costs


def schemes_of(
    width: int, allowed: int | Sequence[int], combined: Sequence[tuple[int, ...]] = ()
) -> Schemes:
    """Keys of these grains, for all attributes or for each; and of these combinations."""
    pivots = np.array([each[0] for each in combined], np.int64)
    order = np.argsort(pivots, kind="stable")
    return Schemes(
        np.full(width, allowed, np.int64) if isinstance(allowed, int) else np.array(allowed),
        np.zeros(width, np.int64),
        np.cumsum([0, *map(len, combined)]).astype(np.int64),
        np.array([a for each in combined for a in each], np.int64),
        np.searchsorted(pivots[order], np.arange(width + 1)).astype(np.int64),
        order.astype(np.int64),
    )


def index_for(
    clauses: Sequence[Clause],
    events: Sequence[PlainEvent],
    allowed: int | Sequence[int] = GRAINS_ALL,
    combined: Sequence[tuple[int, ...]] = (),
    *,
    width: int = 6,
    keys_only: bool = False,
) -> RoutedIndex:
    cells = cells_for(width, clauses, events)
    columns = np.arange(width, dtype=np.int32)
    sparse, dense = (make_family(columns, cells, dense=dense) for dense in (False, True))
    return index_of(cells, sparse, dense, len(clauses))._replace(
        costs=costs_of(width, keys_only=keys_only), schemes=schemes_of(width, allowed, combined)
    )


class Routes:
    """What is decided for some clauses."""

    def __init__(self, index: RoutedIndex, clauses: Sequence[Clause]) -> None:
        many = len(clauses)
        table = table_of(clauses)
        found = survey(index, table.view, np.arange(many))
        self.kind, self.scheme, self.cost, self.in_family = found

    @property
    def places(self) -> list[tuple[int, int, int]]:
        """Kind; and for a bucket the attribute and grain, or COMBINED and which."""
        found = []
        for kind, scheme in zip(self.kind.tolist(), self.scheme.tolist(), strict=True):
            if kind != BUCKET:
                found.append((kind, -1, -1))
            elif scheme >= COMBINED:
                found.append((kind, COMBINED, scheme - COMBINED))
            else:
                found.append((kind, scheme // GRAINS, scheme % GRAINS))
        return found


VALUES = 2000
EVENTS: list[PlainEvent] = [
    {0: [i * 7 % VALUES], 1: [i * 13 % VALUES], 2: [i % 100], 3: [i // 10 % 100]}
    | ({4: [i % 3]} if i % 100 == 0 else {})
    for i in range(1000)
]
"""Two attributes of many values, two of few, and one that is rarely bound."""


def _only(routes: Routes) -> tuple[int, int, int]:
    (place,) = set(routes.places)
    return place


def wide(chance: random.Random) -> Clause:
    low = [chance.randrange(VALUES - 300) for _ in range(2)]
    few = chance.randrange(85)
    ranges = ((low[0], low[0] + 299), (low[1], low[1] + 299), (few, few + 14))
    return [(a, a, SOME, first, last) for a, (first, last) in enumerate(ranges)]


def listed(many: int, step: int) -> list[Clause]:
    """So many values of attribute 0 in each clause."""
    return [[(0, 0, SOME, i + step * j, i + step * j) for j in range(many)] for i in range(step)]


PLACES: dict[str, tuple[list[Clause], tuple[int, int, int]]] = {
    "a value that few events have": (
        [[(0, 0, SOME, i, i)] for i in range(VALUES)],
        (BUCKET, 0, 0),
    ),
    "the rarest of several values": (
        [
            [(0, 0, SOME, 0, 1500), (1, 1, SOME, i, i), (2, 2, SOME, i % 100, i % 100)]
            for i in range(VALUES)
        ],
        (BUCKET, 1, 0),
    ),
    "two values: two keys": (listed(2, 200), (BUCKET, 0, 0)),
    "a few values: a few keys": (listed(COPIES, 200), (BUCKET, 0, 0)),
    "an attribute that is rarely bound": (
        [
            [(4, 0, NONE, 1, 1), (0, 1, SOME, LOWEST, 1900)][::-1]
            if i % 2
            else [(4, 0, NONE, i, i)]
            for i in range(100)
        ],
        (BUCKET, 4, WHOLE),
    ),
    "wide ranges of several attributes": (
        [wide(random.Random(seed)) for seed in range(500)],
        (SPARSE, -1, -1),
    ),
    "most events satisfy it": (
        [
            *([(0, 0, SOME, LOWEST, 1500 + i)] for i in range(300)),
            [(1, 0, SOME, LOWEST, HIGHEST)],
            [(4, 0, MISSING, 0, -1)],
            [],
        ],
        (DENSE, -1, -1),
    ),
}


@pytest.mark.parametrize(("clauses", "place"), PLACES.values(), ids=PLACES)
def test_clauses_have_an_evident_place(clauses: list[Clause], place: tuple[int, int, int]) -> None:
    assert _only(Routes(index_for(clauses, EVENTS), clauses)) == place


@pytest.mark.parametrize("many", [COPIES + 1, 100])
def test_a_longer_list_is_not_a_key_of_values(many: int) -> None:
    clauses = listed(many, 20)
    assert (BUCKET, 0, 0) not in Routes(index_for(clauses, EVENTS), clauses).places


def test_narrow_ranges_are_keys_of_cells() -> None:
    clauses: list[Clause] = [[(0, 0, SOME, i, i + 2)] for i in range(VALUES)]
    places = Counter(Routes(index_for(clauses, EVENTS), clauses).places)
    assert {(kind, attribute) for kind, attribute, _ in places} == {(BUCKET, 0)}
    assert {grain for _, _, grain in places} <= {1, 2}


PAIRS: list[Clause] = [
    [(2, 0, SOME, i % 100, i % 100), (3, 1, SOME, i // 10, i // 10)] for i in range(1000)
]


def test_values_of_few_that_are_rare_together_are_a_combination() -> None:
    index = index_for(PAIRS, EVENTS, combined=[(0, 1), (2, 3)])
    assert _only(Routes(index, PAIRS)) == (BUCKET, COMBINED, 1)
    alone = Routes(index_for(PAIRS, EVENTS), PAIRS).places
    assert {(kind, grain) for kind, _, grain in alone} == {(BUCKET, 0)}
    without_keys = index_for(PAIRS, EVENTS, allowed=0, combined=[(2, 3)])
    assert _only(Routes(without_keys, PAIRS)) == (BUCKET, COMBINED, 0)


def test_only_allowed_keys_are_taken() -> None:
    clauses: list[Clause] = [[(0, 0, SOME, i, i), (1, 1, SOME, i, i + 2)] for i in range(VALUES)]
    for allowed, place in (
        ([0b1, 0, 0, 0, 0, 0], (BUCKET, 0, 0)),
        ([0, 0b10, 0, 0, 0, 0], (BUCKET, 1, 1)),
        ([0] * 6, (SPARSE, -1, -1)),
    ):
        assert _only(Routes(index_for(clauses, EVENTS, allowed), clauses)) == place


def test_what_is_dear_is_avoided() -> None:
    """The dense family is for what many events match, and not at all where that is ruled out."""
    clauses: list[Clause] = [[(0, 0, SOME, LOWEST, 1500 + i)] for i in range(300)]
    index = index_for(clauses, EVENTS, allowed=0)
    index.costs[DENSE_FROM] = np.inf
    assert _only(Routes(index, clauses)) == (SPARSE, -1, -1)
    routes = Routes(index_for(clauses, EVENTS, keys_only=True), clauses)
    assert set(routes.kind.tolist()) == {BUCKET}
    assert (routes.cost < routes.in_family).all()


def test_missing_is_never_a_key() -> None:
    clauses: list[Clause] = [[(a, 0, MISSING, 0, -1)] for a in range(6)]
    routes = Routes(index_for(clauses, EVENTS, keys_only=True), clauses)
    assert BUCKET not in routes.kind.tolist()


# -- in and out ------------------------------------------------------------------------------------


def found(
    framed: Framed[RoutedIndex], table: PackedTable, events: Sequence[PlainEvent]
) -> set[tuple[int, int]]:
    """The pairs that an index finds. Each is found once."""
    counts = np.empty(len(events), np.int64)
    pairs = batch_of(events).pairs
    table.width = max(table.width, len(framed.record.cells.bound))
    out, used = MatchWorker().match_chunk(framed, table, pairs, counts, np.empty(0, np.int32), 0)
    event = np.repeat(np.arange(len(events)), counts).tolist()
    listed = list(zip(event, out[:used].tolist(), strict=True))
    assert len(listed) == len(set(listed))
    return set(listed)


def no_trace(index: RoutedIndex) -> None:
    assert index.buckets.head[ENTRIES] == 0
    assert index.sparse.head[LIVE] == index.dense.head[LIVE] == 0
    assert (index.kind == NOWHERE).all()
    key, bucket = index.buckets.key, index.buckets.bucket
    assert all(run_of(bucket, at)[1] == 0 for at in np.flatnonzero(key).tolist())
    assert (index.sparse.slot_of < 0).all()
    assert (index.dense.slot_of < 0).all()


COMBINATIONS = [(0, 1), (0, 2, 5), (1, 4), (2, 3)]


@pytest.mark.parametrize("keys_only", [False, True], ids=["cheapest", "keys"])
@pytest.mark.parametrize("allowed", [GRAINS_ALL, 1, 0b10, 0b1000, 1 << WHOLE, 0], ids=bin)
def test_in_and_out_again(allowed: int, keys_only: bool) -> None:
    """Wherever clauses are put, the same is found; and when all are gone, nothing is left."""
    chance = random.Random(allowed)
    clauses: list[Clause] = [random_clause(chance) for _ in range(160)]
    events = [random_event(chance) for _ in range(30)]
    table = table_of(clauses)
    combined = COMBINATIONS if allowed & 1 else []
    index = index_for(clauses[::2], events, allowed, combined, keys_only=keys_only)
    framed = insert_all(Framed(index), table.view, np.arange(160))
    assert found(framed, table, events) == true_pairs(clauses, range(160), events)
    if keys_only and allowed:
        assert (framed.record.kind == BUCKET).sum() > 40
    live = set(range(160))
    for _ in range(4):
        gone = chance.sample(sorted(live), 50)
        remove_all(framed, table.view, np.array(gone))
        live -= set(gone)
        assert found(framed, table, events) == true_pairs(clauses, live, events)
        back = chance.sample(sorted(set(range(160)) - live), 40)
        framed = insert_all(framed, table.view, np.array(back))
        live |= set(back)
        assert found(framed, table, events) == true_pairs(clauses, live, events)
    remove_all(framed, table.view, np.array(sorted(live)))
    no_trace(framed.record)
    assert found(framed, table, events) == set()


def test_copies_come_and_go_together() -> None:
    lists: list[Clause] = [
        [(0, 0, SOME, i + 5 * j, i + 5 * j) for j in range(COPIES)] for i in range(40)
    ]
    events: list[PlainEvent] = [{0: [value]} for value in range(80)]
    events += [{0: [3, 8, 13]}, {0: [3, 3]}, {0: [3], 1: [4, 5]}]
    table = table_of(lists)
    index = index_for(lists, events, allowed=1, keys_only=True)
    framed = insert_all(Framed(index), table.view, np.arange(40))
    assert framed.record.buckets.head[ENTRIES] == 40 * COPIES
    assert found(framed, table, events) == true_pairs(lists, range(40), events)
    for slot in range(0, 40, 3):
        remove_all(framed, table.view, np.array([slot]))
        left = [other for other in range(40) if other > slot or other % 3]
        assert framed.record.buckets.head[ENTRIES] == len(left) * COPIES
        assert found(framed, table, events) == true_pairs(lists, left, events)
    remove_all(framed, table.view, np.array(left))
    no_trace(framed.record)


@pytest.mark.parametrize("terms", [TERMS - 1, TERMS, TERMS + 1, TERMS + 8])
def test_long_clauses_under_keys(terms: int) -> None:
    """Terms past those that are looked at are verified, wherever the clause lies."""
    rows: list[Row] = [(a, a, SOME, 5, 9) for a in range(terms)]
    clauses: list[Clause] = [[*rows[:-1], (terms - 1, terms - 1, SOME, last, 9)] for last in (5, 8)]
    event: PlainEvent = {a: [7] for a in range(terms)}
    events = [event, event | {terms - 1: [8]}, event | {0: [4]}, event | {terms - 1: [4]}]
    table = table_of(clauses)
    for keys_only in (False, True):
        index = index_for(clauses, [], width=terms, keys_only=keys_only)
        framed = insert_all(Framed(index), table.view, np.arange(2))
        assert found(framed, table, events) == {(0, 0), (1, 0), (1, 1)}
        remove_all(framed, table.view, np.arange(2))
        no_trace(framed.record)


def test_keys_that_came_and_went_make_room() -> None:
    """Ever new values: the table of keys does not grow with those that are gone."""
    clauses: list[Clause] = [[(0, 0, SOME, i, i)] for i in range(4000)]
    table = table_of(clauses)
    framed = Framed(index_for(clauses, EVENTS, allowed=1, keys_only=True))
    for first in range(0, 4000, 100):
        framed = insert_all(framed, table.view, np.arange(first, first + 100))
        if first:
            remove_all(framed, table.view, np.arange(first - 100, first))
    assert framed.record.buckets.head[KEYS] <= 512
    assert len(framed.record.buckets.key) <= 1024
    assert found(framed, table, [{0: [3950]}, {0: [3850]}]) == {(0, 3950)}


def test_there_is_always_room_to_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that doubles needs more than half of the pool, which is just not full enough."""
    mine: Clause = [(0, 0, SOME, 5, 5)]
    clauses: list[Clause] = [*[mine] * 33, *[[]] * 190, *[mine] * 40]
    table = table_of(clauses)
    index = index_for(clauses[32:34], EVENTS, allowed=1, keys_only=True)
    calls = [0]

    def counted(frame: Frame, view: PackedClauses, slots: Int64s, begin: int) -> tuple[int, int]:
        calls[0] += 1
        assert calls[0] < 500, "it asks for room again and again, and never gets it"
        return insert_framed(frame, view, slots, begin)

    monkeypatch.setattr(growth, "insert_framed", counted)
    framed = insert_all(Framed(index), table.view, np.arange(223))
    for slot in range(223, len(clauses)):
        framed = insert_all(framed, table.view, np.array([slot]))
    assert framed.record.buckets.head[ENTRIES] == 73
