"""tamis: a content-based publish/subscribe system.

Subscribers register conditions on the content of events; for each event, tamis finds all matching
subscriptions. Start with `Schema` and `Engine`.
"""

from __future__ import annotations

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


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tamis' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_WHERE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *_WHERE]
