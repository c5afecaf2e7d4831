"""Events under an open schema, encoded as they are looked into.

Of an event of any form, only what conditions mention is looked at, as in `model.open_event`: paths
into nested objects, through lists. What is found has a code each. The attributes that are found, in
order, are the shape of the event for the matcher.

Of JSON in text, only those parts are read: the reader skips the rest, at ten times the speed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypedDict

from tamis.encode.dynamic_codes import key_of
from tamis.encode.encoder import Encoder
from tamis.encode.labels import Labels
from tamis.encode.shapes.shape_code import EventShape
from tamis.model.domain import RefusalError
from tamis.model.dynamic import Dynamic

_DYNAMIC = Dynamic()
_MOST = 256  # shapes that are kept
_DEEP = 64  # objects within objects
_SCALARS = frozenset((str, int, float, bool, type(None)))
_JSON = _SCALARS | {dict, list}
_WHOLE = float(2**63)  # from here on, a reader of JSON may have made a double of an integer

Decode = Callable[[bytes | str], Any]


class OpenEvents:
    """Encodes events for one state of an open schema."""

    def __init__(self, encoder: Encoder) -> None:
        self._paths = encoder.schema.paths
        self._steps = {
            path: {key: _PathKey.of(encoder, name) for key, name in keys.items()}
            for path, keys in self._paths.items()
        }
        self._shapes: dict[tuple[int, ...], EventShape] = {}

    def encode(self, event: Any) -> EventShape | None:
        """The shape of an event, with the event's codes in it; None for the general way."""
        found: list[tuple[int, int]] = []
        try:
            if type(event) is not dict or not self._walk(self._steps[""], event, found, _DEEP):
                return None
        except RefusalError:
            return None
        found = sorted(set(found))
        attributes = tuple([each[0] for each in found])
        shape = self._shapes.get(attributes)
        if shape is None:
            if len(self._shapes) >= _MOST:
                self._shapes.clear()
            shape = self._shapes[attributes] = EventShape(attributes, [False] * len(found))
        shape.take([each[1] for each in found])
        return shape

    def _walk(
        self,
        steps: dict[str, _PathKey],
        node: dict[str, Any],
        found: list[tuple[int, int]],
        depth: int,
    ) -> bool:
        """Add the attributes within an object. False: the event has to go the general way."""
        if len(node) <= len(steps):
            pairs = [(steps[key], value) for key, value in node.items() if key in steps]
        else:
            pairs = [(step, node[key]) for key, step in steps.items() if key in node]
        for (at, labels, inner), value in pairs:
            kind = type(value)
            if kind not in _JSON:
                return False
            if labels is not None:
                for item in value if kind is list else (value,):
                    code = None
                    if type(item) is str:
                        code = labels.known.get("3" + item)
                    elif type(item) is bool:
                        code = labels.known.get("1t" if item else "1f")
                    if code is not None:
                        found.append((at, code))
                    elif _is_plain(item):
                        found.append((at, _code(labels, item)))
                    else:
                        return False
            if inner is not None and kind not in _SCALARS:
                below = self._steps[inner]
                for item in value if kind is list else (value,):
                    if type(item) is dict:
                        if not depth or not self._walk(below, item, found, depth - 1):
                            return False
                    elif type(item) not in _SCALARS:
                        return False
        return True

    @cached_property
    def decode(self) -> Decode:
        """A reader of JSON that skips what nobody looks at."""
        import msgspec

        return msgspec.json.Decoder(self._type("")).decode

    def _type(self, path: str) -> Any:
        """The type of the objects at a path, with the keys that are looked at.

        The reader finds no key beyond ASCII in a `TypedDict`; then all keys are read.
        """
        if not all(map(str.isascii, self._paths[path])):
            return dict[str, Any]
        fields: dict[str, Any] = {}
        for key, name in self._paths[path].items():
            fields[key] = Any
            if name in self._paths:
                fields[key] = self._type(name) | list[Any] | str | int | float | bool | None
        make: Any = TypedDict  # mypy knows it only with fields that are written out
        return make("Object", fields, total=False)


class _PathKey(NamedTuple):
    """What a key of an object leads to: an attribute, attributes further within, or both."""

    at: int
    labels: Labels | None
    inner: str | None

    @staticmethod
    def of(encoder: Encoder, name: str) -> _PathKey:
        inner = name if name in encoder.schema.paths else None
        if name not in encoder.positions:
            return _PathKey(-1, None, inner)
        at = encoder.positions[name]
        return _PathKey(at, encoder.labels[at], inner)


def _is_plain(value: Any) -> bool:
    """Whether a value is as JSON has it. A reader may make a double of a very large integer."""
    kind = type(value)
    if kind is float:
        return bool(-_WHOLE < value < _WHOLE)
    return kind is dict or kind in _SCALARS


def _code(labels: Labels, value: Any) -> int:
    return labels.code(key_of(_DYNAMIC.value(value)))
