"""Every page: nothing that axe-core finds, in light and dark, and it fits on a phone."""

from __future__ import annotations

import pytest

from tests.integration.console.conftest import ConsoleServer, OpenPage, axe_findings

pytestmark = [pytest.mark.chromium, pytest.mark.slow]
PAGES = (
    "live",
    "subscriptions",
    "subscriptions/new",
    "subscriptions/{id}",
    "subscriptions/{id}/edit",
    "why/5",
    "schema",
    "delivery",
    "matcher",
    "health",
)


def test_every_page_suits_everyone(server: ConsoleServer, opened: OpenPage) -> None:
    id = server.post("/v1/subscriptions", {"condition": "price < 4.5"})["id"]
    for price in (4, 5):  # so that there are matches, and a plan of the matcher
        server.post("/v1/events", {"price": price, "title": "chair"})
    light = opened(PAGES[0], color_scheme="light")
    dark = opened(PAGES[0], color_scheme="dark", viewport={"width": 390, "height": 844})
    assert light.get_by_role("link", name="Map").count() == 0, "its events have no position"
    wrong = {}
    for name in PAGES:
        for look, page in (("light", light), ("dark, on a phone", dark)):
            page.goto(f"{server.address}/console/{name.format(id=id)}")
            page.wait_for_selector("main h1")
            page.wait_for_timeout(300)
            assert page.locator(".note.wrong").count() == 0, f"{name} shows an error"
            if found := axe_findings(page):
                wrong[name, look] = found
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} is {wide} pixels too wide, {look}"
    assert not wrong


def test_the_page_to_sign_in_suits_everyone(opened: OpenPage) -> None:
    assert axe_findings(opened("", key="")) == []
