"""An engine that was saved and opened again is the engine it was."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.encode.labels import Labels
from tamis.engine import Engine
from tamis.engine.lazy_dict import LazyDict
from tamis.errors import EventError, SubscriptionError
from tamis.files.array_folder import read
from tamis.language import parse
from tamis.match.registry import create
from tamis.model.condition import Condition, Predicate
from tamis.model.semantics import satisfies
from tamis.testing import cases
from tamis.testing.engine_checks import subscribe_random
from tests.trials import TRIALS
from tests.unit.engine.world import predicate_row, predicate_table

TEXTS = (
    'title ends with "b" and title != "b" or tags like "%a%" and tags like "_%"',
    'title like "a_%c" or title like "%b%"',
    'not title like "%a" and tags contains ab',
    "category <= table or craft < storage",
    "tags contains a and tags excludes b",
    "price < 2 or number > 1 or open = true",
)


def _full(engine: Engine, chooser: cases.Chooser) -> dict[Any, Condition]:
    """Subscriptions by every door, with gaps, under ids of both kinds."""
    live: dict[Any, Condition] = dict(subscribe_random(engine, chooser, 60))
    for number, text in enumerate(TEXTS):
        live[engine.subscribe(text, id=f"text {number}")] = parse(text)
    rows = [(f"condition {number}", text) for number, text in enumerate(TEXTS)]
    engine.subscribe_table(
        pa.table({"id": [r[0] for r in rows], "condition": [r[1] for r in rows]})
    )
    live |= {id: parse(text) for id, text in rows}
    asked: list[tuple[str, str, Any]] = [
        ("price", "<", 1.5),
        ("title", "=", "ab"),
        ("category", "<=", "table"),
    ]
    given = [[predicate_row(*each)] for each in asked]
    engine.subscribe_table(predicate_table(given, [1001, 1002, 1003]))
    live |= {1001 + at: Predicate(*each) for at, each in enumerate(asked)}
    for id in list(live)[::4]:
        engine.unsubscribe(id)
        del live[id]
    return live


def _agree(engine: Engine, live: Mapping[Any, Condition], events: list[dict[str, Any]]) -> None:
    for event, got in zip(events, engine.match_batch(events), strict=True):
        checked = engine.schema.event(event)
        right = {id for id, c in live.items() if satisfies(c, checked, engine.schema)}
        assert len(got) == len(right)
        assert set(got) == right


@pytest.mark.parametrize(("name", "options"), TRIALS)
@pytest.mark.slow
def test_comes_back_whole_and_goes_on(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    chooser = cases.RandomChooser(21)
    events = [cases.event(chooser) for _ in range(40)]
    engine = Engine(cases.SCHEMA, name, **options)
    live = _full(engine, chooser)
    engine.save(tmp_path / "index")
    again = Engine.open(tmp_path / "index", verify=False)
    _agree(again, live, events)
    assert again.ids() == engine.ids()
    assert len(again) == len(engine) == len(live)
    again.check()
    for id in live:
        assert again.condition(id) == engine.condition(id)
        assert str(again.explain(id, events[0])) == str(engine.explain(id, events[0]))
    # And on from there, by every door.
    assert again.subscribe("price exists") == engine.subscribe("price exists") not in live
    again.unsubscribe(engine.ids()[-1])
    for id in list(live)[::3]:
        again.unsubscribe(id)
        del live[id]
    more = {id: c for id, c in subscribe_random(again, chooser, 30).items() if id not in live}
    live |= more
    again.extend(again.schema.create_attribute("seller", "text"))
    again.save(tmp_path / "index", replace=True)
    third = Engine.open(tmp_path / "index")
    assert third.schema == again.schema
    third.check()
    _agree(third, live, events)
    _agree(again, live, events)
    for id in live:
        third.unsubscribe(id)
    assert len(third) == len(third.matcher) == 0
    third.check()


def test_an_empty_engine(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA)
    engine.unsubscribe(engine.subscribe("price < 1"))
    engine.save(tmp_path / "index")
    again = Engine.open(tmp_path / "index")
    assert len(again) == 0
    assert again.match({"event_type": "single", "price": 0}) == []
    assert again.subscribe("price < 1") == 1, "an id that was given out is not given out again"
    assert again.match({"event_type": "single", "price": 0}) == [1]


def _plain(labels: Labels) -> list[Any]:
    return [each.tolist() if isinstance(each, np.ndarray) else each for each in labels.state()]


def test_labels_are_the_same_to_the_bit(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA)
    for number in range(120):  # in turns below and above: labels crowd and move
        engine.subscribe(f'title = "b{"m" * (number // 2)}{"az"[number % 2]}" or tags > "b"')
    for id in engine.ids()[::2]:
        engine.unsubscribe(id)
    engine.save(tmp_path / "index")
    again = Engine.open(tmp_path / "index")
    for at, labels in engine.encoder.labels.items():
        mine = again.encoder.labels[at]
        mine.check()
        assert _plain(mine) == _plain(labels)
    assert again.encoder.patterned == engine.encoder.patterned
    for each in (engine, again):  # new constants find the same places
        each.subscribe('title = "bmmmmmq" or title like "%q"')
    for at, labels in engine.encoder.labels.items():
        assert again.encoder.labels[at].state().labels.tolist() == labels.state().labels.tolist()


def test_batches_are_not_exchanged(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA)
    batch = engine.encode([{"event_type": "single", "title": "a"}])
    engine.save(tmp_path / "index")
    with pytest.raises(EventError, match="another engine encoded it"):
        Engine.open(tmp_path / "index").match_batch(batch)


def test_an_answer_stays_what_it_was(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA)
    engine.subscribe("price exists", id="first")
    engine.subscribe("price exists", id=7)
    engine.save(tmp_path / "index")
    again = Engine.open(tmp_path / "index")
    answer = again.match_batch([{"event_type": "single", "price": 1}])
    again.unsubscribe("first")
    again.subscribe("price exists", id="second")
    assert set(answer[0]) == {"first", 7}
    assert set(again.match({"event_type": "single", "price": 1})) == {"second", 7}


def test_a_program_s_condition_may_be_longer_than_a_text(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA)
    long = Predicate("title", "in", tuple(f"some words {number}" for number in range(9000)))
    id = engine.subscribe(long)
    engine.save(tmp_path / "index")
    again = Engine.open(tmp_path / "index")
    assert again.condition(id) == engine.condition(id)
    assert again.explain(id, {"event_type": "single", "title": "some words 8999"}).holds


# -- where conditions are kept ---------------------------------------------------------------------


def _columns() -> list[pa.Array]:
    texts = pa.array(["price < 1", "price >= 1 or number = 2"])
    narrow = pa.list_(pa.struct([("attribute", pa.string()), ("comparator", pa.string())]))
    whole = pa.list_(
        pa.struct(
            [
                ("attribute", pa.dictionary(pa.int8(), pa.string())),
                ("comparator", pa.large_string()),
                ("value", pa.int64()),
            ]
        )
    )
    asked = [[{"attribute": "price", "comparator": "exists"}], []]
    valued = [[{"attribute": "number", "comparator": "=", "value": 2**53 + 1}], asked[0]]
    return [
        texts,
        texts.cast(pa.large_string()),
        texts.cast(pa.string_view()),
        texts.dictionary_encode(),
        pa.array(asked, narrow),
        pa.array(asked, pa.large_list(narrow.value_type)),
        pa.array(valued, whole),
    ]


@pytest.mark.parametrize("joined", [True, False])
def test_tables_of_every_type_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joined: bool
) -> None:
    engine = Engine(cases.SCHEMA)
    engine.subscribe("price < 3", id=-1)
    columns = _columns()
    for turn in range(3):
        for number, column in enumerate(columns):
            name = "condition" if pa.types.is_nested(column.type) is False else "predicates"
            ids = [1000 * turn + 10 * number + row for row in range(2)]
            engine.subscribe_table(pa.table({"id": ids, name: column}))
        engine.unsubscribe(1000 * turn)
    if not joined:  # as when one column could not hold all

        def too_long(arrays: list[pa.Array]) -> pa.Array:
            raise pa.ArrowInvalid("offset overflow while concatenating arrays")

        monkeypatch.setattr(pa, "concat_arrays", too_long)
    engine.save(tmp_path / "index")
    kept = [name for name in read(tmp_path / "index").blobs if name.startswith("sources.")]
    # Text in views becomes plain text at the door, and joins it.
    assert len(kept) == (len(columns) - 1 if joined else 3 * len(columns) + 1)
    again = Engine.open(tmp_path / "index")
    assert again.ids() == engine.ids()
    assert [again.condition(id) for id in again.ids()] == [
        engine.condition(id) for id in engine.ids()
    ]
    for id in again.ids():
        again.unsubscribe(id)


def test_rows_that_are_gone_are_not_saved(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA)
    engine.subscribe_table(
        pa.table({"id": range(900), "condition": [f"price < {n}" for n in range(900)]})
    )
    for id in range(890):
        engine.unsubscribe(id)
    engine.save(tmp_path / "index")
    kept = read(tmp_path / "index").blobs["sources.0.arrow"]
    assert pa.ipc.open_file(pa.py_buffer(kept)).read_all().num_rows == 10
    assert Engine.open(tmp_path / "index").condition(895) == "price < 895"


# -- opened by many --------------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path: Path) -> Path:
    engine = Engine(cases.SCHEMA, "naive")  # it has nothing but the table of clauses
    _full(engine, cases.RandomChooser(22))
    engine.save(tmp_path / "index")
    return tmp_path / "index"


def test_a_process_that_only_matches_makes_no_object_for_each_subscription(index: Path) -> None:
    engine = Engine.open(index)
    chooser = cases.RandomChooser(23)
    matched = engine.match_batch([cases.event(chooser) for _ in range(50)])
    assert matched.total
    assert isinstance(matched.subscriptions[0], str | int)
    asleep = (
        engine.slot_table._leader_of,
        engine.slot_table._followers,
        engine.patterns._numbers.numbers,
    )
    for each in asleep:
        assert isinstance(each, LazyDict)
        assert len(each) > 0
        assert each._make is not None, "it was made, and nobody asked for an id"
    assert engine.slot_table._ids._text is None
    assert engine.ids()[0] in engine
    assert engine.slot_table._leader_of._make is None


def test_what_one_changes_nobody_else_sees(index: Path) -> None:
    files = {path.name: path.read_bytes() for path in index.iterdir()}
    mine, yours = Engine.open(index), Engine.open(index)
    live = yours.ids()
    for id in mine.ids()[::2]:
        mine.unsubscribe(id)
    for number in range(200):
        mine.subscribe(f'title = "a{number * 7919 % 200}" or title like "%{number}"')
    mine.check()
    yours.check()
    assert yours.ids() == live
    assert {path.name: path.read_bytes() for path in index.iterdir()} == files


_WORKER = """
import re, sys
from pathlib import Path
from tamis.engine import Engine
from tamis.testing import cases

engine = Engine.open(sys.argv[1], verify=False)
chooser = cases.RandomChooser(24)
print(engine.match_batch([cases.event(chooser) for _ in range(30)]).total)
mapped = Path("/proc/self/smaps")
if mapped.exists():
    written = 0
    for part in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", mapped.read_text()):
        if sys.argv[1] in part:
            written += int(re.search(r"Private_Dirty: +(\\d+)", part)[1])
    print(written)
"""


@pytest.mark.slow
def test_processes_share_one_copy(index: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(index)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [worker.communicate()[0].split() for worker in workers]
    chooser = cases.RandomChooser(24)
    right = Engine.open(index).match_batch([cases.event(chooser) for _ in range(30)]).total
    for each in said:
        assert int(each[0]) == right
        assert each[1:] in ([], ["0"]), "kilobytes that are not shared any more"


def test_an_opened_engine_can_be_pickled(index: Path) -> None:
    engine = Engine.open(index)
    again = pickle.loads(pickle.dumps(engine))
    assert again.ids() == engine.ids()
    again.check()
    again.unsubscribe(again.ids()[0])
    assert len(again) == len(engine) - 1


def test_unknown_ids_are_refused_as_ever(index: Path) -> None:
    engine = Engine.open(index)
    with pytest.raises(SubscriptionError, match="no subscription has the id 'nobody'"):
        engine.unsubscribe("nobody")
    with pytest.raises(SubscriptionError, match="is taken"):
        engine.subscribe("price < 1", id=engine.ids()[0])


def test_a_matcher_made_by_hand_is_made_again_with_its_options(tmp_path: Path) -> None:
    from tamis.match.dexin.be_tree.matcher import BETree
    from tamis.match.lesubscribe.gough import Gough

    for matcher, options in (
        (BETree(capacity=3, window=5), {"capacity": 3, "window": 5}),
        (Gough(order=(5, 3)), {"order": [5, 3]}),
        (create("rein", buckets=7), {"buckets": 7}),
    ):
        engine = Engine(cases.SCHEMA, matcher)
        engine.subscribe("price < 1")
        engine.save(tmp_path / "index", replace=True)
        again = Engine.open(tmp_path / "index")
        assert type(again.matcher) is type(matcher)
        assert again.matcher.given == options
        assert again.match({"event_type": "single", "price": 0}) == [0]
