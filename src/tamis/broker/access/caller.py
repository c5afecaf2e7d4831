"""Who calls, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from tamis.errors import BrokerError

PUBLISHER, SUBSCRIBER, READER, ADMIN = "publisher", "subscriber", "reader", "admin"
ROLES = (PUBLISHER, SUBSCRIBER, READER, ADMIN)


class AccessError(BrokerError):
    """A caller who may not do this."""


@dataclass(frozen=True)
class Caller:
    """Who calls: a name and roles. An anonymous caller has no name."""

    name: str | None = None
    roles: frozenset[str] = frozenset()

    @property
    def is_admin(self) -> bool:
        return ADMIN in self.roles

    def owns(self, owner: str | None) -> bool:
        """Whether the caller may act for an owner without a ticket."""
        return self.is_admin or (self.name is not None and self.name == owner)

    def require(self, role: str) -> None:
        """Raise `AccessError` unless the caller has a role; an admin has all."""
        if role not in self.roles and not self.is_admin:
            who = "an anonymous caller" if self.name is None else repr(self.name)
            raise AccessError(f"{who} lacks the role {role}")


ANONYMOUS = Caller(None, frozenset({PUBLISHER, SUBSCRIBER, READER}))
"""Whoever calls without a key, where that is allowed."""
