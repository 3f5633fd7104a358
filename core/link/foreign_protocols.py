"""Peers that speak another protocol than the one of this listener, and the reply to them. Pure.

HTTP is what people try first: a browser, curl, a monitor's probe. It is answered with the address
where HTTP is spoken. A TLS handshake at a plain port is only named in the log: its client would not
read plain words.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

HTTP: Final = re.compile(rb"(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|CONNECT|TRACE|PRI) ")
TLS: Final = b"\x16\x03"
"""A record of the handshake, and the first byte of every version (RFC 8446 5.1)."""


def spoken(begin: bytes) -> str:
    """What begins so, by name; empty for what is neither."""
    if HTTP.match(begin):
        return "HTTP"
    return "TLS" if begin.startswith(TLS) else ""


class HttpAddress(NamedTuple):
    """Where this server speaks HTTP: at the address that a peer came by if it names no host."""

    host: str = ""
    port: int = 0
    """0: nowhere."""

    def reached_from(self, host: str) -> str:
        """`host:port` for a peer that reached us at that host; empty if HTTP is spoken nowhere."""
        if not self.port:
            return ""
        host = self.host or host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


NO_HTTP: Final = HttpAddress()


def answer(name: str, http_address: str) -> bytes:
    """What to say to those who speak that protocol; nothing if they would not understand it."""
    if name != "HTTP" or not http_address:
        return b""
    reason = f"this port does not speak HTTP: http://{http_address}/ does"
    body = msgspec.json.encode({"reason": reason})
    return (
        b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%s\n" % (len(body) + 1, body)
    )
