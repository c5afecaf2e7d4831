"""Plain conditions such as `price < 5 and kind = "oak"`, read a column at a time.

Most conditions of a large table are comparisons joined by `and`. Arrow splits a column of them in a
tenth of the time of the parser. Every other condition, and every possible mistake, is left to the
parser. A text is read here only if the parser would read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.printer import KEYWORDS

_AT_ONCE = 1 << 16  # conditions: the offsets of an Arrow array have 32 bits
_AND = r"[ \t\r\n]+(?i:and)[ \t\r\n]+"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# So few digits that no number overflows a double.
_NUMBER = r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?"
# Text with a quote or an escape inside is left to the parser. So no text continues after an `and`:
# everything between two of them is a whole comparison.
_COMPARISON = (
    r"^[ \t\r\n]*"
    rf"(?P<attribute>{_NAME}(?:\.{_NAME})*)"
    r"[ \t\r\n]*(?P<comparator>[<>=!]{1,2})[ \t\r\n]*"
    rf"(?:(?P<number>{_NUMBER})|\"(?P<double>[^\"\\]+)\"|'(?P<single>[^'\\]+)'|(?P<word>{_NAME}))"
    r"[ \t\r\n]*$"
)
_EXACT = 15  # a number of up to this many characters is exact as a double
_PREDICATES = pa.large_list(
    pa.struct(
        [
            ("attribute", pa.large_string()),
            ("comparator", pa.large_string()),
            ("value", pa.float64()),
            ("text", pa.large_string()),
        ]
    )
)


def read_plain(
    column: pa.Array,
    longest: int,
    progress: Callable[[int], object] = lambda _: None,
    doubtful: Iterable[str] = (),
) -> pa.LargeListArray:
    """The predicates of each plain condition, as a bulk load takes them; null for others.

    A condition of more than `longest` bytes is not read, nor one with a bare word in `doubtful`.
    `progress` is called with the number of plain conditions so far.
    """
    parts: list[pa.LargeListArray] = []
    words = pa.array(sorted({*KEYWORDS, *doubtful}))
    for at in range(0, max(1, len(column)), _AT_ONCE):
        parts.append(_read_plain(column.slice(at, _AT_ONCE), longest, words))
        progress(sum(len(part) - part.null_count for part in parts))
    found = pa.concat_arrays(parts)
    assert isinstance(found, pa.LargeListArray)
    return found


def none_plain(rows: int) -> pa.LargeListArray:
    """What `read_plain` returns if no condition is plain; for a few, the parser is faster."""
    found = pa.nulls(rows, _PREDICATES)
    assert isinstance(found, pa.LargeListArray)
    return found


def _read_plain(column: pa.Array, longest: int, doubtful: pa.Array) -> pa.LargeListArray:
    texts = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    texts = texts.cast(pa.large_string())
    fits = pc.less_equal(pc.binary_length(texts), longest)
    lists = pc.split_pattern_regex(pc.if_else(fits, texts, None), _AND)
    found = pc.extract_regex(lists.flatten(), _COMPARISON)
    attribute, comparator, number, double, single, word = found.flatten()
    # At most one is not empty.
    texts = pc.binary_join_element_wise(double, single, word, pa.scalar("", word.type))
    numeric = pc.not_equal(pc.binary_length(number), 0)
    structs = pa.StructArray.from_arrays(
        [
            attribute,
            comparator,
            _values(pc.if_else(numeric, number, None)),
            pc.if_else(numeric, None, texts),
        ],
        names=["attribute", "comparator", "value", "text"],
    )
    good = np.asarray(
        pc.and_(
            found.is_valid(),
            pc.invert(pc.or_(_is_in(attribute, _keywords()), _is_in(word, doubtful))),
        ).fill_null(False)
    )
    offsets = np.asarray(lists.offsets) - lists.offsets[0].as_py()
    # Counts the parts that are not comparisons.
    bad = np.concatenate([[0], np.cumsum(~good)])
    odd = (bad[offsets[1:]] != bad[offsets[:-1]]) | np.asarray(lists.is_null())
    return pa.LargeListArray.from_arrays(pa.array(offsets), structs, mask=pa.array(odd))


@cache
def _keywords() -> pa.Array:
    """Made when needed: the first array that Arrow makes of a list imports pandas."""
    return pa.array(sorted(KEYWORDS))


def _is_in(words: pa.Array, known: pa.Array) -> pa.Array:
    known = known.cast(words.type)
    return pc.or_(pc.is_in(words, known), pc.is_in(pc.ascii_lower(words), known))


def _values(numbers: pa.Array) -> pa.Array:
    """Numbers as doubles; infinite if the parser might read another number, or a mistake."""
    doubles = pc.add(numbers.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
    long = pc.greater(pc.binary_length(numbers), _EXACT)
    unsure = pc.and_(long, pc.equal(pc.floor(doubles), doubles))
    return pc.if_else(unsure, np.inf, doubles)
