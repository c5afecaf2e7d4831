"""Measure the console in a real browser while a service has much to do.

    python scripts/console_load.py [--subscriptions 1000000] [--rate 1000] [--minutes 10]
                                   [--times 7] [--out out/console_load.json]

Fills a data folder with DEXIN subscriptions and serves it. A second process publishes events, each
in a request. A headless Chromium signs in to the console. First the page Live stays open, and the
memory of its scripts is read every ten seconds, after a collection of garbage. Then every page is
opened and used, `times` times: the time from the click to the frame that shows the content.

Prints a table, says which goals are met, and writes a JSON file. Exits with 1 if a goal is missed.
It needs the Chromium of the distribution: `apt-get install chromium`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from playwright.sync_api import Page, sync_playwright

from tamis.lab.bench.service.server_process import ServerProcess, cores, fill, serving
from tamis.lab.results.files import machine, origin, versions

GOAL_MS = 200  # 95 of 100 interactions
GROWTH = 1.1  # the memory of the last third, against that of the first
NOISE = 1 << 20  # bytes by which memory may grow in any case
EVENTS = 20_000  # that are published over and over
EVERY = 10  # seconds between two readings of the memory
PAUSE = 0.4  # seconds between two interactions
_OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
# A frame after the other, until the content is there.
_MEASURE = """() => new Promise((resolve, reject) => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const text = (selector) => one(selector)?.textContent ?? "";
  const named = (tag, name) => all(tag).find((each) => each.textContent === name);
  const title = (start) => text("main h1").startsWith(start);
  const type = (selector, value) => { one(selector).value = value;
    one(selector).dispatchEvent(new Event("input")); };
  const choose = (selector, value) => { one(selector).value = value;
    one(selector).dispatchEvent(new Event("change")); };
  const done = () => DONE;
  if (done()) { if (ACTED) reject(new Error("it was there before")); else resolve(0); return; }
  const began = performance.now();
  ACTION;
  const look = () => {
    const took = performance.now() - began;
    if (done()) resolve(took);
    else if (took > 60000) reject(new Error("nothing in a minute: " + text("main").slice(0, 300)));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
_LIVE = "text('h1 + .row .tag') === 'live' && one('[aria-label=\"Latest events\"] .head')"
_LISTED = "title('Subscriptions') && one('tbody tr')"


def _nav(page: str) -> str:
    return f"one('nav a[href=\"/console/{page}\"]').click()"


class Interaction(NamedTuple):
    """What somebody does, and how one sees that the page has done it."""

    name: str
    action: str
    done: str
    goal: bool = True

    def measure(self, page: Page) -> float:
        """Milliseconds."""
        time.sleep(PAUSE if self.action else 0)
        parts = {"DONE": self.done, "ACTION": self.action, "ACTED": json.dumps(bool(self.action))}
        script = _MEASURE
        for name, part in parts.items():
            script = script.replace(name, part)
        return float(page.evaluate(script))


# In this order: each begins where the last one ended.
ROUND = (
    Interaction("Live: open", _nav("live"), _LIVE),
    Interaction("Live: pause", "named('button', 'Pause').click()", "named('button', 'Go on')"),
    Interaction("Live: go on", "named('button', 'Go on').click()", _LIVE),
    Interaction("Live: filter", "type('input[type=search]', 'no event has this')",
                "one('[aria-label=\"Latest events\"] .empty')"),
    Interaction("Subscriptions: open", _nav("subscriptions"), _LISTED),
    Interaction("Subscriptions: next page", "named('button', 'Next').click()",
                "/^51 to/.test(text('.sheet .spread'))"),
    Interaction("Subscriptions: sort", "choose('main select', 'oldest')",
                "text('tbody a').trim() === '0'"),
    Interaction("Subscriptions: search", "type('input[type=search]', 'a1 >= 0.5')",
                "/found/.test(text('.sheet .spread'))"),
    Interaction("Subscriptions: search for what is not there",
                "type('input[type=search]', 'no such text')",
                "/Looking through|No subscription/.test(text('main'))"),
    Interaction("Subscriptions: … until it is known", "",
                "/No subscription has this text/.test(text('main'))", goal=False),
    Interaction("Subscriptions: the list again", "type('input[type=search]', '')",
                "one('tbody tr') && !/found/.test(text('.sheet .spread'))"),
    Interaction("one subscription", "one('tbody a').click()",
                "title('Subscription ') && !/Reading/.test(text('main'))"),
    Interaction("Why: open", _nav("why"), "title('Why') && one('.feed .head')"),
    Interaction("Why: who matches?", "named('button', 'Take').click()",
                "/subscriptions? match(es)?$/.test(all('h2').map((e) => e.textContent)[2])"),
    Interaction("Why: explain", "type('.row.end input', '0'); named('button', 'Explain').click()",
                "one('.verdicts li')"),
    Interaction("Schema: open", _nav("schema"), "title('Schema') && one('tbody tr')"),
    Interaction("Delivery: open", _nav("delivery"), "title('Delivery') && one('.figures')"),
    Interaction("Matcher: open", _nav("matcher"), "title('Matcher') && one('svg.plan')"),
    Interaction("Health: open", _nav("health"), "title('Health') && one('.figures')"),
)  # fmt: skip


@contextmanager
def publishing(server: ServerProcess, events: Path, rate: float) -> Iterator[None]:
    """Publish at a rate from another process, until the block ends."""
    asked = {"what": "follow", "host": server.host, "port": server.port, "events": str(events),
             "streams": [], "rate": rate, "seconds": 24 * 3600}  # fmt: skip
    _, other = cores()
    command = [sys.executable, "-m", "tamis.lab.bench.service.load", json.dumps(asked)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    os.sched_setaffinity(process.pid, other)
    try:
        yield
        if process.poll() is not None:
            raise SystemExit("the publisher has ended; see above")
    finally:
        process.terminate()
        process.wait()


def memory(page: Page, minutes: float) -> list[dict[str, float]]:
    """What the scripts of a page hold, every ten seconds."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    found: list[dict[str, float]] = []
    began = time.monotonic()
    while (now := time.monotonic() - began) <= minutes * 60:
        session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        values = {each["name"]: each["value"] for each in metrics}
        names = {"heap": "JSHeapUsedSize", "nodes": "Nodes", "listeners": "JSEventListeners"}
        found.append({"seconds": round(now, 1)} | {to: values[of] for to, of in names.items()})
        page.wait_for_timeout(max(0.0, EVERY - (time.monotonic() - began - now)) * 1000)
    session.detach()
    return found


def is_flat(heap: list[float]) -> bool:
    """Whether the last third of the readings is hardly above the first."""
    third = max(1, len(heap) // 3)
    first, last = median(heap[:third]), median(heap[-third:])
    return last <= first * GROWTH + NOISE


def interactions(page: Page, times: int) -> dict[str, list[float]]:
    """Milliseconds of each interaction. The first round loads scripts, and does not count."""
    found: dict[str, list[float]] = {each.name: [] for each in ROUND}
    for turn in range(times + 1):
        for each in ROUND:
            try:
                took = each.measure(page)
            except Exception as why:
                raise SystemExit(f"{each.name}: {why}") from why
            if turn:
                found[each.name].append(took)
    return found


def report(found: dict[str, Any]) -> bool:
    """Print what was found; whether all goals are met."""
    print(f"\n{'interaction':48} {'median':>8} {'p95':>8}  ms")
    good = True
    for each in ROUND:
        times = sorted(found["interactions"][each.name])
        p95 = times[-(-95 * len(times) // 100) - 1]
        met = p95 <= GOAL_MS
        good &= met or not each.goal
        verdict = "" if not each.goal else "met" if met else "MISSED"
        print(f"{each.name:48} {median(times):8.0f} {p95:8.0f}  {verdict}")
    heap = [each["heap"] for each in found["memory"]]
    flat = is_flat(heap)
    nodes = [each["nodes"] for each in found["memory"]]
    print(f"\nmemory of the page Live over {found['parameters']['minutes']:g} minutes: "
          f"{heap[0] / 1e6:.1f} MB at first, at most {max(heap) / 1e6:.1f} MB, "
          f"{heap[-1] / 1e6:.1f} MB at last; {max(nodes):.0f} nodes at most")  # fmt: skip
    print(f"events: {found['rate']:.0f}/s, of {found['parameters']['rate']:g}/s asked for; "
          f"{found['backlog']:,} not matched yet at the end")  # fmt: skip
    print(f"goal: 95 of 100 interactions within {GOAL_MS} ms: {'met' if good else 'MISSED'}")
    print(f"goal: flat memory: {'met' if flat else 'MISSED'}")
    return good and flat


def measure(asked: argparse.Namespace, place: Path) -> dict[str, Any]:
    """Fill, serve, publish, and use the console."""
    print(f"{asked.subscriptions:,} subscriptions: load and compile", flush=True)
    made = fill(place / "data", asked.subscriptions, seed=1)
    events = place / "events.jsonl"
    events.write_text("".join(json.dumps(each) + "\n" for each in made.events(EVENTS).to_pylist()))
    with (
        serving(place / "data") as server,
        publishing(server, events, asked.rate),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=_OPTIONS
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(server.console.replace("/console#", "/console/live#"))
        page.wait_for_selector("[aria-label='Latest events'] .head")
        began, (first, _) = time.monotonic(), position(page)
        print(f"the page Live for {asked.minutes:g} minutes", flush=True)
        course = memory(page, asked.minutes)
        page.locator("nav a[href='/console/health']").click()
        page.wait_for_selector(".figures")
        print(f"each interaction {asked.times} times", flush=True)
        times = interactions(page, asked.times)
        took, (last, lag) = time.monotonic() - began, position(page)
        browser.close()
        if wrong:
            raise SystemExit(f"a script has failed: {wrong[0]}")
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **origin(),
        "machine": machine(),
        "versions": versions(),
        "parameters": {name: value for name, value in vars(asked).items() if name != "out"},
        "rate": (last - first) / took,
        "backlog": lag,
        "interactions": times,
        "memory": course,
    }


def position(page: Page) -> tuple[int, int]:
    """Where the log ends, and how many rows before are not matched yet."""
    found = page.evaluate(
        "fetch('/console/api/position', {headers: {'Tamis-Console': '1'}}).then((r) => r.json())"
    )
    return found["end"], found["end"] - found["matched"]


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=1000.0, help="events a second")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the page Live")
    parser.add_argument("--times", type=int, default=7, help="rounds of interactions")
    parser.add_argument("--out", type=Path, default=Path("out/console_load.json"))
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="tamis-console-") as made:
        found = measure(asked, Path(made))
    good = report(found)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(found, indent=2))
    print(f"written: {asked.out}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
