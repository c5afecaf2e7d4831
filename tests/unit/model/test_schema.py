"""Schemas: documents, files, views, and the four ways to extend."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Schema
from tamis.errors import EventError, SchemaError
from tamis.model.domain import Integer
from tamis.model.named_domains import Enumerated
from tamis.model.schema import Use

DOCUMENT: dict[str, Any] = {
    "version": 3,
    "domains": {
        "furniture": {
            "kind": "hierarchy",
            "tree": {"furniture": {"table": {"dining_table": {}, "desk": {}}, "chair": {}}},
            "parents": {"desk": ["office"]},
        },
        "century": {"kind": "enumerated", "values": ["XVI", "XVII"], "order": [["XVI", "XVII"]]},
        "year": "century",
    },
    "attributes": {
        "price": "decimal",
        "quantity": {"kind": "integer", "low": 0, "high": 1000},
        "period": "century",
        "category": "furniture",
        "tags": "text",
        "sold": {"kind": "boolean"},
        "größe in cm": "integer",
        "yes": "text",
    },
    "event_types": {
        "antiques": {"price": "mandatory", "period": "mandatory unique", "tags": "optional"},
        "furniture": {"price": "optional", "category": "mandatory", "tags": "optional multiple"},
        "empty": {},
    },
}


SCHEMA = Schema.from_dict(DOCUMENT)


def test_a_document_comes_back_whole(tmp_path: Path) -> None:
    assert Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA
    for name, text in (("s.yaml", SCHEMA.to_yaml()), ("s.json", json.dumps(SCHEMA.to_dict()))):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        loaded = Schema.load(path)
        assert loaded == SCHEMA
        assert list(loaded.attributes) == list(SCHEMA.attributes)
        assert loaded.version == 3
        assert hash(loaded) == hash(SCHEMA)
    assert Schema.load(str(tmp_path / "s.yaml")) == SCHEMA


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="`"),
    min_size=1,
    max_size=5,
).filter(lambda name: name.isprintable() and name != "event_type")
kinds = st.sampled_from(["integer", "decimal", "text", "boolean", "timestamp", "opaque"])
uses = st.sampled_from(["mandatory", "optional", "optional multiple", "mandatory multiple"])


@settings(max_examples=60)
@given(data=st.data(), attributes=st.dictionaries(names, kinds, min_size=1, max_size=5))
def test_random_documents_survive_yaml_and_pickle(
    data: st.DataObject, attributes: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    chosen = st.dictionaries(st.sampled_from(sorted(attributes)), uses)
    types = data.draw(st.dictionaries(names, chosen, min_size=1, max_size=3))
    schema = Schema.from_dict({"attributes": attributes, "event_types": types})
    path = tmp_path_factory.mktemp("schemas") / "s.yaml"
    path.write_text(schema.to_yaml(), encoding="utf-8")
    assert Schema.load(path) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert schema.summary()


def test_without_event_types_there_is_one_with_everything_optional() -> None:
    schema = Schema.from_dict({"attributes": {"a": "text"}})
    assert schema.event_types == {"event": {"a": Use(False, False)}}


BAD: list[tuple[Any, str]] = [
    (None, "schema: expected a mapping"),
    ([], "schema: expected a mapping"),
    ({"attributes": np.zeros(2)}, "attributes: expected a mapping"),
    ({"event_types": {"a": np.zeros(2)}}, "event type 'a': expected a mapping"),
    ({"default_event_type": ["a"]}, "default_event_type: unknown type"),
    ({"default_event_type": np.zeros(2)}, "default_event_type: unknown type"),
    ({"attributes": {"a": {"kind": "hierarchy", "tree": np.zeros(2)}}}, "expected a mapping"),
    ({"atributes": {}}, "unknown entry 'atributes'; did you mean 'attributes'"),
    ({"attributes": {"a": "txt"}}, "attribute 'a': unknown domain 'txt'; did you mean 'text'"),
    ({"attributes": {"a": 5}}, "attribute 'a': expected a kind such as text"),
    ({"attributes": {"a": {"kind": "intger"}}}, "unknown kind 'intger'; did you mean 'integer'"),
    ({"attributes": {"a": {"low": 1}}}, "expected an entry 'kind'"),
    ({"attributes": {"a": {"kind": ["integer"]}}}, "a kind is a word"),
    ({"domains": {"a": {"kind": np.zeros(2)}}}, "a kind is a word"),
    ({"attributes": {"a": {"kind": "integer", "lo": 1}}}, "unknown entry 'lo'; did you mean 'low'"),
    ({"attributes": {"a": {"kind": "integer", "low": "1"}}}, "attribute 'a': integer domain: low"),
    ({"attributes": {"a": {"kind": "text", "low": 1}}}, "unknown entry 'low'"),
    ({"attributes": {"a": {"kind": "enumerated"}}}, "'values' must be a list"),
    ({"attributes": {"a": {"kind": "enumerated", "values": "abc"}}}, "'values' must be a list"),
    ({"attributes": {"a": {"kind": "enumerated", "values": [True]}}}, "put it in quotes"),
    (
        {"attributes": {"a": {"kind": "enumerated", "values": ["x"], "order": [["x"]]}}},
        "list of pairs",
    ),
    (
        {"attributes": {"a": {"kind": "enumerated", "values": ["x"], "order": [[["x"], ["y"]]]}}},
        "not a value",
    ),
    ({"attributes": {"a": {"kind": "hierarchy"}}}, "needs 'tree', 'parents' or both"),
    ({"attributes": {"a": {"kind": "hierarchy", "tree": ["x"]}}}, "expected a mapping"),
    ({"attributes": {"a": {"kind": "hierarchy", "tree": {"x": ["y"]}}}}, "expected a mapping"),
    ({"attributes": {"a": {"kind": "hierarchy", "tree": {1: {}}}}}, "not text; put it in quotes"),
    ({"attributes": {"a": {"kind": "hierarchy", "tree": {"x": {1: {}}}}}}, "put it in quotes"),
    ({"attributes": {"a": {"kind": "hierarchy", "parents": {"x": [1]}}}}, "list of names"),
    ({"attributes": {"a": {"kind": "hierarchy", "parents": {"x": 1}}}}, "list of names"),
    ({"attributes": {1: "text"}}, "the key 1 is not text"),
    ({"attributes": {"event_type": "text"}}, "is in every schema"),
    ({"attributes": {"a`b": "text"}}, "a backquote"),
    ({"attributes": {"a\nb": "text"}}, "control character"),
    ({"attributes": {"": "text"}}, "1 to 256 characters"),
    ({"attributes": {"x" * 257: "text"}}, "1 to 256 characters"),
    ({"domains": {"text": {"kind": "integer"}}}, "taken by a built-in"),
    ({"event_types": {"e": {"a": "mandatory"}}}, "unknown attribute 'a'"),
    ({"attributes": {"a": "text"}, "event_types": {"e": {"a": "needed"}}}, "expected mandatory or"),
    ({"attributes": {"a": "text"}, "event_types": {"e": {"a": None}}}, "expected mandatory or"),
    ({"attributes": {"a": "text"}, "event_types": {"e": {"a": "unique"}}}, "expected mandatory or"),
    (
        {"attributes": {"a": "text"}, "event_types": {"e": {"a": "optional optional"}}},
        "expected mandatory or",
    ),
    ({"event_types": {"e": {"event_type": "optional"}}}, "leave 'event_type' out"),
    ({"event_types": {"e\0": {}}}, "control character"),
    ({"version": 0}, "whole number from 1"),
    ({"version": True}, "whole number from 1"),
    ({"version": "1"}, "whole number from 1"),
]


@pytest.mark.parametrize(("document", "words"), BAD)
def test_a_wrong_document_is_refused_with_the_place(document: Any, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(document)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("attributes: {a: text, a: integer}", "the key 'a' is written twice"),
        ('attributes: {a: text, "a": text}', "the key 'a' is written twice"),
        ("attributes: {a: {kind: integer, low: 1, low: 2}}", "is written twice"),
        ("attributes: [", "not valid YAML or JSON"),
        ("a: &x [*x]", "unknown entry|not valid"),
        ("attributes: {a: 2026-13-45}", "not valid YAML or JSON"),
        (f"attributes: {{a: {'1' * 5000}}}", "not valid YAML or JSON"),
        ("!!python/object:os.system {}", "not valid YAML or JSON"),
        ("", "expected a mapping, got nothing"),
        ("- a", "expected a mapping, got a list"),
        ("attributes: {no: text}", "is not text; put it in quotes"),
        ("[" * 100_000, "not valid YAML or JSON"),
    ],
)
@pytest.mark.slow
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=words) as caught:
        Schema.load(path)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"attributes: {gr\xf6\xdfe: text}")
    for path in (tmp_path / "none.yaml", tmp_path, tmp_path / "latin"):
        with pytest.raises(SchemaError, match="cannot be read") as caught:
            Schema.load(path)
        assert "Errno" not in str(caught.value)
        assert "codec" not in str(caught.value)


# -- views ----------------------------------------------------------------------------------------


def test_mandatory_and_multiple_win_in_a_view() -> None:
    view = SCHEMA.view(["antiques", "furniture"])
    assert view["price"] == Use(True, False)
    assert view["tags"] == Use(False, True)
    assert view["category"] == Use(True, False)
    assert "quantity" not in view
    assert SCHEMA.view(["furniture", "antiques", "antiques"]) == view
    assert SCHEMA.view(["empty"]) == {}
    with pytest.raises(EventError, match="unknown event type 'antique'; did you mean 'antiques'"):
        SCHEMA.view(["antique"])
    for mapping in (SCHEMA.attributes, SCHEMA.domains, SCHEMA.event_types, view):  # they stay
        with pytest.raises(TypeError):
            mapping["x"] = 1  # type: ignore[index]


# -- extensions -----------------------------------------------------------------------------------


def test_the_four_extensions_give_the_next_version() -> None:
    first = Schema.from_dict(DOCUMENT)
    second = first.create_domain("shade", {"kind": "enumerated", "values": ["light", "dark"]})
    third = second.create_attribute("shade", "shade")
    fourth = third.extend_event_type("empty", "shade", "optional multiple")
    fifth = fourth.create_event_type("lamp", {"shade": "mandatory", "price": Use(False, True)})
    assert [s.version for s in (first, second, third, fourth, fifth)] == [3, 4, 5, 6, 7]
    assert first == Schema.from_dict(DOCUMENT), "the older one stays as it was"
    assert fifth.event_types["lamp"] == {"shade": Use(True, False), "price": Use(False, True)}
    assert list(fifth.attributes["event_type"].to_dict()["values"]) == [  # type: ignore[index]
        "antiques",
        "furniture",
        "empty",
        "lamp",
    ]
    for newer in (first, second, third, fourth, fifth):
        newer.check_extends(first)
        Schema.from_dict(newer.to_dict()).check_extends(first)
    with pytest.raises(SchemaError):
        first.check_extends(fifth)
    assert third.create_attribute("b", Integer(0, 1)).attributes["b"] == Integer(0, 1)
    assert second.create_attribute("d", "year").attributes["d"] == first.domains["century"]


REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("create_domain", ("century", "text"), "the name is taken"),
    ("create_domain", ("integer", {"kind": "text"}), "the name is taken"),
    ("create_domain", ("x", {"kind": "enumerated", "values": []}), "at least one"),
    ("create_domain", ("a`b", {"kind": "text"}), "backquote"),
    ("create_attribute", ("price", "text"), "the name is taken"),
    ("create_attribute", ("event_type", "text"), "the name is taken"),
    ("create_attribute", ("x", "nothing"), "unknown domain"),
    ("create_attribute", ("", "text"), "1 to 256"),
    ("extend_event_type", ("antiques", "price"), "has 'price' already"),
    ("extend_event_type", ("antiques", "quantity", "mandatory"), "must be optional"),
    ("extend_event_type", ("antique", "quantity"), "did you mean 'antiques'"),
    ("extend_event_type", ("antiques", "quantty"), "did you mean 'quantity'"),
    ("extend_event_type", ("antiques", "event_type"), "leave 'event_type' out"),
    ("extend_event_type", ("antiques", "quantity", "sometimes"), "expected mandatory or"),
    ("create_event_type", ("antiques", {}), "the name is taken"),
    ("create_event_type", ("x", {"nothing": "optional"}), "unknown attribute 'nothing'"),
    ("create_event_type", ("x", {"price": "now and then"}), "expected mandatory or"),
    ("create_event_type", ("", {}), "1 to 256"),
]


@pytest.mark.parametrize(("rule", "arguments", "words"), REFUSED)
def test_an_extension_that_breaks_a_rule_is_refused(
    rule: str, arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(SchemaError, match=words):
        getattr(SCHEMA, rule)(*arguments)


def changed(**entries: Any) -> dict[str, Any]:
    document = json.loads(json.dumps(DOCUMENT))
    for path, value in entries.items():
        *way, last = path.split("__")
        here = document
        for step in way:
            here = here[step]
        if value is None:
            del here[last]
        else:
            here[last] = value
    return dict(document)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (changed(domains__century={"kind": "enumerated", "values": ["XVI"]}), "domain 'century'"),
        (changed(attributes__price="integer"), "attribute 'price' was changed"),
        (changed(attributes__sold=None), "attribute 'sold' was changed or dropped"),
        (changed(event_types__empty=None), "dropped or reordered"),
        (changed(event_types__antiques__tags="mandatory"), "its use of 'tags' was changed"),
        (changed(event_types__antiques__tags=None), "its use of 'tags' was changed"),
        (changed(event_types__empty__price="mandatory"), "must be optional"),
    ],
)
def test_what_is_more_than_an_extension_is_found(document: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        Schema.from_dict(document).check_extends(SCHEMA)


def test_new_attributes_and_event_types_come_last() -> None:
    older = Schema.from_dict({"attributes": {"b": "text"}, "event_types": {"y": {}}})
    for wrong in (
        {"attributes": {"a": "text", "b": "text"}, "event_types": {"y": {}}},
        {"attributes": {"b": "text"}, "event_types": {"x": {}, "y": {}}},
    ):
        with pytest.raises(SchemaError, match="reordered"):
            Schema.from_dict(wrong).check_extends(older)


def test_domains_are_equal_when_their_documents_are() -> None:
    assert Integer() == Integer()
    assert Integer(0) != Integer()
    assert Enumerated(["a", "b"]) != Enumerated(["b", "a"])
    assert len({Integer(), Integer(), Integer(1)}) == 2


def test_a_view_lists_attributes_in_the_order_of_the_schema() -> None:
    kinds = {f"t{n}": {f"a{n}": "optional", "b": "optional"} for n in range(8)}
    attributes = {**{f"a{n}": "integer" for n in range(8)}, "b": "integer"}
    schema = Schema.from_dict({"attributes": attributes, "event_types": kinds})
    forth = list(schema.view(kinds))
    assert forth == ["a0", "b", *(f"a{n}" for n in range(1, 8))]
    assert list(Schema.from_dict(schema.to_dict()).view(reversed(list(kinds)))) == forth


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("float", "did you mean 'decimal'?"),
        ("string", "did you mean 'text'?"),
        ("int", "did you mean 'integer'?"),
        ("bool", "did you mean 'boolean'?"),
        ("datetime", "did you mean 'timestamp'?"),
        ({"kind": "enum", "values": ["a"]}, "did you mean 'enumerated'?"),
        ({"kind": "array", "items": "text"}, "optional multiple"),
        ({"low": 1}, "expected an entry 'kind'"),
        (None, "expected a kind such as text"),
        (5, "expected a kind such as text"),
        ("txet", "did you mean 'text'?"),
    ],
)
def test_names_of_kinds_in_other_languages(spec: object, said: str) -> None:
    with pytest.raises(SchemaError, match="attribute 'a': ") as refused:
        Schema.from_dict({"attributes": {"a": spec}})
    assert said in str(refused.value)
