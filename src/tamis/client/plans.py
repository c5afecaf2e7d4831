"""The requests of the verbs, and how their answers are read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from tamis.client import strict_json
from tamis.client.answers import (
    BulkLine,
    ExplainedEvent,
    Id,
    KeyInfo,
    LeaseReceipt,
    NotificationPage,
    SubscriptionInfo,
    SubscriptionList,
)
from tamis.client.call import ServiceCall
from tamis.errors import TamisError

T = TypeVar("T")
DAY = timedelta(days=1)
NATIVE = "tamis"
_TICKET = "Tamis-Ticket"
_JSON = {"Content-Type": "application/json"}
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


# -- subscriptions --------------------------------------------------------------------------------


def subscribe(
    condition: str,
    *,
    lease: timedelta | None = DAY,
    name: str | None = None,
    sink: str | Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    language: str = NATIVE,
    id: str | None = None,
    request_key: str | None = None,
) -> ServiceCall[LeaseReceipt]:
    """Subscribe for the length of a lease; None for no end.

    `sink` is the URL of a webhook, or a dict with its options. `id` is only for logs with text ids.
    Requests with the same `request_key` subscribe once. By default the client makes a key, so that
    it can safely retry.
    """
    body = {
        "condition": condition,
        "lease": _seconds(lease),
        "name": name,
        "sink": _sink(sink),
        "metadata": metadata,
        "language": language,
        "id": id,
    }
    key = secrets.token_hex(16) if request_key is None else request_key
    given = {name: value for name, value in body.items() if value is not None or name == "lease"}
    return send(
        "POST", "/v1/subscriptions", given, LeaseReceipt, {"Idempotency-Key": key}, repeatable=True
    )


def show(id: Id, *, ticket: str | None = None) -> ServiceCall[SubscriptionInfo]:
    """Show a live subscription. Its owner calls with a key, others with its ticket."""
    return fetch(place_of(id), SubscriptionInfo, headers=with_ticket(ticket))


def list_page(
    *,
    q: str | None = None,
    owner: str | None = None,
    cursor: Id | None = None,
    most: int = 100,
) -> ServiceCall[SubscriptionList]:
    """List the caller's live subscriptions, a page at a time: those whose condition contains `q`.

    An admin sees those of all owners, or of one. `subscriptions` goes through all pages.
    """
    params = {"most": str(most)}
    params |= {} if owner is None else {"owner": owner}
    params |= {} if q is None else {"q": q}
    params |= {} if cursor is None else {"cursor": str(cursor)}
    return fetch("/v1/subscriptions", SubscriptionList, params)


def update(
    id: Id,
    *,
    ticket: str | None = None,
    condition: str | None = None,
    name: str | None = None,
    sink: str | Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    remove: Iterable[str] = (),
) -> ServiceCall[SubscriptionInfo]:
    """Change what is given. The rest stays as it is, including the lease and the ticket.

    `remove` names what the subscription is to have no more: `name`, `sink` or `metadata`.
    """
    body = {"condition": condition, "name": name, "sink": _sink(sink), "metadata": metadata}
    given = dict.fromkeys(remove) | {
        name: value for name, value in body.items() if value is not None
    }
    return send(
        "PATCH", place_of(id), given, SubscriptionInfo, with_ticket(ticket), repeatable=True
    )


def renew(
    id: Id, lease: timedelta | None = DAY, *, ticket: str | None = None
) -> ServiceCall[SubscriptionInfo]:
    """Renew the lease, counted from now; None for no end."""
    body = {"lease": _seconds(lease)}
    path = f"{place_of(id)}/renew"
    return send("POST", path, body, SubscriptionInfo, with_ticket(ticket), repeatable=True)


def cancel(id: Id, *, ticket: str | None = None) -> ServiceCall[None]:
    """Cancel a live subscription."""
    return delete(place_of(id), with_ticket(ticket))


def subscribe_many(
    subscriptions: Iterable[Mapping[str, Any]],
    *,
    together: bool = False,
    request_key: str | None = None,
) -> ServiceCall[list[BulkLine]]:
    """Subscribe to many conditions in one request; the answer has a line for each, in order.

    Each is a dict with a `condition` and the other arguments of `subscribe`; `lease` is in seconds.
    The line of a wrong one has an `error`, and the others take effect. With `together`, a wrong one
    refuses all. By default, the service accepts 16 MiB in a request.
    """
    key = secrets.token_hex(16) if request_key is None else request_key
    return ServiceCall(
        "POST",
        "/v1/subscriptions/bulk",
        _bulk_lines,
        {"together": "true"} if together else {},
        {"Content-Type": "application/x-ndjson", "Idempotency-Key": key},
        b"\n".join(map(_encoded, subscriptions)),
        repeatable=True,
    )


# -- notifications --------------------------------------------------------------------------------


def poll(
    subscription: Id | None = None,
    *,
    ticket: str | None = None,
    after: int | None = None,
    wait: float = 0,
    most: int = 1000,
    body: str | None = None,
) -> ServiceCall[NotificationPage]:
    """Read notifications after a cursor: of one subscription, or of all that the caller may read.

    Waits up to `wait` seconds for the first one. Without `after`, only new ones come. Pass the
    `cursor` of the answer as `after` in the next call. `body` says how much of an event to show:
    `event`, `none`, or names of attributes, separated by commas; by default, as the subscription
    asks.
    """
    params = {"wait": str(round(wait)), "most": str(most)}
    params |= {} if body is None else {"body": body}
    params |= {} if after is None else {"after": str(after)}
    path = notifications_path(subscription)
    return fetch(path, NotificationPage, params, with_ticket(ticket), read=_page)


def notifications_path(subscription: Id | None) -> str:
    """The path of the notifications of a subscription, or of all."""
    return (
        "/v1/notifications" if subscription is None else f"{place_of(subscription)}/notifications"
    )


def cursor(consumer: str) -> ServiceCall[int]:
    """The cursor that a consumer of the caller has stored."""
    return fetch(f"/v1/consumers/{quoted(consumer)}/cursor", int, member="cursor")


def set_cursor(consumer: str, cursor: int) -> ServiceCall[int]:
    """Store how far a consumer has read; on disk when this returns."""
    path = f"/v1/consumers/{quoted(consumer)}/cursor"
    return send("PUT", path, {"cursor": cursor}, int, repeatable=True, member="cursor")


# -- events ---------------------------------------------------------------------------------------


def event(number: int) -> ServiceCall[dict[str, Any]]:
    """An event by its sequence number: the attributes that conditions see."""
    return fetch(f"/v1/events/{number}", dict[str, Any])


# -- questions ------------------------------------------------------------------------------------


def check(condition: str, *, language: str = NATIVE) -> ServiceCall[None]:
    """Check a condition as a subscribe would; raises `ServiceError` with the place of a mistake."""
    body = {"condition": condition, "language": language}
    return ServiceCall(
        "POST", "/v1/check", _nothing, {}, _JSON, msgspec.json.encode(body), repeatable=True
    )


def explain(
    condition: str, event: Mapping[str, Any], *, language: str = NATIVE
) -> ServiceCall[ExplainedEvent]:
    """Explain why an event satisfies a condition or not."""
    body = {"condition": condition, "event": event, "language": language}
    return send("POST", "/v1/explain", body, ExplainedEvent, repeatable=True)


def match(event: Mapping[str, Any]) -> ServiceCall[list[Id]]:
    """The caller's subscriptions that an event would match now. Nothing is published."""
    return send(
        "POST", "/v1/match", {"event": event}, list[Id], repeatable=True, member="subscriptions"
    )


def ready() -> ServiceCall[None]:
    """Whether the service serves; raises `ServiceError` or `UnreachableError` if not."""
    return ServiceCall("GET", "/readyz", _nothing)


# -- keys -----------------------------------------------------------------------------------------


def create_key(name: str, roles: Sequence[str]) -> ServiceCall[str]:
    """Create an API key and return it. It is not shown again. For admins."""
    body = {"name": name, "roles": list(roles)}
    return send("POST", "/v1/keys", body, str, member="key")


def list_keys() -> ServiceCall[list[KeyInfo]]:
    """All API keys, without their secrets. For admins."""
    return fetch("/v1/keys", list[KeyInfo])


def revoke_key(id: str) -> ServiceCall[None]:
    """End an API key at once. For admins."""
    return delete(f"/v1/keys/{quoted(id)}")


# -- helpers --------------------------------------------------------------------------------------


def reader(kind: type[T], member: str | None = None) -> Callable[[bytes], T]:
    """A function that reads an answer: all of it, or one member of an object."""

    def read(content: bytes) -> T:
        try:
            whole = content if member is None else _members.decode(content)[member]
            return msgspec.json.decode(whole, type=kind)
        except (msgspec.DecodeError, KeyError) as why:
            raise TamisError(f"the service answers as no version known here does: {why}") from None

    return read


def fetch(
    path: str,
    kind: type[T],
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    read: Callable[[bytes], T] | None = None,
    member: str | None = None,
) -> ServiceCall[T]:
    """A request that changes nothing."""
    return ServiceCall(
        "GET", path, read or reader(kind, member), params or {}, headers or {}, repeatable=True
    )


def send(
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    kind: type[T],
    headers: Mapping[str, str] | None = None,
    *,
    repeatable: bool = False,
    member: str | None = None,
) -> ServiceCall[T]:
    """A request with a body of JSON."""
    return ServiceCall(
        method,
        path,
        reader(kind, member),
        headers={**_JSON, **(headers or {})},
        content=None if body is None else _encoded(body),
        repeatable=repeatable,
    )


def delete(path: str, headers: Mapping[str, str] | None = None) -> ServiceCall[None]:
    """A request that ends something. It is not sent twice: the second one would find nothing."""
    return ServiceCall("DELETE", path, _nothing, headers=headers or {})


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return strict_json.encode(body)
    except (TypeError, ValueError, RecursionError) as why:
        raise TamisError(f"what was given cannot be written as JSON: {why}") from None


def _page(content: bytes) -> NotificationPage:
    """A page, in which each notification knows from where to read on."""
    page = reader(NotificationPage)(content)
    found = page.notifications
    known = []
    safe = -1  # all notifications of an event come before its number is a cursor
    for at, each in enumerate(found):
        last = at + 1 == len(found) or found[at + 1].sequence != each.sequence
        safe = each.sequence if last else max(safe, each.sequence - 1)
        known.append(msgspec.structs.replace(each, cursor=safe))
    return NotificationPage(known, page.cursor)


def _bulk_lines(content: bytes) -> list[BulkLine]:
    read = reader(BulkLine)
    return [read(line) for line in content.splitlines() if line]


def _nothing(content: bytes) -> None:
    return None


def place_of(id: Id) -> str:
    """The path of a subscription."""
    return f"/v1/subscriptions/{quoted(str(id))}"


def quoted(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="")


def with_ticket(ticket: str | None) -> dict[str, str]:
    """The header that proves a subscriber, if there is a ticket."""
    return {} if ticket is None else {_TICKET: ticket}


def _seconds(lease: timedelta | None) -> float | None:
    return None if lease is None else lease.total_seconds()


def _sink(sink: str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return {"url": sink} if isinstance(sink, str) else sink
