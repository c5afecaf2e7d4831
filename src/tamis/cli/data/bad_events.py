"""Bad events: what becomes of rows that are not events of the schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import click
from rich.console import Console

from tamis.cli.data.events import BadEvent
from tamis.cli.terminal.console import print_lines
from tamis.cli.terminal.options import option
from tamis.errors import TamisError, counted

REFUSE, SKIP, REPORT = "refuse", "skip", "report"
_FOUND = 1  # exit code
_SHOWN = 5  # reasons
_COUNTED = 1000  # different reasons

bad_option = option(
    "--bad",
    "Events that break the schema: refuse stops at the first, skip leaves them out and counts "
    "them, report names each of them as well.",
    click.Choice([REFUSE, SKIP, REPORT]),
    REFUSE,
)
absent_option = click.option(
    "--absent", multiple=True, help="A cell of CSV that is absent, such as NA; may be repeated."
)


class BadEvents:
    """Counts bad events by reason, names them, or refuses the first, as `policy` says."""

    def __init__(self, console: Console, policy: str) -> None:
        self._console, self._policy = console, policy
        self.count = 0
        self._reasons: Counter[str] = Counter()
        self._first: dict[str, BadEvent] = {}

    def take(self, found: Iterable[BadEvent]) -> None:
        for each in found:
            if self._policy == REFUSE:
                raise TamisError(f"{each}\n--bad skip leaves such events out")
            if self._policy == REPORT:
                print_lines(self._console, [str(each)])
            self.count += 1
            if each.reason in self._reasons or len(self._reasons) < _COUNTED:
                self._reasons[each.reason] += 1
                self._first.setdefault(each.reason, each)

    def report(self) -> list[str]:
        """Lines with the most frequent reasons."""
        if not self.count:
            return []
        return [f"{counted(self.count, 'event is', 'events are')} bad:"] + [
            f"  {many:,} × {reason} ({self._first[reason].place})"
            for reason, many in self._reasons.most_common(_SHOWN)
        ]

    def leave(self) -> None:
        """Exit with code 1 if bad events were to be reported, and there are some."""
        if self._policy == REPORT and self.count:
            raise click.exceptions.Exit(_FOUND)
