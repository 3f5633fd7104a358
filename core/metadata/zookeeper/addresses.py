"""Where a cluster's metadata is: the connection strings of Pulsar and BookKeeper. Pure.

    zk:HOST:PORT,HOST:PORT/chroot                     Pulsar's metadataStoreUrl
    zk+hierarchical://HOST:PORT;HOST:PORT/ledgers     BookKeeper's metadataServiceUri

The path of the first is where all paths begin; that of the second is where BookKeeper's metadata
stand. Both name the same tree if the second has `/ledgers` behind the path of the first.

Hosts may be divided by commas or semicolons in both (`ZKMetadataDriverBase.java` of BookKeeper
4.18 turns one into the other); a host without a port has 2181; an IPv6 address stands in brackets.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import Invalid

PORT: Final = 2181
LEDGERS: Final = "/ledgers"
LAYOUTS: Final = ("hierarchical", "longhierarchical", "flat", "null")
"""What may follow `zk+`. Apache knows `ms` too, a layout in HBase."""
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+)(?::(\d{1,5}))?")


class ZooKeeperAddress(Struct, frozen=True):
    """The servers of a ZooKeeper, and the path below which the metadata stand."""

    servers: str
    """As kazoo and ZooKeeper's own clients take them: `HOST:PORT,HOST:PORT`."""
    root: str
    """Where all paths begin; without a slash at its end, and empty for the top of the tree."""
    ledgers: str
    """Where BookKeeper's metadata stand, below the root."""
    layout: str | None = None
    """How ledgers are laid out, if the connection string says it (`zk+hierarchical`)."""


def parse(text: str) -> ZooKeeperAddress:
    """The address in a connection string; `Invalid` says what is wrong with it."""
    scheme, colon, rest = text.partition(":")
    kind, plus, layout = scheme.lower().partition("+")
    if not colon or kind != "zk":
        raise Invalid(
            f"{text!r}: this server keeps the metadata of a cluster in ZooKeeper only; "
            "expected zk:HOST:PORT or zk+hierarchical://HOST:PORT/ledgers"
        )
    if plus and layout not in LAYOUTS:
        raise Invalid(
            f"{text!r}: {layout!r} is no layout of ledgers; it is one of {', '.join(LAYOUTS)}"
        )
    servers, slash, path = rest.removeprefix("//").partition("/")
    servers, path = _servers(text, servers), _path(text, slash + path)
    if not rest.startswith("//") and not plus:
        return ZooKeeperAddress(servers, path, LEDGERS)
    if not path:
        raise Invalid(f"{text!r} lacks the root of the ledgers; Apache's default is {LEDGERS}")
    root = path.removesuffix(LEDGERS)
    if root != path:
        return ZooKeeperAddress(servers, root, LEDGERS, layout or None)
    return ZooKeeperAddress(servers, "", path, layout or None)


def _servers(text: str, servers: str) -> str:
    found = []
    for server in re.split("[,;]", servers):
        match = _HOST.fullmatch(server.strip())
        if match is None:
            raise Invalid(f"{text!r}: {server!r} is no HOST:PORT")
        port = int(match[2] or PORT)
        if not 0 < port < 65536:
            raise Invalid(f"{text!r}: {port} is no port")
        found.append(f"{match[1]}:{port}")
    return ",".join(found)


def _path(text: str, path: str) -> str:
    found = path.removesuffix("/")
    if any(name in ("", ".", "..") for name in found.split("/")[1:]):
        raise Invalid(f"{text!r}: {path!r} is no path in ZooKeeper")
    return found
