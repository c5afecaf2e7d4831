"""The id of a notification: the same from every sender and at every attempt."""

from __future__ import annotations


def notification_id(identity: str, sequence: int, subscription: int | str) -> str:
    """By the identity of the log, the number of the event and the subscription.

    A receiver that gets a message twice knows it by this id.

    >>> notification_id("0123456789abcdef", 42, 7)
    '0123456789ab.42.7'
    """
    return f"{identity[:12]}.{sequence}.{subscription}"
