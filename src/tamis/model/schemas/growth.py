"""Growth of a domain: the fifth extension rule.

An enumeration or a hierarchy may get new values. Every pair that is added ("lower than", "is a kind
of") involves a new value, and two values that were there compare as before, also by way of the new
one. So no answer about them changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tamis.errors import SchemaError, suggestion
from tamis.model.domain import Domain
from tamis.model.elements.structs import Structs
from tamis.model.named_domains import Enumerated, Hierarchy

NewValues = Iterable[str] | Mapping[str, str | Iterable[str]]
"""Names; or for a hierarchy, the parents of each."""


def grown_domains(
    domains: Mapping[str, Domain],
    attributes: Mapping[str, Domain],
    name: str,
    values: NewValues,
    order: Iterable[tuple[str, str]],
) -> tuple[dict[str, Domain], dict[str, Domain]]:
    """The domains and attributes of a schema of which a domain has grown, and its equals too.

    The attributes of elements in lists of structs follow.
    """
    where = f"grow domain {name!r}"
    old = domains.get(name) or attributes.get(name)
    if old is None:
        raise SchemaError(f"{where}: unknown domain{suggestion(name, [*domains, *attributes])}")
    new = grown(old, values, order, where)

    def following(domain: Domain) -> Domain:
        if not isinstance(domain, Structs):
            return new if domain == old else domain
        inner = followed(domain.attributes)
        same = all(inner[each] is domain.attributes[each] for each in inner)
        return domain if same else Structs(inner, domain.multiple, domain.element.unknown)

    def followed(given: Mapping[str, Domain]) -> dict[str, Domain]:
        return {each: following(domain) for each, domain in given.items()}

    return followed(domains), followed(attributes)


def grown(
    domain: Domain, values: NewValues, order: Iterable[tuple[str, str]], where: str
) -> Domain:
    """The domain with new values, and with new pairs of its order."""
    made: Domain
    try:
        if isinstance(domain, Enumerated):
            if isinstance(values, str | Mapping):
                raise SchemaError("expected a list of names, and pairs in 'order' if needed")
            pairs = (*(domain.order or ()), *order)
            given = pairs if pairs or domain.order is not None else None
            made = Enumerated((*domain.values, *values), given)
        elif isinstance(domain, Hierarchy):
            if list(order):
                raise SchemaError("a hierarchy has no 'order'; map each name to its parents")
            made = _with_parents(domain, values)
        else:
            raise SchemaError(f"it is {domain.kind}; only enumerations and hierarchies have values")
        if len(made.values) == len(domain.values):
            raise SchemaError("no new values; name one at least")
    except (TypeError, ValueError) as why:
        raise SchemaError(f"{where}: expected names, and pairs of names: {why}") from None
    except SchemaError as why:
        raise SchemaError(f"{where}: {why}") from None
    check_growth(domain, made, where)
    return made


def _with_parents(domain: Hierarchy, values: NewValues) -> Hierarchy:
    if isinstance(values, str):
        raise SchemaError("expected names, or a mapping of names to their parents")
    given = values if isinstance(values, Mapping) else dict.fromkeys(values, ())
    parents = dict(domain.parents)
    for name, above in given.items():
        listed = (above,) if isinstance(above, str) else tuple(above)
        for parent in listed:
            if parent not in parents and parent not in given:
                hint = suggestion(parent, [*parents, *given])
                raise SchemaError(f"{parent!r}, a parent of {name!r}, is not a value{hint}")
        parents[name] = (*parents.get(name, ()), *listed)
    return Hierarchy(parents)


def check_growth(older: Domain, newer: Domain | None, where: str) -> None:
    """Raise unless the newer domain is the older one, or grew from it by the rule."""
    if newer == older:
        return
    if isinstance(older, Structs) and isinstance(newer, Structs):
        _check_structs(older, newer, where)
        return
    if not isinstance(older, Enumerated | Hierarchy) or not isinstance(newer, type(older)):
        raise SchemaError(f"{where} was changed or dropped; a schema only grows")
    if "<" in older.comparators and "<" not in newer.comparators:
        raise SchemaError(f"{where}: its order was dropped; a domain only grows")
    before, after = _above(older), _above(newer)
    word = "<" if isinstance(older, Enumerated) else "is a kind of"
    for name, above in before.items():
        if name not in after:
            raise SchemaError(f"{where}: the value {name!r} was dropped; a domain only grows")
        if after[name] == above:
            continue
        for high in above:
            if high not in after[name]:
                raise SchemaError(f"{where}: {name!r} {word} {high!r} was dropped; it stays")
        for high in after[name]:
            if high in above:
                continue
            if high in before:
                raise SchemaError(
                    f"{where}: {name!r} {word} {high!r} is a new pair of two old values; a new "
                    "pair has a new value"
                )
            for reached in _next_old(high, before, after):
                if reached not in _reachable(name, before):
                    raise SchemaError(
                        f"{where}: {name!r} {word} {reached!r} would begin to hold, by way of the "
                        f"new value {high!r}; old values compare as before"
                    )


def _check_structs(older: Structs, newer: Structs, where: str) -> None:
    """Raise unless the attributes of elements are the same, and their domains grew by the rule."""
    if list(older.attributes) != list(newer.attributes) or older.multiple != newer.multiple:
        raise SchemaError(f"{where}: the attributes of its elements were changed; they stay")
    for name, domain in older.attributes.items():
        check_growth(domain, newer.attributes[name], f"{where}, attribute {name!r}")


def _above(domain: Enumerated | Hierarchy) -> Mapping[str, tuple[str, ...]]:
    """The names directly above each name."""
    if isinstance(domain, Hierarchy):
        return domain.parents
    found: dict[str, dict[str, None]] = {name: {} for name in domain.values}
    for low, high in domain.order or ():
        found[low][high] = None
    return {name: tuple(above) for name, above in found.items()}


def _next_old(
    new: str, before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]
) -> Iterator[str]:
    """The first old names on every way up from a new one."""
    seen, stack = {new}, [new]
    while stack:
        for name in after[stack.pop()]:
            if name not in seen:
                seen.add(name)
                if name in before:
                    yield name
                else:
                    stack.append(name)


def _reachable(start: str, above: Mapping[str, tuple[str, ...]]) -> set[str]:
    seen, stack = {start}, [start]
    while stack:
        fresh = [name for name in above[stack.pop()] if name not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return seen
