"""The editor of conditions: completion, mistakes under the word, and the trial on past events."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.integration.console.conftest import ConsoleServer, OpenPage, serving_console

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


def _offered(page: Page) -> list[str]:
    """What may come next, without the kinds."""
    options = page.get_by_role("listbox").get_by_role("option")
    expect(options.first).to_be_visible()
    texts = options.evaluate_all("all => all.map((each) => each.firstChild.textContent)")
    return [str(each) for each in texts]


def test_the_keyboard_completes_names_comparators_and_values(opened: OpenPage) -> None:
    page = opened("subscriptions/new")
    editor, choices = page.get_by_label("Condition"), page.get_by_role("listbox")
    chosen = choices.get_by_role("option", selected=True)
    editor.focus()
    page.keyboard.press("Control+Space")  # all that a condition may begin with
    assert {"price", "title", "category", "state", "event_type", "not"} <= {*_offered(page)}
    page.keyboard.press("Escape")
    expect(choices).to_be_hidden()

    page.keyboard.type("st")
    expect(chosen).to_contain_text("state")
    page.keyboard.press("Tab")
    expect(editor).to_be_focused()
    assert {"=", "!=", "<", "in", "exists"} <= {*_offered(page)}
    page.keyboard.type("= ")
    assert _offered(page) == ["worn", "good", "mint"]  # in the order of the schema
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_text("good")
    page.keyboard.press("Enter")
    expect(editor).to_have_value("state = good ")
    assert _offered(page) == ["and", "or"]

    page.keyboard.type("and category in (ta")
    expect(chosen).to_have_text("table")
    page.keyboard.press("Enter")
    page.keyboard.type(", ")
    assert "armchair" in _offered(page)
    page.keyboard.type("des")
    page.keyboard.press("Enter")
    page.keyboard.type(") ")
    expect(page.get_by_text("The condition is valid.")).to_be_visible()
    choices.get_by_text("or", exact=True).click()  # by mouse as well
    expect(editor).to_have_value("state = good and category in (table , desk ) or ")


def test_a_mistake_is_marked_under_its_word(opened: OpenPage) -> None:
    page = opened("subscriptions/new")
    editor, wrong = page.get_by_label("Condition"), page.locator(".wrong-word")
    message = page.locator(".message")
    for text, word, hint in (
        ("price < 5 and\n  titel = oak", "titel", "title"),  # in the second line
        ("category <= tabel", "tabel", "table"),  # a value
        ("price < 5 or pric > 7 or prise = 1", "pric", "price"),  # the first of two
        ("price below 5", "below", ""),
        ("(price < 5", "  ", ""),  # where something is missing
        ("price < five", "five", ""),
    ):
        editor.fill(text)
        expect(wrong).to_have_text(word)
        expect(message).to_contain_text(hint)
        expect(editor).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_role("button", name="Subscribe")).to_be_disabled()
        expect(page.get_by_text("The condition has a mistake.")).to_be_visible()
    # The mark is where the word is, and goes while one corrects it.
    editor.fill("price < 5 and titel = oak")
    expect(wrong).to_have_text("titel")
    mark, box = wrong.bounding_box(), editor.bounding_box()
    assert mark is not None
    assert box is not None
    assert box["x"] < mark["x"] < box["x"] + box["width"]
    assert box["y"] < mark["y"] < box["y"] + box["height"]
    editor.press("End")
    page.keyboard.type("x")
    expect(wrong).to_have_text("titel")
    editor.fill("price < 5")
    expect(wrong).to_have_count(0)
    expect(page.get_by_role("button", name="Subscribe")).to_be_enabled()


def test_it_is_tried_on_past_events_with_samples(server: ConsoleServer, opened: OpenPage) -> None:
    for price in (901, 902, 903):
        server.post("/v1/events", {"price": price, "title": f"tried {price}"})
    page = opened("subscriptions/new")
    result, samples = page.locator(".result"), page.get_by_role("list", name="Samples")
    page.get_by_label("Condition").fill("price > 901 and price < 1000")
    expect(result).to_contain_text("Would have matched 2 of the last", timeout=60_000)
    expect(samples.get_by_role("listitem")).to_have_count(2)
    expect(samples).to_contain_text("tried 903")
    page.get_by_label("Condition").fill("price > 902 and price < 1000")
    expect(result).to_contain_text("Would have matched 1 of the last", timeout=60_000)
    page.get_by_label("Condition").fill("price = 123456")
    expect(result).to_contain_text("Would have matched 0 of the last", timeout=60_000)
    expect(samples).to_have_count(0)

    writer = opened("subscriptions/new", key=server.key("walt", "subscriber"))
    writer.get_by_label("Condition").fill("price > 1")
    expect(writer.get_by_text("Back-tests need a key with the role reader.")).to_be_visible()
    expect(writer.get_by_role("button", name="Subscribe")).to_be_enabled()


def test_recent_matches_over_time(server: ConsoleServer, opened: OpenPage) -> None:
    id = server.post("/v1/subscriptions", {"condition": 'title = "over time"'})["id"]
    page = opened(f"subscriptions/{id}")
    matches = page.locator("section", has=page.get_by_role("heading", name="Recent matches"))
    expect(matches).to_contain_text("It has matched nothing among the last")
    expect(matches.locator("canvas")).to_have_count(0)
    for price in (1, 2, 3):
        server.post("/v1/events", {"price": price, "title": "over time"})
        page.wait_for_timeout(1100)  # a bar of its own
    page.reload()
    expect(matches).to_contain_text("3 among the last")
    chart = matches.get_by_role("img", name="Matches over time")
    expect(chart).to_be_visible()
    expect(matches.locator("canvas")).to_have_count(1)
    latest = matches.get_by_role("list", name="The latest matches").get_by_role("listitem")
    expect(latest).to_have_count(3)
    expect(latest.first).to_contain_text('"price":3')  # the last one first
    latest.first.get_by_role("link", name="Why").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Why")
    expect(page.get_by_label("Event, as JSON")).to_have_value(
        '{\n  "price": 3,\n  "title": "over time"\n}'
    )


@pytest.fixture(scope="module")
def any_json(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    with serving_console(tmp_path_factory.mktemp("any"), "unknown: dynamic\n") as made:
        yield made


def test_without_a_schema_the_names_are_those_of_the_latest_events(
    any_json: ConsoleServer, opened: OpenPage
) -> None:
    any_json.post(
        "/v1/events", {"seller": {"rating": 5, "home town": "Ulm"}, "tags": ["a"], "new": True}
    )
    page = opened("subscriptions/new", server=any_json)
    editor = page.get_by_label("Condition")
    editor.focus()
    page.keyboard.press("Control+Space")
    names = {"price", "seller.rating", "seller.`home town`", "tags", "new"}
    assert names <= {*_offered(page)}
    page.keyboard.type("rat")
    chosen = page.get_by_role("listbox").get_by_role("option", selected=True)
    expect(chosen).to_contain_text("seller.rating")
    page.keyboard.press("Enter")
    page.keyboard.type("> 4 ")
    expect(page.locator(".result")).to_contain_text("Would have matched 1 of", timeout=60_000)
