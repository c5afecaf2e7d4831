"""The requests about webhooks that failed, and about their secrets."""

from __future__ import annotations

from tamis.client.answers import DeadLetterInfo, DeadLetterList, Id
from tamis.client.call import ServiceCall
from tamis.client.plans import fetch, place_of, quoted, send, with_ticket

_PATH = "/v1/dead-letters"


def dead_letters(*, after: int = 0, most: int = 100) -> ServiceCall[DeadLetterList]:
    """The caller's dead letters, oldest first: webhooks that were given up.

    Ask again with the `cursor` of the answer as `after`, until it is None.
    """
    return fetch(_PATH, DeadLetterList, {"after": str(after), "most": str(most)})


def retry_dead_letter(
    letter: DeadLetterInfo | int, *, ticket: str | None = None
) -> ServiceCall[int]:
    """Retry a dead letter, with a full series of attempts. Returns how many are retried: 1."""
    id = letter.id if isinstance(letter, DeadLetterInfo) else letter
    path = f"{_PATH}/{quoted(str(id))}/retry"
    return send("POST", path, None, int, with_ticket(ticket), member="replayed")


def replay(id: Id, *, ticket: str | None = None) -> ServiceCall[int]:
    """Retry all dead letters of a subscription. Returns how many."""
    path = f"{place_of(id)}/sink/replay"
    return send("POST", path, None, int, with_ticket(ticket), member="replayed")


def rotate_secret(id: Id, *, ticket: str | None = None) -> ServiceCall[str]:
    """Make a new secret for the webhooks of a subscription. For a day, both sign."""
    path = f"{place_of(id)}/sink/rotate"
    return send("POST", path, None, str, with_ticket(ticket), member="secret")
