"""The words of a text, whatever language it is in.

Words are found much as Unicode does by default (UAX 29): letters, marks, digits and underscores
hold together, and so do apostrophes within a word and points and commas within a number. A full
stop between letters parts them, other than there, since many a text lacks the space after it. Where
a script is written without spaces (Han, Hiragana, Thai, Lao, Khmer, Burmese) each character with
its marks is a word, so that what one looks for is found as a run of them; no dictionary is used.

Before that, differences that a reader does not see or mean are taken away: upper and lower case
(full case folding, not that of any one language), composed and decomposed letters, full-width and
other compatible forms (NFKC), curly apostrophes, soft hyphens and invisible marks of direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import category, normalize

# Blocks of the scripts that are written without spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3040-\u309f\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# To be used on what `_Kept` has left: here whatever is no space and no joint belongs to a word.
_WORD = re.compile(
    rf"[{_UNSPACED}]+"
    rf"|[^\s'.,{_UNSPACED}]+(?:(?:'|(?<=\d)[.,](?=\d))[^\s'.,{_UNSPACED}]+)*"
)
_RUN = re.compile(f"[{_UNSPACED}]")
_JOINTS = "'.,"
_ZERO_WIDTH_SPACE = "\u200b"  # invisible, but it parts words
_VARIATIONS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # how a sign is drawn


class Words:
    """The words of a text in order, and where each of them stands.

    >>> words = Words("Don’t panic: STRASSE 4.5, straße 45")
    >>> words.listed
    ("don't", 'panic', 'strasse', '4.5', 'strasse', '45')
    >>> words.has(("strasse", "45")), words.has(("panic", "45"))
    (True, False)
    """

    __slots__ = ("_stands", "listed")

    def __init__(self, text: str) -> None:
        self.listed = tuple(_words(text))
        self._stands: dict[str, list[int]] = {}
        for at, word in enumerate(self.listed):
            self._stands.setdefault(word, []).append(at)

    def __len__(self) -> int:
        return len(self.listed)

    def has(self, run: tuple[str, ...]) -> bool:
        """Whether these words stand in the text, one right after the other."""
        if len(run) == 1:
            return run[0] in self._stands
        if any(word not in self._stands for word in run):
            return False
        # Looked for at its rarest word.
        rare = min(range(len(run)), key=lambda at: len(self._stands[run[at]]))
        starts = (at - rare for at in self._stands[run[rare]])
        return any(self.listed[at : at + len(run)] == run for at in starts if at >= 0)


class Memory:
    """The words of the texts that were asked about last.

    Found once, however many ask. When there are too many characters in it, it starts anew; threads
    that meet here at most find some words twice.
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


words_of = Memory()


def folded(text: str) -> str:
    """A text without the differences that do not count."""
    if text.isascii():
        return text.lower()
    # Folding may undo a normal form and the other way round; twice is enough (Unicode, D146).
    once = normalize("NFKC", normalize("NFD", text).casefold())
    return normalize("NFKC", once.casefold())


def _words(text: str) -> Iterator[str]:
    kept = folded(text).translate(_KEPT)
    if not kept.isascii():
        kept = normalize("NFKC", kept)  # what went may have stood between a letter and its mark
    unspaced = not kept.isascii() and _RUN.search(kept) is not None
    for found in _WORD.findall(kept):
        if unspaced and _RUN.match(found):
            yield from filter(_is_word, _characters(found))
        elif found.isalnum():
            yield found
        elif _is_word(found):
            # A mark at the beginning belongs to whatever stood before it, not to the word.
            start = next(at for at, each in enumerate(found) if category(each)[0] != "M")
            yield found[start:]


def _characters(run: str) -> Iterator[str]:
    """Each character of a run, together with the marks that follow it."""
    start = 0
    for at in range(1, len(run)):
        if category(run[at])[0] != "M":
            yield run[start:at]
            start = at
    yield run[start:]


def _is_word(found: str) -> bool:
    return any(map(str.isalnum, found))


class _Kept(dict[int, str | None]):
    """For `str.translate`: what is part of words stays, all else becomes a space or goes.

    A character is looked up in Unicode's tables when it is met first.
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
