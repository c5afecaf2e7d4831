"""Where a webhook may go: a public address, unless the site allows others.

A subscriber chooses the URL, and the service calls it from inside its own network (server-side
request forgery). So the name is resolved once, every address is checked, and the connection goes to
the checked address and not to the name. Redirects are not followed.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import NamedTuple
from urllib.parse import urlsplit

from tamis.broker.delivery.kafka_settings import KafkaSettings
from tamis.errors import BrokerError

_LONGEST = 2048  # characters of a URL
_PORTS = {"http": 80, "https": 443}
# `is_global` alone differs between versions of Python, and knows nothing of embedded addresses.
_REFUSED_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
            "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
            "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        ),
    )
)  # fmt: skip
# Only global unicast is public. Within it: protocol assignments, documentation, 6to4.
_GLOBAL_6 = IPv6Network("2000::/3")
_REFUSED_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_NAT64 = IPv6Network("64:ff9b::/96")

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class SinkError(BrokerError):
    """A sink that is refused."""


class SinkTarget(NamedTuple):
    """A URL whose host was resolved and checked: where to connect to."""

    url: str
    scheme: str
    host: str
    port: int
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class SinkRules:
    """What a site allows beyond public addresses: networks, hosts by name, topics of Kafka."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    kafka: KafkaSettings = field(default_factory=KafkaSettings)

    @classmethod
    def of(cls, allowed: Iterable[str], kafka: KafkaSettings | None = None) -> SinkRules:
        """From addresses, networks such as `10.1.0.0/16`, and names of hosts."""
        networks: list[Network] = []
        hosts: set[str] = set()
        for each in allowed:
            try:
                networks.append(ip_network(each))
            except ValueError:
                if not each or "/" in each or ":" in each:
                    raise SinkError(
                        f"{each!r} is not an address, a network or the name of a host"
                    ) from None
                hosts.add(each.lower().rstrip("."))
        return cls(tuple(networks), frozenset(hosts), kafka or KafkaSettings())

    def allows(self, host: str, address: Address) -> bool:
        """Whether a webhook may be sent to an address of a host."""
        if host in self.hosts or any(
            address in network for network in self.networks if network.version == address.version
        ):
            return True
        return is_public(address)


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet, also if it embeds another address."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_4)
    if address.ipv4_mapped is not None:
        return False  # nobody needs this form of a public address
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _GLOBAL_6 and not any(address in network for network in _REFUSED_6)


def check_url(url: str) -> tuple[str, str, int]:
    """The scheme, host and port of a sink's URL; raises `SinkError` for any other form."""
    if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        raise SinkError("the URL of a sink has at most 2,048 printable ASCII characters")
    if "\\" in url:  # browsers read it as a slash, others do not
        raise SinkError("the URL of a sink must not contain a backslash")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as why:
        raise SinkError(f"the URL of the sink cannot be read: {why}") from None
    if parts.scheme not in _PORTS:
        raise SinkError("the URL of a sink begins with http or https")
    if parts.username is not None or parts.password is not None:
        raise SinkError("the URL of a sink must not contain a user name or a password")
    if parts.fragment:
        raise SinkError("the URL of a sink must not contain a fragment")
    if not host:
        raise SinkError("the URL of the sink lacks a host")
    if port == 0:
        raise SinkError("the port of the sink is 0")
    return parts.scheme, _plain_host(host), port or _PORTS[parts.scheme]


def _plain_host(host: str) -> str:
    """A host without a final dot; odd spellings of addresses are refused."""
    plain = host.lower().rstrip(".")
    if not plain:
        raise SinkError("the URL of the sink lacks a host")
    if "%" in plain:
        raise SinkError(f"the host {host!r} has a zone or escapes; write the plain name")
    try:
        ip_address(plain)
    except ValueError:
        # The resolver reads 2130706433, 0x7f.1 and 127.1 as addresses: names have a letter last.
        last = plain.rpartition(".")[2]
        if not last or last[0].isdigit() or last.startswith("0x"):
            raise SinkError(
                f"the host {host!r} is neither a name nor an address in the usual form"
            ) from None
    return plain


def is_literal(url: str) -> bool:
    """Whether the host of a URL is an address, which needs no resolver."""
    try:
        ip_address(check_url(url)[1])
    except ValueError:
        return False
    return True


def resolve(url: str, rules: SinkRules) -> SinkTarget:
    """Resolve the host of a URL and check all of its addresses. This asks the system's resolver."""
    scheme, host, port = check_url(url)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as why:
        raise SinkError(f"the host {host!r} of the sink cannot be resolved: {why}") from None
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    return SinkTarget(url, scheme, host, port, _checked(host, addresses, rules))


def _checked(host: str, addresses: Sequence[str], rules: SinkRules) -> tuple[str, ...]:
    """All addresses, if all may be called: one that may not could be used the next time."""
    for each in addresses:
        if "%" in each or not rules.allows(host, ip_address(each)):
            raise SinkError(
                f"the sink {host!r} has an address that is not public; whoever runs the service "
                "may allow it with --allow-sink"
            )
    if not addresses:
        raise SinkError(f"the host {host!r} of the sink has no address")
    return tuple(addresses)
