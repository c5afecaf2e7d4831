"""The words of a text, in any language.

Words are split almost by the default rules of Unicode (UAX 29): letters, marks, digits and
underscores stay together, as do apostrophes inside a word and points and commas inside a number. In
contrast to UAX 29, a full stop between letters splits them, since many texts lack the space after
it. In a script without spaces (Han, Hiragana, Thai, Lao, Khmer, Burmese) each character with its
marks is a word, so that a search finds a sequence of them; no dictionary is used.

First the text is normalized. This removes differences that a reader does not see or mean: upper and
lower case (full case folding, not that of one language), composed and decomposed letters,
full-width and other compatible forms (NFKC), curly apostrophes, soft hyphens and invisible marks of
direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import category, normalize

# Blocks of the scripts without spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# For text after `_Kept`: everything except spaces and joints belongs to a word.
_WORD = re.compile(
    rf"[{_UNSPACED}]+"
    rf"|[^\s'.,{_UNSPACED}]+(?:(?:'|(?<=\d)[.,](?=\d))[^\s'.,{_UNSPACED}]+)*"
)
_RUN = re.compile(f"[{_UNSPACED}]")
_JOINTS = "'.,"
_ZERO_WIDTH_SPACE = "\u200b"  # invisible, but it splits words
_VARIATIONS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # variants of how a sign is drawn


class Words:
    """The words of a text in order, and the positions of each.

    >>> words = Words("Don’t panic: STRASSE 4.5, straße 45")
    >>> words.listed
    ("don't", 'panic', 'strasse', '4.5', 'strasse', '45')
    >>> words.has(("strasse", "45")), words.has(("panic", "45"))
    (True, False)
    """

    __slots__ = ("_positions", "listed")

    def __init__(self, text: str) -> None:
        self.listed = tuple(_words(text))
        self._positions: dict[str, list[int]] = {}
        for at, word in enumerate(self.listed):
            self._positions.setdefault(word, []).append(at)

    def __len__(self) -> int:
        return len(self.listed)

    def has(self, run: tuple[str, ...]) -> bool:
        """Whether the text contains these words, one right after the other."""
        if len(run) == 1:
            return run[0] in self._positions
        if any(word not in self._positions for word in run):
            return False
        # Search at the positions of its rarest word.
        rare = min(range(len(run)), key=lambda at: len(self._positions[run[at]]))
        starts = (at - rare for at in self._positions[run[rare]])
        return any(self.listed[at : at + len(run)] == run for at in starts if at >= 0)


class WordCache:
    """The words of recent texts, split once for all conditions.

    A full cache starts empty again. Threads need no lock: at worst, two split the same text.
    """

    def __init__(self, characters: int = 1 << 21) -> None:
        self._characters = self._room = characters
        self._known: dict[str, Words] = {}

    def __call__(self, text: str) -> Words:
        known = self._known
        found = known.get(text)
        if found is None:
            found = Words(text)
            if len(text) > self._room:
                self._known, self._room = {}, self._characters
            self._known[text] = found
            self._room -= len(text)
        return found

    def __len__(self) -> int:
        return len(self._known)


words_of = WordCache()


def folded(text: str) -> str:
    """A text without the differences that a search ignores."""
    if text.isascii():
        return text.lower()
    # Folding may undo a normal form and vice versa; twice is enough (Unicode, D146).
    once = normalize("NFKC", normalize("NFD", text).casefold())
    return normalize("NFKC", once.casefold())


def _words(text: str) -> Iterator[str]:
    kept = folded(text).translate(_KEPT)
    if not kept.isascii():
        # A removed character may have been between a letter and its mark.
        kept = normalize("NFKC", kept)
    unspaced = not kept.isascii() and _RUN.search(kept) is not None
    for found in _WORD.findall(kept):
        if unspaced and _RUN.match(found):
            yield from filter(_is_word, _characters(found))
        elif found.isalnum():
            yield found
        elif _is_word(found):
            # A leading mark belongs to the character before it, not to the word.
            start = next(at for at, each in enumerate(found) if category(each)[0] != "M")
            yield found[start:]


def _characters(run: str) -> Iterator[str]:
    """Each character of a run, with the marks that follow it."""
    start = 0
    for at in range(1, len(run)):
        if category(run[at])[0] != "M":
            yield run[start:at]
            start = at
    yield run[start:]


def _is_word(found: str) -> bool:
    return any(map(str.isalnum, found))


class _Kept(dict[int, str | None]):
    """For `str.translate`: keeps parts of words, replaces the rest by a space or removes it.

    A character is looked up in the tables of Unicode at its first use.
    """

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        kind = category(character)
        kept: str | None = " "
        if _VARIATIONS.match(character):
            kept = None
        elif kind[0] in "LMN" or kind == "Pc" or character in _JOINTS:
            kept = character
        elif character == "\u2019":
            kept = "'"
        elif kind == "Cf" and character != _ZERO_WIDTH_SPACE:
            kept = None
        self[code] = kept
        return kept


_KEPT = _Kept()
