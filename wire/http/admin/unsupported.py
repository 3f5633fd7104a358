"""Features that other brokers have and this server does not: 405 with a reason."""

from __future__ import annotations

from typing import Final

from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import NotHere, Table

ANY: Final = "GET PUT POST DELETE"


def _refuses(reason: str) -> Table:
    refuse = NotHere(reason)
    return [(ANY, path, refuse, Needs.IDENTITY) for path in ("", "/{rest:path}")]


OLD: Final = _refuses("paths of the first version, with a cluster in their names, are not served")
FUNCTIONS: Final = _refuses("functions and connectors are not part of this server")

TABLES: Final = {
    "/admin/v2/resource-quotas": _refuses("resource quotas are not part of this server"),
    "/admin/v2/worker": FUNCTIONS,
    "/admin/v2/worker-stats": FUNCTIONS,
    "/admin/v3/functions": FUNCTIONS,
    # pulsar-admin requests the singular, Pulsar's documentation has the plural
    **{f"/admin/v3/{kind}": FUNCTIONS for kind in ("source", "sources", "sink", "sinks")},
    "/admin/v3/packages": FUNCTIONS,
    **{
        f"/admin/{resource}": OLD
        for resource in ("clusters", "properties", "namespaces", "persistent", "non-persistent")
    },
}
