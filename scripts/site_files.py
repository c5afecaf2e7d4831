"""The files and the nav of the site: a hook of ProperDocs, which properdocs.yml names.

Pages have the same places on the site as in the repository, and every file that a page links to is
there as well. So a link works on the site as it does in a clone. The nav is docs/README.md, which
lists every page in sections. A page that is the index of a folder has the pages of that folder
below it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from properdocs.config.defaults import ProperDocsConfig
from properdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
INDEX = ROOT / "docs" / "README.md"
_LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)\s]+)?\)")
_ENTRY = re.compile(
    r"^## (?P<section>.+)$|^- \[(?P<title>[^\]]+)\]\((?P<target>[^)#\s:]+)\)", re.MULTILINE
)


def pages() -> list[Path]:
    """Every page of the repository."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")]
    return sorted(found)


def linked(page: Path) -> Iterator[Path]:
    """The files to which a page links."""
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve()
        if there.is_file():
            yield there


def anchor(heading: str, _separator: str = "-") -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def navigation() -> list[dict[str, Any]]:
    """The sections of the index, each with its pages."""
    sections: list[dict[str, Any]] = [{"tamis": "README.md"}, {"All pages": _name(INDEX)}]
    entries = sections
    for found in _ENTRY.finditer(INDEX.read_text(encoding="utf-8")):
        if found["section"]:
            entries = []
            sections.append({found["section"]: entries})
        else:
            entries.append(_entry(found["title"], (INDEX.parent / found["target"]).resolve()))
    return sections


def _entry(title: str, page: Path) -> dict[str, Any]:
    """A page, or the index of a folder with the pages below it."""
    folder = page.parent if page.name == "README.md" else page.with_suffix("")
    below = [each for each in linked(page) if each.parent == folder and each.suffix == ".md"]
    if not below:
        return {title: _name(page)}
    return {title: [_name(each) for each in (page, *dict.fromkeys(below))]}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def on_config(config: ProperDocsConfig) -> ProperDocsConfig:
    config.nav = navigation()
    config.mdx_configs["toc"]["slugify"] = anchor
    return config


def on_files(files: Files, *, config: ProperDocsConfig) -> Files:
    every = {*pages(), *(file for page in pages() for file in linked(page))}
    every |= {ROOT / name for name in config.extra_css}
    kept = [file for file in files if file.src_dir != config.docs_dir]  # those of the theme
    kept += [
        File(_name(path), str(ROOT), config.site_dir, config.use_directory_urls)
        for path in sorted(every)
    ]
    return Files(kept)
