"""Checks of a matcher in an engine: conditions in, ids out, against `semantics.satisfies`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Thread
from typing import Any

from tamis.encode.labels import Moved
from tamis.engine import Engine
from tamis.errors import NeverTrueError
from tamis.language import parse
from tamis.model.condition import Condition
from tamis.model.semantics import satisfies
from tamis.testing import cases
from tamis.testing.checks import Make, check

Truths = dict[tuple[int, int], bool]
"""Whether a condition holds for an event, by its id and the number of the event."""


def agree(
    engine: Engine,
    conditions: Mapping[int, Condition],
    events: Sequence[dict[str, Any]],
    known: Truths | None = None,
) -> int:
    """Compare an engine with `satisfies` on all pairs; gives the number of pairs.

    `known` keeps what was found: for calls with the same schema and events, and ids of conditions
    that are not used again.
    """
    truths: Truths = {} if known is None else known
    checked = [engine.schema.event(event) for event in events]
    matches = engine.match_batch(list(events))
    for number, event in enumerate(checked):
        for id, condition in conditions.items():
            if (id, number) not in truths:
                truths[id, number] = satisfies(condition, event, engine.schema)
        right = {id for id in conditions if truths[id, number]}
        got = matches[number]
        assert len(got) == len(set(got)), "an id occurs once in an answer"
        assert set(got) == right, (
            f"event {events[number]}: missing {[conditions[i] for i in right - set(got)][:2]}, "
            f"too many {[conditions[i] for i in set(got) - right][:2]}"
        )
    return len(conditions) * len(events)


def subscribe_random(engine: Engine, chooser: cases.Chooser, number: int) -> dict[int, Condition]:
    """Add random subscriptions. Conditions that can never hold are refused and drawn again."""
    made: dict[int, Condition] = {}
    while len(made) < number:
        condition = cases.condition(chooser, schema=engine.schema)
        try:
            made[int(engine.subscribe(condition))] = condition
        except NeverTrueError:
            continue
    return made


@check
def agrees_with_satisfies(make: Make) -> None:
    """Random conditions and events over every domain agree with `satisfies`."""
    chooser = cases.RandomChooser(11)
    engine = Engine(cases.SCHEMA, make())
    conditions = subscribe_random(engine, chooser, 150)
    agree(engine, conditions, [cases.event(chooser) for _ in range(40)])
    engine.check()


@check
def open_schema(make: Make) -> None:
    """Random conditions and JSON objects without a schema agree with `satisfies`."""
    chooser = cases.RandomChooser(16)
    engine = Engine(matcher=make())
    conditions: dict[int, Condition] = {}
    while len(conditions) < 120:  # attributes join as conditions mention them
        condition = cases.condition(chooser, schema=cases.OPEN)
        try:
            conditions[int(engine.subscribe(condition))] = condition
        except NeverTrueError:
            continue
    agree(engine, conditions, [cases.open_event(chooser) for _ in range(40)])
    engine.check()


@check
def language_examples(make: Make) -> None:
    """One subscription for each form of the language."""
    engine = Engine(cases.SCHEMA, make())
    conditions: dict[int, Condition] = {}
    for text in _EXAMPLES:
        conditions[int(engine.subscribe(text))] = parse(text, engine.schema)
    chooser = cases.RandomChooser(12)
    agree(engine, conditions, [cases.event(chooser) for _ in range(60)])


_EXAMPLES = (
    "event_type contains several",
    "event_type = single and price <= 1.5",
    "price != 1",
    "not price < 1",
    "price > 0 and price < 2",
    "price between -1 and 1.5",
    "number in (1, 2, 9223372036854775807)",
    "number < 1.5 or number >= 2.5",
    "small > 1 and small < 3",
    "title starts with 'a'",
    "title ends with 'b' and title != 'b'",
    "title like '%b%'",
    "not title like 'a%'",
    "tags contains 'a' and tags contains 'b'",
    "tags excludes 'a'",
    "tags contains 'ab' and tags excludes 'b'",
    "not tags contains 'a'",
    "open = true",
    "at >= 1970-01-01 and at < 2026-03-01T10:00:00.000001Z",
    "period < XVIII",
    "rank < top",
    "not rank < left",
    "rank >= bottom and rank != top",
    "colour in (red, 'dark blue')",
    "category <= table",
    "not category <= table",
    "category > desk",
    "craft <= wood and craft <= storage",
    "craft < storage",
    "picture exists",
    "picture missing and price exists",
    "price missing",
    "price exists or tags missing",
    "some i in items (i.sku starts with 'a' and i.size > 1)",
    "not some i in items (i.sku starts with 'a' and i.size > 1)",
    "some i in items (i.price < @i.best) or items missing",
    "some i in items (i.colour = red and some p in i.parts (p.size >= 1))",
    "some i in items (i.marks = 'a' and not some p in i.parts (p.sku exists)) and price > 0",
    "(price < 1 or number > 1) and (title exists or open = false)",
    "not (price < 1 and number > 1)",
    "any < 1.5",
    "not any < 1.5",
    "any != 1",
    "any = 9223372036854775807",
    'any > "a"',
    'any in (1, "a", true)',
    'not any in (1, "a")',
    'any like "%b"',
    'not any like "a%"',
    'any contains 1 and any excludes "a"',
    "any",
    "not any",
    "any is null",
    "any is not null and any missing or price is null",
    "any is null and other is null and (any exists or number > 1)",
    "any = @other",
    "not any < @number",
)


@check
def labels_move(make: Make) -> None:
    """Many text constants in one gap: labels are assigned anew, and the matcher follows."""
    engine = Engine(cases.SCHEMA, make())
    moves: list[int] = []
    follow = engine.matcher.follow

    def counted(attribute: int, moved: Moved) -> None:
        moves.append(attribute)
        follow(attribute, moved)

    engine.matcher.follow = counted  # type: ignore[method-assign]
    conditions: dict[int, Condition] = {}
    for number in range(120):
        # Alternately below and above: the gap halves every time.
        constant = "m" * (number // 2) + "az"[number % 2]
        for text in (f'title = "b{constant}"', f'title > "b" and title < "b{constant}"'):
            conditions[int(engine.subscribe(text))] = parse(text)
    assert moves, "labels moved"
    del engine.matcher.follow
    events: list[dict[str, Any]] = [
        {"event_type": "single", "title": f"b{'m' * many}{last}"}
        for many in (0, 1, 2, 30, 58, 59, 60)
        for last in ("", "a", "b", "z")
    ]
    agree(engine, conditions, events)
    engine.check()


@check
def domains_grow(make: Make) -> None:
    """Domains grow by new values: clauses get new terms, and those that were empty come back."""
    chooser = cases.RandomChooser(14)
    engine = Engine(cases.SCHEMA, make())
    conditions = subscribe_random(engine, chooser, 60)
    empty = parse("small = 1 or period < XVI", engine.schema)  # nothing is below XVI yet
    conditions[int(engine.subscribe(empty))] = empty
    for _ in range(4):
        agree(engine, conditions, [cases.event(chooser, engine.schema) for _ in range(10)])
        engine.extend(cases.grown(chooser, engine.schema))
        conditions |= subscribe_random(engine, chooser, 10)
    engine.extend(engine.schema.grow_domain("century", ["XV"], [("XV", "XVI")]))
    agree(engine, conditions, [{"event_type": "single", "period": "XV"}])
    agree(engine, conditions, [cases.event(chooser, engine.schema) for _ in range(30)])
    engine.check()


@check
def threads(make: Make) -> None:
    """An engine may match in several threads at once."""
    chooser = cases.RandomChooser(13)
    engine = Engine(cases.SCHEMA, make())
    subscribe_random(engine, chooser, 120)
    events = [cases.event(chooser) for _ in range(30)]
    right = [set(ids) for ids in engine.match_batch(events)]
    answers: list[list[set[int]]] = []

    def match() -> None:
        answers.extend([set(ids) for ids in engine.match_batch(events)] for _ in range(4))

    matching = [Thread(target=match) for _ in range(2)]
    for thread in matching:
        thread.start()
    for thread in matching:
        thread.join()
    assert answers == [right] * 8, "two threads disturbed each other"
