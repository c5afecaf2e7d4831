"""Events that come as JSON in text: a large payload without a schema, and lines of small events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tamis.engine import Engine
from tamis.lab.bench.doors import flights, webhooks
from tamis.lab.bench.doors.turns import (
    HASH_JOIN,
    DoorRow,
    DoorTurn,
    agree,
    alone,
    hash_join,
    result,
    scanned,
)
from tamis.lab.bench.setting import BenchSetting
from tamis.lab.instruments.hash_join import HashJoin
from tamis.lab.instruments.timing import timed
from tamis.lab.results.records import DoorResult, Goal
from tamis.model.schema import Schema
from tamis.workload import as_dicts

JSON = "json"
_BASELINE = f"json.loads, {HASH_JOIN}"
_WEBHOOK_GOAL = Goal(25, at_most=True)  # µs
_LINES_GOAL = Goal(400_000, at_most=False)  # events a second
_RULES = 1_000
_FIELDS = 19


def steps(setting: BenchSetting) -> int:
    """The number of results and steps."""
    return 4 * len(setting.fastest)


def measure(setting: BenchSetting) -> Iterator[DoorResult | str]:
    """Payloads of webhooks, then lines."""
    for matcher in setting.fastest:
        yield f"webhooks, {matcher}"
        yield _webhooks(setting, matcher)
        yield f"lines, {matcher}"
        yield _lines(setting, matcher)


def _webhooks(setting: BenchSetting, matcher: str) -> DoorResult:
    texts = webhooks.payloads(setting.batch, setting.seed)
    engine, scan = (
        _without_schema(name, options)
        for name, options in ((matcher, setting.options), ("scan", {}))
    )
    right = [sorted(scan.match(json.loads(text))) for text in texts]
    join = HashJoin(webhooks.RULES.items())

    def baseline(text: str) -> list[Any]:
        return join.match(webhooks.paths(json.loads(text)))

    compared = agree(_BASELINE, right, [baseline(text) for text in texts])
    agree(matcher, right, [engine.match_json(text) for text in texts])
    sizes = [len(text) for text in texts]
    return result(
        DoorRow(JSON, "webhook", "a webhook, no schema", matcher, len(engine), _BASELINE),
        "µs",
        list(alone(setting, engine.match_json, baseline, texts)),
        _WEBHOOK_GOAL,
        matches=sum(map(len, right)) / len(right),
        compared=compared,
        parameters={"least_bytes": min(sizes), "most_bytes": max(sizes)},
    )


def _without_schema(matcher: str, options: Any) -> Engine:
    engine = Engine(matcher=matcher, **options)
    for number, predicates in webhooks.RULES.items():
        engine.subscribe(webhooks.condition(predicates), id=number)
    return engine


def _lines(setting: BenchSetting, matcher: str) -> DoorResult:
    made = flights.make(min(_RULES, setting.most_subscriptions), seed=setting.seed, fields=_FIELDS)
    events = as_dicts(made.events(setting.json_lines))
    texts = [json.dumps(each) for each in events]
    content = "\n".join(texts).encode()
    engine = Engine(Schema.from_dict(made.schema), matcher, **setting.options)
    engine.subscribe_table(made.subscriptions)
    join = hash_join(made)

    def baseline() -> list[list[Any]]:
        return [join.match(json.loads(line)) for line in content.split(b"\n")]

    def ours() -> Any:
        return engine.match_lines(content).subscriptions

    some = events[: setting.batch]
    right = scanned(made, some)
    compared = agree(_BASELINE, right, baseline()[: len(some)])
    found = engine.match_lines(content)
    agree(matcher, right, list(found)[: len(some)])
    agree(matcher, [sorted(each) for each in baseline()], list(found))
    turns = [
        DoorTurn(timed(ours) / len(texts), timed(baseline) / len(texts))
        for _ in range(setting.rounds)
    ]
    full = len(texts) >= 100_000
    return result(
        DoorRow(JSON, "lines", f"lines of {_FIELDS} fields", matcher, len(engine), _BASELINE),
        "/s",
        turns,
        _LINES_GOAL if full else None,
        matches=found.total / len(texts),
        compared=compared,
        parameters=made.parameters | {"lines": len(texts), "bytes": len(content)},
    )
