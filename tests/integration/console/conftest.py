"""One server and one browser for all tests of the console."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.serving import RunningServer, running

SCHEMA = """
domains:
  furniture:
    kind: hierarchy
    tree: {furniture: {table: {dining_table: {}, desk: {}}, chair: {armchair: {}}}}
  state: {kind: enumerated, values: [worn, good, mint], order: [[worn, good], [good, mint]]}
attributes:
  price: decimal
  title: text
  category: furniture
  state: state
event_types:
  lot: {price: mandatory, title: mandatory, category: optional, state: optional}
  bid: {price: mandatory}
default_event_type: lot
"""
_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_MISSING = "there is no Chromium here; as root: apt-get install chromium"


class ConsoleServer:
    """A server, and what its operator can do: with the code that opens the console."""

    def __init__(self, server: RunningServer) -> None:
        self.address = server.address
        self.link = server.console
        self.code = server.console.partition("#code=")[2]
        self.http = httpx2.Client(base_url=server.address, timeout=60)

    def post(self, path: str, body: Any, key: str | None = None) -> Any:
        """Ask over HTTP, as the operator unless another key is given."""
        headers = {"Authorization": f"Bearer {key or self.code}"}
        answer = self.http.post(path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def key(self, name: str, *roles: str) -> str:
        return str(self.post("/v1/keys", {"name": name, "roles": list(roles)})["key"])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    with serving_console(tmp_path_factory.mktemp("console")) as made:
        yield made


@contextmanager
def serving_console(folder: Path, schema: str = SCHEMA) -> Iterator[ConsoleServer]:
    """A server with forty lots."""
    (folder / "lots.yaml").write_text(schema)
    options = ("--schema", str(folder / "lots.yaml"), "--allow-sink", "127.0.0.1")
    with running(folder / "data", *options) as started:
        made = ConsoleServer(started)
        for price in range(1, 41):
            made.post("/v1/events", {"price": price, "title": f"lot {price}", "category": "desk"})
        yield made
        made.http.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. None is downloaded.

    Playwright keeps an event loop of asyncio in this thread. It ends with each file: a later test
    of the same process could not start one of its own.
    """
    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=_OPTIONS)
        expect.set_options(timeout=30_000)
        yield started
        started.close()


OpenPage = Callable[..., Page]


@pytest.fixture
def opened(server: ConsoleServer, browser: Browser) -> Iterator[OpenPage]:
    """Opens pages, each in a browser that knows nobody; no script of them may fail."""
    contexts, wrong, usual = [], [], server

    def open_page(
        path: str = "",
        *,
        key: str | None = None,
        server: ConsoleServer = usual,
        **options: Any,
    ) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Policy" in said.text else None)
        if key == "":
            page.goto(f"{server.address}/console/{path}")
        else:
            page.goto(server.link.partition("#")[0] + f"/{path}#code={key or server.code}")
        page.wait_for_selector("h1")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def axe_findings(page: Page) -> list[str]:
    """What axe-core has against a page."""
    folder = Path(__file__).resolve().parents[2] / "data" / "axe"
    page.evaluate((folder / "axe-4.14.0.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        json.dumps([each["id"], [node["html"][:200] for node in each["nodes"]]])
        for each in found["violations"]
    ]
