"""The workload of Le Subscribe (Fabret, Llirbat, Pereira, Shasha, INRIA 2000), section 4.

One event type with six optional attributes: a1 to a3 are strings of 200 values that only occur in
equalities, a4 to a6 are numbers of 5,000 values under any comparator. An attribute occurs in a
subscription with probability 0.5 and in an event with probability 0.5; all values are uniform.

What the paper leaves open, and the choices made here:

- *"any type of predicate"*: with probability `p` an equality, otherwise `<` or `>` with equal
  chance. The paper's cost model knows less and greater only.
- *Subscriptions without a predicate* (0.5^6, or 1.6 % of them) would match every event. They are
  drawn again.
- *Several event types* (section 5): the names of attributes begin with the name of their type, as
  the paper proposes. A subscription and an event belong to one type, drawn with equal chances.
- *The ends of a domain.* `a4 < 1` never holds if values begin at 1. Such predicates are kept, so
  the schema's domain is one value wider at each end; otherwise loading them would be refused as
  never true.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.workload.base import Workload, plain_schema
from tamis.workload.draw import SUBSCRIPTIONS, nonempty, require, require_count, stream
from tamis.workload.tables import EQ, GT, LT, events_table, subscriptions_table, words

TEXTS = ("a1", "a2", "a3")
NUMBERS = ("a4", "a5", "a6")
ATTRIBUTES = TEXTS + NUMBERS


def make(
    n: int,
    *,
    seed: int = 0,
    p: float = 0.5,
    presence: float = 0.5,
    texts: int = 200,
    numbers: int = 5000,
    types: int = 1,
) -> Workload:
    """`n` subscriptions of Le Subscribe's experiments.

    Args:
        n: number of subscriptions.
        seed: the same seed gives the same workload.
        p: probability that a predicate on a4 to a6 is an equality (figure 10 varies it).
        presence: probability that an attribute occurs, in subscriptions and in events.
        texts: distinct values of a1 to a3. One or two make equalities unselective, which is where
            the paper says equality-preferred beats quarantining.
        numbers: distinct values of a4 to a6.
        types: event types, each with six attributes of its own.
    """
    require_count(n)
    require(0 <= p <= 1, f"p is a probability, got {p}")
    require(0 < presence <= 1, f"presence is a probability above 0, got {presence}")
    require(texts >= 1 and numbers >= 1, "an attribute needs at least one value")
    require(types >= 1, f"the number of event types is 1 or more, got {types}")
    rng = stream(seed, SUBSCRIPTIONS)
    shape = (n, len(ATTRIBUTES))
    present = nonempty(rng, n, np.full(len(ATTRIBUTES), presence))

    comparator = np.where(rng.random(shape) < 0.5, LT, GT)
    comparator[rng.random(shape) < p] = EQ
    comparator[:, : len(TEXTS)] = EQ
    value = rng.integers(1, numbers, size=shape, endpoint=True).astype(np.float64)
    code = rng.integers(texts, size=shape)
    code[:, len(TEXTS) :] = -1

    attribute = np.broadcast_to(np.arange(len(ATTRIBUTES)), shape)
    if types > 1:
        attribute = attribute + len(ATTRIBUTES) * rng.integers(types, size=(n, 1))
    table = subscriptions_table(
        present.sum(axis=1),
        [name for names in _names(types) for name in names],
        attribute[present],
        comparator[present],
        value[present],
        (code[present], _vocabulary(texts)),
    )
    return Workload(
        "lesubscribe",
        _schema(numbers, types),
        table,
        seed,
        {
            "n": n,
            "p": p,
            "presence": presence,
            "texts": texts,
            "numbers": numbers,
            "types": types,
        },
        partial(_events, presence=presence, texts=texts, numbers=numbers, types=types),
    )


def _events(
    rng: np.random.Generator, n: int, *, presence: float, texts: int, numbers: int, types: int
) -> pa.Table:
    columns: dict[str, Any] = {}
    of = rng.integers(types, size=n) if types > 1 else np.zeros(n, np.int64)
    for number, names in enumerate(_names(types)):
        for name, plain in zip(names, ATTRIBUTES, strict=True):
            absent = (rng.random(n) >= presence) | (of != number)
            if plain in TEXTS:
                columns[name] = words(rng.integers(texts, size=n), _vocabulary(texts), absent)
            else:
                drawn = rng.integers(1, numbers, size=n, endpoint=True)
                columns[name] = pa.array(drawn, mask=absent)
    return events_table(columns)


def _names(types: int) -> list[tuple[str, ...]]:
    """The attributes of each event type."""
    if types == 1:
        return [ATTRIBUTES]
    return [tuple(f"t{number}_{name}" for name in ATTRIBUTES) for number in range(1, types + 1)]


def _vocabulary(texts: int) -> list[str]:
    return [f"v{code:03d}" for code in range(texts)]


def _schema(numbers: int, types: int) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    for names in _names(types):
        kinds |= dict.fromkeys(names[: len(TEXTS)], "text")
        number = {"kind": "integer", "low": 0, "high": numbers + 1}
        kinds |= dict.fromkeys(names[len(TEXTS) :], number)
    return plain_schema(kinds, "optional")
