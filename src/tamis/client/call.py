"""Requests as data, and verbs that make them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ServiceCall(Generic[T]):
    """A request, and how to read its answer."""

    method: str
    path: str
    read: Callable[[bytes], T]
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeatable: bool = False  # whether a second attempt does no harm


class Driver(ABC):
    """Sends requests and waits for answers."""

    @abstractmethod
    def perform(self, call: ServiceCall[T]) -> T:
        """Send a request, again if that is safe, and return what its answer says."""


class AsyncDriver(ABC):
    """The same for asyncio."""

    @abstractmethod
    async def perform(self, call: ServiceCall[T]) -> T:
        """Send a request, again if that is safe, and return what its answer says."""


class Verb(Generic[P, T]):
    """A verb of the service, as a method of both clients.

    Its plan makes a request of the arguments. `Client` returns the answer, `AsyncClient` an
    awaitable. So each verb is written once.
    """

    def __init__(self, plan: Callable[P, ServiceCall[T]]) -> None:
        self.plan = plan
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...

    @overload
    def __get__(self, client: Driver, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: AsyncDriver, owner: type) -> Callable[P, Awaitable[T]]: ...

    def __get__(self, client: Driver | AsyncDriver | None, owner: type) -> Any:
        if client is None:
            return self
        perform = client.perform

        @wraps(self.plan)
        def ask(*arguments: P.args, **options: P.kwargs) -> Any:
            return perform(self.plan(*arguments, **options))

        return ask
