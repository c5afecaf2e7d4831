"""The OpenAPI document has every route, and docs/http.md is written from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.routing import Route

from tamis.broker.broker import Broker
from tamis.service.app import make_app
from tamis.service.openapi_document.documented_app import PROBLEM
from tamis.service.settings import Settings
from tamis.service.waiting import Waiting
from tests.acceptance.pages import load_script

_OWN = ("/", "/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc")
_CONSOLE = "/console"  # its pages, and what only they ask for


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    place: Path = tmp_path_factory.mktemp("reference")
    with Broker(place, {"attributes": {"price": "decimal"}}, matching=False) as broker:
        yield make_app(broker, Settings(), Waiting())


def test_every_route_is_documented(app: FastAPI) -> None:
    """A plain route is described in `tamis.service.openapi_document.plain_operations`."""
    known = app.openapi()["paths"]
    for route in app.routes:
        if (
            isinstance(route, Route)
            and route.path not in _OWN
            and not route.path.startswith(_CONSOLE)
        ):
            for method in (route.methods or set()) - {"HEAD"}:
                assert method.lower() in known.get(route.path, {}), (
                    f"{method} {route.path} is not in plain_operations.OPERATIONS"
                )


def test_every_operation_has_an_answer_and_problems(app: FastAPI) -> None:
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            answers: dict[str, Any] = operation["responses"]
            assert any(status.startswith("2") for status in answers), (method, path)
            assert operation.get("summary"), (method, path)
            for status in ("400", "401", "403") if path.startswith("/v1/") else ():
                assert PROBLEM in answers[status]["content"], (method, path, status)


def test_the_page_is_fresh(app: FastAPI) -> None:
    script = load_script("http_reference")
    written = script.PAGE.read_text(encoding="utf-8")
    assert written == script.reference(app.openapi()), f"docs/http.md: run {script.COMMAND}"
