"""Who may see what, and that nobody else can act for somebody who is signed in."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.integration.console.conftest import ConsoleServer, OpenPage

pytestmark = [pytest.mark.chromium, pytest.mark.slow]
OWN = {"Tamis-Console": "1"}


def test_sign_in_with_a_key_and_see_what_is_ones_own(
    server: ConsoleServer, opened: OpenPage
) -> None:
    bob = server.key("bob", "subscriber")
    server.post("/v1/subscriptions", {"condition": "price = 7.77", "name": "bob's"}, bob)
    server.post("/v1/subscriptions", {"condition": "price = 8.88", "name": "somebody's"})
    page = opened("subscriptions", key="")
    page.get_by_label("API key").fill("tamis_wrong_key")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown")
    page.get_by_label("API key").fill(bob)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="bob's")).to_be_visible()
    expect(page.get_by_text("somebody's")).to_have_count(0)
    navigation = page.get_by_role("navigation")
    expect(navigation.get_by_role("link", name="Health")).to_have_count(0)

    # A cookie that no script can read, for this service and no other one; no key is kept.
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert bob not in cookie["value"]
    assert cookie["name"].endswith(server.address.rpartition(":")[2])
    assert page.evaluate("document.cookie") == ""
    assert (
        page.evaluate("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
    )

    # Not an admin: refused by the service, not only left out of the page.
    refused = page.evaluate(
        "fetch('/console/api/matcher', {headers: {'Tamis-Console': '1'}}).then(r => r.status)"
    )
    assert refused == 403

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    headers = {**OWN, "Cookie": f"{cookie['name']}={cookie['value']}"}
    assert server.http.get("/console/api/me", headers=headers).status_code == 401


def test_the_link_of_the_operator_leaves_no_code_behind(opened: OpenPage) -> None:
    page = opened("live")
    assert "#" not in page.url
    expect(page.get_by_text("local operator")).to_be_visible()


def test_the_link_works_in_a_page_that_is_open(server: ConsoleServer, opened: OpenPage) -> None:
    page = opened("live", key="")
    expect(page.get_by_label("API key")).to_be_visible()
    page.evaluate(f"location.hash = 'code={server.code}'")
    expect(page.get_by_text("local operator")).to_be_visible()
    assert "#" not in page.url


def test_only_pages_of_the_console_can_use_its_session(server: ConsoleServer) -> None:
    http = server.http
    origin = {"Origin": server.address}
    answer = http.post("/console/api/login", json={"key": server.code}, headers=OWN | origin)
    assert answer.status_code == 200, answer.text
    cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    http.cookies.clear()
    path = "/v1/schema/attributes"
    bad = {"name": "injected", "domain": "text"}
    me = "/console/api/me"
    assert http.get(me, headers=cookie | OWN).json()["roles"] == ["admin"]
    assert http.get(me, headers=cookie).status_code == 401  # a link elsewhere
    elsewhere = cookie | OWN | {"Origin": "http://evil.example"}
    assert http.get(me, headers=elsewhere).status_code == 401
    assert http.get(me, headers=cookie | OWN | {"Sec-Fetch-Site": "same-site"}).status_code == 401
    # Without its session, a request is that of an anonymous caller, who may not list keys.
    assert http.get("/v1/keys", headers=cookie | OWN).status_code == 200
    for wrong in (cookie, cookie | origin, elsewhere):
        assert http.get("/v1/keys", headers=wrong).status_code == 403
    key = {"name": "eve", "roles": ["admin"]}
    for wrong in (cookie | OWN, cookie | origin, elsewhere):
        assert http.post("/v1/keys", json=key, headers=wrong).status_code == 403
    for wrong in (origin, OWN, OWN | {"Origin": "http://evil.example"}):
        asked = {"key": server.code}
        assert http.post("/console/api/login", json=asked, headers=wrong).status_code == 403
    assert "injected" not in http.get("/v1/schema").text
    assert http.post(path, json=bad, headers=cookie | OWN | origin).status_code == 201


def test_files_and_pages_have_a_strict_policy(server: ConsoleServer) -> None:
    http = server.http
    for path in ("/console", "/console/why/3", "/console/static/app.js"):
        answer = http.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    again = http.get("/console/static/app.js", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    for path in ("/console/static/..%2fsessions.py", "/console/static/%2e%2e%2fsessions.py"):
        assert http.get(path).status_code == 404
    browser = http.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (browser.status_code, browser.headers["location"]) == (307, "/console")
    assert http.get("/").status_code == 404
    assert "/console" not in http.get("/openapi.json").text
