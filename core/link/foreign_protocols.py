"""Peers that speak another protocol than their listener's, and the reply to them. Pure.

HTTP is the first thing people try: a browser, curl, a monitoring probe. The reply has the address
of the HTTP front. A TLS handshake at a plain port is only logged: its client would not read plain
text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

HTTP: Final = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI) ")
TLS: Final = b"\x16\x03"
"""A record of the handshake, and the first byte of every version (RFC 8446 5.1)."""


def spoken(begin: bytes) -> str:
    """The name of the foreign protocol that begins so; empty for none."""
    if HTTP.match(begin):
        return "HTTP"
    return "TLS" if begin.startswith(TLS) else ""


class HttpAddress(NamedTuple):
    """The address of the HTTP front; without a host, the one that the peer used."""

    host: str = ""
    port: int = 0
    """0 without an HTTP front."""

    def reached_from(self, host: str) -> str:
        """`host:port` for a peer that reached us at that host; empty without an HTTP front."""
        if not self.port:
            return ""
        host = self.host or host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


NO_HTTP: Final = HttpAddress()


def answer(name: str, http_address: str) -> bytes:
    """The reply to a peer of that protocol; empty if it could not read one."""
    if name != "HTTP" or not http_address:
        return b""
    reason = f"this port does not speak HTTP: http://{http_address}/ does"
    body = msgspec.json.encode({"reason": reason})
    return (
        b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%s\n" % (len(body) + 1, body)
    )
