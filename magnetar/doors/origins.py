"""Which web pages may connect to a WebSocket, by `Origin` and `Host`. Pure.

A browser lets any page open a WebSocket to any server, and says where the page is from. Without
authentication any page that a user of this machine visits could else read and write all topics. So
a page needs the host name by which it reaches this server (another port is fine), or an origin that
a setting names, `mqtt.websocket_origins` or `listen.http_websocket_origins` by what it connects to;
on loopback all names of this machine are one. Clients that are no browsers send no `Origin`, and
are not asked.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from magnetar.wire.http.guard import HostNames

ANY: Final = "*"


class Origins:
    """See the module's docstring."""

    def __init__(self, hosts: HostNames, permitted: tuple[str, ...]) -> None:
        """`hosts` are the names of this server; others could be a page's own that it has pointed
        here (DNS rebinding).
        """
        self._hosts = hosts
        self._permitted = {origin.lower().rstrip("/") for origin in permitted}

    def permit(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may connect to that `Host`."""
        if ANY in self._permitted or origin.lower() in self._permitted:
            return True
        page, here = _name(origin), _name(f"//{host}")
        if not page or not self._hosts.include(host):
            return False
        return page == here or (_is_loopback(page) and _is_loopback(here))


def _name(url: str) -> str:
    """The host of a URL; empty if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
