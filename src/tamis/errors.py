"""One tree of exceptions. Each says what was wrong, where, and what would be right.

Every error that tamis raises on purpose is a `TamisError`; a command line or a service catches that
class and shows its text. Any other exception is a bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

Span = tuple[int, int]
"""Half-open range of offsets into a condition's text."""

_LONGEST = 4000  # characters of a message
_EXCERPT = 100  # columns of a long line that are shown


class TamisError(Exception):
    """The root of all errors that tamis raises on purpose.

    A message may quote what was given, which may be anything: a long one is shortened.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


class SchemaError(TamisError):
    """A schema document, an import or an extension that breaks a rule."""


class EventError(TamisError):
    """An event that is not consistent with the schema.

    `rule` is R1, R2 or R3 of the consistency rules; `row` is the event's position in a batch.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str | None = None,
        attribute: str | None = None,
        row: int | None = None,
    ) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message, self.rule, self.attribute, self.row = message, rule, attribute, row

    def __str__(self) -> str:
        where = "" if self.row is None else f"event {self.row}: "
        rule = "" if self.rule is None else f" (rule {self.rule})"
        return f"{where}{self.message}{rule}"

    def at_row(self, row: int) -> EventError:
        """The same error, with the position of the event in its batch."""
        return EventError(self.message, rule=self.rule, attribute=self.attribute, row=row)


class ConditionError(TamisError):
    """A condition that cannot be accepted, with the place in its text."""

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        text: str | None = None,
        hint: str | None = None,
        row: int | None = None,
    ) -> None:
        message = shortened(message)
        super().__init__(message)
        self.message, self.span, self.text, self.hint, self.row = message, span, text, hint, row

    @property
    def line(self) -> int | None:
        """The line, from 1; None if the condition has no text."""
        return None if self._before is None else self._before.count("\n") + 1

    @property
    def column(self) -> int | None:
        """The column, from 1; None if the condition has no text."""
        return None if self._before is None else len(self._before) - self._before.rfind("\n")

    @property
    def _before(self) -> str | None:
        """The text before the place of the error."""
        return None if self.span is None or self.text is None else self.text[: self.span[0]]

    def with_text(self, text: str | None) -> ConditionError:
        """The same error, which shows its place in `text`."""
        if self.text is None:
            self.text = text
        return self

    def at_row(self, row: int) -> ConditionError:
        """The same error, with the row of the condition in its table."""
        self.row = row
        return self

    def __str__(self) -> str:
        head = self.message if self.row is None else f"row {self.row}: {self.message}"
        parts = [head]
        if self.span is not None and self.text is not None:
            parts[0] += f" (line {self.line}, column {self.column})"
            parts.extend(_caret(self.text, self.span))
        if self.hint:
            parts.append(self.hint)
        return "\n".join(parts)


class LimitError(ConditionError):
    """A condition larger than the language allows, refused before it is expanded."""


class NeverTrueError(ConditionError):
    """A condition with a clause that no event satisfies."""


class SubscriptionError(TamisError):
    """An id that is taken, unknown or of the wrong type, or a malformed table."""


class EngineError(TamisError):
    """An engine that cannot be used any more, for example after a fork in the middle of a call."""


class MatcherError(TamisError):
    """An unknown matcher or option, or a batch that a matcher refuses."""


class OperatorError(TamisError):
    """An operator with a wrong declaration, an unknown one, or one that cannot be loaded."""


class SchedulerError(TamisError):
    """An unknown scheduler or option, or clauses or results that a scheduler refuses."""


class SavedIndexError(TamisError):
    """A saved engine that cannot be written, is damaged, or has another format."""


class SparkError(TamisError):
    """Spark cannot be started, or the columns of a DataFrame do not fit."""


class SparkGoneError(SparkError):
    """Spark's Java process has ended while it was needed: not a mistake of the user."""


class StoreError(TamisError):
    """Files of a store (log, version, events, parts) that cannot be used, or a malformed change."""


class UnavailableError(StoreError):
    """A database that cannot be reached now. The request may be tried again."""


class BrokerError(TamisError):
    """A request that the broker refuses, or a broker that cannot go on."""


class NotFoundError(BrokerError):
    """A subscription that is not live, or a ticket that is not its own: which one stays secret."""


class QuotaError(BrokerError):
    """A request beyond a limit of its owner, or of the queues; `after` says when to try again."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class FullError(BrokerError):
    """The disk is full. Nothing of the request stays, and service resumes when there is space."""


class BusyError(BrokerError):
    """Another process holds the state database. The request may be tried again."""


class RequestKeyError(BrokerError):
    """A key of a request that the same owner has used for another request."""


class BrokerStoppedError(BrokerError):
    """The broker has stopped: on request, or because it could not write."""


class SettingError(TamisError):
    """A setting of the service that is unknown, malformed, or does not fit the others."""


def _caret(text: str, span: Span) -> list[str]:
    """The line of an error with carets under the span, shortened to fit a terminal."""
    start, end = span
    left = text.rfind("\n", 0, start) + 1
    right = text.find("\n", start)
    right = len(text) if right < 0 else right
    shown_from = max(left, start - _EXCERPT // 2)
    shown_to = min(right, shown_from + _EXCERPT)
    before = "…" if shown_from > left else ""
    after = "…" if shown_to < right else ""
    shown = text[shown_from:shown_to].replace("\t", " ")
    line = "".join(c if c.isprintable() else "\ufffd" for c in shown)  # others confuse terminals
    width = max(1, min(end, shown_to) - start)
    pad = " " * (len(before) + start - shown_from)
    return [f"  {before}{line}{after}", f"  {pad}{'^' * width}"]


def nearest(name: str, names: Iterable[str]) -> str | None:
    """A hint with the name that the user probably meant, or None."""
    known = sorted(names)
    if len(name) > 256:
        return None
    # difflib is slow, and every event of a publisher may be wrong: try names of similar length.
    like = [each for each in known if abs(len(each) - len(name)) <= 1 + len(name) // 3]
    lower = name.lower()
    close = [each for each in like if each.lower() == lower] or difflib.get_close_matches(
        name, like[:500], n=1, cutoff=0.6
    )
    if close:
        return f"did you mean {close[0]!r}?"
    if known and len(known) <= 12:
        return "known here: " + ", ".join(known)
    return None


def shortened(message: str) -> str:
    """The message, without its middle if it is very long."""
    left_out = len(message) - _LONGEST
    if left_out <= 0:
        return message
    half = _LONGEST // 2
    return f"{message[:half]} … {left_out:,} characters … {message[-half:]}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things, in the singular if it is one.

    >>> counted(1, "event"), counted(2000, "match"), counted(0, "row is", "rows are")
    ('1 event', '2,000 matches', '0 rows are')
    """
    plural = many or one + ("es" if one.endswith(("s", "x", "ch", "sh")) else "s")
    return f"{number:,} {one if number == 1 else plural}"


def suggestion(name: object, names: Iterable[str]) -> str:
    """The hint of `nearest` as the end of a message, or nothing."""
    hint = nearest(str(name), names)
    return f"; {hint}" if hint else ""
