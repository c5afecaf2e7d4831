"""Names with dots as paths into nested objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Paths = Mapping[str, Mapping[str, str]]
"""By path of an object within an event: the keys to look at in it, each with its own path."""


def object_paths(names: Iterable[str]) -> Paths:
    """The paths of attributes. A key of an object may have dots itself.

    >>> object_paths(["user.login"])
    {'': {'user': 'user', 'user.login': 'user.login'}, 'user': {'login': 'user.login'}}
    """
    paths: dict[str, dict[str, str]] = {"": {}}
    for name in names:
        parts = name.split(".") if all(name.split(".")) else [name]
        for start in range(len(parts)):
            inside = paths.setdefault(".".join(parts[:start]), {})
            for end in range(start + 1, len(parts) + 1):
                inside[".".join(parts[start:end])] = ".".join(parts[:end])
    return paths
