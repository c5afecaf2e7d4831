"""DataFrames of pandas and polars: every column type people have, in typed and open schemas."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tamis import Engine, Schema
from tamis.errors import EventError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAN = float("nan")
SCHEMA = Schema.from_dict(
    {
        "domains": {"colour": {"kind": "enumerated", "values": ["red", "green"]}},
        "attributes": {
            "price": "decimal",
            "n": "integer",
            "title": "text",
            "sold": "boolean",
            "at": "timestamp",
            "colour": "colour",
            "any": "dynamic",
            "user.name": "text",
            "tags": "text",
            "picture": "opaque",
            "items": {
                "kind": "structs",
                "attributes": {"sku": "text", "qty": "integer", "w": "decimal", "marks": "text"},
                "multiple": ["marks"],
            },
        },
        "event_types": {
            "offer": {
                **dict.fromkeys(("price", "n", "title", "sold", "at", "colour"), "optional"),
                **dict.fromkeys(("any", "user.name", "picture", "items"), "optional"),
                "tags": "optional multiple",
            }
        },
    }
)
CONDITIONS = (
    "price < 5",
    "not price < 5",
    "price missing",
    "n = 3",
    "n missing",
    "title = a",
    'title ends with "b"',
    "sold",
    "not sold",
    "at >= 2026-01-05 and at < 2026-01-06",
    "at missing",
    "colour = red",
    "any = 5",
    'any = "5"',
    "any = true",
    "any exists",
    "user.name = ann",
    "tags contains x and tags excludes z",
    "tags missing",
    "picture exists",
    "some i in items (i.sku = A and i.qty >= 2)",
    "not some i in items (i.sku = A)",
    "some i in items (i.w missing)",
    "some i in items (i.marks contains x)",
    "items missing",
)


def made(schema: Schema | None) -> Engine:
    engine = Engine(schema)
    for text in CONDITIONS:
        engine.subscribe(text, id=text)
    return engine


ENGINES = {"typed": made(SCHEMA), "open": made(None)}
ITEMS = [
    [{"sku": "A", "qty": 2, "w": 1.0, "marks": ["x"]}],
    [{"sku": "A", "qty": 1, "w": NAN, "marks": []}, {"sku": None, "qty": 5, "w": None}],
    [],
    None,
    [None],
]
MEANT = [
    {"items": [{"sku": "A", "qty": 2, "w": 1.0, "marks": ["x"]}]},
    {"items": [{"sku": "A", "qty": 1}, {"qty": 5}]},
    {},
    {},
    {},
]


def frames() -> Iterator[Any]:
    """Frames, with the events that their rows mean."""
    some = [{"n": 3}, {}]
    for kind in ("UInt8", "UInt32", "UInt64", "Int8", "Int64", "Int128", "Float32"):
        series = pl.Series([3, None], dtype=getattr(pl, kind))
        yield (
            f"polars {kind}",
            pl.DataFrame({"n": series, "any": series}),
            [
                {"n": 3, "any": 3},
                {},
            ],
        )
    money = [Decimal("1.25"), None, Decimal(7)]
    yield "polars decimal", pl.DataFrame({"price": money}), [{"price": 1.25}, {}, {"price": 7}]
    yield "polars nan", pl.DataFrame({"price": [1.0, NAN, None]}), [{"price": 1}, {}, {}]
    names = ["red", None, "green"]
    right: list[dict[str, Any]] = [{"colour": "red"}, {}, {"colour": "green"}]
    for dtype in (pl.Categorical, pl.Enum(["red", "green"]), pl.String):
        yield f"polars {dtype}", pl.DataFrame({"colour": pl.Series(names, dtype=dtype)}), right
    day: list[dict[str, Any]] = [{"at": "2026-01-05T00:00:00Z"}, {}]
    for dtype in (pl.Date, pl.Datetime("ns"), pl.Datetime("ms"), pl.Datetime("us", "UTC")):
        series = pl.Series([date(2026, 1, 5), None]).cast(dtype)
        yield f"polars {dtype}", pl.DataFrame({"at": series}), day
    users = [{"name": "ann"}, {"name": None}, None]
    yield "polars struct", pl.DataFrame({"user": users}), [{"user": {"name": "ann"}}, {}, {}]
    tags = [["x", "y"], [], None, [None], ["x", "z"]]
    listed = [{"tags": ["x", "y"]}, {}, {}, {}, {"tags": ["x", "z"]}]
    yield "polars list", pl.DataFrame({"tags": tags}), listed
    fixed = pl.Series([["x", "y"], None], dtype=pl.Array(pl.String, 2))
    yield "polars array", pl.DataFrame({"tags": fixed}), listed[:2]
    yield "polars structs", pl.DataFrame({"items": ITEMS}), MEANT
    objects = pl.Series([5, "5", None, True], dtype=pl.Object)
    mixed: list[dict[str, Any]] = [{"any": 5}, {"any": "5"}, {}, {"any": True}]
    yield "polars objects", pl.DataFrame({"any": objects}), mixed
    yield "polars bytes", pl.DataFrame({"picture": [b"x", None]}), [{"picture": b"x"}, {}]
    yield "polars nulls", pl.DataFrame({"price": [None, None]}), [{}, {}]
    yield "polars empty", pl.DataFrame({"title": []}, schema={"title": pl.String}), []
    yield (
        "polars texts",
        pl.DataFrame({"title": ["a", None, "b" * 30]}),
        [
            {"title": "a"},
            {},
            {"title": "b" * 30},
        ],
    )
    yield "pandas mixed", pd.DataFrame({"any": [5, "5", None, True]}), mixed
    yield (
        "pandas gaps",
        pd.DataFrame({"any": [5, "5", pd.NA, True], "n": [3, NAN, 3, NAN]}),
        [
            {"any": 5, "n": 3},
            {"any": "5"},
            {"n": 3},
            {"any": True},
        ],
    )
    for dtype in ("Int64", "UInt64", "Float64", "object", "float16"):
        yield f"pandas {dtype}", pd.DataFrame({"n": pd.array([3, None], dtype=dtype)}), some
    yield (
        "pandas boolean",
        pd.DataFrame({"sold": pd.array([True, None], dtype="boolean")}),
        [
            {"sold": True},
            {},
        ],
    )
    yield "pandas categories", pd.DataFrame({"colour": pd.Categorical(names)}), right
    times = pd.to_datetime(["2026-01-05", None])
    yield "pandas times", pd.DataFrame({"at": times}), day
    yield "pandas times of a zone", pd.DataFrame({"at": times.tz_localize("UTC")}), day
    yield "pandas decimal", pd.DataFrame({"price": money}), [{"price": 1.25}, {}, {"price": 7}]
    yield "pandas objects", pd.DataFrame({"user": users}), [{"user": {"name": "ann"}}, {}, {}]
    arrays = [np.array(["x", "y"]), np.array([]), None]
    yield "pandas arrays", pd.DataFrame({"tags": arrays}), listed[:3]
    yield "pandas structs", pd.DataFrame({"items": ITEMS}), MEANT
    yield "pandas index", pd.DataFrame({"price": [1.0, NAN]}, index=[7, 8]), [{"price": 1}, {}]
    index = pd.Index(["a", "b"], name="title")
    yield (
        "pandas named index",
        pd.DataFrame({"price": [1.0, NAN]}, index=index),
        [
            {"price": 1, "title": "a"},
            {"title": "b"},
        ],
    )


FRAMES = list(frames())


@pytest.mark.parametrize("schema", ENGINES)
@pytest.mark.parametrize(("frame", "events"), [x[1:] for x in FRAMES], ids=[x[0] for x in FRAMES])
def test_a_frame_means_the_same_as_its_events(
    frame: Any, events: list[dict[str, Any]], schema: str
) -> None:
    engine = ENGINES[schema]
    right = [sorted(ids) for ids in engine.match_batch(events)]
    assert [sorted(ids) for ids in engine.match_batch(frame)] == right
    for bad in ("skip", "report"):
        assert [sorted(ids) for ids in engine.match_batch(frame, bad=bad)] == right
    if "price" in frame.columns or not len(frame):
        return
    last = [{"price": float("inf")}]  # one bad row after the others
    if isinstance(frame, pl.DataFrame):
        wrong = pl.concat([frame, pl.DataFrame(last)], how="diagonal")
    else:
        wrong = pd.concat([frame, pd.DataFrame(last)], ignore_index=True)
    found = engine.match_batch(wrong, bad="report")
    assert [sorted(ids) for ids in found] == [*right, []]
    assert [row for row, _ in found.refused] == [len(events)]


@pytest.mark.parametrize("schema", ENGINES)
def test_what_a_frame_cannot_say(schema: str) -> None:
    engine = ENGINES[schema]
    for frame, words in (
        (pl.DataFrame({"n": [2**63 + 5]}, schema={"n": pl.UInt64}), "event 0: .*64-bit"),
        (pl.DataFrame({"n": [1, 2**100]}, schema={"n": pl.Int128}), "event 1: .*64-bit"),
        (pl.DataFrame({"at": [time(1, 2)]}), "event 0: .*time"),
        (pl.DataFrame({"n": [timedelta(1)]}), "event 0: .*timedelta"),
        (pl.LazyFrame({"n": [1]}), "got LazyFrame; collect it first"),
        (pl.Series([1.0]), "expected a list of events, an Arrow table or a DataFrame"),
        (pd.DataFrame([[1.0, 2.0]], columns=["price", "price"]), "[Dd]uplicate|two columns"),
    ):
        with pytest.raises(EventError, match=words):
            engine.match_batch(frame)
    with pytest.raises(EventError, match=r"got Series; pass its to_dict\(\)"):
        engine.match(pd.DataFrame({"price": [1.0]}).iloc[0])
    with pytest.raises(EventError, match="got DataFrame; a table goes to match_batch"):
        engine.match(pl.DataFrame({"price": [1.0]}))


@pytest.mark.parametrize("library", [pl, pd])
def test_missing_values_are_refused_on_request(library: Any) -> None:
    frame = library.DataFrame({"price": [1.0, NAN], "title": ["a", "b"]})
    for engine in ENGINES.values():
        with pytest.raises(EventError, match=r"event 1: .*nan"):
            engine.match_batch(frame, missing="refuse")
        found = engine.match_batch(frame, missing="refuse", bad="report")
        assert [row for row, _ in found.refused] == [1]


def test_answers_are_frames_too() -> None:
    engine = Engine()
    engine.subscribe("price < 5", id="cheap")
    engine.subscribe("price exists", id="any")
    found = engine.match_batch(pl.DataFrame({"price": [1.0, None, 9.0]}))
    right = [(0, "any"), (0, "cheap"), (2, "any")]
    assert sorted(found.to_polars().rows()) == right
    assert sorted(found.to_pandas().itertuples(index=False, name=None)) == right
    assert found.to_polars().schema == {"event": pl.Int64, "subscription": pl.String}
    none = engine.match_batch(pl.DataFrame({"title": ["a"]}))
    assert none.to_polars().shape == none.to_pandas().shape == (0, 2)


def test_a_schema_of_a_frame_takes_the_frame() -> None:
    columns = {
        "n": [1, None],
        "price": [1.5, NAN],
        "day": [date(2026, 1, 1), None],
        "at": [datetime(2026, 1, 1, 12, tzinfo=UTC), None],
        "clock": [time(1), None],
        "money": [Decimal("1.5"), None],
        "tags": [["a"], None],
        "items": [[{"sku": "A", "w": NAN}], None],
        "user": [{"name": "ann"}, None],
    }
    for frame in (pl.DataFrame(columns), pd.DataFrame(columns, index=[3, 4])):
        schema = Schema.infer(frame)
        assert {name: schema.attributes[name].kind for name in schema.attributes} == {
            "event_type": "enumerated",
            "n": "decimal"
            if frame is not None and "pandas" in type(frame).__module__
            else "integer",
            "price": "decimal",
            "day": "timestamp",
            "at": "timestamp",
            "money": "decimal",
            "tags": "text",
            "items": "structs",
            "user.name": "text",
        }
        engine = Engine(schema)
        engine.subscribe("some i in items (i.sku = A) and price < 5 and money = 1.5", id="a")
        assert [list(ids) for ids in engine.match_batch(frame)] == [["a"], []]
