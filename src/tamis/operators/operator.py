"""Operators: plain functions, with the declarations that conditions need.

    @tamis.operator(reads=("position",), arguments={"place": "text"}, gives={"metres": "number"})
    def distanceFrom(position, place): ...

makes `distanceFrom(Bronx, ?metres) and ?metres < 500` a condition. The declarations are compared
with the parameters of the function at once: a mistake shows when the module is imported, not with
the first event.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, Self, overload

from tamis.errors import OperatorError, TamisError, counted, nearest, suggestion
from tamis.model.condition import NAME
from tamis.model.operator import KINDS, Parameter, Signature
from tamis.model.printer import KEYWORDS, constant_text
from tamis.operators.serialization import PackCall, reduce_operator

PLACES = ("here", "thread", "process")
PAIRS = "pairs"
LONGEST = 86_400.0  # seconds: no cost and no timeout exceeds a day


class Operator:
    """An operator: callable like its function, and known to conditions by its name.

    `cost` is an estimate in milliseconds, `timeout` in seconds; `run` says where it is called:
    "here" (inline), in a "thread", or in a worker "process". The decorator `operator` makes one.
    """

    function: Callable[..., Any]
    pure = True  # its results are remembered
    pack_call: tuple[PackCall, int] | None = None  # of a pack: the call that makes it again

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        *,
        cost: float = 1.0,
        timeout: float = 1.0,
        run: str = "thread",
        batch: bool | str = False,
        pure: bool = True,
    ) -> None:
        # The decorator may be applied again, for another name.
        self.function = function.function if isinstance(function, Operator) else function
        self.signature = signature
        self.cost, self.timeout, self.run, self.batch = cost, timeout, run, batch
        self.pure = pure
        _check(self)
        self.kinds = tuple(each.kind for each in signature.parameters if each.free)
        self.read_as = tuple(name.replace(".", "_") for name in signature.reads)
        # A free parameter is passed only if the function has a parameter of its name; **rest is not
        # one.
        named = _parameters(self.function, signature.name)
        self._handed = tuple(
            (place, each.name)
            for place, each in enumerate(signature.parameters)
            if not each.free or (each.name in named and named[each.name].kind not in _VARIADIC)
        )
        # The parameters that are lists in a batch.
        self.columns = self.read_as
        if self.pairs:
            self.columns += tuple(name for _, name in self._handed)
        update_wrapper(self, self.function, updated=())

    @property
    def name(self) -> str:
        """The name it has in conditions."""
        return self.signature.name

    @property
    def pairs(self) -> bool:
        """Whether one call may answer for several events with different constants."""
        return self.batch == PAIRS

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def check(self, arguments: Sequence[Any]) -> str | None:
        """Why no event could be answered with these constants; None if they are valid.

        `arguments` as in `handed`. Called for each new subscription: it is better to refuse a
        mistake at once than to fail at every event. An operator that knows its constants, such as
        the names of places, overrides this.
        """
        return None

    def refusal(self, arguments: Sequence[Any]) -> str | None:
        """The result of `check`; raises `OperatorError` if `check` itself fails.

        It is foreign code. The error has to name the operator at fault: a `KeyError` from an
        unknown module would not help the subscriber.
        """
        from tamis.operators.results import describe, shown

        blamed = f"operator {self.name!r}: its check of {shown(arguments)}"
        try:
            wrong: Any = self.check(arguments)
        except TamisError as error:  # a refusal too
            return str(error)
        except Exception as error:
            raise OperatorError(f"{blamed} raised {describe(error)}") from error
        if wrong is None or (isinstance(wrong, str) and wrong):
            return wrong
        raise OperatorError(
            f"{blamed} has to return a text that says what is wrong, or None, not {shown(wrong)}"
        )

    def handed(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """The constants that the function gets, by name.

        `arguments` has one entry for each parameter, None where the condition has a variable.
        """
        if len(arguments) != len(self.signature.parameters):
            takes = counted(len(self.signature.parameters), "argument")
            raise OperatorError(f"operator {self.name!r} takes {takes}, got {len(arguments)}")
        return {name: _plain(arguments[place]) for place, name in self._handed}

    def key(self, arguments: Sequence[Any]) -> Hashable:
        """Calls with equal keys return equal rows: the function gets the same arguments.

        True, 1 and 1.0 are different keys, although they are equal in Python: a function may
        distinguish them.
        """
        return key_of(self.handed(arguments))

    def shown(self, key: Hashable) -> str:
        """A call with the constants of a key, as in a condition; a variable for what is not handed.

        >>> parameters = Parameter("place", "text", False), Parameter("miles", "number", True)
        >>> far = Operator(lambda at, place: 9, Signature("far", parameters, ("at",)))
        >>> far.shown(far.key(["SFO", None]))
        'far("SFO", ?miles)'
        """
        assert isinstance(key, tuple)
        handed = {place: value for (place, _), (_, value) in zip(self._handed, key, strict=True)}
        given = [
            constant_text(handed[place]) if handed.get(place) is not None else f"?{each.name}"
            for place, each in enumerate(self.signature.parameters)
        ]
        return f"{self.name}({', '.join(given)})"

    def __repr__(self) -> str:
        given = ", ".join(
            f"?{each.name}" if each.free else each.name for each in self.signature.parameters
        )
        return f"<operator {self.name}({given}) on {', '.join(self.signature.reads) or 'nothing'}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_operator(self, lambda: super(Operator, self).__reduce_ex__(protocol))

    def __copy__(self) -> Self:
        return self  # as a function is its own copy

    def __deepcopy__(self, memo: object) -> Self:
        return self


@overload
def operator(function: Callable[..., Any], /) -> Operator: ...
@overload
def operator(
    *,
    name: str | None = None,
    reads: Iterable[str] = (),
    arguments: Mapping[str, str] | None = None,
    gives: Mapping[str, str] | None = None,
    cost: float = 1.0,
    timeout: float = 1.0,
    run: str = "thread",
    batch: bool | str = False,
    pure: bool = True,
) -> Callable[[Callable[..., Any]], Operator]: ...
def operator(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    reads: Iterable[str] = (),
    arguments: Mapping[str, str] | None = None,
    gives: Mapping[str, str] | None = None,
    cost: float = 1.0,
    timeout: float = 1.0,
    run: str = "thread",
    batch: bool | str = False,
    pure: bool = True,
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Turn a function into an operator, and register it for every engine of this process.

    Args:
        function: what to call.
        name: the name in conditions; the default is that of the function.
        reads: attributes of the event. The function gets their values by name; dots become
            underscores.
        arguments: names and kinds of the constants in a condition. The function gets them by name.
        gives: names and kinds of the values it returns, for variables. The function gets the
            constant that stands in the place of a variable (else None) if it has a parameter of
            that name.
        cost: an estimate of a call, in milliseconds.
        timeout: of a call, in seconds.
        run: where it is called: "here" (inline), in a "thread", or in a worker "process".
        batch: whether it is called with many events; see below.
        pure: whether the result depends on the parameters alone, and may be remembered.

    Kinds are "number", "text", "boolean" and "any".

    The function returns True or False if it gives no values; a value or a list of values if it
    gives one; a tuple or a list of tuples if it gives several. None, False and [] are false. With
    `batch` it gets a list for each attribute, with one entry per event, and returns a list of
    results; an exception in the place of a result is a fault of this event alone. With
    `batch="pairs"` it also gets a list for each argument, with one entry per event.

    >>> @operator(reads=("position.altitude",), arguments={"metres": "number"}, run="here")
    ... def above(position_altitude, metres):
    ...     return position_altitude > metres
    >>> above
    <operator above(metres) on position.altitude>
    >>> above(30, 20)
    True
    """
    from tamis.operators.registry import register

    def make(function: Callable[..., Any]) -> Operator:
        called = name if name is not None else getattr(function, "__name__", None)
        if not callable(function):
            raise OperatorError(f"@operator takes a function, not {function!r}")
        if called is None:
            raise OperatorError(f"{function!r} has no name; pass one: operator(name=...)")
        signature = Signature(called, declared(called, arguments, gives), _names(called, reads))
        made = Operator(
            function, signature, cost=cost, timeout=timeout, run=run, batch=batch, pure=pure
        )
        return register(made)

    return make if function is None else make(function)


_UNFIT = (
    inspect.iscoroutinefunction,
    inspect.isasyncgenfunction,
    inspect.isgeneratorfunction,
)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def key_of(handed: Mapping[str, Any]) -> Hashable:
    """The key of constants: equal only if a function cannot tell them apart."""
    return tuple((type(value), value) for value in handed.values())


def _plain(value: Any) -> Any:
    """A constant of a condition as a built-in type; -0.0 becomes 0.0."""
    if isinstance(value, str):
        return str.__str__(value)
    return value + 0.0 if type(value) is float else value


def _names(called: str, reads: Iterable[str]) -> tuple[str, ...]:
    names = (reads,) if isinstance(reads, str) else reads
    found = tuple(names) if isinstance(names, Iterable) else (names,)
    for each in found:
        if not isinstance(each, str) or not each:
            raise _wrong(
                called,
                f"'reads' holds names of attributes, not {each!r}; "
                'for one attribute write reads=("position",), for none omit it',
            )
    return found


def declared(
    called: str, arguments: Mapping[str, str] | None, gives: Mapping[str, str] | None
) -> tuple[Parameter, ...]:
    """The parameters of an operator in a condition, from the mappings in its declaration."""
    found: list[Parameter] = []
    for word, given in (("arguments", arguments), ("gives", gives)):
        if not isinstance(given, Mapping | None):
            raise _wrong(
                called,
                f"{word!r} is a mapping from name to kind, "
                f'such as {{"place": "text"}}, not {given!r}',
            )
        for name, kind in (given or {}).items():
            if not isinstance(name, str) or not name.isidentifier():
                raise _wrong(called, f"{name!r} in {word!r} is not a valid name of a parameter")
            if kind not in KINDS:
                hint = suggestion(kind, KINDS)
                raise _wrong(called, f"unknown kind {kind!r} of {name!r}{hint}")
            found.append(Parameter(name, kind, word == "gives"))
    return tuple(found)


def _wrong(called: str, what: str) -> OperatorError:
    return OperatorError(f"operator {called!r}: {what}")


def _parameters(function: Callable[..., Any], called: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        what = f"the parameters of {function!r} are unknown; wrap it in a function of your own"
        raise _wrong(called, what) from None


def _check(made: Operator) -> None:
    """Refuse an operator that can never be called, or not as its author thinks."""
    called = made.signature.name
    if not isinstance(called, str) or not NAME.fullmatch(called):
        raise OperatorError(
            f"an operator cannot be named {called!r}: letters, digits and underscores, "
            "not a digit first; operator(name=...) gives another name"
        )
    if called.lower() in KEYWORDS:
        raise OperatorError(f"an operator cannot be named {called!r}: conditions use this word")
    _check_numbers(made)
    if made.run not in PLACES:
        raise _wrong(called, f"unknown run={made.run!r}; known are {', '.join(PLACES)}")
    if not isinstance(made.pure, bool):
        raise _wrong(called, f"pure is True or False, not {made.pure!r}")
    if not isinstance(made.batch, bool) and made.batch != PAIRS:
        raise _wrong(called, f'batch is True, False or "pairs", not {made.batch!r}')
    if made.batch and not made.signature.reads:
        raise _wrong(
            called,
            f"batch={made.batch!r} needs an attribute to read; "
            "without one, the number of events is unknown",
        )
    if any(unfit(made.function) for unfit in _UNFIT):
        raise _wrong(
            called,
            "an operator is a plain function that returns its result, "
            "not one that awaits or yields",
        )
    _check_parameters(made)


def _check_numbers(made: Operator) -> None:
    for word, number, unit, day in (
        ("cost", made.cost, "milliseconds", 1000 * LONGEST),
        ("timeout", made.timeout, "seconds", LONGEST),
    ):
        real = isinstance(number, int | float) and not isinstance(number, bool)
        # An integer may be too large to print or to convert to a float: only compare it.
        if not real or not number > 0 or number == math.inf:
            what = f"{word} is a number of {unit} above 0, not {_number(number)}"
            raise _wrong(made.name, what)
        if number > day:
            what = f"a {word} of {_number(number)} {unit} is more than a day"
            raise _wrong(made.name, what)


def _number(given: object) -> str:
    if isinstance(given, int) and abs(given) >= 10**20:
        return "such a large number" if given > 0 else "a negative number"
    return repr(given)


def _check_parameters(made: Operator) -> None:
    called, signature = made.signature.name, made.signature
    taken: dict[str, str] = {}
    declared = [(name.replace(".", "_"), f"the attribute {name!r}") for name in signature.reads]
    declared += [
        (each.name, f"{'the value' if each.free else 'the argument'} {each.name!r}")
        for each in signature.parameters
    ]
    for name, what in declared:
        if name in taken:
            raise _wrong(called, f"{taken[name]} and {what} are both passed as {name!r}")
        taken[name] = what
    free = {each.name for each in signature.parameters if each.free}
    parameters = _parameters(made.function, called)
    kinds = {each.kind for each in parameters.values()}
    for name, parameter in parameters.items():
        if parameter.kind in _VARIADIC:
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise _wrong(
                called,
                f"its parameter {name!r} is positional-only, "
                "but operators get all parameters by name",
            )
        if name not in taken and parameter.default is inspect.Parameter.empty:
            hint = nearest(name, taken)
            raise _wrong(
                called,
                f"its parameter {name!r} is neither read from the event nor "
                "an argument; name it in 'reads' or 'arguments'" + (f" ({hint})" if hint else ""),
            )
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return
    named = [name for name, each in parameters.items() if each.kind not in _VARIADIC]
    for name, what in taken.items():
        if name not in named and name not in free:
            hint = nearest(name, named)
            if inspect.Parameter.VAR_POSITIONAL in kinds:
                hint = "a *parameter takes positional values only; name it, or take **rest"
            raise _wrong(
                called,
                f"{what} is passed as {name!r}, but the function has "
                "no parameter of that name" + (f" ({hint})" if hint else ""),
            )
