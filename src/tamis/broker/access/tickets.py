"""Tickets: who has the ticket of a subscription may renew, change or cancel it.

A ticket is an HMAC over the log's identity, the subscription's id and a nonce from the log. The
service stores no tickets: it computes a ticket again to verify it. A repeated request gets the same
ticket.
"""

from __future__ import annotations

import hmac
import os
import secrets
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from tamis.errors import BrokerError
from tamis.files.json_document import read_json, write_json
from tamis.store.subscription_snapshot import Id

NONCE = 16  # bytes
_FORMAT = 1


class TicketOffice:
    """Issues and verifies tickets with the keys of a server.

    A server has keys of several generations. The newest one makes new tickets; the older ones still
    verify the tickets that they have made.
    """

    def __init__(self, identity: str, keys: dict[int, bytes]) -> None:
        self._identity, self._keys = identity, keys
        self.generation = max(keys)

    @classmethod
    def open(cls, path: Path, identity: str, *, new: bool = True) -> TicketOffice:
        """Read the keys of a server. A `new` one, which has made no tickets, gets its first key."""
        if not path.exists():
            if not new:
                raise BrokerError(
                    f"{path}: is missing, and tickets were made with it; put it back from a backup"
                )
            _write(path, {1: secrets.token_bytes(32)})
        return cls(identity, _read(path))

    @staticmethod
    def rotate(path: Path) -> int:
        """Add a key for new tickets; tickets of earlier keys stay valid. Returns its generation."""
        keys = _read(path)
        generation = max(keys) + 1
        _write(path, {**keys, generation: secrets.token_bytes(32)})
        return generation

    def digests(self) -> dict[int, bytes]:
        """What tells whether two services have the same keys, and gives no key away."""
        purpose = f"digest of a server key of {self._identity}".encode()
        return {each: hmac.digest(key, purpose, "sha256") for each, key in self._keys.items()}

    def issue(self, id: Id, nonce: bytes, generation: int | None = None) -> str:
        """The ticket of a subscription."""
        return urlsafe_b64encode(self._mac(id, nonce, generation)).rstrip(b"=").decode()

    def sink_secret(self, id: Id, nonce: bytes, generation: int | None, rotation: int) -> bytes:
        """The secret that signs the webhooks of a subscription; another one for each rotation."""
        return self._mac(id, nonce, generation, f"sink {rotation}")

    def _mac(self, id: Id, nonce: bytes, generation: int | None, purpose: str = "") -> bytes:
        key = self._keys.get(self.generation if generation is None else generation)
        if key is None:
            raise BrokerError(
                f"the server lacks the key of generation {generation}, which made this ticket; put "
                "the file with the keys back"
            )
        # Lengths keep the parts apart, and the type keeps 7 and "7" apart.
        parts = (self._identity, f"{type(id).__name__}:{id}", nonce.hex(), purpose)
        message = "".join(f"{len(part)}:{part}" for part in parts).encode()
        return hmac.digest(key, message, "sha256")

    def verify(self, ticket: str, id: Id, nonce: bytes | None, generation: int | None) -> bool:
        """Whether a ticket belongs to a subscription, in a time that says nothing about it."""
        if nonce is None or generation not in self._keys:
            return False
        right = self.issue(id, nonce, generation)
        return hmac.compare_digest(ticket.encode(errors="replace"), right.encode())


def _write(path: Path, keys: dict[int, bytes]) -> None:
    before = os.umask(0o077)  # nobody else may read it, not even for a moment
    try:
        shown = {str(generation): key.hex() for generation, key in keys.items()}
        write_json(path, {"format": _FORMAT, "keys": shown})
    finally:
        os.umask(before)


def _read(path: Path) -> dict[int, bytes]:
    found: Any = read_json(path, "the keys of a server", BrokerError, newest=_FORMAT).get("keys")
    try:
        keys = {int(generation): bytes.fromhex(key) for generation, key in found.items()}
    except (AttributeError, TypeError, ValueError):
        keys = {}
    if not keys or any(len(key) < 16 for key in keys.values()):
        raise BrokerError(f"{path}: is damaged, it has no keys; put it back from a backup")
    if path.stat().st_mode & 0o077:
        raise BrokerError(f"{path}: others may read it; run `chmod 600 {path}`")
    return keys
