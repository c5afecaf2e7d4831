"""A search through many subscriptions in parts: each takes a bounded time.

The database answers one question at a time. A search for a rare text looks through all rows, so it
asks many questions of some thousand rows each: others are answered in between.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

from tamis.broker.state import State, StoredSubscription
from tamis.broker.subscription_query import SubscriptionQuery

_ROWS = 10_000  # that one question looks through


class SearchedPart(NamedTuple):
    """What was found, among how many rows, and the query for the rest; None: there is no rest."""

    found: list[StoredSubscription]
    looked: int
    rest: SubscriptionQuery | None


def search_part(state: State, query: SubscriptionQuery, most: int, seconds: float) -> SearchedPart:
    """At most so many subscriptions, or those that are found in about so many seconds."""
    until = time.monotonic() + seconds
    found: list[StoredSubscription] = []
    looked = 0
    while True:
        places = [] if query.containing is None else state.select(*query.place_sql(_ROWS))
        last = places[0] if places else None
        found += state.search(query._replace(last=last), most - len(found))
        if len(found) == most:
            rest = query._replace(after=found[-1].id, until=found[-1].until)
            return SearchedPart(found, looked, rest)
        if last is None:
            return SearchedPart(found, looked, None)
        looked += _ROWS
        query = query._replace(until=last[0], after=last[1])
        if time.monotonic() >= until:
            return SearchedPart(found, looked, query)


def find_subscriptions(
    state: State, query: SubscriptionQuery, most: int
) -> list[StoredSubscription]:
    """A page of subscriptions, however long the search for them takes."""
    return search_part(state, query, most, math.inf).found
