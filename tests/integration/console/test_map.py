"""The map: where events happen, and who is notified of them."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tamis.workload import drones
from tests.integration.console.conftest import ConsoleServer, OpenPage, axe_findings
from tests.serving import running

pytestmark = [pytest.mark.chromium, pytest.mark.slow]
SCHEMA = """
attributes: {drone: text, position: opaque, image: opaque}
event_types: {event: {drone: mandatory, position: mandatory, image: optional}}
"""
BRONX, BROOKLYN = {"lat": 40.85, "lon": -73.88}, {"type": "Point", "coordinates": [-73.95, 40.65]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    folder = tmp_path_factory.mktemp("map")
    (folder / "drones.yaml").write_text(SCHEMA)
    options = ("--schema", str(folder / "drones.yaml"), "--operators", "spatial")
    with running(folder / "data", *options) as started:
        made = ConsoleServer(started)
        yield made
        made.http.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_events_are_on_the_map(server: ConsoleServer, opened: OpenPage, scheme: str) -> None:
    made = server.post(
        "/v1/subscriptions", {"condition": "locIn(Bronx)", "name": f"bronx-{scheme}"}
    )
    page = opened("map", color_scheme=scheme)
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    assert page.locator(".map .land").count() == 5
    expect(page.locator(".map .place text").filter(has_text="TimesSquare")).to_be_visible()
    image = base64.b64encode(drones.make(0).events(1)["image"][0].as_py()).decode()
    for position in (BRONX, BROOKLYN):
        server.post("/v1/events", {"drone": "d1", "position": position, "image": image})
    expect(page.locator(".map .seen")).to_have_count(2)
    expect(page.locator(".map .hit").first).to_be_visible()
    expect(page.get_by_role("link", name=f"bronx-{scheme}")).to_be_visible()
    picture = page.get_by_role("img", name="was notified")
    expect(picture).to_be_visible()
    assert picture.evaluate("each => each.naturalWidth") > 0
    # The Bronx is in the north: above Brooklyn.
    heights = page.locator(".map .seen").evaluate_all(
        "all => all.map(each => +each.cy.baseVal.value)"
    )
    hit = page.locator(".map .hit").first.evaluate("each => each.cy.baseVal.value")
    assert hit == min(heights) < max(heights)
    assert axe_findings(page) == []
    server.http.delete(f"/v1/subscriptions/{made['id']}", headers={"Tamis-Ticket": made["ticket"]})


def test_it_fits_on_a_phone(opened: OpenPage) -> None:
    page = opened("map", viewport={"width": 390, "height": 844})
    expect(page.locator(".map")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
