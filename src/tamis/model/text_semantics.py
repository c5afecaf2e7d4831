"""The semantics of the comparators of text: plain and slow, like all semantics."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from tamis.model.condition import IGNORING_CASE, REGULAR, SUBSTRING, WITHIN
from tamis.model.regular_expressions import regular_expression

_ANY_TEXT, _ANY_ONE = ("%", False), ("_", False)


def text_holds(comparator: str, value: str, wanted: str) -> bool:
    """Whether a text compares in this way with a constant."""
    if comparator.endswith(IGNORING_CASE):
        plain = comparator.removesuffix(IGNORING_CASE)
        return text_holds(plain, value.casefold(), wanted.casefold())
    if comparator in ("=", "!="):
        return (value == wanted) == (comparator == "=")
    if comparator == "starts with":
        return value[: len(wanted)] == wanted
    if comparator == "ends with":
        return value[len(value) - len(wanted) :] == wanted and len(value) >= len(wanted)
    if comparator == SUBSTRING:
        return wanted in value
    if comparator == "like":
        return _like(value, wanted)
    if comparator == REGULAR:
        return regular_expression(wanted).search(value) is not None
    if comparator == WITHIN:
        return _within(value, wanted)
    raise AssertionError(f"no such comparator: {comparator}")


def _within(value: str, network: str) -> bool:
    """Whether a text is an address of IPv4 or IPv6 in a network."""
    try:
        return ip_address(value) in ip_network(network)
    except ValueError:
        return False


def _like(value: str, pattern: str) -> bool:
    """`%` matches any text, `_` one code point; a backslash escapes the next character.

    Bit i of `reached` says that the parts before part i match what was read so far. All bits move
    at once: a hostile pattern must not keep an explanation busy for hours.
    """
    parts: list[tuple[str, bool]] = []  # (character, literal?)
    characters = iter(pattern)
    for character in characters:
        part = (character, character not in "%_")
        if character == "\\":
            part = (next(characters, "\\"), True)
        if part != _ANY_TEXT or parts[-1:] != [_ANY_TEXT]:  # %% is %
            parts.append(part)
    places: dict[tuple[str, bool], int] = {}
    for at, part in enumerate(parts):
        places[part] = places.get(part, 0) | 1 << at
    any_text, any_one = places.get(_ANY_TEXT, 0), places.get(_ANY_ONE, 0)

    def skip(reached: int) -> int:  # a `%` may match nothing
        return reached | (reached & any_text) << 1

    reached = skip(1)
    for character in value:
        passed = reached & (places.get((character, True), 0) | any_one)
        reached = skip(passed << 1 | reached & any_text)
    return bool(reached >> len(parts) & 1)
