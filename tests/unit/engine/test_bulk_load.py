"""The bulk door: a table of predicates equals subscribing one by one, all or nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Engine, Schema
from tamis.encode.bulk_terms import BulkTerms
from tamis.engine.bulk_load import condition_of
from tamis.errors import ConditionError, LimitError, NeverTrueError, SubscriptionError, TamisError
from tamis.model.condition import LISTS
from tests.unit.engine.world import (
    CONSTANTS,
    PATTERNED,
    PREDICATES,
    SCHEMA,
    events,
    expected,
    predicate_row,
    predicate_table,
)

Row = list[dict[str, Any]]
FAST = ("=", "!=", "<", "<=", ">", ">=", "==", "<>")


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """A list of predicates, nearly always right."""
    found: Row = []
    for _ in range(draw(st.integers(0, 4))):
        name = draw(st.sampled_from(sorted({*CONSTANTS, "o"})))
        known = SCHEMA.attributes[name].comparators
        every = [c for c in (*FAST, *known) if {"==": "=", "<>": "!="}.get(c, c) in known]
        comparator = draw(st.sampled_from([c for c in every if c not in (*LISTS, "between")]))
        constant: Any = None
        if comparator in PATTERNED:
            constant = draw(st.sampled_from(PATTERNED[comparator]))
        elif comparator not in ("exists", "missing"):
            constant = draw(st.sampled_from(CONSTANTS[name]))
        found.append(predicate_row(name, comparator, constant))
    return found


def accepted(row: Row) -> bool:
    try:
        Engine(SCHEMA).subscribe_table(predicate_table([row]))
    except TamisError:
        return False
    return True


def _state(engine: Engine) -> tuple[object, ...]:
    encoder = engine.encoder
    labels = {at: len(each) for at, each in encoder.labels.items()}
    return len(engine), engine.matcher.nbytes, encoder.stamp, encoder.patterned, labels


@pytest.mark.parametrize("matcher", ["naive", "scan"])
@settings(max_examples=80)
@given(given_=st.lists(rows(), max_size=10), batch=st.lists(events(), max_size=4))
@pytest.mark.slow
def test_a_table_means_what_its_rows_mean(
    matcher: str, given_: list[Row], batch: list[dict[str, Any]]
) -> None:
    single, bulk = Engine(SCHEMA, matcher=matcher), Engine(SCHEMA, matcher=matcher)
    kept: list[Row] = []
    live: dict[Any, Any] = {}
    for row in given_:
        condition = condition_of(row, SCHEMA)
        try:
            single.subscribe(condition if condition is not None else "event_type exists")
        except ConditionError as why:
            with pytest.raises(type(why)) as caught:
                Engine(SCHEMA).subscribe_table(predicate_table([[], row]))
            assert caught.value.row == 1
            continue
        live[len(kept)] = condition
        kept.append(row)
    assert bulk.subscribe_table(predicate_table(kept)) == len(kept)
    bulk.check()
    everything = {id for id, condition in live.items() if condition is None}
    asking = {id: condition for id, condition in live.items() if condition is not None}
    for event, answer in zip(batch, bulk.match_batch(batch), strict=True):
        assert set(answer) == expected(asking, event) | everything
        assert all(bool(bulk.explain(id, event)) == (id in answer) for id in live)
    for id in live:
        bulk.unsubscribe(id)
    assert all(len(labels) == 0 for labels in bulk.encoder.labels.values())
    assert bulk.matcher.nbytes == Engine(SCHEMA, matcher=matcher).matcher.nbytes


@settings(max_examples=40)
@given(first=st.lists(rows().filter(accepted), max_size=4), wrong=st.integers(0, 5))
def test_a_refused_table_changes_nothing(first: list[Row], wrong: int) -> None:
    engine = Engine(SCHEMA)
    engine.subscribe('s > "ab" and ws like "%a"', id="kept")
    before = _state(engine)
    bad: list[Any] = [
        [predicate_row("zzz", "=", 1)],
        [predicate_row("n", "<", "text")],
        [predicate_row("n", "<", 1), predicate_row("n", ">", 5)],
        None,
        [None],
        [predicate_row("s", "near", "x")],
    ]
    table = predicate_table([*first, bad[wrong]])
    with pytest.raises(ConditionError) as caught:
        engine.subscribe_table(table)
    assert caught.value.row == len(first)
    assert f"row {len(first)}: " in str(caught.value)
    engine.check()
    assert _state(engine) == before
    event = {"event_type": ["one", "many"], "s": "b", "ws": ["ba"]}
    assert engine.match(event) == ["kept"]


REFUSED: dict[str, tuple[Any, str]] = {
    "unknown name": ([predicate_row("pric", "=", 1)], "unknown attribute 'pric'"),
    "null attribute": ([{**predicate_row("n", "=", 1), "attribute": None}], "needs an attribute"),
    "null comparator": (
        [{**predicate_row("n", "=", 1), "comparator": None}],
        "needs an attribute",
    ),
    "unknown comparator": ([predicate_row("n", "~", 1)], "unknown comparator '~'"),
    "list comparator": ([predicate_row("n", "in", 1)], "takes several values"),
    "no constant": ([predicate_row("n", "=")], "neither a value nor a text"),
    "both": ([{**predicate_row("s", "=", "x"), "value": 1.0}], "has a value and a text"),
    "nan and text": ([{**predicate_row("s", "=", "x"), "value": float("nan")}], "has a value"),
    "nan": ([predicate_row("d", "<", float("nan"))], "not a finite number"),
    "infinity": ([predicate_row("n", "<", float("inf"))], "not a finite number"),
    "number for text": ([predicate_row("s", "=", 5)], "is text"),
    "text for a number": ([predicate_row("d", "=", "5")], "is decimal"),
    "text for a boolean": ([predicate_row("b", "=", "yes")], "is boolean"),
    "number for a boolean": ([predicate_row("b", "=", 1)], "is boolean"),
    "no timestamp": ([predicate_row("at", "<", "soon")], "is timestamp"),
    "no name": ([predicate_row("c", "=", "pink")], "is enumerated"),
    "no order": ([predicate_row("c", "<", "red")], "has no comparator '<'"),
    "a value for exists": ([predicate_row("n", "exists", 1)], "takes no value"),
    "opaque": ([predicate_row("o", "=", "x")], "has no comparator"),
    "= 1.5": ([predicate_row("n", "=", 1.5)], "never true"),
    "out of the domain": ([predicate_row("q", "=", 4)], "never true"),
    "beyond the domain": ([predicate_row("q", ">", 3)], "never true"),
    "no kind of a leaf": ([predicate_row("thing", "<", "desk")], "never true"),
    "empty range": ([predicate_row("d", ">", 5), predicate_row("d", "<", 5)], "never true"),
    "two texts": ([predicate_row("s", "=", "a"), predicate_row("s", "=", "b")], "never true"),
    "text and not": ([predicate_row("s", "=", "a"), predicate_row("s", "!=", "a")], "never true"),
    "missing and bound": (
        [predicate_row("n", "missing"), predicate_row("n", "=", 1)],
        "never true",
    ),
    "null list": (None, "the row has no predicates"),
    "null predicate": ([None], "a predicate is null"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_with_its_row(case: str) -> None:
    row, words = REFUSED[case]
    engine = Engine(SCHEMA)
    with pytest.raises(ConditionError, match=words) as caught:
        engine.subscribe_table(predicate_table([[predicate_row("n", "=", 1)], row]))
    assert caught.value.row == 1
    assert len(engine) == 0


@pytest.mark.parametrize(
    ("domain", "value"),
    [
        ({"kind": "integer", "low": 5, "high": 5}, 5),
        ({"kind": "enumerated", "values": ["x"]}, "x"),
    ],
)
def test_a_hole_as_wide_as_its_domain_is_never_true(domain: dict[str, Any], value: Any) -> None:
    schema = Schema.from_dict({"attributes": {"a": domain}})
    with pytest.raises(NeverTrueError):
        Engine(schema).subscribe_table(predicate_table([[predicate_row("a", "!=", value)]]))


def test_a_row_has_as_many_predicates_as_a_condition() -> None:
    row = [predicate_row("n", ">", 1)] * 10_001
    engine = Engine(SCHEMA)
    assert engine.subscribe_table(predicate_table([row[:10_000]])) == 1
    with pytest.raises(LimitError, match="at most 10,000"):
        engine.subscribe_table(predicate_table([row], [5]))


@pytest.mark.parametrize("name", ["n", "q", "d"])
@pytest.mark.parametrize("comparator", FAST)
@pytest.mark.parametrize("constant", [0, 1, 1.5, 2.5, -0.5, 3.5])
def test_numbers_are_compared_in_a_table_as_in_a_condition(
    name: str, comparator: str, constant: float
) -> None:
    row = [predicate_row(name, comparator, constant)]
    condition = condition_of(row, SCHEMA)
    assert condition is not None
    engine = Engine(SCHEMA)
    try:
        engine.subscribe_table(predicate_table([row]))
    except NeverTrueError:
        assert name != "d"
    for value in (0, 1, 2, 3):
        event = {"event_type": "one", name: value}
        assert set(engine.match(event)) == expected({0: condition}, event)


def test_integers_as_values_are_exact() -> None:
    kind = pa.list_(
        pa.struct([("attribute", pa.string()), ("comparator", pa.string()), ("value", pa.int64())])
    )
    ends = [2**53 + 1, 2**63 - 1, -(2**63), 5]
    made = [[{"attribute": "n", "comparator": "=", "value": end}] for end in ends]
    engine = Engine(SCHEMA)
    engine.subscribe_table(pa.table({"id": [0, 1, 2, 3], "predicates": pa.array(made, kind)}))
    for id, end in enumerate(ends):
        assert engine.match({"event_type": "one", "n": end}) == [id]
        near = end + 1 if end < 0 else end - 1
        assert engine.match({"event_type": "one", "n": near}) == []


def test_texts_may_be_dictionaries_views_and_large() -> None:
    for text in (pa.dictionary(pa.int32(), pa.string()), pa.string_view(), pa.large_string()):
        kind = pa.struct([("attribute", text), ("comparator", text), ("text", text)])
        plain: list[dict[str, Any]] = [
            {"attribute": "s", "comparator": "=", "text": "a"},
            {"attribute": "c", "comparator": "!=", "text": "red"},
            {"attribute": "c", "comparator": "exists", "text": None},
        ]
        values = pa.StructArray.from_arrays(
            [pa.array([p[f.name] for p in plain], pa.string()).cast(text) for f in kind],
            fields=list(kind),
        )
        lists = pa.LargeListArray.from_arrays(pa.array([0, 1, 3], pa.int64()), values)
        engine = Engine(SCHEMA)
        assert engine.subscribe_table(pa.table({"id": ["x", "y"], "predicates": lists})) == 2
        assert engine.match({"event_type": "one", "s": "a", "c": "red"}) == ["x"]
        assert engine.match({"event_type": "one", "s": "b", "c": "blue"}) == ["y"]


def test_sliced_and_chunked_tables_are_read_from_where_they_start() -> None:
    whole = predicate_table([[predicate_row("n", "=", i)] for i in (1, 2, 3)] + [[]])
    engine = Engine(SCHEMA)
    engine.subscribe_table(whole[1:2])
    engine.subscribe_table(pa.concat_tables([whole[:1], whole[2:]]))
    answers = [sorted(engine.match({"event_type": "one", "n": i})) for i in (1, 2, 3)]
    assert answers == [[0, 3], [1, 3], [2, 3]]
    assert engine.condition(2) == "n = 3"
    assert engine.condition(3) is None


def test_a_growing_domain_of_event_types_has_no_widest_hole() -> None:
    engine = Engine(SCHEMA)
    engine.subscribe_table(predicate_table([[predicate_row("event_type", "!=", "one")]]))
    engine.extend(SCHEMA.create_event_type("third", {}))
    assert engine.match({"event_type": "third"}) == [0]
    assert engine.match({"event_type": "one"}) == []


TABLES: dict[str, tuple[Any, str]] = {
    "no table": (5, "expected an Arrow table"),
    "no id": (pa.table({"condition": ["n = 1"]}), "no column 'id'"),
    "neither": (pa.table({"id": [1]}), "'condition' or 'predicates'"),
    "both": (
        pa.table({"id": [1], "condition": ["n = 1"], "predicates": pa.array([[]], PREDICATES)}),
        "either 'condition' or",
    ),
    "id of doubles": (pa.table({"id": [1.5], "condition": ["n = 1"]}), "expected int64 or string"),
    "condition of numbers": (pa.table({"id": [1], "condition": [1]}), "expected string"),
    "predicates of numbers": (pa.table({"id": [1], "predicates": [[1]]}), "expected list<struct"),
    "null id": (pa.table({"id": pa.array([None], pa.int64()), "condition": ["n = 1"]}), "row 0"),
    "twice": (
        pa.table({"id": [1, 1], "condition": ["n = 1"] * 2}),
        "row 1: the id 1 is in row 0",
    ),
    "taken": (pa.table({"id": [1, 77], "condition": ["n = 1"] * 2}), "row 1: the id 77 is taken"),
    "empty text": (pa.table({"id": ["a", ""], "condition": ["n = 1"] * 2}), "row 1"),
    "past int64": (
        pa.table({"id": pa.array([2**63], pa.uint64()), "condition": ["n = 1"]}),
        "row 0",
    ),
    "two columns": (
        pa.Table.from_arrays(
            [pa.array([1])] * 2 + [pa.array(["n = 1"])], ["id", "id", "condition"]
        ),
        "two columns",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_malformed_tables_are_refused(case: str) -> None:
    table, words = TABLES[case]
    engine = Engine(SCHEMA)
    engine.subscribe("n = 5", id=77)
    with pytest.raises(SubscriptionError, match=words):
        engine.subscribe_table(table)
    assert engine.ids() == [77]


def test_a_null_condition_is_refused_and_an_empty_table_adds_nothing() -> None:
    table = pa.table({"id": [1, 2], "condition": ["n = 1", None]})
    with pytest.raises(ConditionError, match="row 1: the row has no condition"):
        Engine(SCHEMA).subscribe_table(table)
    assert Engine(SCHEMA).subscribe_table(predicate_table([])) == 0


def test_progress_ends_at_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    table = predicate_table([[predicate_row("s", "like", "%a")]] * 3)
    Engine(SCHEMA).subscribe_table(table, progress=lambda done, rows_: seen.append((done, rows_)))
    assert seen[-1] == (3, 3)
    assert all(done <= rows_ for done, rows_ in seen)


def test_plain_predicates_take_the_fast_way() -> None:
    made = [
        [predicate_row("n", "<", 5), predicate_row("n", ">=", 1.5), predicate_row("d", "!=", 0)],
        [predicate_row("s", "=", "x"), predicate_row("at", "<", "2026-01-31")],
        [predicate_row("thing", "<=", "furniture"), predicate_row("size", ">", "M")],
    ]
    bulk = BulkTerms(Engine(SCHEMA).encoder, pa.array(made, PREDICATES), 64)  # type: ignore[arg-type]
    assert bulk.slow.tolist() == []
