"""What the adaptive scheduler keeps of an event beside its state, and where that lies."""

from __future__ import annotations

from typing import NamedTuple

from tamis.index.kernel import kernel
from tamis.schedule.compiled.clause_order import NOW, Flat, Singles, flat
from tamis.schedule.compiled.event_graph import SIZES, Numbered
from tamis.schedule.compiled.graph import Int32s, Int64s

BUCKETS = 1024


class Prices(NamedTuple):
    """What the adaptive scheduler knows of an event's literals, clauses and predicates."""

    odds: Singles  # chance that a literal kills: by the bits of its mask, then by predicate
    chance: Singles  # per literal: the same while prices are made; -1 where it has come out
    least: Singles  # per clause: the share of the predicate that kills it for least
    second: Singles  # and that of the next one
    bonus: Singles  # per clause: what its match is expected to save its owner's other clauses
    worth: Singles  # per owner: prices of its clauses
    luck: Singles  # per owner: chances that they match
    cost: Singles  # per predicate
    load: Singles  # what evaluating it is expected to save
    scale: Singles  # load * scale is the score
    miss: Singles  # chance that nobody will need it
    whole: Singles  # per call: what its predicates save together
    idle: Singles  # per call: chance that nobody will need it
    killers: Int32s  # per clause: literals that may still kill it
    cheapest: Int32s  # per clause: the predicate that kills it for least
    open: Int32s  # undecided clauses, and some that no longer are
    live: Int32s  # predicates that are needed, and some that no longer are
    link: Int32s  # the next predicate in the bucket
    head: Int32s  # the first predicate of each bucket
    call: Int32s  # per predicate: the call that answers it
    forced: Int32s  # predicates that have to be evaluated whatever happens
    at: Int64s  # `now`: bucket; lengths of lists; when to make prices, whether they were made


def priced_flat(numbered: Numbered) -> Flat:
    """Room for a state and prices."""
    n, m, k = numbered.longs[:SIZES].tolist()
    return flat(numbered, 3 * n + m + 3 * k + BUCKETS, 5 * n + m + 10 * k)


@kernel
def prices_in(sizes: Int64s, ints: Int32s, longs: Int64s, floats: Singles) -> Prices:
    """Where everything lies in the flat arrays, behind the state."""
    n, m, k = sizes[0], sizes[1], sizes[2]
    clauses = 4 * k + m
    predicates = clauses + 5 * n
    live = 5 * n
    buckets = live + 2 * k
    return Prices(
        floats[: 4 * k],
        floats[4 * k : clauses],
        floats[clauses : clauses + n],
        floats[clauses + n : clauses + 2 * n],
        floats[clauses + 2 * n : clauses + 3 * n],
        floats[clauses + 3 * n : clauses + 4 * n],
        floats[clauses + 4 * n : predicates],
        floats[predicates : predicates + k],
        floats[predicates + k : predicates + 2 * k],
        floats[predicates + 2 * k : predicates + 3 * k],
        floats[predicates + 3 * k : predicates + 4 * k],
        floats[predicates + 4 * k : predicates + 5 * k],
        floats[predicates + 5 * k :],
        ints[2 * n : 3 * n],
        ints[3 * n : 4 * n],
        ints[4 * n : live],
        ints[live : live + k],
        ints[live + k : buckets],
        ints[buckets : buckets + BUCKETS],
        ints[buckets + BUCKETS : buckets + BUCKETS + k],
        ints[buckets + BUCKETS + k :],
        longs[:NOW],
    )
