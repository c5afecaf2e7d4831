"""Statistics of past events on disk: whole or not at all, and nothing else is overwritten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tamis.errors import StoreError
from tamis.schedule.statistics import PredicateEstimate
from tamis.store import Stats
from tamis.store.stats import (
    DOCUMENT,
    SAMPLE,
    AttributeStats,
    LogPosition,
    PredicateStats,
    SubscriptionStats,
    TopSubscription,
    check_free,
)

STATS = Stats(
    of="events",
    schema={"attributes": {"price": "decimal"}},
    events=3,
    dead=1,
    attributes={
        "price": AttributeStats("decimal", 3, 3, 2, 1.5, 9.0, (1.5, 1.5, 9.0), ((9.0, 0.5),)),
        "tags": AttributeStats("text", 1, 4, 4, "a", "ö", (), (("a", 1 / 3), ("ö", 1 / 3))),
        "picture": AttributeStats("opaque", 2, 2),
    },
    predicates={'near("Bronx")': PredicateStats(0.25, 0.002, 40, 3)},
    subscriptions=SubscriptionStats(
        2, 3, 4, 2, (TopSubscription("ann", 1.0, "price < 5"), TopSubscription(7, 0.5))
    ),
    first=LogPosition(0, "2026-01-31T12:00:00+00:00"),
    last=LogPosition(9, "2026-02-01T12:00:00+00:00"),
    reason="'price' is mandatory",
    seed=4,
    made="2026-02-02T12:00:00+00:00",
    sample=pa.table({"price": [9.0, 1.5], "tags": [["a", "ö"], None]}),
)


def test_what_is_saved_is_opened(tmp_path: Path) -> None:
    STATS.save(tmp_path / "above" / "stats")
    found = Stats.open(tmp_path / "above" / "stats")
    assert found == STATS
    assert found.subscriptions is not None
    assert [type(each.id) for each in found.subscriptions.most] == [str, int]
    assert sorted(each.name for each in (tmp_path / "above").iterdir()) == ["stats"]
    assert found.known == {'near("Bronx")': PredicateEstimate(0.25, 2.0, 40)}, "milliseconds"
    with pytest.raises(StoreError, match="there is no such folder"):
        Stats.open(tmp_path / "nowhere")


def test_statistics_are_replaced_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "stats").mkdir()
    STATS.save(tmp_path / "stats")  # an empty folder will do
    with pytest.raises(StoreError, match="holds statistics already"):
        STATS.save(tmp_path / "stats")
    nothing = Stats("elsewhere", {}, 0, 0, {})
    nothing.save(tmp_path / "stats", replace=True)
    assert Stats.open(tmp_path / "stats") == nothing
    assert [each.name for each in tmp_path.iterdir()] == ["stats"]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("x")
    for replace in (False, True):
        with pytest.raises(StoreError, match="other files than statistics"):
            STATS.save(tmp_path / "mine", replace=replace)
        with pytest.raises(StoreError, match="is a file"):
            check_free(tmp_path / "file", replace=replace)
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def _edit(folder: Path, **changed: object) -> None:
    document = json.loads((folder / DOCUMENT).read_text(encoding="utf-8"))
    (folder / DOCUMENT).write_text(json.dumps({**document, **changed}), encoding="utf-8")


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / DOCUMENT).unlink(), "is not statistics: it has no stats.json"),
    (lambda folder: (folder / DOCUMENT).write_text("{"), "is not valid JSON"),
    (lambda folder: (folder / SAMPLE).unlink(), "sample.parquet is missing"),
    (lambda folder: (folder / SAMPLE).write_bytes(b"PAR1"), "is damaged or cannot be read"),
    (lambda folder: _edit(folder, format=2), "use the newer tamis"),
    (lambda folder: _edit(folder, attributes={"price": {"kind": "text"}}), "its parts do not fit"),
    (lambda folder: _edit(folder, predicates=None), "its parts do not fit"),
    (lambda folder: _edit(folder, more=1), "its parts do not fit"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_damage_is_reported(damage: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    STATS.save(tmp_path / "stats")
    damage(tmp_path / "stats")
    with pytest.raises(StoreError, match=said):
        Stats.open(tmp_path / "stats")
