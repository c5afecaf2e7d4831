"""The codes of one Arrow column, vectorised by domain and Arrow type.

Each function takes an array without nulls and returns (codes, wrong, texts): `wrong` marks values
outside the domain, or is None; `texts` are the raw texts of a text attribute.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from tamis.encode.codes import (
    BooleanCodec,
    Codec,
    DecimalCodec,
    IntegerCodec,
    NameCodec,
    OpaqueCodec,
    TextCodec,
    TimestampCodec,
)
from tamis.encode.dynamic_codes import DynamicCodec, key_of, number_of_key
from tamis.encode.encoder import Encoder
from tamis.encode.labels import Labels
from tamis.files.arrays import Bools, Floats, Int64s
from tamis.model.domain import INT_HIGH, INT_LOW, RefusalError

Wrong = Bools | None
RawTexts = tuple[list[str], Int64s] | None
_INFINITY_BITS = 0x7FF0000000000000
_EXACT = 2.0**53
_FEW = 48  # constants
# The usual forms of a time in text, of which Arrow's reader and ours think the same.
_USUAL_TIME = r"^[1-9]\d{3}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$"


def column_codes(
    encoder: Encoder, at: int, array: pa.Array, *, texts: bool = True
) -> tuple[Int64s, Wrong, RawTexts]:
    """Encode a column with the codec of the attribute at position `at`.

    Without `texts`, those of a dynamic attribute may be left out.
    """
    codec = encoder.codecs[at]
    if isinstance(codec, OpaqueCodec):
        return np.zeros(len(array), np.int64), None, None
    if isinstance(codec, DynamicCodec):
        codes = None if texts else _number_codes(encoder.labels[at], array)
        return _dynamic_codes(encoder, at, array) if codes is None else (codes, None, None)
    if isinstance(codec, TextCodec):
        return _text_codes(encoder, at, array)
    if isinstance(codec, NameCodec) or is_text(array.type):  # names, and timestamps in text
        times = _usual_times(array) if isinstance(codec, TimestampCodec) else None
        if times is not None:
            return times, None, None
        found = _one_by_one(codec, array) if is_text(array.type) else _all_wrong(array)
        return (*found, None)
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(codec, IntegerCodec):
        if types.is_decimal(array.type):
            return (*_one_by_one(codec, array), None)
        return (*integer_codes(codec, array), None)
    if isinstance(codec, DecimalCodec):
        return (*_decimals(codec, array), None)
    if isinstance(codec, TimestampCodec):
        return (*_timestamps(array), None)
    if isinstance(codec, BooleanCodec) and types.is_boolean(array.type):
        return np.asarray(array).astype(np.int64), None, None
    return (*_all_wrong(array), None)


def _all_wrong(array: pa.Array) -> tuple[Int64s, Wrong]:
    return np.zeros(len(array), np.int64), np.ones(len(array), np.bool_)


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is text, also in a dictionary."""
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def numbers(array: pa.Array) -> NDArray[Any] | None:
    """The buffer of a primitive array as a NumPy view; None for other types."""
    kind = array.type
    number = types.is_integer(kind) or types.is_floating(kind)
    return _buffer(array, kind.to_pandas_dtype()) if number else None


def _buffer(array: pa.Array, dtype: Any) -> NDArray[Any]:
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(0, dtype)
    start = array.offset * np.dtype(dtype).itemsize
    return np.frombuffer(memoryview(data), dtype, len(array), start)


def integer_codes(codec: IntegerCodec, array: pa.Array) -> tuple[Int64s, Wrong]:
    """Integers are their own codes; int64 is not copied."""
    values = numbers(array)
    if values is None:
        return _all_wrong(array)
    if values.dtype.kind == "f":
        reals = values.astype(np.float64)
        with np.errstate(invalid="ignore"):
            wrong = ~(np.floor(reals) == reals)  # 5.0 is 5, 5.5 is wrong
            wrong |= (reals < -(2.0**63)) | (reals >= 2.0**63)
            codes = np.where(wrong, 0, reals).astype(np.int64)
        wrong |= (codes < codec.bottom) | (codes > codec.top - 1)
        return codes, wrong if wrong.any() else None
    if values.dtype == np.uint64:
        codes = values.view(np.int64)
        wrong = values > INT_HIGH
    else:
        codes, wrong = values.astype(np.int64, copy=False), np.zeros(0, np.bool_)
    if codec.bottom > INT_LOW or codec.top <= INT_HIGH:
        outside = (codes < codec.bottom) | (codes > codec.top - 1)
        wrong = wrong | outside if len(wrong) else outside
    return codes, wrong if len(wrong) and wrong.any() else None


def _decimals(codec: DecimalCodec, array: pa.Array) -> tuple[Int64s, Wrong]:
    if types.is_decimal(array.type):
        # Through text: Arrow's own cast multiplies, and is sometimes off by one double.
        exact, array = array, array.cast(pa.string()).cast(pa.float64())
        if (np.abs(np.asarray(array)) >= 2.0**53).any():  # a whole number may have no exact double
            return _one_by_one(codec, exact)
    values = numbers(array)
    if values is None:
        return _all_wrong(array)
    if values.dtype.kind in "iu":
        reals = values.astype(np.float64)
        far = np.abs(reals) >= 2.0**53
        codes, wrong = decimal_codes(reals)
        if far.any():
            inexact = np.zeros(len(values), np.bool_)
            inexact[far] = [int(r) != int(v) for r, v in zip(reals[far], values[far], strict=True)]
            too_big = values > INT_HIGH if values.dtype == np.uint64 else np.zeros(1, np.bool_)
            wrong = inexact | too_big if wrong is None else wrong | inexact | too_big
            wrong = wrong if wrong.any() else None
        return codes, wrong
    return decimal_codes(values.astype(np.float64, copy=False))


def decimal_codes(values: Floats) -> tuple[Int64s, Wrong]:
    """The order-preserving image of the bits; not copied if no value is negative."""
    bits = values.view(np.int64)
    if len(bits) == 0 or (bits.min() >= 0 and bits.max() < _INFINITY_BITS):
        return bits, None
    magnitude = bits & INT_HIGH
    wrong = magnitude >= _INFINITY_BITS
    return np.where(bits < 0, -magnitude, bits), wrong if wrong.any() else None


def _timestamps(array: pa.Array) -> tuple[Int64s, Wrong]:
    kind = array.type
    if types.is_date(kind):
        array = array.cast(pa.timestamp("ms" if types.is_date64(kind) else "s"))
        kind = array.type
    if not types.is_timestamp(kind):
        return _all_wrong(array)
    values: Int64s = _buffer(array, np.int64)
    if kind.unit == "ns":
        codes = values // 1000
        wrong = values % 1000 != 0
    else:
        factor = {"s": 1_000_000, "ms": 1000, "us": 1}[kind.unit]
        low, high = -(-TimestampCodec.bottom // factor), (TimestampCodec.top - 1) // factor
        wrong = (values < low) | (values > high)
        codes = values if factor == 1 else np.where(wrong, 0, values) * factor
    wrong = wrong | (codes < TimestampCodec.bottom) | (codes >= TimestampCodec.top)
    return codes, wrong if wrong.any() else None


def _usual_times(array: pa.Array) -> Int64s | None:
    """Times in text, all at once; None if one has an unusual form or is wrong."""
    if not types.is_string(array.type) or not len(array):
        return None
    if not pc.all(pc.match_substring_regex(array, _USUAL_TIME)).as_py():
        return None
    try:
        codes, wrong = _timestamps(array.cast(pa.timestamp("us", "UTC")))
    except pa.ArrowInvalid:  # for example, 30 February
        return None
    return codes if wrong is None else None


def _dictionary(array: pa.Array) -> tuple[pa.Array, Int64s]:
    """Distinct values, and the index of each row."""
    encoded = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    return encoded.dictionary, np.asarray(encoded.indices).astype(np.int64)


def _text_codes(encoder: Encoder, at: int, array: pa.Array) -> tuple[Int64s, Wrong, RawTexts]:
    if not is_text(array.type):
        return (*_all_wrong(array), None)
    distinct, index = _dictionary(array)
    try:
        texts = distinct.to_pylist()
    except UnicodeDecodeError:
        return (*_all_wrong(array), None)
    domain = encoder.codecs[at].domain
    wrong_texts = np.zeros(len(texts), np.bool_)
    for place, text in enumerate(texts):
        if text is None or len(text) > 100_000:  # shorter texts from Arrow are valid
            try:
                domain.value(text)
            except RefusalError:
                wrong_texts[place] = True
                texts[place] = ""
    codes = np.array(encoder.labels[at].codes(texts), np.int64)
    wrong = wrong_texts[index] if wrong_texts.any() else None
    return codes[index], wrong, (texts, index)


def _dynamic_codes(encoder: Encoder, at: int, array: pa.Array) -> tuple[Int64s, Wrong, RawTexts]:
    """Values of any type, by their keys."""
    if types.is_nested(array.type) or types.is_binary(array.type):
        within = types.is_nested(array.type) and not (
            types.is_struct(array.type) or types.is_map(array.type)
        )
        distinct: list[Any] = [[]] if within else [{}]  # an object, whatever is in it
        index = np.zeros(len(array), np.int64)
    else:
        dictionary, index = _dictionary(array)
        distinct = dictionary.to_pylist()
    domain = encoder.codecs[at].domain
    wrong = np.zeros(len(distinct), np.bool_)
    keys: list[str] = []
    for place, value in enumerate(distinct):
        try:
            keys.append(key_of(domain.value(value)))
        except RefusalError:
            wrong[place] = True
            keys.append("")
    codes = np.array(encoder.labels[at].codes(keys), np.int64)
    return codes[index], wrong[index] if wrong.any() else None, (keys, index)


def _number_codes(labels: Labels, array: pa.Array) -> Int64s | None:
    """The codes of dynamic numbers, all at once; None if they have to be read one by one."""
    values = numbers(array)
    if values is None or 4 * len(values) < len(labels):  # looking up a few is cheaper
        return None
    reals = values.astype(np.float64, copy=False)
    most = _EXACT if values.dtype.kind in "iu" else np.inf
    if len(reals) and not (-most < reals.min() and reals.max() < most):  # NaN is neither
        return None
    every = labels.constants
    first, keys = every.between("2", "3")
    known, rest = np.array([number_of_key(key) for key in keys], np.int64).reshape(-1, 2).T
    constants: NDArray[Any] = known
    asked: NDArray[Any] = reals
    if len(keys) <= _FEW:
        constants = np.where(known < 0, -known | INT_LOW, known).view(np.float64)
        places = np.zeros(len(reals), np.int8)
        for each in constants:  # several times as fast as a search
            places += asked > each
        at: Int64s = places.astype(np.int64)
    else:
        asked = decimal_codes(reals)[0]
        at = np.searchsorted(constants, asked)
    same = np.append(constants, 0)[at] == asked
    exact = same & np.append(rest == 0, False)[at]
    return every.codes_at(first + at, exact)


def _one_by_one(codec: Codec, array: pa.Array) -> tuple[Int64s, Wrong]:
    """Encode each distinct value once, in Python."""
    distinct, index = _dictionary(array)
    try:
        values = distinct.to_pylist()
    except UnicodeDecodeError:
        return _all_wrong(array)
    codes = np.zeros(len(values), np.int64)
    wrong = np.zeros(len(values), np.bool_)
    for place, value in enumerate(values):
        try:
            codes[place] = codec.code(codec.domain.value(value))
        except RefusalError:
            wrong[place] = True
    return codes[index], wrong[index] if wrong.any() else None
