"""Requests made of the OpenAPI document, to a real server: no answer is a failure of the server,
and every answer is as the document says.

    TAMIS_HTTP_FUZZ      how many requests, about
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode, SerializationContext
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests import soak_report
from tests.integration.service.test_http import subscribe
from tests.serving import serving

AnyCase = Case[Any]
REQUESTS = int(os.environ.get("TAMIS_HTTP_FUZZ", "1000"))
CHECKS: list[CheckFunction] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def lines(context: SerializationContext, value: Any) -> bytes:
    """A text as it is, anything else as lines of JSON."""
    if isinstance(value, str):
        return value.encode(errors="replace")
    return "\n".join(json.dumps(each) for each in [value, {"condition": "price < 5"}]).encode()


class FuzzedServer:
    """A server with subscriptions and events, so that some of what is asked for is there."""

    def __init__(self, client: httpx2.Client, key: str) -> None:
        self.url, self._key = str(client.base_url), key
        self._session = requests.Session()
        self._leases = [subscribe(client, f"price < {at}") for at in range(1, 9)]
        client.post("/v1/events", json=[{"price": 4}] * 8)
        self.asked = 0

    def ask(self, case: AnyCase, draw: st.DataObject) -> None:
        """Send a request, and check the answer."""
        headers: dict[str, str] = {}
        if draw.draw(st.booleans()):
            headers["Authorization"] = f"Bearer {self._key}"
        parameters: dict[str, Any] = case.path_parameters or {}
        if case.path.startswith("/v1/subscriptions/{id}") and draw.draw(st.booleans()):
            lease = draw.draw(st.sampled_from(self._leases))
            parameters["id"] = str(lease["id"])
            headers["Tamis-Ticket"] = lease["ticket"]
        if "number" in parameters and draw.draw(st.booleans()):
            parameters["number"] = draw.draw(st.integers(0, 20))
        body: Any = case.body
        if isinstance(body, dict) and isinstance(body.get("sink"), dict):
            body["sink"]["url"] = "http://127.0.0.1:1/"  # no name is resolved, nobody is called
        self.asked += 1
        answer = case.call(base_url=self.url, session=self._session, headers=headers)
        case.validate_response(answer, checks=CHECKS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzedServer]:
    folder: Path = tmp_path_factory.mktemp("fuzz") / "data"
    with serving(folder, "--longest-wait", "20ms") as (client, process):
        create = [sys.executable, "-m", "tamis.cli.main", "keys", "create", str(folder)]
        key = subprocess.run(
            [*create, "--name", "fuzz", "--role", "admin"],
            check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        yield FuzzedServer(client, key)
        assert process.poll() is None, "the server has ended"


def test_every_answer_is_as_the_document_says(server: FuzzedServer) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    found = list(schema.get_all_operations())
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    assert len(operations) == len(found)
    strategies = [each.as_strategy(GenerationMode.POSITIVE) for each in operations]
    # Of texts in a path or a header, nothing is wrong.
    strategies += [
        each.as_strategy(GenerationMode.NEGATIVE)
        for each in operations
        if list(each.body) or list(each.query)
    ]
    begin, failed, turn = time.monotonic(), 1, soak_report.seed() * 1000
    try:
        while server.asked < REQUESTS:
            examples = max(1, (REQUESTS - server.asked) // len(strategies))
            strategies = [each for each in strategies if _fuzz(server, each, examples, turn)]
            turn += 1
        failed = 0
    finally:
        soak_report.record("http-fuzz", server.asked, failed, time.monotonic() - begin)


def _fuzz(
    server: FuzzedServer, cases: st.SearchStrategy[AnyCase], examples: int, turn: int
) -> bool:
    """Send some requests; False without parameters, because then nothing can be wrong."""

    @seed(turn)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(cases, st.data())
    def ask(case: AnyCase, draw: st.DataObject) -> None:
        server.ask(case, draw)

    try:
        ask()
    except Unsatisfiable:
        return False
    return True
