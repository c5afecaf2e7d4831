"""Auctions for the demonstration: lots are published, and people wait for theirs.

Unlike the papers' workloads this one uses the whole language and schema: several event types for
one event, a hierarchy of goods, ordered centuries, a partial order of states, sets of tags, text,
timestamps; `or`, `not`, `in`, `between`, `exists`, `missing`. Subscriptions are conditions in text,
a table of `id` and `condition`. Every condition can be true, and most are, now and then.

Nothing loops over subscriptions here either: a predicate comes from a vocabulary of texts or from a
few joined columns, and a condition is its predicates, joined by "and".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import TamisError
from tamis.workload.auction_schema import (
    ADJECTIVES,
    ANTIQUES,
    ARTISTS,
    CENTURIES,
    STATES,
    TAGS,
    TYPES,
    branches,
    nodes,
    schema,
)
from tamis.workload.base import Workload
from tamis.workload.draw import (
    SUBSCRIPTIONS,
    Bools,
    Floats,
    Ints,
    by_weight,
    distinct,
    first,
    require_count,
    stream,
    weighted,
    zipf_weights,
)
from tamis.workload.tables import (
    conditions_table,
    events_table,
    joined,
    keep,
    moments,
    ragged,
    words,
)

# By event type, in the order of TYPES: how many lots, the usual price, and how many are antique.
_LOTS = np.cumsum([0.28, 0.2, 0.14, 0.14, 0.08, 0.12, 0.04])
_PRICE = np.array([150.0, 25.0, 180.0, 320.0, 400.0, 18.0, 220.0])
_ANTIQUE = np.array([0.3, 0.1, 0.25, 0.35, 0.2, 0.15, 1.0])

_TAGS = np.cumsum(zipf_weights(len(TAGS), 0.7))
_MOST_TAGS = 4
_DAYS = 14  # a lot closes within two weeks
START = datetime(2026, 1, 1, tzinfo=UTC)

# Which event types (by number) know an attribute that not all of them have.
_DATED = [TYPES.index(name) for name in ("art", "books", "antiques")]
_GRADED = [TYPES.index(name) for name in ("furniture", "instruments", "antiques")]
_TOYS, _ART = TYPES.index("toys"), TYPES.index("art")


def make(n: int, *, seed: int = 0, start: datetime | str = START) -> Workload:
    """`n` subscriptions to auctions.

    Args:
        n: number of subscriptions.
        seed: the same seed gives the same workload.
        start: when the lots begin to close, a time or its ISO 8601 text; a live demonstration
            passes the present.
    """
    require_count(n)
    begin = _moment(start)
    conditions = _conditions(stream(seed, SUBSCRIPTIONS), n, begin)
    return Workload(
        "auctions",
        schema(),
        conditions_table(conditions),
        seed,
        {"n": n, "start": begin.isoformat()},
        partial(_events, start=begin),
    )


def _moment(given: datetime | str) -> datetime:
    """The time in UTC. A time without an offset is UTC."""
    try:
        moment = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        raise TamisError(f"start is a time in ISO 8601, got {given!r}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


# --- subscriptions ---------------------------------------------------------------------------


def _conditions(rng: np.random.Generator, n: int, start: datetime) -> pa.Array:
    one = _conjunctions(rng, n, start)
    # An eighth of the conditions have an `or`. `and` binds tighter than `or`.
    other = keep(_conjunctions(rng, n, start), rng.random(n) < 0.125)
    return joined(" or ", one, other)


def _conjunctions(rng: np.random.Generator, n: int, start: datetime) -> pa.Array:
    """Conditions without `or` at the top. Predicates on one attribute never contradict."""
    kind = weighted(rng, _LOTS, n)
    sorted_goods = (kind != ANTIQUES) & (rng.random(n) < 0.7)
    priced, tagged = rng.random(n) < 0.6, rng.random(n) < 0.35
    parts = [
        keep(_one_of(rng, kind, _CATEGORY), sorted_goods),
        keep(_price(rng, kind), priced),
        # In parentheses, and only where neither attribute is constrained yet.
        keep(_bargain(rng, kind), ~priced & ~tagged & (rng.random(n) < 0.3)),
        keep(_one_of(rng, kind, [_PERIOD]), np.isin(kind, _DATED) & (rng.random(n) < 0.5)),
        keep(_one_of(rng, kind, [_STATE]), np.isin(kind, _GRADED) & (rng.random(n) < 0.15)),
        keep(_one_of(rng, kind, [_TAG]), tagged),
        # A title ends in its category, so this would contradict most other categories.
        keep(_one_of(rng, kind, _ENDING), ~sorted_goods & (rng.random(n) < 0.2)),
        keep(_one_of(rng, kind, [_TITLE]), sorted_goods & (rng.random(n) < 0.1)),
        keep(_one_of(rng, kind, [_ARTIST]), (kind == _ART) & (rng.random(n) < 0.3)),
        keep(_one_of(rng, kind, [_AGE]), (kind == _TOYS) & (rng.random(n) < 0.2)),
        keep(_one_of(rng, kind, [_REST]), rng.random(n) < 0.15),
        keep(_closes(rng, n, start), rng.random(n) < 0.1),
    ]
    # A condition without any other predicate has one on the event type.
    silent = np.all([part.is_null().to_numpy(zero_copy_only=False) for part in parts], axis=0)
    typed = keep(words(kind, _TYPE), silent | (rng.random(n) < 0.7))
    return joined(" and ", typed, *parts)


def _one_of(rng: np.random.Generator, kind: Ints, texts: Sequence[Sequence[str]]) -> pa.Array:
    """A random text for each subscription, from the list of its event type or the only list."""
    counts = np.array([len(some) for some in texts])
    starts = np.cumsum(counts) - counts
    which = np.minimum(kind, len(texts) - 1)
    codes = starts[which] + (rng.random(len(kind)) * counts[which]).astype(np.int64)
    return words(codes, [text for some in texts for text in some])


def _digits(numbers: Ints) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _round_price(rng: np.random.Generator, kind: Ints) -> Ints:
    """Round prices, around the usual one."""
    return 5 * (1 + (_prices(rng, kind, 0.7) / 5).astype(np.int64))


def _price(rng: np.random.Generator, kind: Ints) -> pa.Array:
    low = _round_price(rng, kind)
    high = low + _round_price(rng, kind)
    form = rng.integers(len(_PRICE_FORMS), size=len(kind))
    ranged = form == _PRICE_FORMS.index("price between ")
    upper = keep(joined("", " and ", _digits(high)), ranged)
    return joined("", words(form, _PRICE_FORMS), _digits(low), upper)


def _bargain(rng: np.random.Generator, kind: Ints) -> pa.Array:
    tag = _one_of(rng, kind, [[f'"{tag}"' for tag in TAGS]])
    price = _digits(_round_price(rng, kind))
    return joined("", "(price < ", price, " or tags contains ", tag, ")")


def _closes(rng: np.random.Generator, n: int, start: datetime) -> pa.Array:
    days = [(start + timedelta(days=day)).strftime("%Y-%m-%d") for day in range(1, _DAYS)]
    return words(
        rng.integers(2 * len(days), size=n),
        [f'closes {comparator} "{day}T00:00:00Z"' for day in days for comparator in ("<", ">=")],
    )


def _category_texts(branch: dict[str, Any]) -> list[str]:
    """Predicates on the categories of one event type."""
    texts: list[str] = []
    for place, (name, children) in enumerate(nodes(branch)):
        texts += [f"category <= {name}"] * 3
        if not children:
            texts.append(f"category = {name}")
            continue
        texts.append(f"category < {name}")  # never true for a leaf
        texts += [f"category in ({one}, {two})" for one, two in pairwise(children)]
        if place:  # at the root it would contradict the event type
            texts.append(f"not category <= {name}")
    return texts


_NOUNS = [[name for name, _ in nodes(branch)][1:] for branch in branches()]
_TYPE = [f"event_type contains {name}" for name in TYPES]
_CATEGORY = [_category_texts(branch) for branch in branches()]
_PRICE_FORMS = ["price <= ", "price < ", "price <= ", "price >= ", "price between "]
_PERIOD = [
    *(f"period < {century}" for century in CENTURIES[1:]),
    *(f"period >= {century}" for century in CENTURIES),
    *(f"period = {century}" for century in CENTURIES),
    *(f"period in ({one}, {two})" for one, two in pairwise(CENTURIES)),
    *(
        f"period between {one} and {two}"
        for one, two in zip(CENTURIES, CENTURIES[2:], strict=False)
    ),
]
_STATE = [
    *(f"state >= {state}" for state in STATES[1:]),
    *(f"state = {state}" for state in STATES),
    "state > damaged",
    "not state < restored",  # better states, and incomparable ones
    "state != damaged",
    "state exists",
    "state missing",
]
_TAG = [
    *(f'tags contains "{tag}"' for tag in TAGS),
    *(f'tags contains "{one}" and tags contains "{two}"' for one, two in pairwise(TAGS[:8])),
    'not tags contains "replica"',
    'tags excludes "restored"',
]
_TITLE = [
    *(f'title starts with "{adjective}"' for adjective in ADJECTIVES),
    *(f'title like "%{tag}%"' for tag in TAGS[:6]),
]
_ENDING = [
    *([f'title ends with "{noun.replace("_", " ")}"' for noun in some] for some in _NOUNS),
    ['title ends with "curiosity"'],
]
_ARTIST = ["artist exists", "artist missing", *(f'artist = "{artist}"' for artist in ARTISTS)]
_AGE = [*(f"age <= {years}" for years in (3, 6, 8, 12)), "age between 3 and 6"]
_REST = ["shipping = true", "shipping exists", *(f"quantity >= {pieces}" for pieces in (2, 3, 5))]


# --- events ----------------------------------------------------------------------------------


def _prices(rng: np.random.Generator, kind: Ints, spread: float) -> Floats:
    return _PRICE[kind] * rng.lognormal(0.0, spread, size=len(kind))


def _events(rng: np.random.Generator, n: int, *, start: datetime) -> pa.Table:
    """Lots that are consistent with the schema: an event binds only attributes of its types."""
    kind = weighted(rng, _LOTS, n)
    antique = rng.random(n) < _ANTIQUE[kind]
    category = keep(_one_of(rng, kind, _NOUNS), kind != ANTIQUES)
    tags, leading = _tags(rng, n)
    dated = antique | (np.isin(kind, _DATED) & (rng.random(n) < 0.5))
    graded = (antique | np.isin(kind, _GRADED)) & (rng.random(n) < 0.7)
    minutes = rng.integers(_DAYS * 24 * 60, size=n)
    worth = _prices(rng, kind, 0.9) * np.where(antique, 2.5, 1.0)
    columns = {
        "event_type": _event_types(kind, antique),
        "title": _titles(rng, n, leading, category),
        "price": np.round(np.maximum(worth, 0.5), 2),
        "quantity": np.minimum(rng.geometric(0.7, size=n), 1000),
        "closes": moments(start, minutes),
        "tags": tags,
        "shipping": pa.array(rng.random(n) < 0.8, mask=rng.random(n) < 0.3),
        "category": category,
        "period": words(_periods(rng, antique), CENTURIES, absent=~dated),
        "state": words(rng.integers(len(STATES), size=n), STATES, absent=~graded),
        "age": pa.array(rng.integers(1, 13, size=n), mask=(kind != _TOYS) | (rng.random(n) < 0.4)),
        "artist": words(
            rng.integers(len(ARTISTS), size=n),
            ARTISTS,
            absent=(kind != _ART) | (rng.random(n) < 0.3),
        ),
    }
    return events_table(columns)


def _event_types(kind: Ints, antique: Bools) -> pa.Array:
    """The type of a lot, with `antiques` for antique ones."""
    both = np.stack((kind, np.full(len(kind), ANTIQUES)), axis=1)
    lengths = 1 + (antique & (kind != ANTIQUES))
    return ragged(lengths, words(both[first(lengths, 2)], TYPES))


def _periods(rng: np.random.Generator, antique: Bools) -> Ints:
    """Antiques are of the first four centuries, with more of the later ones."""
    old = 3 - np.minimum(rng.geometric(0.5, size=len(antique)) - 1, 3)
    return np.where(antique, old, rng.integers(4, len(CENTURIES), size=len(antique)))


def _tags(rng: np.random.Generator, n: int) -> tuple[pa.Array, pa.Array]:
    """Sets of up to four tags, null for none; and the first of each set, for the title."""
    lengths = rng.integers(_MOST_TAGS, size=n, endpoint=True)
    picks = distinct(rng, n, _MOST_TAGS, by_weight(_TAGS))
    none = lengths == 0
    tags = ragged(lengths, words(picks[first(lengths, _MOST_TAGS)], TAGS), absent=none)
    return tags, words(picks[:, 0], TAGS, absent=none)


def _titles(rng: np.random.Generator, n: int, tag: pa.Array, category: pa.Array) -> pa.Array:
    """Titles such as "Grand oak dining table"; a lot without category is a curiosity."""
    adjective = words(rng.integers(len(ADJECTIVES), size=n), ADJECTIVES)
    noun = pc.fill_null(pc.replace_substring(category, "_", " "), "curiosity")
    return joined(" ", adjective, tag, noun)
