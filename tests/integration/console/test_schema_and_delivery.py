"""Extensions of the schema, and a webhook that failed until its receiver was put right."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.sync_api import expect

from tests.integration.console.conftest import ConsoleServer, OpenPage

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


class _Receiver(HTTPServer):
    """A webhook that wants nothing, until it is told to."""

    def __init__(self) -> None:
        self.status, self.bodies = 410, list[bytes]()
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Receiver

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *given: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[_Receiver]:
    started = _Receiver()
    thread = threading.Thread(target=started.serve_forever)
    thread.start()
    yield started
    started.shutdown()
    thread.join()
    started.server_close()


def test_a_schema_grows_by_each_rule(server: ConsoleServer, opened: OpenPage) -> None:
    page = opened("schema")
    add, extend = page.get_by_label("Add", exact=True), page.get_by_role("button", name="Extend")
    done = page.get_by_text("holds from")

    add.select_option("domain")
    page.get_by_label("Name").fill("wood")
    page.get_by_label("Kind").select_option("hierarchy")
    page.get_by_label("Values").fill("wood\n  hard\n    oak\n  soft")
    extend.click()
    expect(page.get_by_role("heading", name="Domain wood")).to_be_visible()

    add.select_option("attribute")
    page.get_by_label("Name").fill("timber")
    page.get_by_label("Values").fill("wood")
    extend.click()
    expect(page.get_by_role("cell", name="timber")).to_be_visible()
    extend.click()  # the fields are empty: the browser asks for them
    expect(page.get_by_label("Name")).to_be_focused()

    add.select_option("use")
    page.get_by_label("Event type").fill("lots")
    page.get_by_label("Attribute", exact=True).fill("timber")
    extend.click()
    expect(page.get_by_role("status").filter(has_text="lots")).to_contain_text("lot")
    page.get_by_label("Event type").fill("lot")
    extend.click()
    expect(done).to_be_visible()

    add.select_option("type")
    page.get_by_label("Name").fill("auction")
    page.get_by_label("Attributes").last.fill("price: mandatory\ntimber: optional")
    extend.click()
    expect(page.get_by_role("heading", name="Event type auction")).to_be_visible()

    add.select_option("values")
    page.get_by_label("Domain", exact=True).fill("wood")
    page.get_by_label("New values").fill("ash: hard")
    extend.click()
    history = page.locator("section").filter(has=page.get_by_role("heading", name="History"))
    expect(history).to_contain_text("domain wood has new values: ash")
    expect(history).to_contain_text("event type lot may have timber")

    grown = server.http.get("/v1/schema").json()
    assert {"timber", "price"} <= set(grown["attributes"])
    event = {"price": 1, "title": "t", "timber": "ash"}
    page.goto(f"{server.address}/console/subscriptions/new")
    page.get_by_label("Condition").press_sequentially("timber <= h")  # the editor knows it
    expect(page.get_by_role("listbox").get_by_role("option")).to_contain_text(["hard"])
    found = server.post("/v1/explain", {"condition": "timber <= hard", "event": event})
    assert found["matches"]


def test_a_dead_letter_is_sent_again(
    server: ConsoleServer, opened: OpenPage, receiver: _Receiver
) -> None:
    sink = {"url": f"http://127.0.0.1:{receiver.server_port}/"}
    made = {"condition": 'title = "webhook"', "name": "hooked", "sink": sink}
    id = server.post("/v1/subscriptions", made)["id"]
    server.post("/v1/events", {"price": 50, "title": "webhook"})
    page = opened("delivery")
    letters = page.get_by_role("region", name="Dead letters")

    def read_again() -> None:
        page.get_by_role("button", name="Read again").click()
        page.wait_for_timeout(300)

    for _ in range(100):
        if letters.is_visible():
            break
        read_again()
    expect(letters).to_contain_text("410")
    expect(page.get_by_role("region", name="Sinks")).to_contain_text("hooked")

    receiver.status = 204
    letters.get_by_role("button", name="Try dead letter").first.click()
    expect(page.get_by_text("1 will be tried again.").first).to_be_visible()
    for _ in range(100):
        if len(receiver.bodies) >= 2:
            break
        page.wait_for_timeout(200)
    first, again = (json.loads(each)["data"] for each in receiver.bodies[:2])
    assert first == again
    assert again["subscription"] == id
    read_again()
    expect(letters).to_have_count(0)


def test_a_hierarchy_of_many_paths_is_shown_once(server: ConsoleServer, opened: OpenPage) -> None:
    """Each level of 40 doubles the paths: as many trees would stop the browser."""
    parents: dict[str, list[str]] = {"top": []} | {f"{side}0": ["top"] for side in "ab"}
    for level in range(1, 40):
        above = [f"{side}{level - 1}" for side in "ab"]
        parents |= {f"{side}{level}": above for side in "ab"}
    domain = {"kind": "hierarchy", "parents": parents}
    server.post("/v1/schema/domains", {"name": "lattice", "domain": domain})
    page = opened("schema")
    shown = page.locator("section", has=page.get_by_role("heading", name="Domain lattice"))
    expect(shown.get_by_text("a39")).to_have_count(2)
    expect(shown.get_by_text("(see above)").first).to_be_visible()
