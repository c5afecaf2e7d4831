"""Sets of texts and of integers, and what a function of CESQL makes of an attribute in them.

`LEFT(subject, 2) = 'ab'` asks whether the result is in a set of texts. The subjects that lead into
that set are a set too: those that match `ab%`. So a function becomes a comparator of tamis, exactly
or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from sys import maxunicode
from typing import NamedTuple

from tamis.language.dialects.cesql.values import HIGHEST, LOWEST, SPACES
from tamis.model.condition import REGULAR
from tamis.model.text_semantics import text_holds

_WRITTEN = re.compile("0|-?[1-9][0-9]{0,9}")
Spread = tuple[tuple[int, int], ...]
"""Integers: ranges with both ends, in order, that do not touch."""
EVERY_INTEGER: Spread = ((LOWEST, HIGHEST),)
_LONGEST = 900  # characters that `like` counts
_FARTHEST = 100  # characters that a regular expression counts
_READINGS = 64  # of a text whose letters may come from one character or from several


class InexpressibleError(Exception):
    """No condition of tamis means this; the message says what it is."""


def spread(ranges: Iterable[tuple[int, int]]) -> Spread:
    """Ranges put in order and joined, within the 32-bit integers."""
    found: list[tuple[int, int]] = []
    for low, high in sorted((max(low, LOWEST), min(high, HIGHEST)) for low, high in ranges):
        if low > high:
            continue
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def others(of: Spread) -> Spread:
    """All integers but these."""
    ends = [LOWEST - 1, *(end for pair in of for end in pair), HIGHEST + 1]
    return spread((ends[at] + 1, ends[at + 1] - 1) for at in range(0, len(ends), 2))


class TextSet(NamedTuple):
    """Texts that are one of `exact`, or match one of the patterns; or all others, if `negated`."""

    exact: tuple[str, ...] = ()
    likes: tuple[str, ...] = ()  # as tamis writes them
    expressions: tuple[str, ...] = ()  # regular expressions, of the whole text
    negated: bool = False

    @property
    def others(self) -> TextSet:
        return self._replace(negated=not self.negated)

    @property
    def is_trivial(self) -> bool:
        """Whether it has no text, or all."""
        return not (self.exact or self.likes or self.expressions)

    def has(self, text: str) -> bool:
        """Whether a text is in the set."""
        found = (
            text in self.exact
            or any(text_holds("like", text, each) for each in self.likes)
            or any(text_holds(REGULAR, text, whole(each)) for each in self.expressions)
        )
        return found != self.negated

    def through(self, name: str, source: Callable[[str], TextSet | None]) -> TextSet:
        """What a function turns into the set: `source` says it for one exact text."""
        if self.likes or self.expressions:
            raise InexpressibleError(f"a pattern or a number in what {name} returns")
        found = [each for text in self.exact if (each := source(text)) is not None]
        return TextSet(
            tuple(text for each in found for text in each.exact),
            tuple(like for each in found for like in each.likes),
            tuple(regular for each in found for regular in each.expressions),
            self.negated,
        )


EVERY_TEXT = TextSet(negated=True)


def whole(expression: str) -> str:
    """A regular expression of the whole text."""
    return f"^(?s:{expression})$"


def whole_numbers(wanted: Spread) -> TextSet:
    """The texts that are one of these integers: with a sign and leading zeros, if they like."""
    branches: list[str] = []
    for low, high in wanted:
        if low <= 0 <= high:
            branches.append("[+-]?0+")
        if high > 0:
            branches.append(f"[+]?0*{_group(_digits(max(low, 1), high))}")
        if low < 0:
            branches.append(f"-0*{_group(_digits(max(-high, 1), -low))}")
    return TextSet(expressions=("|".join(branches),)) if branches else TextSet()


def _digits(low: int, high: int) -> str:
    """A regular expression of the numbers in a range, which starts at 1 or more."""
    branches: list[str] = []
    full: list[int] = []  # sizes of which every number is in the range
    for size in range(len(str(low)), len(str(high)) + 1):
        first, last = 10 ** (size - 1), 10**size - 1
        if low <= first and last <= high:
            full.append(size)
        else:
            branches.append(_same_size(str(max(low, first)), str(min(high, last))))
    if full:
        branches.append(f"[1-9][0-9]{{{full[0] - 1},{full[-1] - 1}}}")
    return "|".join(branches)


def _same_size(low: str, high: str) -> str:
    """A regular expression of the numbers in a range, all with as many digits."""
    rest = len(low) - 1
    if not rest:
        return _class(low, high)
    if low[0] == high[0]:
        return low[0] + _group(_same_size(low[1:], high[1:]))
    parts: list[str] = []
    first, last = int(low[0]), int(high[0])
    if low[1:] != "0" * rest:
        parts.append(low[0] + _group(_same_size(low[1:], "9" * rest)))
        first += 1
    after = None
    if high[1:] != "9" * rest:
        after = high[0] + _group(_same_size("0" * rest, high[1:]))
        last -= 1
    if first <= last:
        more = "[0-9]" if rest == 1 else f"[0-9]{{{rest}}}"
        parts.append(_class(str(first), str(last)) + more)
    return "|".join([*parts, after] if after else parts)


def _class(low: str, high: str) -> str:
    return low if low == high else f"[{low}-{high}]"


def _group(expression: str) -> str:
    return f"(?:{expression})" if "|" in expression else expression


def word_of(word: bool) -> TextSet:
    """The texts that are true or false, in any case."""
    letters = "true" if word else "false"
    return TextSet(expressions=("".join(f"[{each}{each.upper()}]" for each in letters),))


def written_integers(wanted: TextSet) -> Spread:
    """The integers that are in a set of texts as they are written in base 10."""
    if wanted.expressions:
        raise InexpressibleError("the text of an integer, changed by a function")
    numbers = (int(text) for text in wanted.exact if _WRITTEN.fullmatch(text))
    ranges = [(number, number) for number in numbers]
    for like in wanted.likes:
        ranges += _integers_like(like)
    found = spread(ranges)
    return others(found) if wanted.negated else found


def _integers_like(pattern: str) -> Iterator[tuple[int, int]]:
    """The integers that match a pattern, if the wildcards are at its end."""
    parts = re.findall(r"\\?.", pattern, re.DOTALL)
    head = ""
    for part in parts:
        if part in "%_":
            break
        head += part[-1]
    tail = parts[len(head) :]
    if any(part not in "%_" and part not in "0123456789-" for part in tail):
        return  # an integer has nothing but digits there
    if any(part not in "%_" for part in tail):
        raise InexpressibleError(
            "integers may match the pattern, which has a wildcard before a digit"
        )
    if not re.fullmatch("-?(?:0|[1-9][0-9]{0,9})?", head) or head == "-0":
        return
    least = tail.count("_")
    digits = head.lstrip("-")
    for extra in range(least, 12 if "%" in tail else least + 1):
        yield from _integers_from(head, digits, extra)


def _integers_from(head: str, digits: str, extra: int) -> Iterator[tuple[int, int]]:
    """The integers that begin with `head`, with so many characters after it."""
    if digits == "0" and extra:
        return
    if not digits:  # any digits; and after nothing, a sign
        if extra == 0:
            return
        low = 10 ** (extra - 1) if extra > 1 or head else 0
        if head:
            yield -(10**extra) + 1, -low
        else:
            yield low, 10**extra - 1
            if extra > 1:
                yield -(10 ** (extra - 1)) + 1, -(10 ** (extra - 2))
        return
    low = int(digits) * 10**extra
    high = low + 10**extra - 1
    yield (-high, -low) if head[0] == "-" else (low, high)


def of_length(wanted: Spread) -> TextSet:
    """The texts with so many characters."""
    sizes = spread((max(low, 0), high) for low, high in wanted)
    gaps = spread((max(low, 0), high) for low, high in others(sizes))
    for ranges, negated in ((sizes, False), (gaps, True)):
        simple = all(high in (low, HIGHEST) for low, high in ranges)
        if simple and all(low <= _LONGEST for low, _ in ranges):
            likes = ("_" * low + "%" * (high == HIGHEST) for low, high in ranges)
            return TextSet(likes=tuple(likes), negated=negated)
    if sizes[-1][1] > _FARTHEST:
        raise InexpressibleError("LENGTH is in a range of large numbers")
    branches = (f".{{{low},{high}}}" for low, high in sizes)
    return TextSet(expressions=("|".join(branches),))


def written_length(wanted: Spread) -> Spread:
    """The integers that have so many characters."""
    ranges: list[tuple[int, int]] = []
    for low, high in wanted:
        for size in range(max(low, 1), min(high, 11) + 1):
            ranges.extend(_integers_from("", "", size))
    return spread(ranges)


def left_of(size: int, text: str) -> TextSet | None:
    """The texts whose first characters are a text."""
    if len(text) > size:
        return None
    return TextSet((text,)) if len(text) < size else TextSet(likes=(escaped(text) + "%",))


def right_of(size: int, text: str) -> TextSet | None:
    """The texts whose last characters are a text."""
    if len(text) > size:
        return None
    return TextSet((text,)) if len(text) < size else TextSet(likes=("%" + escaped(text),))


def escaped(text: str) -> str:
    """A text as a pattern that matches only itself."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def trimmed(text: str) -> TextSet | None:
    """The texts that are this one without the white space around them."""
    if text and (re.match(f"[{SPACES}]", text[0]) or re.match(f"[{SPACES}]", text[-1])):
        return None
    return TextSet(expressions=(f"[{SPACES}]*{_quoted(text)}[{SPACES}]*",))


def inside(left: str, right: str, text: str) -> TextSet | None:
    """What is between two texts in a third one."""
    if len(left) + len(right) > len(text):
        return None
    fits = text.startswith(left) and text.endswith(right)
    return TextSet((text[len(left) : len(text) - len(right)],)) if fits else None


def part_of(position: int, size: int, text: str) -> TextSet | None:
    """The texts with this part, of those that are long enough."""
    if abs(position) > _FARTHEST:
        raise InexpressibleError(f"SUBSTRING begins beyond {_FARTHEST} characters")
    if position == 0 or size == 0:
        return EVERY_TEXT if not text else None
    if position < 0:  # the part has one size: nothing is missing at the end
        fits = len(text) == min(size, -position)
        after = f".{{{-position - len(text)}}}" if fits else ""
        return TextSet(expressions=(f".*{_quoted(text)}{after}",)) if fits else None
    if not text or len(text) > size:
        return None
    after = ".*" if len(text) == size else ""
    return TextSet(expressions=(f".{{{position - 1}}}{_quoted(text)}{after}",))


def longer_than(size: int) -> TextSet:
    """The texts with so many characters, or more."""
    return of_length(((size, HIGHEST),))


def in_case(upper: bool, text: str) -> TextSet | None:
    """The texts that are this one in upper or lower case."""
    change = str.upper if upper else str.lower
    if change(text) != text:
        return None
    if "\u03c3" in text or "\u03c2" in text:
        raise InexpressibleError("a sigma in lower case depends on its place in a word")
    single, several = _sources(upper)
    ends = [(at, at + len(made)) for made in several for at in _places(made, text)]
    within = {at for low, high in ends for at in range(low + 1, high)}
    cuts = sorted({0, len(text), *(at for at in range(len(text)) if at not in within)})
    expression = ""
    for low, high in pairwise(cuts):
        if high - low > 3 * _READINGS:  # at least one reading for every three characters
            raise _too_many()
        readings = _readings(text[low:high], single, several)
        expression += readings[0] if len(readings) == 1 else f"(?:{'|'.join(readings)})"
    return TextSet(expressions=(expression,))


def _places(part: str, text: str) -> list[int]:
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def _too_many() -> InexpressibleError:
    return InexpressibleError("too many texts become this one in upper or lower case")


def _readings(text: str, single: dict[str, str], several: dict[str, str]) -> list[str]:
    """The ways in which characters became a text, each as a regular expression."""
    if not text:
        return [""]
    found: list[str] = []
    for size in (1, 2, 3):
        sources = (single if size == 1 else several).get(text[:size])
        if len(text) >= size and sources is not None:
            one = f"[{sources}]" if len(sources) > 1 else _quoted(sources)
            found += (one + rest for rest in _readings(text[size:], single, several))
        elif size == 1:
            found += (_quoted(text[0]) + rest for rest in _readings(text[1:], single, several))
        if len(found) > _READINGS:
            raise _too_many()
    return found


@lru_cache(maxsize=2)
def _sources(upper: bool) -> tuple[dict[str, str], dict[str, str]]:
    """For what a character becomes, the characters that become it: one, and more than one."""
    change = str.upper if upper else str.lower
    single: dict[str, str] = {}
    several: dict[str, str] = {}
    for character in map(chr, range(maxunicode + 1)):
        made = change(character)
        if made != character:
            into = single if len(made) == 1 else several
            into[made] = into.get(made, "") + character
    for made in single:
        if change(made) == made:
            single[made] = made + single[made]
    return single, several


def _quoted(text: str) -> str:
    return re.sub(r"([!-/:-@\[-^`{-~])", r"\\\1", text)
