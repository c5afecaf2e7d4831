"""What cannot be saved is refused, and so is what was not saved like this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.engine import Engine
from tamis.errors import MatcherError, SavedIndexError, TamisError
from tamis.files.array_folder import DATA, MANIFEST, write
from tamis.files.checksum import SectionWriter
from tamis.match.lesubscribe.naive import Naive
from tamis.match.options import Option
from tamis.match.registry import _TABLE, MatcherEntry, register
from tamis.testing import cases
from tests.unit.files.saved_index import body_of, edit

EVENT = {"event_type": "single", "price": 0, "title": "ab"}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    engine = Engine(cases.SCHEMA, "naive")
    engine.subscribe('price < 1 or title like "%b" and tags like "_%"', id="text")
    engine.subscribe("title = ab", id=5)
    engine.subscribe_table(
        pa.table({"id": ["row"], "predicates": [[{"attribute": "price", "comparator": "exists"}]]})
    )
    engine.save(tmp_path / "index")
    return tmp_path / "index"


class _Own(Naive):
    """A matcher of somebody's own, which takes what cannot be saved too."""

    what: Option[Any] = Option(None, "anything", values="anything", valid=lambda value: True)
    password: Option[str] = Option(
        "", "a secret", values="text", valid=lambda value: isinstance(value, str), saved=False
    )


_ENTRY = MatcherEntry("own", f"{__name__}:_Own", "none", "own")


@pytest.fixture
def _registered() -> Iterator[None]:
    register(_ENTRY)
    yield
    del _TABLE["own"]


def test_a_matcher_that_nobody_could_make_again_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SavedIndexError, match=r"a _Own cannot be saved.* not registered"):
        Engine(cases.SCHEMA, _Own()).save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_registered")
def test_a_matcher_of_one_s_own_is_saved_once_it_is_registered(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA, _Own(what=[1, 2], password="secret"))
    engine.subscribe("price < 1")
    engine.save(tmp_path / "index")
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "index").iterdir())
    again = Engine.open(tmp_path / "index", password="other")
    assert isinstance(again.matcher, _Own)
    assert (again.matcher.what, again.matcher.password) == ([1, 2], "other")
    assert again.match(EVENT) == [0]
    del _TABLE["own"]
    try:
        with pytest.raises(MatcherError, match="index: unknown matcher 'own'"):
            Engine.open(tmp_path / "index")
    finally:
        register(_ENTRY)


@pytest.mark.usefixtures("_registered")
def test_options_that_json_cannot_say_are_refused(tmp_path: Path) -> None:
    engine = Engine(cases.SCHEMA, _Own(what=len))
    with pytest.raises(SavedIndexError, match="matcher 'own' cannot be saved with what=<built-in"):
        engine.save(tmp_path / "index")


def test_an_option_that_the_matcher_does_not_have_is_refused(index: Path) -> None:
    with pytest.raises(MatcherError, match="Naive has no option 'speed'"):
        Engine.open(index, speed=3)


def test_an_engine_does_not_overwrite(index: Path) -> None:
    with pytest.raises(SavedIndexError, match="exists already"):
        Engine(cases.SCHEMA).save(index)
    assert len(Engine.open(index)) == 3
    Engine(cases.SCHEMA).save(index, replace=True)
    assert len(Engine.open(index)) == 0


def test_a_full_disk_is_said_and_changes_nothing(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: SectionWriter, data: Any) -> int:
        raise OSError(28, "No space left on device")

    wrote = SectionWriter.write

    def full_for_tables(self: SectionWriter, data: Any) -> int:
        if bytes(data)[:5] == b"ARROW":  # from within Arrow's writer
            return full(self, data)
        return wrote(self, data)

    for written in (full, full_for_tables):
        monkeypatch.setattr(SectionWriter, "write", written)
        with pytest.raises(SavedIndexError, match="No space left on device"):
            Engine.open(index).save(index, replace=True)
    assert len(Engine.open(index)) == 3
    assert [path.name for path in index.parent.iterdir()] == ["index"]


# -- what is opened --------------------------------------------------------------------------------


def test_something_else_than_an_engine_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "other", {"x": np.zeros(3)}, {"made by": "somebody"})
    with pytest.raises(SavedIndexError, match="other: it holds an engine in format None"):
        Engine.open(tmp_path / "other")
    with pytest.raises(SavedIndexError, match="there is no such folder"):
        Engine.open(tmp_path / "nowhere")


def test_a_damaged_part_is_refused(index: Path) -> None:
    content = (index / DATA).read_bytes()
    body = body_of(index)
    parts = {**body["arrays"], **body["blobs"]}
    assert len(parts) > 25
    name, said = max(parts.items(), key=lambda part: part[1]["bytes"])
    flipped = bytearray(content)
    flipped[said["offset"] + said["bytes"] // 2] ^= 4
    (index / DATA).write_bytes(flipped)
    with pytest.raises(SavedIndexError, match=f"{index}: the .* '{name}' is damaged"):
        Engine.open(index)
    (index / DATA).write_bytes(content[:-1])
    with pytest.raises(SavedIndexError, match=f"{index}: the file 'data' is damaged"):
        Engine.open(index, verify=False)


def test_another_form_or_layout_is_refused(index: Path) -> None:
    edit(index, lambda body: body["facts"]["made_by"].update(layout=99))
    with pytest.raises(SavedIndexError, match="index: matcher 'naive' saved it in layout 99"):
        Engine.open(index)
    edit(index, lambda body: body["facts"].update(contents=9))
    with pytest.raises(SavedIndexError, match="index: it holds an engine in format 9"):
        Engine.open(index)


@pytest.mark.parametrize("verify", [True, False])
def test_facts_that_do_not_fit_are_refused(index: Path, verify: bool) -> None:
    content = (index / MANIFEST).read_bytes()
    body = body_of(index)
    facts = body["facts"]

    def refused(change: Callable[[dict[str, Any]], object]) -> None:
        (index / MANIFEST).write_bytes(content)
        edit(index, change)
        with pytest.raises(TamisError, match=str(index)):
            Engine.open(index, verify=verify)

    for name in facts:
        refused(lambda body, name=name: body["facts"].pop(name))  # type: ignore[misc]
        refused(lambda body, name=name: body["facts"].update({name: 7}))  # type: ignore[misc]
    for name in ("roster", "ids", "sources", "patterns", "constants"):
        for fact in facts["parts"][name]:
            refused(lambda b, n=name, f=fact: b["facts"]["parts"][n].pop(f))  # type: ignore[misc]
    for name in body["arrays"]:
        refused(lambda body, name=name: body["arrays"].pop(name))  # type: ignore[misc]
    for name in body["blobs"]:
        refused(lambda body, name=name: body["blobs"].pop(name))  # type: ignore[misc]
    refused(lambda body: body["facts"]["schema"]["attributes"].update(price="money"))
    refused(lambda body: body["facts"]["made_by"].update(name="unheard-of"))
    refused(lambda body: body["facts"]["made_by"].update(options={"speed": 1}))


def test_a_table_that_is_not_an_arrow_file_is_refused(index: Path) -> None:
    said = body_of(index)["blobs"]["constants.texts.arrow"]
    content = bytearray((index / DATA).read_bytes())
    content[said["offset"] : said["offset"] + said["bytes"]] = bytes(said["bytes"])
    (index / DATA).write_bytes(content)
    with pytest.raises(SavedIndexError, match=r"'constants\.texts\.arrow' is not an Arrow file"):
        Engine.open(index, verify=False)
