"""The commands of the pages that are read first print what the pages say."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.console_blocks import Shown, Terminal, shown_commands
from tests.acceptance.pages import ROOT

pytestmark = pytest.mark.slow

PAGES = (
    "README.md",
    "docs/start.md",
    "docs/files.md",
    "docs/service.md",
    "docs/cloud-events.md",
)
FIRST = {"docs/service.md": 13}  # what follows needs a package of your own, or Spark


@pytest.mark.parametrize("name", PAGES)
def test_commands_print_what_the_page_says(name: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    commands = shown_commands(ROOT / name)[: FIRST.get(name)]
    assert len(commands) > 1
    with ExitStack() as services:
        if name == "docs/cloud-events.md":  # its reader has a service
            services.enter_context(terminal.serve("tamis serve data"))
        for shown in commands:
            if shown.command.startswith("tamis serve"):
                services.close()
                services.enter_context(terminal.serve(shown.command))
            elif not shown.command.startswith("pip "):
                terminal.run(shown)


def test_what_is_printed_is_compared(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.run(Shown('echo \'{"ticket": "a_B-3", "n": 5}\'', '{"ticket": "hf4…", "n": 5}'))
    later = "echo hf4… 2026-05-01T10:11:12Z \\\n  end"
    terminal.run(Shown(later, "a_B-3 2030-01-01T10:00:00Z end"))
    with pytest.raises(AssertionError, match="should print\nwrong"):
        terminal.run(Shown("echo right", "wrong"))
