"""Bulk encoding: predicates of an Arrow table to terms, a column at a time.

Most predicates of a large table are one interval on an ordered domain. They are encoded and folded
as arrays. A row with anything else (a pattern, `contains`, two `!=` on one attribute, a mistake) is
left to the caller, who compiles it like a single subscription and reports mistakes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encode.clause import SOME
from tamis.encode.codes import BooleanCodec, Codec, DecimalCodec, IntegerCodec, TextCodec
from tamis.encode.columns import decimal_codes
from tamis.encode.dynamic_codes import key_of
from tamis.encode.encoder import Encoder
from tamis.encode.labels import HIGHEST, LOWEST
from tamis.encode.terms import Terms
from tamis.files.arrays import Bools, Floats, Int64s
from tamis.model.condition import SYNONYMS
from tamis.model.domain import RefusalError

COMPARATORS = ("=", "<", "<=", ">", ">=", "!=")
_EQUAL, _UNEQUAL = 0, 5
_PAST = 9.2e18  # larger doubles are left to the exact path


class FlatPredicates(NamedTuple):
    """All predicates of a table, as columns."""

    row: Int64s
    attribute: Int64s  # position, -1 if unknown
    comparator: Int64s  # index into COMPARATORS, -1 for any other
    value: Floats  # NaN if null, infinite if it needs the exact path
    text: Int64s  # index into texts, -1 if null
    texts: list[str]
    rows: int


class FoldedPredicates(NamedTuple):
    """One interval (for `!=`, one hole) per row and attribute, sorted by both."""

    row: Int64s
    attribute: Int64s
    low: Int64s
    high: Int64s
    hole: Bools  # the predicate holds outside the interval
    text: Int64s  # index of the text that the value must equal, or -1


class BulkTerms:
    """The rows of a table that are encoded as arrays, and those that are not."""

    def __init__(
        self, encoder: Encoder, lists: pa.ListArray | pa.LargeListArray, longest: int
    ) -> None:
        flat = _flatten(encoder, lists)
        # A null list, or more than `longest` predicates, is a mistake: the caller reports it.
        odd = np.asarray(lists.is_null()) | (np.bincount(flat.row, minlength=flat.rows) > longest)
        folded, slow = _fold(encoder, flat, odd)
        self._encoder, self._folded, self._texts = encoder, folded, flat.texts
        self.slow = np.flatnonzero(slow)  # rows for the caller
        self.fast = np.flatnonzero(~slow)

    def text_uses(self) -> dict[int, Counter[str]]:
        """How often the encoded rows use each text as a constant, by attribute."""
        uses: dict[int, Counter[str]] = {}
        for at in np.unique(self._folded.attribute[self._folded.text >= 0]).tolist():
            mine = self._folded.text[(self._folded.attribute == at) & (self._folded.text >= 0)]
            index, counts = np.unique(mine, return_counts=True)
            # An equality has a cut below and a cut above its constant: two uses.
            uses[at] = Counter(
                {
                    self._texts[i]: 2 * count
                    for i, count in zip(index.tolist(), counts.tolist(), strict=True)
                }
            )
        return uses

    def terms(self) -> Terms:
        """The terms of `fast`. Their text constants must have labels."""
        row, attribute, low, high, hole, text = self._folded
        for at, uses in self.text_uses().items():
            labels = self._encoder.labels[at]
            places = {name: i for i, name in enumerate(self._texts) if name in uses}
            codes = np.zeros(len(self._texts), np.int64)
            codes[list(places.values())] = labels.codes(places)
            mine = (attribute == at) & (text >= 0)
            low[mine] = high[mine] = codes[text[mine]]
        bottom, top = _bounds(self._encoder)
        below, above = hole & (low > bottom[attribute]), hole & (high < top[attribute])
        # A hole becomes the interval below it and the one above it.
        copies = np.where(hole, below.astype(np.int64) + above, 1)
        source = np.repeat(np.arange(len(row)), copies)
        second = np.zeros(len(source), np.bool_)
        second[1:] = source[1:] == source[:-1]
        upper = hole[source] & (second | ~below[source])
        lower = hole[source] & ~upper
        out_low = np.where(upper, high[source] + 1, low[source])
        out_low = np.where(lower, bottom[attribute[source]], out_low)
        out_high = np.where(lower, low[source] - 1, high[source])
        out_high = np.where(upper, top[attribute[source]], out_high)
        # As `closed` does for single clauses: an end at the end of the domain is unbounded.
        point = out_low == out_high
        out_low = np.where(~point & (out_low == bottom[attribute[source]]), LOWEST, out_low)
        out_high = np.where(~point & (out_high == top[attribute[source]]), HIGHEST, out_high)
        first = np.searchsorted(row, row)  # of the row's terms
        term = (np.arange(len(row)) - first)[source]
        starts = np.searchsorted(row[source], self.fast)
        return Terms(
            np.append(starts, len(source)).astype(np.int64),
            attribute[source].astype(np.int32),
            term.astype(np.int16),
            np.full(len(source), SOME, np.int8),
            out_low,
            out_high,
        )


def _bounds(encoder: Encoder) -> tuple[Int64s, Int64s]:
    """The least and the greatest code of every attribute."""
    spans = [
        (LOWEST, HIGHEST) if isinstance(c, TextCodec) else (c.bottom, c.top - 1)
        for c in encoder.codecs
    ]
    both = np.array(spans, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _flatten(encoder: Encoder, lists: pa.ListArray | pa.LargeListArray) -> FlatPredicates:
    lengths = np.asarray(lists.value_lengths().fill_null(0)).astype(np.int64)
    attribute, comparator, value, text = _fields(lists.flatten())
    names, attribute_index = _distinct(attribute)
    words, comparator_index = _distinct(comparator)
    texts, text_index = _distinct(text)
    positions = np.array([encoder.positions.get(name, -1) for name in names] + [-1], np.int64)
    known = [SYNONYMS.get(word, word) for word in words]
    kinds = np.array(
        [COMPARATORS.index(word) if word in COMPARATORS else -1 for word in known] + [-1], np.int64
    )
    return FlatPredicates(
        np.repeat(np.arange(len(lists), dtype=np.int64), lengths),
        positions[attribute_index],  # index -1 is the -1 appended above
        kinds[comparator_index],
        _values(value),
        text_index,
        texts,
        len(lists),
    )


def _values(array: pa.Array) -> Floats:
    """The numbers of all predicates; NaN means null and nothing else."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    doubles = array.cast(pa.float64(), safe=False)
    values = np.array(doubles.to_numpy(zero_copy_only=False), np.float64)
    values[np.isnan(values)] = np.inf
    if not isinstance(array, pa.FloatingPointArray):
        values[np.abs(values) >= 2.0**53] = np.inf  # may not be exact
    values[np.asarray(array.is_null())] = np.nan
    return values


def _fields(structs: pa.Array) -> list[pa.Array]:
    assert isinstance(structs, pa.StructArray)
    names = [structs.type.field(i).name for i in range(structs.type.num_fields)]
    by_name = dict(zip(names, structs.flatten(), strict=True))
    empty = pa.nulls(len(structs))
    return [
        by_name["attribute"],
        by_name["comparator"],
        by_name.get("value", empty),
        by_name.get("text", empty),
    ]


def _distinct(array: pa.Array) -> tuple[list[str], Int64s]:
    """Distinct texts, and the index of each row; -1 for null."""
    if isinstance(array, pa.NullArray):
        return [], np.full(len(array), -1, np.int64)
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if isinstance(array, pa.DictionaryArray) and array.dictionary.null_count:
        array = array.dictionary_decode()  # the dictionary itself may contain a null
    encoded = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    index = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    texts: list[str] = encoded.dictionary.to_pylist()
    if len(set(texts)) < len(texts):  # an Arrow dictionary may repeat a value
        numbers: dict[str, int] = {}
        same = [numbers.setdefault(text, len(numbers)) for text in texts]
        texts, index = list(numbers), np.array([*same, -1], np.int64)[index]
    return texts, index


def _fold(encoder: Encoder, flat: FlatPredicates, odd: Bools) -> tuple[FoldedPredicates, Bools]:
    """Encode simple predicates, fold those on one attribute, and mark all other rows."""
    low, high, simple, text = _code(encoder, flat)
    slow = odd.copy()
    slow[flat.row[~simple]] = True
    key = flat.row * (len(encoder.codecs) + 1) + flat.attribute + 1
    if len(key) and (np.diff(key) < 0).any():
        order = np.argsort(key, kind="stable")
    else:
        order = np.arange(len(key))
    key, row, attribute = key[order], flat.row[order], flat.attribute[order]
    first = np.ones(len(key), np.bool_)
    first[1:] = key[1:] != key[:-1]
    at = np.flatnonzero(first)
    several = np.diff(np.append(at, len(key))) > 1
    hole = flat.comparator[order] == _UNEQUAL
    if len(at):
        lows, highs = np.maximum.reduceat(low[order], at), np.minimum.reduceat(high[order], at)
        # Holes and labels cannot be folded by comparing ends.
        special = np.logical_or.reduceat(hole | (text[order] >= 0), at)
        slow[row[at[several & special]]] = True
        slow[row[at[(lows > highs) & ~special]]] = True
    else:
        lows = highs = np.zeros(0, np.int64)
    keep = ~slow[row[at]]
    at, lows, highs = at[keep], lows[keep], highs[keep]
    return FoldedPredicates(row[at], attribute[at], lows, highs, hole[at], text[order][at]), slow


def _code(encoder: Encoder, flat: FlatPredicates) -> tuple[Int64s, Int64s, Bools, Int64s]:
    """The interval of each predicate (for `!=`, the hole), and whether it is simple."""
    size = len(flat.row)
    low, high = np.zeros(size, np.int64), np.zeros(size, np.int64)
    simple = np.zeros(size, np.bool_)
    text = np.full(size, -1, np.int64)
    # Each text is there once, also if it is a key too.
    places = {each: i for i, each in enumerate(flat.texts)} if encoder.dynamic else {}
    for at in np.unique(flat.attribute[flat.attribute >= 0]).tolist():
        mine = np.flatnonzero((flat.attribute == at) & (flat.comparator >= 0))
        codec = encoder.codecs[at]
        numeric = np.isfinite(flat.value[mine]) & (flat.text[mine] < 0)
        worded = np.isnan(flat.value[mine]) & (flat.text[mine] >= 0)
        kind = flat.comparator[mine]
        if at in encoder.dynamic:  # a range within a kind is left to the caller
            fits = np.array([len(t) < 10_000 for t in flat.texts] + [True])[flat.text[mine]]
            simple[mine] = usable = (numeric | worded) & (kind == _EQUAL) & fits
            text[mine[usable]] = _key_places(flat, mine[usable], places)
            continue
        if isinstance(codec, DecimalCodec | IntegerCodec):
            code, exact, usable = _numbers(codec, np.where(numeric, flat.value[mine], 0.0))
            usable &= numeric
            low[mine], high[mine] = _ends(kind, code, exact, codec)
            # `= 1.5` over integers is empty and `!= 1.5` is everything: both are not simple.
            usable &= exact | ((kind != _EQUAL) & (kind != _UNEQUAL))
        elif isinstance(codec, TextCodec):
            usable = worded & (kind == _EQUAL)
            usable &= np.array([0 < len(t) < 10_000 for t in flat.texts] + [False])[flat.text[mine]]
            text[mine[usable]] = flat.text[mine[usable]]
        elif isinstance(codec, BooleanCodec):
            continue
        else:
            low[mine], high[mine], usable = _words(codec, flat, mine, kind)
            usable &= worded
        if not isinstance(codec, TextCodec):
            # A point outside the domain, or a hole as wide as the domain, leaves nothing; a hole
            # outside is empty. The caller handles them.
            point = (kind == _EQUAL) | (kind == _UNEQUAL)
            usable &= ~(point & ((low[mine] < codec.bottom) | (high[mine] > codec.top - 1)))
            whole = (low[mine] == codec.bottom) & (high[mine] == codec.top - 1)
            usable &= ~((kind == _UNEQUAL) & whole)
        simple[mine] = usable
    return low, high, simple, text


def _key_places(flat: FlatPredicates, mine: Int64s, places: dict[str, int]) -> Int64s:
    """The places among the texts of the keys of dynamic constants; new keys are added."""
    found = np.zeros(len(mine), np.int64)
    worded = flat.text[mine] >= 0
    for chosen, given in ((worded, flat.text), (~worded, flat.value)):
        distinct, index = np.unique(given[mine[chosen]], return_inverse=True)
        keys = [
            key_of(flat.texts[each] if given is flat.text else each) for each in distinct.tolist()
        ]
        for key in keys:
            if key not in places:
                places[key] = len(flat.texts)
                flat.texts.append(key)
        found[chosen] = np.array([places[key] for key in keys], np.int64)[index]
    return found


def _numbers(codec: Codec, values: Floats) -> tuple[Int64s, Bools, Bools]:
    """The code at or below each number, whether it is exact, and whether it is usable."""
    if isinstance(codec, DecimalCodec):
        code, wrong = decimal_codes(values)
        usable = np.ones(len(values), np.bool_) if wrong is None else ~wrong
        return code, np.ones(len(values), np.bool_), usable
    usable = np.abs(values) < _PAST
    floor = np.floor(np.where(usable, values, 0.0))
    return floor.astype(np.int64), floor == values, usable


def _ends(kind: Int64s, code: Int64s, exact: Bools, codec: Codec) -> tuple[Int64s, Int64s]:
    """Closed intervals by comparator: = < <= > >= and, for !=, the hole."""
    bottom, top = codec.bottom, codec.top - 1
    under = np.where(exact, code - 1, code)  # the greatest code below the constant
    low = np.select([kind == 3, kind == 4], [code + 1, under + 1], bottom)
    high = np.select([kind == 1, kind == 2], [under, code], top)
    point = (kind == _EQUAL) | (kind == _UNEQUAL)
    return np.where(point, code, np.maximum(low, bottom)), np.where(
        point, code, np.minimum(high, top)
    )


def _words(
    codec: Codec, flat: FlatPredicates, mine: Int64s, kind: Int64s
) -> tuple[Int64s, Int64s, Bools]:
    """Names and timestamps: encode each distinct (comparator, text) once, in Python."""
    pairs = kind * (len(flat.texts) + 1) + flat.text[mine] + 1
    distinct, index = np.unique(pairs, return_inverse=True)
    low, high = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    usable = np.zeros(len(distinct), np.bool_)
    for place, pair in enumerate(distinct.tolist()):
        comparator, text = divmod(pair, len(flat.texts) + 1)
        ends = _word(codec, comparator, flat.texts[text - 1]) if text else None
        if ends is not None:
            low[place], high[place] = ends
            usable[place] = True
    return low[index], high[index], usable[index]


def _word(codec: Codec, comparator: int, text: str) -> tuple[int, int] | None:
    """The interval of a predicate (for !=, the hole), or None if it is not just one."""
    word = "=" if comparator == _UNEQUAL else COMPARATORS[comparator]
    if word not in codec.domain.comparators:
        return None
    try:
        found: Any = codec.compare(word, codec.domain.constant(text))
    except RefusalError:
        return None
    return (found[0][0], found[0][1] - 1) if len(found) == 1 else None
