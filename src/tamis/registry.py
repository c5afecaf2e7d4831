"""A table of what can be named: matchers, schedulers, dialects.

An entry holds a name and the path of what it names. Listing a table imports nothing; an entry is
imported when it is used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from tamis.errors import TamisError, suggestion


class Named(Protocol):
    """What every entry has."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str:
        """`module:object`."""


_Entry = TypeVar("_Entry", bound=Named)


class Registry(Generic[_Entry]):
    """Entries by name. `kind` says in error messages what an entry is, such as "matcher"."""

    def __init__(self, kind: str, error: type[TamisError], entries: dict[str, _Entry]) -> None:
        self._kind, self._error, self._entries = kind, error, entries

    def names(self) -> list[str]:
        """All names, in the order in which they were registered."""
        return list(self._entries)

    def entry(self, name: str) -> _Entry:
        """The entry of a name."""
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            hint = suggestion(name, self._entries) or f"; known: {', '.join(self._entries)}"
            raise self._error(f"unknown {self._kind} {name!r}{hint}") from None

    def load(self, name: str) -> Any:
        """Import what a name stands for."""
        path = self.entry(name).path
        module, _, attribute = path.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise self._error(
                f"{self._kind} {name!r} cannot be imported from {path!r}: {error}"
            ) from error

    def check_options(self, name: str, options: Iterable[str], known: Collection[str]) -> None:
        """Refuse an option that is not known."""
        for option in options:
            if option not in known:
                takes = ", ".join(known) or "none"
                raise self._error(
                    f"{self._kind} {name!r} has no option {option!r}; it takes: {takes}"
                )

    def register(self, new: _Entry) -> None:
        """Add an entry."""
        if not isinstance(getattr(new, "name", None), str) or not isinstance(new.path, str):
            raise self._error(
                f"expected an entry with a name and a path 'module:name', got {new!r}"
            )
        if not new.name:
            raise self._error(f"a {self._kind} needs a name")
        if new.name in self._entries:
            raise self._error(f"a {self._kind} named {new.name!r} is registered already")
        module, colon, attribute = new.path.partition(":")
        if not (module and colon and attribute):
            raise self._error(
                f"{self._kind} {new.name!r}: its path is written 'module:name', got {new.path!r}"
            )
        self._entries[new.name] = new
