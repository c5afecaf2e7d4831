"""What a person does first: subscribe, with a mistake; try it; save; publish; ask why."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.integration.console.conftest import ConsoleServer, OpenPage

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


def test_from_a_mistake_to_the_reason_why_another_does_not_match(
    server: ConsoleServer, opened: OpenPage
) -> None:
    other = server.post("/v1/subscriptions", {"condition": "price > 1000 and state = mint"})["id"]
    page = opened("subscriptions/new")

    # Completion: a name, a comparator, a value of the hierarchy; by keyboard alone.
    editor = page.get_by_label("Condition")
    editor.press_sequentially("cat")
    chosen = page.get_by_role("listbox").get_by_role("option", selected=True)
    expect(chosen).to_contain_text("category")
    page.keyboard.press("Enter")
    page.keyboard.type("<= ta")
    expect(chosen).to_have_text("table")
    page.keyboard.press("Enter")
    expect(editor).to_have_value("category <= table ")

    # A mistake: under the word, with the right name.
    page.keyboard.type("and prise < 10")
    wrong = page.locator(".wrong-word")
    expect(wrong).to_have_text("prise")
    expect(page.get_by_role("status").filter(has_text="prise")).to_contain_text("price")
    expect(editor).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Subscribe")).to_be_disabled()

    # Corrected, it is tried on past events, of which nine match.
    editor.fill("category <= table and price < 10")
    expect(page.locator(".wrong-word")).to_have_count(0)
    expect(page.locator(".result")).to_contain_text(
        "Would have matched 9 of the last", timeout=60_000
    )
    expect(page.get_by_role("list", name="Samples")).to_contain_text("lot 1")

    page.get_by_label("Name").fill("cheap tables")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_text("It is live, and on disk.")).to_be_visible()
    heading = page.get_by_role("heading", level=1)
    id = re.fullmatch(r"Subscription (\d+)", heading.inner_text())
    assert id is not None

    # A matching event, and its notification as it comes.
    page.get_by_role("link", name="Follow it live").click()
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    event = {"price": 3, "title": "<b>old</b> desk", "category": "desk"}
    published = server.post("/v1/events", event)["first"]
    notifications = page.get_by_role("list", name="Latest notifications")
    expect(notifications).to_contain_text("<b>old</b> desk", timeout=60_000)
    expect(notifications.get_by_role("link", name=f"subscription {id[1]}")).to_be_visible()

    # Who matches this event, and why does the other one not?
    page.get_by_role("link", name=f"Why: event {published}").click()
    matches = page.get_by_role("list").filter(
        has=page.get_by_role("link", name=f"subscription {id[1]}")
    )
    expect(matches.last).to_be_visible()
    page.get_by_label("Id of a subscription").fill(str(other))
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_text(f"Subscription {other} does not match.")).to_be_visible()
    verdicts = page.locator(".verdicts li")
    expect(verdicts.filter(has_text="price is 3")).to_contain_text("✗")
    expect(verdicts.filter(has_text="state is not bound")).to_have_count(1)

    # Its own page: recent matches, and where the matcher keeps it.
    page.goto(f"{server.address}/console/subscriptions/{id[1]}")
    expect(page.get_by_role("heading", name="cheap tables")).to_be_visible()
    expect(page.get_by_text(re.compile("^1 among the last"))).to_be_visible()
    expect(page.get_by_text("ns an event, expected")).to_be_visible()

    # An edit, and the end.
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Condition").fill("category <= table and price < 20")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".condition").first).to_have_text("category <= table and price < 20")
    page.get_by_role("button", name="End").click()
    page.get_by_role("button", name="End it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Subscriptions")
    expect(page.get_by_role("link", name="cheap tables")).to_have_count(0)


def test_search_and_pages(server: ConsoleServer, opened: OpenPage) -> None:
    for number in range(60):
        server.post("/v1/subscriptions", {"condition": f"price = 0.{number:02}1"})
    page = opened("subscriptions")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("0.591")
    page.get_by_role("button", name="Next").click()
    expect(rows.filter(has_text="0.091")).to_have_count(1)
    page.get_by_label("Search").fill("0.051")
    expect(rows).to_have_count(1)
    page.get_by_label("Search").fill("")
    page.get_by_label("Order").select_option("oldest")
    expect(rows.first).not_to_contain_text("0.591")


def test_live_can_be_paused_and_filtered(server: ConsoleServer, opened: OpenPage) -> None:
    page = opened("live")
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    events = page.get_by_role("list", name="Latest events")
    server.post("/v1/events", [{"price": 5, "title": f"bench {n}"} for n in range(200)])
    expect(events).to_contain_text("bench 199")
    assert events.locator("li").count() <= 60
    # What is there stays: whoever has found a link can follow it.
    link = events.locator("li", has_text='"bench 198"').get_by_role("link")
    link.focus()
    server.post("/v1/events", {"price": 5, "title": "stool"})
    expect(events).to_contain_text("stool")
    expect(link).to_be_focused()
    page.get_by_label("Show only events with").fill("bench 19")
    expect(events.locator("li")).to_have_count(10)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status").filter(has_text="paused")).to_be_visible()
    server.post("/v1/events", {"price": 5, "title": "bench 190 and more"})
    page.wait_for_timeout(800)
    expect(events).not_to_contain_text("and more")
    page.get_by_role("button", name="Go on").click()
    server.post("/v1/events", {"price": 5, "title": "bench 191 at last"})
    expect(events).to_contain_text("at last")


def test_a_condition_in_another_language_is_edited_in_that_language(
    server: ConsoleServer, opened: OpenPage
) -> None:
    given = {"condition": '{"title": [{"prefix": "lot 3"}]}', "language": "eventbridge"}
    id = server.post("/v1/subscriptions", given)["id"]
    page = opened(f"subscriptions/{id}/edit")
    expect(page.get_by_text("The condition is valid.")).to_be_visible()
    expect(page.locator(".result")).to_contain_text("Would have matched", timeout=60_000)
    page.get_by_label("Condition, in the language eventbridge").fill('{"title": ["lot 4"]}')
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".condition").first).to_have_text('{"title": ["lot 4"]}')
