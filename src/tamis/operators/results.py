"""Results of functions as rows, or as faults.

An answer is a relation over the values that the operator gives. A value that does not fit its
declared kind is a fault: an infinite number or an invalid text would otherwise decide some
comparison by accident, far from here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

from tamis.errors import TamisError, counted
from tamis.model.operator import Fault, Rows
from tamis.operators.operator import Operator

Answers = list[Rows | Fault]
TRUE: Rows = ((),)
FALSE: Rows = ()
MOST = 100_000
"""Rows of an answer. To read these takes a tenth of a second, to read a million takes seconds. A
join gives up after a few such answers."""
_LONGEST = 300  # characters of a reason
_INT64 = 1 << 63
_NUMPY_KINDS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}


class UnfitError(Exception):
    """A value that an operator may not return, or a result that does not fit its declaration."""


def answers(
    operator: Operator, events: Sequence[tuple[Any, ...]], handed: dict[str, Any]
) -> Answers | Fault:
    """Call the function once, for all events of a batch or for a single event.

    Whatever the function does, the result is one answer for each event, or one fault of the whole
    call. Only an interrupt from the keyboard is raised.
    """
    if operator.batch:
        names = operator.columns
        if operator.pairs and handed:  # the same constants for all events
            names = operator.read_as
            handed = {name: [value] * len(events) for name, value in handed.items()}
        columns = zip(*events, strict=True)
        reads: dict[str, Any] = {
            name: list(column) for name, column in zip(names, columns, strict=True)
        }
    else:
        (event,) = events
        reads = dict(zip(operator.read_as, event, strict=True))
    try:
        returned = operator.function(**reads, **handed)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - not even SystemExit may pass
        return raised(error)
    if operator.batch:
        return _batch_rows(returned, len(events), operator.kinds)
    return [rows(returned, operator.kinds)]


def rows(returned: Any, kinds: Sequence[str]) -> Rows | Fault:
    """The relation that a function returned; `kinds` are the declared kinds of its values.

    >>> rows(True, ()), rows(None, ()), rows([3, 4], ("number",)), rows(("a", 1), ("text", "any"))
    (((),), (), ((3,), (4,)), (('a', 1),))
    >>> rows("many", ("number",))
    Fault(reason="nonsense: 'many' is not a number", kind='nonsense')
    """
    if returned is None or returned is False:
        return FALSE
    if returned is True and not kinds:
        return TRUE
    try:
        found = list(islice(returned, MOST + 1)) if isinstance(returned, list) else [returned]
        if not found:
            return FALSE
        if len(found) > MOST:
            raise UnfitError(f"more than {MOST:,} rows")
        if not kinds:
            return _truth(returned)
        if len(kinds) == 1:
            return _relation([(plain_value(each, kinds[0]),) for each in found], kinds)
        return _relation([_row(each, kinds) for each in found], kinds)
    except UnfitError as error:
        return nonsense(str(error))
    except Exception as error:  # noqa: BLE001 - a subclass of list is foreign code
        return nonsense(f"its result cannot be read: {describe(error)}")


def raised(error: BaseException) -> Fault:
    """The fault of a function that raised. A `TamisError` refuses this event only."""
    kind = "refused" if isinstance(error, TamisError) else "raised"
    return Fault(f"{kind}: {describe(error)}", kind)


def nonsense(reason: str) -> Fault:
    """The fault of a function that returned an invalid result."""
    return Fault(f"nonsense: {reason}", "nonsense")


def describe(error: BaseException) -> str:
    """An exception in one line. Its `__str__` is foreign code: it may raise, or be endless."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - as above
        return name
    text = " ".join(text[: 4 * _LONGEST].split())
    return f"{name}: {_cut(text)}" if text else name


def _batch_rows(returned: Any, events: int, kinds: Sequence[str]) -> Answers | Fault:
    """The results of a batch. An invalid one does not affect the others.

    A function that fails for one event of many returns the exception in the place of the result.
    """
    try:
        if not isinstance(returned, list):
            raise UnfitError(f"{shown(returned)} is not a list, but a batch needs one")
        each = list(returned)
        if len(each) != events:
            raise UnfitError(
                f"{counted(len(each), 'result')} for a batch of {counted(events, 'event')}"
            )
    except UnfitError as error:
        return nonsense(str(error))
    except Exception as error:  # noqa: BLE001 - a subclass of list is foreign code
        return nonsense(f"its result cannot be read: {describe(error)}")
    return [raised(one) if isinstance(one, Exception) else rows(one, kinds) for one in each]


def _truth(returned: Any) -> Rows:
    try:
        return TRUE if plain_value(returned, "boolean") else FALSE
    except UnfitError:
        raise UnfitError(
            f"{shown(returned)} is neither True nor False, and the operator declares no values"
        ) from None


def _row(row: Any, kinds: Sequence[str]) -> tuple[Any, ...]:
    if not isinstance(row, tuple) or len(row) != len(kinds):
        raise UnfitError(f"{shown(row)} is not a tuple of {counted(len(kinds), 'value')}")
    return tuple(plain_value(value, kind) for value, kind in zip(row, kinds, strict=True))


def _relation(found: list[tuple[Any, ...]], kinds: Sequence[str]) -> Rows:
    """Each row once. True differs from 1 here, although they are equal in Python."""
    if "any" not in kinds:  # no column can hold both
        return tuple(dict.fromkeys(found))
    once: dict[tuple[tuple[bool, Any], ...], tuple[Any, ...]] = {}
    for row in found:
        once.setdefault(tuple((type(value) is bool, value) for value in row), row)
    return tuple(once.values())


def plain_value(value: Any, kind: str) -> Any:
    """A value as a built-in type; raises `UnfitError` if it is not of the kind."""
    plain = _plain(value)
    if isinstance(plain, bool):
        if kind in ("boolean", "any"):
            return plain
    elif isinstance(plain, int):
        if kind in ("number", "any"):
            if not -_INT64 <= plain < _INT64:
                raise UnfitError("an integer does not fit 64 bits")
            return plain
    elif isinstance(plain, float):
        if kind in ("number", "any"):
            if not math.isfinite(plain):
                raise UnfitError(f"{plain} is not a finite number")
            return plain + 0.0  # -0.0 becomes 0.0
    elif isinstance(plain, str) and kind in ("text", "any"):
        if not plain.isascii():
            try:
                plain.encode()
            except UnicodeEncodeError:
                raise UnfitError("a text has a lone surrogate") from None
        return plain
    wanted = "number, text or boolean" if kind == "any" else kind
    raise UnfitError(f"{shown(value)} is not a {wanted}")


def _plain(value: Any) -> Any:
    """Scalars of NumPy, and subclasses of numbers and text, as built-in types."""
    if type(value) in (bool, int, float, str):
        return value
    # A function that returns a scalar of NumPy has imported it.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        made = _NUMPY_KINDS.get(value.dtype.kind)
        return value if made is None else made(value)
    for ours in (int, float, str):
        if isinstance(value, ours):
            return getattr(ours, f"__{ours.__name__}__")(value)
    return value


def shown(value: Any) -> str:
    """A value in one line; its `__repr__` is foreign code."""
    try:
        return _cut(repr(value))
    except Exception:  # noqa: BLE001 - as above
        return f"a {type(value).__name__}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
