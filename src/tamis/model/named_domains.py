"""Domains of names: enumerations, with an optional partial order, and hierarchies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tamis.errors import SchemaError, suggestion
from tamis.model.condition import MEMBERSHIP, ORDER
from tamis.model.domain import Domain, RefusalError, Text, noun, refuse


class Enumerated(Domain):
    """A fixed set of names, with an optional partial order given as pairs (lower, higher)."""

    kind = "enumerated"

    def __init__(
        self, values: Iterable[str], order: Iterable[tuple[str, str]] | None = None
    ) -> None:
        self.values = _names("enumerated domain", values)
        self.order = None if order is None else tuple((low, high) for low, high in order)
        self._known = frozenset(self.values)
        if self.order is not None:
            self.comparators = (*MEMBERSHIP, *ORDER)
            for pair in self.order:
                for name in pair:
                    if not isinstance(name, str) or name not in self._known:
                        raise SchemaError(f"enumerated domain: {name!r} in 'order' is not a value")
            higher: dict[str, list[str]] = {}
            for low, high in self.order:
                higher.setdefault(low, []).append(high)
            _no_cycle("enumerated domain: the order", higher)

    def value(self, given: object) -> str:
        return _known_name(given, self._known)

    def to_dict(self) -> str | dict[str, Any]:
        document: dict[str, Any] = {"kind": self.kind, "values": list(self.values)}
        if self.order is not None:
            document["order"] = [list(pair) for pair in self.order]
        return document

    def describe(self) -> str:
        ordered = "" if self.order is None else ", ordered"
        return f"enumerated, {_some(self.values)}{ordered}"


class Hierarchy(Domain):
    """Names under "is a kind of": a tree, a forest or a DAG, given as parents of each name."""

    kind = "hierarchy"
    comparators = (*MEMBERSHIP, *ORDER)

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        every: dict[str, tuple[str, ...]] = {}
        for name, above in parents.items():
            every[name] = (above,) if isinstance(above, str) else tuple(dict.fromkeys(above))
        for name in [parent for above in every.values() for parent in above]:
            every.setdefault(name, ())
        self.values = _names("hierarchy", every)
        self.parents = every
        _no_cycle("hierarchy", {name: list(above) for name, above in every.items()})

    @classmethod
    def from_tree(
        cls, tree: Mapping[str, Any], parents: Mapping[str, Iterable[str]] | None = None
    ) -> Hierarchy:
        """From nested mappings, plus further parents if the tree is a DAG."""
        above: dict[str, list[str]] = {}
        stack: list[tuple[str, Any, str | None]] = [
            (name, sub, None) for name, sub in reversed(_children(tree, "tree"))
        ]
        while stack:
            name, below, parent = stack.pop()
            if name in above:
                raise SchemaError(
                    f"hierarchy: {name!r} is in the tree twice; "
                    "list its second parent under 'parents'"
                )
            above[name] = [] if parent is None else [parent]
            stack.extend((child, sub, name) for child, sub in reversed(_children(below, name)))
        for name, extra in (parents or {}).items():
            more = [extra] if isinstance(extra, str) else list(extra)
            above.setdefault(name, []).extend(more)
        return cls(above)

    def value(self, given: object) -> str:
        return _known_name(given, self.parents)

    def to_dict(self) -> str | dict[str, Any]:
        return {"kind": self.kind, "parents": {n: list(above) for n, above in self.parents.items()}}

    def describe(self) -> str:
        return f"hierarchy, {_some(self.values)}"


def _known_name(given: object, known: Collection[str]) -> str:
    if not isinstance(given, str):
        refuse(given, f"is {noun(given)}, expected one of the domain's names")
    if given not in known:
        refuse(given, f"is not a value of the domain{suggestion(given, known)}")
    return str(given)


def _names(where: str, names: Iterable[Any]) -> tuple[str, ...]:
    listed = tuple(names)
    if not listed:
        raise SchemaError(f"{where}: at least one value is needed")
    seen: set[str] = set()
    for name in listed:
        if not isinstance(name, str) or not name:
            raise SchemaError(f"{where}: {name!r} is not a name; put it in quotes")
        if name in seen:
            raise SchemaError(f"{where}: {name!r} is listed twice")
        try:
            Text().value(name)
        except RefusalError as why:
            raise SchemaError(f"{where}: {why}") from None
        seen.add(name)
    return listed


def _children(below: Any, name: str) -> list[tuple[str, Any]]:
    if below is None:
        return []
    if not isinstance(below, Mapping):
        raise SchemaError(f"hierarchy: below {name!r} expected a mapping, got {below!r}")
    return list(below.items())


def _no_cycle(where: str, edges: Mapping[str, list[str]]) -> None:
    """Refuse a cycle, and name it. Iterative depth-first search: hierarchies may be deep."""
    done: set[str] = set()
    for root in edges:
        path: dict[str, None] = {}
        stack: list[tuple[str, int]] = [(root, 0)]
        while stack:
            name, step = stack.pop()
            if step == 0:
                if name in done:
                    continue
                path[name] = None
            onward = edges.get(name, [])
            if step < len(onward):
                stack.append((name, step + 1))
                after = onward[step]
                if after in path:
                    raise SchemaError(f"{where} has a cycle through {after!r} and {name!r}")
                stack.append((after, 0))
            else:
                done.add(name)
                path.pop(name, None)


def _some(values: tuple[str, ...]) -> str:
    shown = ", ".join(values[:5])
    return shown if len(values) <= 5 else f"{shown}, … ({len(values)} values)"
