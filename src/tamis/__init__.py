"""tamis: a content-based publish/subscribe system.

Subscribers register conditions on the content of events; for each event, tamis finds all matching
subscriptions. Start with `Schema` and `Engine`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.engine import Engine
    from tamis.language import parse
    from tamis.language.dialects import dialects
    from tamis.match.registry import matchers
    from tamis.model.schema import Schema
    from tamis.operators.operator import Operator, operator
    from tamis.operators.registry import Operators
    from tamis.schedule.registry import schedulers

_GetAttribute = Callable[[str], Any]
_Dir = Callable[[], list[str]]

__version__ = "0.1.0"
__all__ = [
    "Engine",
    "Operator",
    "Operators",
    "Schema",
    "TamisError",
    "dialects",
    "matchers",
    "operator",
    "parse",
    "schedulers",
]

# Lazy imports: `import tamis` stays fast, and only an engine that matches loads the compiler.
_WHERE = {
    "Engine": "tamis.engine",
    "Operator": "tamis.operators.operator",
    "Operators": "tamis.operators.registry",
    "Schema": "tamis.model.schema",
    "matchers": "tamis.match.registry",
    "operator": "tamis.operators.operator",
    "schedulers": "tamis.schedule.registry",
    "dialects": "tamis.language.dialects",
    "parse": "tamis.language",
}


def lazy_names(module: str, where: Mapping[str, str]) -> tuple[_GetAttribute, _Dir]:
    """The `__getattr__` and `__dir__` of a module whose names are imported when first used."""

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = getattr(import_module(where[name]), name)
        vars(sys.modules[module])[name] = found
        return found

    return get, lambda: [*vars(sys.modules[module]), *where]


__getattr__, __dir__ = lazy_names(__name__, _WHERE)
