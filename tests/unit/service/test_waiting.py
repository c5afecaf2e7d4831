"""Readers that wait for notifications."""

from __future__ import annotations

import asyncio

from tamis.service.waiting import Waiting


def test_a_wake_while_a_page_is_read_is_not_lost() -> None:
    async def read() -> bool:
        waiting = Waiting()
        wake = waiting.next_wake()
        waiting._wake()  # something is found after the page was read, and before the wait
        await waiting.wait(wake, 600)
        return wake.is_set()

    assert asyncio.run(asyncio.wait_for(read(), 60))
