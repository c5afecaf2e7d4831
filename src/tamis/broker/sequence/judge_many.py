"""Judging a request that adds many subscriptions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from tamis.broker.sequence.group import CommitGroup
from tamis.broker.sequence.requests import Request, SubscribeMany
from tamis.broker.state import KnownRequest, State
from tamis.errors import BrokerError, QuotaError
from tamis.model.schema import Schema
from tamis.store.log import Appended


def judge_many(
    request: SubscribeMany,
    group: CommitGroup,
    state: State,
    schema: Schema,
    later: list[Request[Any]],
) -> None:
    """Add a request to a group, leave it for the next group, or raise."""
    table = request.table
    known: dict[int, KnownRequest] = {}  # rows that an earlier request has added
    names: set[Any] = set()
    if request.keyed:
        for at, row in enumerate(table.to_pylist()):
            names.add(("request", row["owner"], row["request_key"]))
            found = state.request(row)
            if found is not None:
                known[at] = found
    names.update(("id", id) for id in table["id"].drop_null().to_pylist())
    if names & group.touched:
        later.append(request)
        return
    fresh = [at for at in range(table.num_rows) if at not in known]
    if known:
        table = table.take(pa.array(fresh, pa.int64()))
    given_ids = zip(table["id"].to_pylist(), table["owner"].to_pylist(), strict=True)
    taken = state.taken_among({id: owner for id, owner in given_ids if id is not None})
    if taken:
        raise BrokerError(f"the id {min(taken)!r} is taken ({len(taken):,} ids are)")
    if request.schema is not schema:
        request.again(schema)
        request.schema = schema
    owners: Counter[str | None] = Counter(table["owner"].to_pylist())
    for owner, count in owners.items():
        live = state.count_of(owner) + group.subscribed.get(owner, 0)
        if request.most is not None and live + count > request.most:
            who = owner or "anonymous callers"
            raise QuotaError(
                f"{who}: {live:,} live subscriptions and {count:,} new ones are more than the "
                f"{request.most:,} that are allowed"
            )
    place = sum(each.num_rows for each in group.tables)
    group.tables.append(table)
    group.touched |= names
    for owner, count in owners.items():
        group.subscribed[owner] = group.subscribed.get(owner, 0) + count

    def answer(numbers: Appended) -> None:
        first = numbers.changes.start + len(group.rows) + place
        ids = range(first, first + table.num_rows)
        given = ids if table["id"].null_count else table["id"].to_pylist()
        details = (table[name].to_pylist() for name in ("nonce", "key_generation"))
        until = table["until"].cast(pa.int64()).to_pylist()
        added = map(KnownRequest, given, *details, until)
        request.answer.set_result(
            [known[at] if at in known else next(added) for at in range(request.table.num_rows)]
        )

    group.answers.append(answer)
    group.requests.append(request)
