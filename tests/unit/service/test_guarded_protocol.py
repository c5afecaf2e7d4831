"""Callers who take nothing of an answer lose the connection; slow ones do not."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

from tamis.service.guarded_protocol import GuardedProtocol


class _Timers:
    """A loop whose time passes when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], object]]] = []

    def call_later(self, seconds: float, work: Callable[..., object], *given: object) -> Mock:
        entry = (seconds, lambda: work(*given))
        self.waiting.append(entry)

        def cancel() -> None:
            self.waiting = [each for each in self.waiting if each is not entry]

        return Mock(cancel=cancel)

    def pass_on(self) -> float:
        """Let the time of the next timer come; how long that took."""
        seconds, work = self.waiting.pop(0)
        work()
        return seconds


def _connection(patience: float) -> tuple[GuardedProtocol, _Timers, Mock]:
    """A connection with an answer that waits, without a socket."""
    made, timers = GuardedProtocol.__new__(GuardedProtocol), _Timers()
    transport = Mock()
    for name, value in (("loop", timers), ("transport", transport), ("flow", Mock())):
        setattr(made, name, value)
    made._reading_time, made._reader_timer = patience, None
    return made, timers, transport


def test_who_takes_nothing_is_cut_off_and_who_takes_little_is_not() -> None:
    connection, timers, transport = _connection(30.0)
    transport.get_write_buffer_size.return_value = 1000
    connection.pause_writing()
    for left in (999, 400, 399):
        transport.get_write_buffer_size.return_value = left
        assert timers.pass_on() == 30.0
        assert not transport.abort.called
    timers.pass_on()
    assert transport.abort.called


def test_nobody_is_waited_for_who_has_taken_enough() -> None:
    connection, timers, transport = _connection(30.0)
    transport.get_write_buffer_size.return_value = 1000
    connection.pause_writing()
    connection.resume_writing()
    assert not timers.waiting


def test_a_server_that_stops_waits_less() -> None:
    connection, timers, transport = _connection(30.0)
    transport.get_write_buffer_size.return_value = 1000
    connection.hurry(2.0)  # nothing waits
    assert not timers.waiting
    connection.pause_writing()
    connection.hurry(5.0)
    assert timers.pass_on() == 2.0
    assert transport.abort.called
