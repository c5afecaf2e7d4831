"""The code of a shape: a function that is generated to validate and encode its events.

For a shape, most of the rules of `Event.of` are decided once: which attributes the event type has,
what is mandatory, what is ignored. What is left is one test and one code for each value. Python
code with nothing else in it takes a tenth of the time of the general way (0.06 µs a value).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Any

import numpy as np

from tamis.encode.batch import Pairs
from tamis.encode.codes import BooleanCodec, Codec, DecimalCodec, IntegerCodec, NameCodec
from tamis.encode.dynamic_codes import DynamicCodec, key_of
from tamis.encode.encoder import Encoder
from tamis.encode.labels import Labels
from tamis.files.arrays import Int32s, Int64s, UInt8s
from tamis.model.domain import INT_HIGH, RefusalError
from tamis.model.schema import EVENT_TYPE, IGNORE, Schema

Codes = Callable[[dict[str, Any]], tuple[Any, ...] | None]
"""The codes of an event, as they are packed; None if it has to go the general way."""

_EXACT = 2**53  # smaller integers are doubles
_LISTS = (list, tuple, set, frozenset)


class EventShape:
    """The attributes that some events bind, and room for the codes of one of them.

    `attribute` ascends. `given` has what the last event packed: the code, or the bits of a decimal,
    where `decimal` is set.
    """

    ignored: tuple[str, ...] = ()

    def __init__(self, attributes: Sequence[int], decimal: Sequence[bool]) -> None:
        self.attribute: Int32s = np.array(attributes, np.int32)
        self.decimal: UInt8s = np.array(decimal, np.uint8)
        self.starts: Int64s = np.array([0, len(attributes)], np.int64)
        room = np.zeros(max(1, len(attributes)), np.int64)
        self.given: Int64s = room[: len(attributes)]
        packed = Struct("".join("d" if each else "q" for each in decimal))
        self.pack, self._pack_into = packed.pack, packed.pack_into
        self._memory = room.data.cast("B")

    def take(self, codes: Sequence[Any]) -> None:
        """Put the codes of an event into `given`."""
        self._pack_into(self._memory, 0, *codes)

    def pairs(self) -> Pairs:
        """The last event, as a batch has it."""
        return Pairs(self.starts, self.attribute, signed(self.given, self.decimal))


class NamedShape(EventShape):
    """The events with some names in some order, and the function that encodes them."""

    def __init__(
        self,
        attributes: Sequence[int],
        decimal: Sequence[bool],
        codes: Codes,
        ignored: tuple[str, ...],
        texts: Mapping[int, Callable[[dict[str, Any]], str]],
    ) -> None:
        super().__init__(attributes, decimal)
        self.codes, self.ignored, self._texts = codes, ignored, texts

    def text(self, attribute: int, event: dict[str, Any]) -> str | None:
        """The text of a text attribute, as patterns see it; None if the shape does not bind it."""
        read = self._texts.get(attribute)
        return None if read is None else read(event)


def signed(given: Int64s, decimal: UInt8s) -> Int64s:
    """The codes of values, from the bits of those that are decimals."""
    return np.where((decimal > 0) & (given < 0), -(given & INT_HIGH), given)


def shape_of(encoder: Encoder, event: Mapping[str, Any]) -> NamedShape | None:
    """The shape of an event, with code that is made for it; None if it has to go another way."""
    schema = encoder.schema
    if schema.is_open or schema.lists:
        return None
    source = _Source(encoder)
    return source.shape(len(event)) if _declared_names(source, schema, event) else None


def _declared_names(source: _Source, schema: Schema, event: Mapping[str, Any]) -> bool:
    """Under declared event types: the names of one type, and the rules R1 to R3."""
    named = event.get(EVENT_TYPE, schema.default_event_type)
    if named not in schema.event_types:
        return False
    view = schema.view((named,))
    if any(use.mandatory and name not in event for name, use in view.items()):
        return False
    source.bind(EVENT_TYPE, named)
    for number, name in enumerate(event):
        if name == EVENT_TYPE:
            continue
        if name in view:
            source.encode(number, name)
        elif schema.unknown == IGNORE and isinstance(name, str) and name not in schema.stems:
            source.ignore(number, name)
        else:
            return False
    return True


class _Source:
    """The source of a function that encodes the events of one shape."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._pairs: list[tuple[int, bool, str]] = []  # attribute, whether a decimal, code
        self._ignored: list[str] = []
        self._texts: dict[int, Callable[[dict[str, Any]], str]] = {}
        self._lines: list[str] = []
        self._objects: dict[str, Any] = {"inf": math.inf}

    def bind(self, name: str, value: Any) -> None:
        """All events of the shape have this value."""
        at = self._encoder.positions[name]
        self._pairs.append((at, False, str(self._encoder.codecs[at].code(value))))

    def encode(self, number: int, name: str) -> None:
        """Test a value of the event, and encode it."""
        at = self._encoder.positions[name]
        codec, labels, value = self._encoder.codecs[at], self._encoder.labels.get(at), f"v{number}"
        code, decimal = value, isinstance(codec, DecimalCodec)
        if isinstance(codec, IntegerCodec):
            self._require(f"type({value}) is int and {codec.bottom} <= {value} < {codec.top}")
        elif decimal:  # NaN is not between
            self._require(
                f"type({value}) is float and -inf < {value} < inf or "
                f"type({value}) is int and -{_EXACT} <= {value} <= {_EXACT}"
            )
        elif isinstance(codec, BooleanCodec):
            self._require(f"{value} is True or {value} is False")
        elif isinstance(codec, NameCodec):
            self._require(f"type({value}) is str")
            self._lines.append(f"{value} = {self._known(codec.codes)}.get({value})")
            self._require(f"{value} is not None")
        elif labels is not None and at not in self._encoder.dynamic:
            self._require(f"type({value}) is str")
            constants, other = self._known(labels), self._known(_code_of(codec, labels))
            self._lines.append(f"c = {constants}.known.get({value})")
            self._lines.append(f"{value} = {other}({value}) if c is None else c")
            self._require(f"{value} is not None")
        else:
            if at not in self._encoder.dynamic:
                self._require(f"{value} is not None")
            self._require(f"not isinstance({value}, {self._known(_LISTS)})")
            self._lines.append(f"{value} = {self._known(_code_of(codec, labels))}({value})")
            self._require(f"{value} is not None")
        self._pairs.append((at, decimal, code))
        if labels is not None:
            self._texts[at] = partial(_text_of, name, codec)

    def ignore(self, number: int, name: str) -> None:
        """Count a value that the schema ignores, unless it is null, or a list that may be empty."""
        value, lists = f"v{number}", self._known(_LISTS)
        self._require(f"{value} is not None and not isinstance({value}, {lists})")
        self._ignored.append(name)

    def shape(self, values: int) -> NamedShape:
        """The shape."""
        self._pairs.sort()
        unpacked = "".join(f"v{number}, " for number in range(values))
        codes = "".join(f"{code}, " for _, _, code in self._pairs)
        first = [f"{unpacked}= event.values()"] if values else []
        body = [*first, *self._lines, f"return ({codes})"]
        source = "def codes(event):\n" + "".join(f"    {line}\n" for line in body)
        exec(compile(source, "<the shape of an event>", "exec"), self._objects)
        attributes, decimal = [each[0] for each in self._pairs], [each[1] for each in self._pairs]
        return NamedShape(
            attributes, decimal, self._objects["codes"], tuple(self._ignored), self._texts
        )

    def _known(self, value: Any) -> str:
        """The name under which the function knows an object."""
        name = f"k{len(self._objects)}"
        self._objects[name] = value
        return name

    def _require(self, test: str) -> None:
        self._lines.append(f"if not ({test}): return None")


def _text_of(name: str, codec: Codec, event: dict[str, Any]) -> str:
    """The text that patterns see in an event whose values are in their domains."""
    value = event[name]
    return key_of(codec.domain.value(value)) if isinstance(codec, DynamicCodec) else value


def _code_of(codec: Codec, labels: Labels | None) -> Callable[[Any], int | None]:
    """The code of any value that is not a list; None if it is not in the domain."""

    def code(value: Any) -> int | None:
        try:
            bound = codec.domain.value(value)
        except RefusalError:
            return None
        if labels is None:
            return codec.code(bound)
        return labels.code(key_of(bound) if isinstance(codec, DynamicCodec) else bound)

    return code
