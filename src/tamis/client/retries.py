"""When to try again: only what does no harm twice, after pauses that grow."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tamis.client.call import ServiceCall
from tamis.client.service_error import ServiceError, UnreachableError, read_problem

T = TypeVar("T")
_BUSY = 429  # refused before anything was done
_PASSING = (502, 503, 504)


class Pause(NamedTuple):
    """Wait so many seconds, then try again."""

    seconds: float


@dataclass(frozen=True)
class Retries:
    """How often and how patiently to try again. Pauses double, and are drawn at random up to that.

    Args:
        attempts: how often a request is sent at most.
        first: the longest first pause, in seconds.
        longest: the longest pause, in seconds; a service that asks for more is not asked again.
    """

    attempts: int = 5
    first: float = 0.2
    longest: float = 10.0

    def pause(self, failures: int, asked: float | None = None) -> Pause | None:
        """The pause after so many failures in a row; None: give up."""
        if asked is not None:
            return Pause(asked) if asked <= self.longest else None
        most = min(self.longest, self.first * 2.0 ** min(failures - 1, 30))
        return Pause(random.uniform(most / 2, most))


class Attempts(Generic[T]):
    """The attempts of one request."""

    def __init__(self, call: ServiceCall[T], policy: Retries) -> None:
        self._call, self._policy = call, policy
        self._failures = 0

    def answered(self, status: int, headers: Mapping[str, str], content: bytes) -> T | Pause:
        """What an answer says; a pause if it is worth another attempt."""
        if 200 <= status < 300:
            return self._call.read(content)
        problem = read_problem(status, headers, content)
        if may_pass(problem) and (status == _BUSY or self._call.repeatable):
            return self._again(problem, problem.after)
        raise problem

    def lost(self, why: Exception, *, sent: bool) -> Pause:
        """A pause after a connection failed; `sent`: the service may have got the request."""
        unknown = ", and may have done what was asked" if sent and not self._call.repeatable else ""
        error = UnreachableError(f"the service did not answer{unknown}: {_words(why)}", sent=sent)
        if sent and not self._call.repeatable:
            raise error from why
        return self._again(error, None)

    def _again(self, error: ServiceError | UnreachableError, asked: float | None) -> Pause:
        self._failures += 1
        pause = self._policy.pause(self._failures, asked)
        if self._failures >= self._policy.attempts or pause is None:
            raise error
        return pause


def may_pass(problem: ServiceError) -> bool:
    """Whether the service may do later what it refuses now."""
    return problem.status == _BUSY or problem.status in _PASSING


def _words(why: Exception) -> str:
    return str(why) or type(why).__name__
