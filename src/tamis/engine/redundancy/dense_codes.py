"""Codes without gaps: every code of a domain stands for at least one value.

Then one set of values lies in another exactly if its codes do. The labels of texts leave room
between constants; here each constant has one code, and all texts between two constants have one.
Between "a" and its immediate successor there is no text, and no code.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tamis.encode.codes import Codec, NameCodec, TextCodec
from tamis.encode.dynamic_codes import DynamicCodec, key_of, number_of_key
from tamis.encode.labels import HIGHEST, LOWEST, Labels
from tamis.files.arrays import Int64s

_LEAST, _MOST = -(2**63), 2**63 - 1
_NUMBERS = key_of(-1.7976931348623157e308), key_of(1.7976931348623157e308)


class DenseCodes(NamedTuple):
    """The codes from `bottom` to `top` of one attribute. `labels` is None unless they are texts."""

    bottom: int
    top: int
    labels: Int64s | None = None
    first: Int64s | None = None  # the dense code from each label on
    single: Int64s | None = None  # 1 if a value has the label, else 0

    def ends(self, low: Int64s, high: Int64s) -> tuple[Int64s, Int64s]:
        """Closed intervals of codes as dense codes; where low > high, no value is inside."""
        if self.labels is None or self.first is None or self.single is None:
            return np.maximum(low, self.bottom), np.minimum(high, self.top)
        found_low = np.full(len(low), self.bottom, np.int64)
        found_high = np.full(len(high), self.top, np.int64)
        lower, upper = low != LOWEST, high != HIGHEST
        place = np.searchsorted(self.labels, low[lower] - 1)  # a label is the end or one below it
        after = self.labels[place] != low[lower]
        found_low[lower] = self.first[place] + after * self.single[place]
        place = np.searchsorted(self.labels, high[upper])  # a label is the end or one above it
        at = self.labels[place] == high[upper]
        found_high[upper] = self.first[place] + at * self.single[place] - 1
        return found_low, found_high


def dense_codes(codec: Codec, labels: Labels | None) -> DenseCodes:
    """The dense codes of an attribute. All constants must have their labels."""
    if labels is None:
        names = len(codec.codes) if isinstance(codec, NameCodec) else None
        return DenseCodes(int(codec.bottom), (int(codec.top) if names is None else names) - 1)
    state = labels.state()
    after = _next_key if isinstance(codec, DynamicCodec) else _next_text
    assert isinstance(codec, TextCodec)
    return _of_labels(state.texts, state.labels, after)


def _of_labels(
    texts: Sequence[str], labels: Int64s, after: Callable[[str | None], str | None]
) -> DenseCodes:
    """Dense codes, if `after` gives the least value above a text (above nothing: the least)."""
    many = len(texts)
    gap, single = np.zeros(many + 1, np.int64), np.zeros(many, np.int64)
    before: str | None = None
    for at, text in enumerate(texts):
        value = after(before)
        gap[at] = value is not None and value < text
        if gap[at] and value is not None:
            # The value at the text itself, if there is one: the successor of all below it.
            single[at] = _is_value(text, after)
        else:
            single[at] = value == text
        before = text
    gap[many] = after(before) is not None
    first = np.cumsum(gap[:-1]) + np.cumsum(single) - single
    return DenseCodes(0, int(gap.sum() + single.sum()) - 1, labels, first, single)


def _is_value(text: str, after: Callable[[str | None], str | None]) -> bool:
    if after is _next_text:
        return True
    if text in ("0", "1f", "1t", "4") or text.startswith("3"):
        return True
    return text.startswith("2") and len(text) == len(_NUMBERS[0])


def _next_text(text: str | None) -> str | None:
    return "" if text is None else text + "\0"


def _next_key(text: str | None) -> str | None:
    """The least key of a value of a dynamic attribute above a text."""
    if text is None:
        return "0"
    for key in ("0", "1f", "1t", _NUMBERS[0]):
        if text < key:
            return key
    if text < _NUMBERS[1]:
        return _next_number(text)
    if text < "3":
        return "3"
    if text.startswith("3"):
        return text + "\0"
    return "4" if text < "4" else None


def _next_number(key: str) -> str:
    code, rest = number_of_key(key)
    bits = code if code >= 0 else -code | _LEAST
    (double,) = struct.unpack("<d", struct.pack("<q", bits))
    above = math.nextafter(double, math.inf)
    if abs(double) >= 2**53 and _LEAST <= double <= _MOST:
        whole = int(double) + rest + 1
        if whole < int(above) and whole <= _MOST:
            return key_of(whole)
    return key_of(above)
