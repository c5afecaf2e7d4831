"""Plain conditions, read many at a time: `price < 5 and kind = "oak"`.

Most conditions of a large table are comparisons with `and` between them. Arrow cuts these up, a
column at a time, in a tenth of the time that the parser takes, one after the other. What is
written in any other way is left to the parser, and so is all that could be a mistake: a text is
read here only if the parser would read the same in it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.printer import KEYWORDS

_AT_ONCE = 1 << 16  # conditions: Arrow counts the bytes of an array in 32 bits
_AND = r"[ \t\r\n]+(?i:and)[ \t\r\n]+"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# Digits and exponents of a length that no double is too small for.
_NUMBER = r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?"
# A quoted text with a quote or an escape in it is for the parser. With that no text goes on behind
# an `and`: what stands before the first one is a whole comparison, and so is what follows.
_COMPARISON = (
    r"^[ \t\r\n]*"
    rf"(?P<attribute>{_NAME}(?:\.{_NAME})*)"
    r"[ \t\r\n]*(?P<comparator>[<>=!]{1,2})[ \t\r\n]*"
    rf"(?:(?P<number>{_NUMBER})|\"(?P<double>[^\"\\]+)\"|'(?P<single>[^'\\]+)'|(?P<word>{_NAME}))"
    r"[ \t\r\n]*$"
)
_EXACT = 15  # characters of a number that a double tells from all others
_KEYWORDS = pa.array(sorted(KEYWORDS))
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
    column: pa.Array, longest: int, progress: Callable[[int], object] = lambda _: None
) -> pa.LargeListArray:
    """The predicates of each condition that is plain, as the bulk door takes them; null for others.

    `longest` is how many bytes a condition may have. `progress` is told how many plain ones there
    are so far, now and then.
    """
    parts: list[pa.LargeListArray] = []
    for at in range(0, max(1, len(column)), _AT_ONCE):
        parts.append(_read_plain(column.slice(at, _AT_ONCE), longest))
        progress(sum(len(part) - part.null_count for part in parts))
    found = pa.concat_arrays(parts)
    assert isinstance(found, pa.LargeListArray)
    return found


def none_plain(rows: int) -> pa.LargeListArray:
    """What `read_plain` returns if no condition is plain; for a few, the parser is faster."""
    found = pa.nulls(rows, _PREDICATES)
    assert isinstance(found, pa.LargeListArray)
    return found


def _read_plain(column: pa.Array, longest: int) -> pa.LargeListArray:
    texts = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    texts = texts.cast(pa.large_string())
    fits = pc.less_equal(pc.binary_length(texts), longest)
    lists = pc.split_pattern_regex(pc.if_else(fits, texts, None), _AND)
    found = pc.extract_regex(lists.flatten(), _COMPARISON)
    attribute, comparator, number, double, single, word = found.flatten()
    # One of them at most is not empty.
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
        pc.and_(found.is_valid(), pc.invert(pc.or_(_keyword(attribute), _keyword(word)))).fill_null(
            False
        )
    )
    offsets = np.asarray(lists.offsets) - lists.offsets[0].as_py()
    # Of each condition, how many of its parts are no comparison.
    bad = np.concatenate([[0], np.cumsum(~good)])
    odd = (bad[offsets[1:]] != bad[offsets[:-1]]) | np.asarray(lists.is_null())
    return pa.LargeListArray.from_arrays(pa.array(offsets), structs, mask=pa.array(odd))


def _keyword(words: pa.Array) -> pa.Array:
    return pc.is_in(pc.ascii_lower(words), _KEYWORDS.cast(words.type))


def _values(numbers: pa.Array) -> pa.Array:
    """As doubles; infinite where the parser may find another number, or a mistake."""
    doubles = pc.add(numbers.cast(pa.float64()), 0.0)  # there is no -0 among whole numbers
    long = pc.greater(pc.binary_length(numbers), _EXACT)
    unsure = pc.and_(long, pc.equal(pc.floor(doubles), doubles))
    return pc.if_else(unsure, np.inf, doubles)
