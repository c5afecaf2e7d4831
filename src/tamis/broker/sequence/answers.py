"""Answers that come later, and errors that go where the answer is awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any


class AnsweredWith:
    """A block whose error is the answer of a request. It ends quietly."""

    def __init__(self, answer: Future[Any]) -> None:
        self._answer = answer

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is not None and not self._answer.done():
            self._answer.set_exception(error)
        return isinstance(error, Exception)


def refuse(answers: Iterable[Future[Any]], why: Exception) -> None:
    """Give an error as the answer to all that have no answer yet; a cancelled one has."""
    for answer in answers:
        if not answer.done():
            answer.set_exception(why)


def converted(future: Future[Any], convert: Callable[[Any], Any]) -> Future[Any]:
    """A future with the converted answer of another one."""
    after: Future[Any] = Future()

    def done(answered: Future[Any]) -> None:
        with AnsweredWith(after):
            after.set_result(convert(answered.result()))

    future.add_done_callback(done)
    return after
