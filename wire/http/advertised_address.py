"""The addresses given to a client: those that it can reach.

A server that listens on all addresses of its machine, and has no `advertised_host`, has no single
address that suits every client. But each request reveals one that suits its client: the host of
the request, or else the local address at which it arrived. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

import msgspec
from starlette.requests import Request

from magnetar.wire.http.options import HttpOptions

_URLS: Final = (
    *("broker_url", "broker_url_tls", "http_url", "http_url_tls"),
    *("kafka_address", "kafka_address_tls"),
    *("mqtt_address", "mqtt_address_tls", "mqtt_ws_url", "mqtt_ws_url_tls"),
)
_ALL: Final = re.compile(r"(://|^)(?:0\.0\.0\.0|\[::\])(:[0-9]+)$")
"""A URL whose host means all addresses."""
_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::[0-9]{0,5})?", re.I)
"""A request's host: a name or an address, optionally with a port, which is that of HTTP."""


def as_reached(options: HttpOptions, request: Request) -> HttpOptions:
    """The options, with the addresses that the sender of this request can reach."""
    urls: dict[str, str] = {key: getattr(options, key) for key in _URLS}
    if not any(map(_ALL.search, urls.values())):
        return options
    for host in _hosts(request):
        found = {key: _ALL.sub(rf"\g<1>{host}\g<2>", url) for key, url in urls.items()}
        return msgspec.structs.replace(options, **found)
    return options


def reached_address(address: str, request: Request) -> str:
    """An address, with a host that the sender of this request can reach."""
    if _ALL.search(address):
        for host in _hosts(request):
            return _ALL.sub(rf"\g<1>{host}\g<2>", address)
    return address


def _hosts(request: Request) -> Iterator[str]:
    """Hosts at which the client may have reached the server, best first."""
    named = _HOST.fullmatch(request.headers.get("host", ""))
    if named:
        yield from _sensible(named[1])
    ours: Any = request.scope.get("server")
    if ours:
        yield from _address(str(ours[0]))


def _sensible(host: str) -> Iterator[str]:
    """The host, if clients can be sent to it; otherwise nothing."""
    found = next(_address(host.strip("[]")), None)
    if found is None and not host.startswith("["):
        yield host
    elif found is not None and not _ALL.search(f"://{found}:0"):
        yield found


def _address(text: str) -> Iterator[str]:
    """The address as written in a URL; nothing if the text is not an address."""
    try:
        address = ip_address(text)
    except ValueError:
        return
    if isinstance(address, IPv6Address):
        yield str(address.ipv4_mapped or f"[{address}]")
    else:
        yield str(address)
