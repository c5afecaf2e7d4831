"""Options of matchers. Each is declared once, as a class attribute.

    class Rein(Matcher):
        buckets = whole_number(1000, "buckets of an attribute on each side", least=1)

The declaration validates `Rein(buckets=7)`, parses `--option buckets=7` from the command line, and
fills the option tables in the help and in the documentation. On an instance the attribute is the
value: `self.buckets`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from tamis.errors import MatcherError, nearest

T = TypeVar("T")
_LARGEST = 1_000_000  # for numbers of parts of an index: beyond it they only waste memory
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Option(Generic[T]):
    """One option: its default, its meaning in one sentence, and its valid values."""

    def __init__(
        self,
        default: T,
        meaning: str,
        values: str,
        valid: Callable[[Any], bool],
        read: Callable[[str], Any] = str,
        saved: bool = True,
    ) -> None:
        self.name = ""
        self.default, self.meaning = default, meaning
        self.values = values  # the valid values, in words: "a number from 1"
        self.saved = saved  # False for secrets and values of one machine: a saved index omits them
        self._valid, self._read = valid, read
        if not valid(default):
            raise MatcherError(f"the default {default!r} of an option is not {values}")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, matcher: None, owner: type) -> Option[T]: ...

    @overload
    def __get__(self, matcher: object, owner: type) -> T: ...

    def __get__(self, matcher: object | None, owner: type) -> Option[T] | T:
        return self if matcher is None else self.default

    if TYPE_CHECKING:  # no __set__ at run time: instance attributes stay as fast as any other

        def __set__(self, matcher: object, value: T) -> None: ...

    def validate(self, value: Any) -> T:
        """Return the value if it is valid; otherwise raise a `MatcherError`."""
        if not self._valid(value):
            raise self._refusal(value)
        valid: T = value
        return valid

    def parse(self, text: str) -> T:
        """The value of a text from the command line."""
        try:
            value = self._read(text)
        except ValueError:
            raise self._refusal(text) from None
        return self.validate(value)

    def _refusal(self, value: Any) -> MatcherError:
        return MatcherError(f"{self.name} must be {self.values}, got {value!r}")


def whole_number(
    default: int, meaning: str, *, least: int, most: int = _LARGEST, saved: bool = True
) -> Option[int]:
    """An option whose value is a whole number."""
    values = f"a whole number from {least} to {most:,}"

    def valid(value: Any) -> bool:
        return type(value) is int and least <= value <= most

    return Option(default, meaning, values, valid, int, saved)


def real_number(default: float, meaning: str, *, least: float, most: float = inf) -> Option[float]:
    """An option whose value is a number, whole or not."""
    values = f"a number from {least:g}" + ("" if most == inf else f" to {most:g}")

    def valid(value: Any) -> bool:
        return type(value) in (int, float) and least <= value <= most

    return Option(default, meaning, values, valid, float)


def flag(default: bool, meaning: str) -> Option[bool]:
    """An option whose value is True or False."""
    return Option(default, meaning, "True or False", lambda value: isinstance(value, bool), _truth)


def choice(default: str, meaning: str, *choices: str) -> Option[str]:
    """An option whose value is one of a few words. The default is one of them."""
    values = " or ".join(map(repr, choices)) if len(choices) < 3 else f"one of {', '.join(choices)}"
    return Option(
        default, meaning, values, lambda value: isinstance(value, str) and value in choices
    )


def _truth(text: str) -> bool:
    try:
        return _TRUTH[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def check_declarations(kind: type, taken: set[str]) -> None:
    """Refuse options of a class whose names are taken, and options replaced by plain values."""
    for name, option in declared(kind).items():
        if name in taken:
            raise MatcherError(
                f"{kind.__name__} cannot name an option {name!r}: Matcher or Engine uses that name"
            )
        if getattr(kind, name) is not option:
            raise MatcherError(
                f"{kind.__name__}.{name} replaces an option; declare the option again, with its "
                "new default"
            )


def declared(kind: type) -> dict[str, Option[Any]]:
    """The options of a class by name. Those of its base classes come first."""
    return {
        name: value
        for base in reversed(kind.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, Option)
    }


def chosen(kind: type, name: str) -> Option[Any]:
    """An option of a class, by name."""
    options = declared(kind)
    if name not in options:
        takes = f"it takes: {', '.join(options)}" if options else "it takes no options"
        hint = nearest(name, options)
        raise MatcherError(
            f"{kind.__name__} has no option {name!r}; " + (f"{hint}; {takes}" if hint else takes)
        )
    return options[name]


def validated(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all options of a class: the given ones, validated, and defaults."""
    values = {name: option.default for name, option in declared(kind).items()}
    return values | {name: chosen(kind, name).validate(value) for name, value in given.items()}
