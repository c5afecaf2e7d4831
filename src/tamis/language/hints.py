"""Hints for what people write who know another language: SQL, Python, a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tamis.errors import nearest
from tamis.model.condition import LISTS, SIGNS, SUBSTRING
from tamis.model.printer import name_text
from tamis.model.times.durations import UNITS

if TYPE_CHECKING:
    from tamis.language.lexer import Token

SOME_EXAMPLE = "as in: some item in items (item.sku = A1)"
FUNCTIONS = ("lower", "upper", "trim", "length", "len", "abs", "round", "coalesce", "date", "now")
NO_FUNCTIONS = "a condition compares attributes as they are; it has no functions"
ARITHMETIC = "arithmetic takes variables, attributes (@price) and numbers; put text in quotes"
_COMPARATORS = (
    "comparators: = != < <= > >= in between exists missing contains excludes like matches within, "
    "starts with, ends with, has substring, subset of, superset of"
)
_MEANT = {
    **dict.fromkeys(("includes", "include", "contain"), "contains"),
    **dict.fromkeys(("startswith", "start", "begins", "beginswith", "prefix"), "starts with"),
    **dict.fromkeys(("endswith", "end", "suffix"), "ends with"),
    **dict.fromkeys(("equals", "equal", "eq"), "="),
    **dict.fromkeys(("neq", "ne"), "!="),
    **dict.fromkeys(("lt", "below", "under"), "<"),
    **dict.fromkeys(("gt", "above", "over"), ">"),
}
_PATTERNS = ("match", "regex", "regexp", "rlike", "glob")
_QUANTIFIERS = {
    **dict.fromkeys(("any", "each"), "some item in items (…)"),
    **dict.fromkeys(("all", "every"), "not some item in items (not …)"),
    **dict.fromkeys(("no", "none"), "not some item in items (…)"),
}
_ROUND_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u201a\xab\xbb"
_TIME = re.compile(
    r"[\d.]+(m|mins|minutes?|secs?|seconds?|hrs?|hours?|days?|weeks?|mo|months?|y|yrs?|years?|ns)",
    re.IGNORECASE,
)
_WORDS = ("contains", "excludes", "exists", "missing", "between", "like")


def comparator_hint(name: str, tokens: list[Token], at: int) -> str:
    """A hint for a name without a comparator; the token at `at` follows the name."""
    kind, word, *_ = tokens[at]
    after = tokens[at + 1][0] if at + 1 < len(tokens) else "end"
    lower = word.lower()
    if kind == "-" and after == "name":
        return f"a name with a hyphen goes in backquotes: `{name}-{tokens[at + 1][1]}`"
    if kind in SIGNS and name.upper() != "SELECT":
        return f"in arithmetic, write the value of an attribute as @{name_text(name)}"
    if kind == "name" and after == "in" and name.lower() in _QUANTIFIERS:
        return f"for elements of a list, write: {_QUANTIFIERS[name.lower()]}"
    if name.lower() == "some":
        return SOME_EXAMPLE
    if name.upper() in ("WHERE", "SELECT"):
        return "a WHERE clause of SQL has the language sql"
    if lower in _MEANT:
        return f"did you mean {_MEANT[lower]!r}?"
    if lower in _PATTERNS:
        return f'for a pattern, write: {name_text(name)} like "%oak%", or matches "oa?k"'
    if lower == "ilike":
        return f'write: {name_text(name)} like "%oak%" ignoring case'
    found = nearest(word, _WORDS) or ""
    return found if found.startswith("did") else _COMPARATORS


def phrase_hint(name: str, comparator: str) -> str:
    """A hint for a comparator of two words, of which only the first is there."""
    value = "(…)" if comparator in LISTS else '"…"'
    one = f"; for one of several values: {name_text(name)} contains …"
    return f"write: {name_text(name)} {comparator} {value}{one if comparator == SUBSTRING else ''}"


def unknown_attribute_hint(
    name: str, attributes: Iterable[str], stem: str, bare: bool
) -> str | None:
    """A hint for an unknown attribute; a bare one has no comparator."""
    inner = [each for each in attributes if each.startswith(f"{name}.")]
    if inner:
        return f"it is an object; write one of its attributes, such as {stem}{inner[0]}"
    hint = nearest(name, attributes)
    if bare and not (hint or "").startswith("did"):
        return "a name alone is a boolean; for one of several values, write: x in (a, b)"
    return hint


def value_expected_hint(tokens: list[Token], at: int) -> str | None:
    """A hint for a token where a value belongs."""
    before, kind = tokens[at - 1][1], tokens[at][0]
    doubled = {("=", "<"): "<=", ("=", ">"): ">=", ("==", "="): "=", ("!=", "="): "!="}
    if (before, kind) in doubled:
        return f"write {doubled[before, kind]}"
    if kind == "+":
        return "a number has no plus sign"
    return None


def misplaced_hint(tokens: list[Token], at: int) -> str | None:
    """A hint for a token after the end of a predicate."""
    kind, word, start, _ = tokens[at]
    before = tokens[at - 1] if at else tokens[at]
    if kind in SIGNS:
        return ARITHMETIC
    after = tokens[at + 1] if at + 1 < len(tokens) else tokens[at]
    if kind == "," and (before[0], before[3]) == ("number", start) and after[2] == start + 1:
        return "a number has no separators for thousands: write 1000, and 0.5 with a point"
    if kind == "(" and before[0] == "name":
        return NO_FUNCTIONS
    if kind == "name" and before[0] == "name":
        return f'text of several words goes in quotes: "{before[1]} {word}"'
    return None


def character_hint(character: str, text: str, start: int) -> str:
    """A hint for a character that has no meaning in a condition."""
    known = {
        "&": "write 'and'",
        "|": "write 'or'",
        "!": "write 'not'",
        "≤": "write <=",
        "≥": "write >=",
        "≠": "write !=",
        "~": 'for a pattern, write: title like "%oak%", or matches "oa?k"',
        ";": "a condition is one expression; join with 'and'",
        "#": "a condition has no comments",
        ":": "write = to compare; a name with a colon goes in backquotes",
        "{": "a condition is text such as: price < 5 and title = oak; event patterns in JSON have "
        "the language eventbridge",
        "[": "a list is in parentheses, as in: price in (1, 2); for elements of a list, write: "
        "some item in items (…)",
        **dict.fromkeys(_ROUND_QUOTES, "text is in straight quotes, \" or '"),
    }
    if character in known:
        return known[character]
    before, after = text[max(0, start - 1) : start], text[start + 1 : start + 2]
    if before.isdigit() or after.isdigit():
        return "a number is written without a unit, as in: price < 5"
    return "put text in quotes"


def number_hint(word: str) -> str:
    """A hint for what begins as a number does."""
    if word.startswith(".") or word.endswith(".."):
        return "dots join the parts of a name, as in seller.rating; put text in quotes"
    if word.count(".") > 1:
        return "a date is written as 2026-01-31; put text in quotes"
    if _TIME.fullmatch(word):
        return "a duration is written as 30min; units: " + " ".join(UNITS)
    return "write a number as 1000, 0.5 or 1e3; put text in quotes"
