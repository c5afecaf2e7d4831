"""The redundancy report on the page Matcher."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.integration.console.conftest import (
    ConsoleServer,
    OpenPage,
    axe_findings,
    serving_console,
)

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """A server with no other subscriptions: a report has the first fifty of a kind."""
    with serving_console(tmp_path_factory.mktemp("redundancy")) as made:
        yield made


def test_redundant_subscriptions_are_found_and_can_be_opened(
    server: ConsoleServer, opened: OpenPage
) -> None:
    def subscribed(condition: str) -> str:
        return str(server.post("/v1/subscriptions", {"condition": condition})["id"])

    one, other = subscribed("price < 33.25"), subscribed("not price >= 33.25")
    narrow = subscribed('price < 31.5 and title = "redundant"')
    always = subscribed("price exists")
    open_ = subscribed('title has substring "redundant"')
    page = opened("matcher", color_scheme="light")
    start = page.get_by_role("button", name="Find redundant subscriptions")
    start.click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(start).to_be_hidden()
    again = page.get_by_role("button", name="Find them again")
    expect(again).to_be_visible(timeout=120_000)
    expect(page.get_by_role("progressbar")).to_be_hidden()

    def row(kind: str, *ids: str) -> None:
        """A row with links to subscriptions, after its list was opened."""
        listed = page.locator("details", has=page.get_by_text(kind, exact=False).first)
        if listed.get_attribute("open") is None:
            listed.locator("summary").click()
        found = listed.get_by_role("row")
        for id in ids:
            found = found.filter(has=page.get_by_role("link", name=id, exact=True))
        expect(found).to_have_count(1)

    row("Groups of copies", one, other)
    row("Always true (", always)
    row("Not decided: patterns", open_)
    covered = page.get_by_role("region", name="Covered by another").get_by_role("row")
    mine = covered.filter(has=page.get_by_role("link", name=narrow, exact=True))
    expect(mine).to_have_count(1)
    assert axe_findings(page) == []

    # Whoever comes later sees the same report; a link opens a subscription.
    phone = opened("matcher", color_scheme="dark", viewport={"width": 390, "height": 844})
    expect(phone.get_by_role("button", name="Find them again")).to_be_visible()
    expect(phone.locator("summary").first).to_contain_text("Groups of copies")
    assert axe_findings(phone) == []
    assert phone.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    mine.get_by_role("link", name=narrow, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(narrow)


def test_a_report_that_is_stopped_says_so(server: ConsoleServer, opened: OpenPage) -> None:
    page = opened("matcher")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("alert")).to_contain_text("was stopped", timeout=120_000)
    expect(page.get_by_role("button", name="Find")).to_be_visible()


def test_only_an_admin_may_ask_for_it(server: ConsoleServer) -> None:
    headers = {"Authorization": f"Bearer {server.key('rita', 'subscriber', 'reader')}"}
    path = "/console/api/redundancy"
    for method in ("GET", "POST", "DELETE"):
        assert server.http.request(method, path, headers=headers).status_code == 403
    assert server.http.get(path).status_code == 401
