"""docs/coming-from-a-percolator.md translates queries so that they match the same documents."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from tamis import Engine
from tamis.errors import NeverTrueError
from tests.acceptance.pages import ROOT, blocks

Query = dict[str, Any]
Document = dict[str, Any]
QUERIES, DOCUMENTS = 400, 60


def _page() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in blocks(ROOT / "docs" / "coming-from-a-percolator.md"):
        exec(block.code, names)
    return names


def _listed(body: Query, clause: str) -> list[Query]:
    given = body.get(clause, [])
    return given if isinstance(given, list) else [given]


def _matches(query: Query, document: Document) -> bool:
    """Whether a percolator would find the query: the semantics of its documentation."""
    ((kind, body),) = query.items()
    if kind == "bool":
        needed, shoulds = _listed(body, "must") + _listed(body, "filter"), _listed(body, "should")
        least = body.get("minimum_should_match", 0 if needed else min(1, len(shoulds)))
        return (
            all(_matches(each, document) for each in needed)
            and sum(_matches(each, document) for each in shoulds) >= least
            and not any(_matches(each, document) for each in _listed(body, "must_not"))
        )
    if kind == "nested":
        return any(_matches(body["query"], each) for each in document.get(body["path"], []))
    field: str
    test: Any
    field, test = (body["field"], None) if kind == "exists" else next(iter(body.items()))
    found = document.get(field.rpartition(".")[2], [])
    for value in found if isinstance(found, list) else [found]:
        if (
            kind == "exists"
            or (kind == "term" and value == test)
            or (kind == "terms" and value in test)
            or (kind == "prefix" and value.startswith(test))
            or (kind == "range" and test["gte"] <= value < test["lt"])
        ):
            return True
    return False


def _leaf(chooser: random.Random, path: str) -> Query:
    low = chooser.randint(0, 5)
    kinds: list[Query] = [
        {"range": {f"{path}price": {"gte": low, "lt": low + chooser.randint(1, 3)}}},
        {"exists": {"field": f"{path}price"}},
    ]
    if path:
        kinds.append({"term": {f"{path}shop": chooser.choice("AB")}})
    else:
        kinds += [
            {"term": {"tags": chooser.choice("abc")}},
            {"terms": {"tags": chooser.sample("abc", 2)}},
            {"term": {"brand": chooser.choice("xy")}},
            {"terms": {"brand": ["x", "y"]}},
            {"prefix": {"title": chooser.choice("tu")}},
            {"term": {"sold": chooser.random() < 0.5}},
        ]
    return chooser.choice(kinds)


def _query(chooser: random.Random, depth: int, path: str = "") -> Query:
    drawn = chooser.random()
    if depth == 0 or drawn < 0.3:
        return _leaf(chooser, path)
    if drawn < 0.45 and not path:
        return {"nested": {"path": "offers", "query": _query(chooser, depth - 1, "offers.")}}
    body: Query = {}
    for clause in ("must", "filter", "should", "must_not"):
        many = chooser.choice((0, 0, 1, 2))
        if many:
            body[clause] = [_query(chooser, depth - 1, path) for _ in range(many)]
    if len(body.get("should", [])) == 2 and chooser.random() < 0.3:
        body["minimum_should_match"] = 2
    return {"bool": body} if body else _leaf(chooser, path)


def _document(chooser: random.Random) -> Document:
    whole = {
        "brand": chooser.choice("xyz"),
        "price": chooser.randint(0, 7),
        "tags": chooser.sample("abcd", chooser.randint(1, 3)),
        "sold": chooser.random() < 0.5,
        "offers": [
            {"shop": chooser.choice("ABC"), "price": chooser.randint(0, 7)},
            {"price": chooser.randint(0, 7)},
            {"shop": chooser.choice("ABC")},
        ][: chooser.randint(1, 3)],
    }
    kept = {name: value for name, value in whole.items() if chooser.random() < 0.6}
    return {"title": chooser.choice("tuv"), **kept}


def test_translated_queries_match_the_same_documents() -> None:
    page, chooser = _page(), random.Random(7)
    documents = [_document(chooser) for _ in range(DOCUMENTS)]
    queries = dict(enumerate(_query(chooser, 3) for _ in range(QUERIES)))
    engine = Engine(page["schema"], "naive")
    for number, query in queries.items():
        with suppress(NeverTrueError):  # an engine refuses it, a percolator does not
            engine.subscribe(page["condition"](query), id=number)
    matched = 0
    for document in documents:
        wanted = {number for number, query in queries.items() if _matches(query, document)}
        assert set(engine.match(document)) == wanted
        matched += len(wanted)
    assert 0.1 < matched / len(queries) / len(documents) < 0.9
