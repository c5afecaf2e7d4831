"""The base classes of operators in packs.

`pack` can make an operator of a pack several times, under other names and over other attributes.
The operator refuses constants that it can never answer for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tamis.errors import TamisError
from tamis.model.operator import Signature
from tamis.operators.operator import PAIRS, Operator, declared


class PackOperator(Operator):
    """An operator that validates the constants of a condition.

    `validate` takes all arguments of a call, None for a variable. It raises a `TamisError` if no
    event could be answered with them.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        reads: Sequence[str],
        arguments: Mapping[str, str] | None = None,
        gives: Mapping[str, str] | None = None,
        validate: Callable[..., object] | None = None,
        **rest: Any,
    ) -> None:
        function.__name__ = function.__qualname__ = name
        self._validate = validate
        signature = Signature(name, declared(name, arguments, gives), tuple(reads))
        super().__init__(function, signature, **rest)

    def check(self, arguments: Sequence[Any]) -> str | None:
        try:
            if self._validate is not None:
                self._validate(*arguments)
        except TamisError as error:
            return str(error)
        return None


class BatchOperator(PackOperator):
    """An operator over one attribute, in batches.

    `answer` takes a list of values of the attribute, and the arguments by name; with `pairs` a list
    for each argument too. An exception in the place of a result is a fault of one event.
    """

    def __init__(
        self,
        name: str,
        answer: Callable[..., list[Any]],
        *,
        attribute: str,
        run: str = "here",
        pairs: bool = False,
        **rest: Any,
    ) -> None:
        read_as = attribute.replace(".", "_")

        def function(*values: Any, **given: Any) -> list[Any]:
            # A direct call may pass values by position, and one constant for all of them.
            first, *others = values or (given.pop(read_as),)
            if pairs:
                others = [_for_each(each, first) for each in others]
                given = {key: _for_each(each, first) for key, each in given.items()}
            return answer(first, *others, **given)

        function.__module__, function.__doc__ = answer.__module__, answer.__doc__
        batch = PAIRS if pairs else True
        super().__init__(name, function, reads=(attribute,), run=run, batch=batch, **rest)


def _for_each(given: Any, values: Sequence[Any]) -> Any:
    return given if isinstance(given, list) else [given] * len(values)
