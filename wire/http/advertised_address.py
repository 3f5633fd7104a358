"""The addresses that a client is given: those it can reach.

A server that listens on all addresses of its machine, and has no name to tell (`advertised_host`),
knows none that is right for everybody. A request has come by one that is right for its client: the
host of the request, or else the address of ours that it came to. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

import msgspec
from starlette.requests import Request

from magnetar.wire.http.front import HttpOptions

_URLS: Final = (
    *("broker_url", "broker_url_tls", "http_url", "http_url_tls"),
    *("kafka_address", "kafka_address_tls"),
)
_ALL: Final = re.compile(r"(://|^)(?:0\.0\.0\.0|\[::\])(:[0-9]+)$")
"""In a URL, the host that means all addresses."""
_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::[0-9]{0,5})?", re.I)
"""In a request: a name or an address, and perhaps a port, which is that of HTTP."""


def as_reached(options: HttpOptions, request: Request) -> HttpOptions:
    """The options, with the addresses that the sender of this request can reach."""
    urls: dict[str, str] = {key: getattr(options, key) for key in _URLS}
    if not any(map(_ALL.search, urls.values())):
        return options
    for host in _hosts(request):
        found = {key: _ALL.sub(rf"\g<1>{host}\g<2>", url) for key, url in urls.items()}
        return msgspec.structs.replace(options, **found)
    return options


def _hosts(request: Request) -> Iterator[str]:
    """By what the client may have come, best first."""
    named = _HOST.fullmatch(request.headers.get("host", ""))
    if named:
        yield from _sensible(named[1])
    ours: Any = request.scope.get("server")
    if ours:
        yield from _address(str(ours[0]))


def _sensible(host: str) -> Iterator[str]:
    """A host that others may be sent to; nothing if it is none."""
    found = next(_address(host.strip("[]")), None)
    if found is None and not host.startswith("["):
        yield host
    elif found is not None and not _ALL.search(f"://{found}:0"):
        yield found


def _address(text: str) -> Iterator[str]:
    """As it stands in a URL; nothing if it is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return
    if isinstance(address, IPv6Address):
        yield str(address.ipv4_mapped or f"[{address}]")
    else:
        yield str(address)
