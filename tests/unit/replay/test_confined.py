"""Nothing escapes its folder: names in hand-made manifests and checkpoints, and links."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tamis.errors import TamisError
from tamis.replay.compact_parts import compact
from tamis.replay.manifests import MANIFESTS, manifests, sweep
from tamis.replay.parts import DEAD, NOTIFICATIONS
from tamis.spark.runtime.operator_reports import clear
from tamis.spark.stream.progress import query_of
from tamis.store import Versions
from tests.unit.store.world import publish_version

HOSTILE: list[Any] = [
    "../x",
    "../../outside/part-1.parquet",
    "",
    ".",
    "..",
    "a\0b",
    "a\\b",
    "x" * 300,
    "a\nb",
    "a/b",
    7,
    None,
    ["part-1.parquet"],
    "\ud800",
]


class World:
    """OUT, and a file outside that no sweep may touch."""

    def __init__(self, folder: Path) -> None:
        self.out, self.outside = folder / "out", folder / "outside"
        for each in (self.outside, *(self.out / name for name in (NOTIFICATIONS, DEAD, MANIFESTS))):
            each.mkdir(parents=True)
        self.treasure = [self.outside / "part-q-1.parquet", folder / "x", self.outside / ".q-1"]
        self.treasure += [self.out / "checkpoint", self.out / MANIFESTS / "lock.json.kept"]
        for each in self.treasure:
            each.write_text("keep")
        self.age(folder)

    @staticmethod
    def age(folder: Path) -> None:
        for each in (folder, *folder.rglob("*")):
            os.utime(each, (0, 0), follow_symlinks=False)

    def write(self, batch: int, ending: str = "0", /, **changed: Any) -> None:
        part = {"folder": NOTIFICATIONS, "name": "part-1.parquet", "rows": 1}
        given = {"format": 2, "query": "q", "batch": batch, "written": 1.0, "offsets": []}
        document = {**given, "parts": [part], **changed}
        path = self.out / MANIFESTS / f"q-{batch:010d}-{ending}.json"
        path.write_text(json.dumps(document))
        os.utime(path, (0, 0))

    def untouched(self) -> None:
        assert all(each.read_text() == "keep" for each in self.treasure)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def _replaced(world: World, **changed: Any) -> None:
    """A manifest that a merged one has replaced, so that a sweep removes the parts it names."""
    world.write(0, **changed)
    world.write(3, "merged", batches=4, parts=[])


def _refused(world: World) -> None:
    for work in (lambda: sweep(world.out, 0.0), lambda: manifests(world.out)):
        with pytest.raises(TamisError, match="is damaged"):
            work()
    world.untouched()


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_a_part_is_one_plain_name(world: World, name: Any) -> None:
    _replaced(world, parts=[{"folder": NOTIFICATIONS, "name": name, "rows": 1}])
    _refused(world)


@pytest.mark.parametrize("folder", [*HOSTILE, "manifests", "checkpoint", "logs"], ids=repr)
def test_a_part_lies_among_notifications_or_dead_letters(world: World, folder: Any) -> None:
    _replaced(world, parts=[{"folder": folder, "name": "lock.json.kept", "rows": 1}])
    _refused(world)


def test_absolute_names(world: World) -> None:
    outside = str(world.treasure[0])
    for part in ({"folder": NOTIFICATIONS, "name": outside}, {"folder": outside, "name": "x"}):
        _replaced(world, parts=[{**part, "rows": 1}])
        _refused(world)


@pytest.mark.parametrize("query", [each for each in HOSTILE if each is not None], ids=repr)
def test_a_query_is_one_plain_name(world: World, query: Any, tmp_path: Path) -> None:
    _replaced(world, query=query)
    _refused(world)
    with pytest.raises(TamisError, match="is damaged"):
        compact(world.out, keep=0)
    checkpoint = tmp_path / "its checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(json.dumps({"id": query}))
    with pytest.raises(TamisError, match="is damaged"):
        query_of(checkpoint)


@pytest.mark.parametrize(
    "changed",
    [{"parts": 7}, {"parts": [7]}, {"parts": {"a": 1}}, {"written": "x"}, {"batch": "../x"}],
    ids=repr,
)
def test_manifests_of_another_form(world: World, changed: dict[str, Any]) -> None:
    _replaced(world, **changed)
    _refused(world)


@pytest.mark.parametrize("linked", [NOTIFICATIONS, DEAD])
def test_a_sweep_does_not_follow_a_link(world: World, linked: str) -> None:
    (world.out / linked).rmdir()
    (world.out / linked).symlink_to(world.outside)
    part = {"folder": linked, "name": "part-q-1.parquet", "rows": 1}
    _replaced(world, parts=[part])
    assert sweep(world.out, 0.0) == []
    assert sweep(world.out, 0.0, query="q") == []
    world.untouched()


def test_a_linked_part_is_removed_and_what_it_leads_to_stays(world: World) -> None:
    link = world.out / DEAD / "part-q-2.parquet"
    link.symlink_to(world.treasure[0])
    world.age(world.out)
    assert sweep(world.out, 0.0) == [link]
    assert not link.is_symlink()
    world.untouched()


def test_a_query_is_no_pattern(world: World) -> None:
    other = world.out / DEAD / "part-other-1.parquet"
    other.touch()
    assert sweep(world.out, 0.0, query="*") == []
    assert other.exists()


def test_notes_of_operators_behind_a_link_stay(world: World) -> None:
    (world.outside / "note.json").write_text("keep")
    link = world.out / "operators"
    link.symlink_to(world.outside)
    clear(link)
    assert (world.outside / "note.json").exists()
    world.untouched()


def test_versions_behind_a_link_stay(world: World, tmp_path: Path) -> None:
    versions = Versions(tmp_path / "index")
    for sequence in (1, 2):
        publish_version(versions, sequence)
    (world.outside / "old.json").write_text("keep")
    os.utime(world.outside / "old.json", (0, 0))
    for name in ("jobs", ".swept-1", ".publishing-1"):
        (versions.folder / name).symlink_to(world.outside)
    assert versions.sweep(2) == [1]
    assert (world.outside / "old.json").exists()
    world.untouched()
