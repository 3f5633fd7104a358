"""Refuses requests that a foreign web page can make a browser send. Light: no web framework.

A browser that shows a foreign page can reach this server's port, even on loopback, and can do harm
in two ways:

- *DNS rebinding.* The page's own host name is made to resolve to 127.0.0.1, so that the browser
  takes this server for the page's and lets the page read and write everything. The `Host` header
  still names the page's host, so requests are served under known names only. An address is always
  accepted, since no attacker can serve a page from this server's address.
- *Cross-site writes.* Without a preflight (CORS), a browser sends any other site a POST that an
  HTML form could have sent, and only hides the answer from the page. It reveals that in `Origin`
  and `Sec-Fetch-Site`; and such a body has one of the three types that forms have. Admin clients
  send `application/json`, or, without a body, no type at all (Java's, Go's and curl).

PUT, PATCH and DELETE are sent only after a CORS preflight, which this server never grants.

Sources: Fetch standard, "CORS-safelisted request-header" and "append a request Origin header"; W3C
Fetch Metadata; RFC 9110 7.2 for `Host`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

READS: Final = frozenset(["GET", "HEAD", "OPTIONS"])
"""Methods that change nothing: a foreign page may link to them, and does not see the answer."""
FORM_TYPES: Final = frozenset(
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
OWN_SITES: Final = frozenset(["same-origin", "none"])
"""`Sec-Fetch-Site` of this server's pages, and of a URL typed into the address bar. `same-site` is
missing, because all ports of a host are one site (W3C Fetch Metadata)."""
PROOF: Final = "x-requested-with"
"""A header that no form can send, for tools that cannot set a JSON content type."""
ANYONES: Final = frozenset(["/healthz", "/readyz", "/status.html"])
"""Paths served under any host name, because orchestrators use any; they reveal nothing."""
ADMIN: Final = "/admin/"
"""Below this path a GET may change something too: peeking creates a missing subscription."""
ANY: Final = "*"


class HostNames(Struct, frozen=True):
    """The names this server answers to."""

    names: tuple[str, ...] = ()
    """`example.org`, `.example.org` for all names below that, `*` for any."""
    single_labels: bool = False
    """Whether names without a dot are served too: those of a container's or a cluster's network.
    No one can register one in the public DNS, so no foreign page has one."""

    def include(self, host: str) -> bool:
        """Whether a `Host` header, with or without a port, names this server."""
        name = _name(host)
        if _is_address(name) or name == "localhost" or name.endswith(".localhost"):
            return True
        if self.single_labels and name and "." not in name:
            return True
        return any(_covers(pattern.lower().rstrip("."), name) for pattern in self.names)


def _covers(pattern: str, name: str) -> bool:
    if pattern.startswith("."):
        return name.endswith(pattern) or name == pattern[1:]
    return pattern in (ANY, name)


def _name(host: str) -> str:
    """The host without its port, and without the brackets of `[::1]`; empty if malformed."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        return name.lower() if bracket and (not port or port.startswith(":")) else ""
    return host.partition(":")[0].lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


Headers = Mapping[str, Sequence[str]]
"""All values by lower-case name."""


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers of an ASGI list."""
    found: dict[str, list[str]] = {}
    for name, value in raw:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def foreign(hosts: HostNames, method: str, path: str, headers: Headers) -> str | None:
    """Why a request is refused; None if it is not."""
    request = headers.get("host", ())
    if path.rstrip("/") not in ANYONES:
        for host in request:
            if not hosts.include(host):
                return (
                    f"this server does not go by the name {host[:100]!r}: ask for it by its "
                    "address, or add the name to listen.http_allowed_hosts"
                )
    if method in READS and not path.startswith(ADMIN):
        return None
    for site in headers.get("sec-fetch-site", ()):
        if site.lower() not in OWN_SITES:
            return "a page of another site may do nothing here"
    for origin in headers.get("origin", ()):
        if not _same_origin(origin, request):
            return f"a page of {origin[:100]!r} may do nothing here"
    return None


def _same_origin(origin: str, request: Sequence[str]) -> bool:
    """Whether a page with that origin came from the `Host` of this request. The scheme does not
    matter, since a proxy may have terminated TLS.
    """
    scheme, _, host = origin.lower().partition("://")
    port = {"http": ":80", "https": ":443"}.get(scheme, "")
    return [host] == [name.lower() for name in request] or [host] == [
        name.lower().removesuffix(port) for name in request if port
    ]


def form(method: str, headers: Headers) -> str | None:
    """Why a write that an HTML form could have sent is refused; None for any other. Forms send
    only GET and POST.
    """
    if method != "POST" or headers.get(PROOF):
        return None
    for value in headers.get("content-type", ()):
        kind = value.partition(";")[0].strip().lower()
        if kind in FORM_TYPES:
            return f"a body of type {kind} is not taken: send it as application/json"
    return None
