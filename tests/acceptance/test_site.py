"""The site of the docs builds without a warning, and its pages say what the Markdown says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.acceptance.pages import PAGES, ROOT

pytestmark = pytest.mark.slow

_TAG = re.compile(r"<(h[1-6]|li|table|td|pre|img|blockquote|em|strong)[ >]")
_FROM_ELSEWHERE = re.compile(r'<(?:script|img)[^>]*src="http|<link[^>]*stylesheet"[^>]*href="http')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: a broken link or a page without a place is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "properdocs", "build", "--strict", "-q", "-d", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def _made(site: Path, page: Path) -> str:
    name = page.relative_to(ROOT)
    made = name.with_name("index.html") if name.name == "README.md" else name.with_suffix(".html")
    return (site / made).read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation(site: Path) -> None:
    _, _, menu = _made(site, ROOT / "README.md").partition("wy-menu-vertical")
    menu, _, _ = menu.partition("</nav>")
    there = {(site / target).resolve() for target in re.findall(r'href="([^"#]+)', menu)}
    pages = {path for path in site.rglob("*.html") if path.stem not in ("404", "search")}
    assert pages - {site / "index.html"} <= there
    assert len(pages) == len(PAGES)


def test_pages_have_the_elements_of_the_markdown(site: Path) -> None:
    """Code hosts follow CommonMark; the site is made by another reader of Markdown."""
    reader = MarkdownIt("commonmark").enable("table")
    for page in PAGES:
        wanted = Counter(_TAG.findall(reader.render(page.read_text(encoding="utf-8"))))
        _, _, body = _made(site, page).partition('itemprop="articleBody"')
        made = Counter(_TAG.findall(body.partition("<footer>")[0]))
        assert made == wanted, page.relative_to(ROOT)


def test_the_site_needs_no_other_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not _FROM_ELSEWHERE.search(page.read_text(encoding="utf-8")), page.name
