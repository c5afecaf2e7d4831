"""Where a server listens."""

from __future__ import annotations

import os
import socket
import stat
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from tamis.errors import SettingError

_UNIX = "unix:"
_BACKLOG = 2048


class ListenAddress(NamedTuple):
    """A host and a port, or the path of a socket of this machine.

    >>> ListenAddress.of("[::1]:8080")
    ListenAddress(host='::1', port=8080, path=None)
    >>> ListenAddress.of("unix:/run/tamis.sock").is_local
    True
    """

    host: str
    port: int
    path: Path | None = None

    @classmethod
    def of(cls, text: str) -> ListenAddress:
        """Read HOST:PORT, [HOST]:PORT or unix:PATH; port 0 means any free one."""
        if text.startswith(_UNIX):
            return cls("", 0, Path(text.removeprefix(_UNIX)))
        host, colon, port = text.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (colon and host and port.isdecimal() and len(port) <= 5 and int(port) < 65536):
            raise SettingError(
                f"listen: {text!r} is not an address: write HOST:PORT, such as 127.0.0.1:8080 or "
                "[::1]:8080, or unix:PATH"
            )
        return cls(host, int(port))

    @property
    def is_local(self) -> bool:
        """Whether only this machine can call."""
        try:
            return self.path is not None or ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def bind(self) -> socket.socket:
        """A socket that listens here."""
        try:
            return self._bind_path() if self.path is not None else self._bind_port()
        except OSError as why:
            where = self.path or f"{self.host}:{self.port}"
            raise SettingError(
                f"listen: cannot listen on {where}: {why.strerror or why}; another process may "
                "listen there"
            ) from None

    def _bind_port(self) -> socket.socket:
        found = socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = found[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(place)
            bound.listen(_BACKLOG)
        except BaseException:
            bound.close()
            raise
        return bound

    def _bind_path(self) -> socket.socket:
        assert self.path is not None
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._remove_stale()
            before = os.umask(0o117)  # callers of the same group may connect
            try:
                bound.bind(str(self.path))
            finally:
                os.umask(before)
            bound.listen(_BACKLOG)
        except BaseException:
            bound.close()
            raise
        return bound

    def _remove_stale(self) -> None:
        """Remove what a killed server has left: a socket on which nobody listens."""
        assert self.path is not None
        if not (self.path.exists() and stat.S_ISSOCK(self.path.stat().st_mode)):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
            try:
                trial.connect(str(self.path))
            except ConnectionRefusedError:
                self.path.unlink()


def shown_address(bound: socket.socket, *, tls: bool = False) -> str:
    """Where callers find a socket that is bound."""
    if bound.family == socket.AF_UNIX:
        return f"{_UNIX}{bound.getsockname()}"
    host, port = bound.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{name}:{port}"
