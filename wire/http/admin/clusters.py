"""`/admin/v2/clusters`: where clusters answer. Data is kept as tools send it, whole."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from magnetar.core.kernel.errors import AlreadyExists, Invalid
from magnetar.wire.http.asking import Ask, parsed
from magnetar.wire.http.routes import JSON, Table


async def listed(ask: Ask) -> list[str]:
    return await ask.broker.catalog.clusters()


async def get(ask: Ask) -> Response:
    body = await ask.broker.catalog.get_cluster(ask.part("cluster"))
    return Response(body, media_type=JSON)


async def create(ask: Ask) -> None:
    name, body = ask.part("cluster"), await _body(ask)
    try:
        await ask.broker.catalog.put_cluster(name, body, create=True)
    except AlreadyExists as error:
        raise AlreadyExists("Cluster already exists") from error


async def update(ask: Ask) -> None:
    await ask.broker.catalog.put_cluster(ask.part("cluster"), await _body(ask), create=False)


async def _body(ask: Ask) -> bytes:
    body = await ask.body()
    return body if body.strip() and parsed(body) is not None else b""


async def delete(ask: Ask) -> None:
    await ask.broker.catalog.delete_cluster(ask.part("cluster"))


async def get_peers(ask: Ask) -> list[str]:
    return list((await _data(ask)).get("peerClusterNames") or [])


async def set_peers(ask: Ask) -> None:
    peers = await ask.value(list[str]) or []
    known = await ask.broker.catalog.clusters()
    for peer in peers:
        if peer not in known or peer == ask.part("cluster"):
            raise Invalid(f"{peer} is no other cluster")
    data = await _data(ask) | {"peerClusterNames": peers}
    body = msgspec.json.encode(data)
    await ask.broker.catalog.put_cluster(ask.part("cluster"), body, create=False)


async def _data(ask: Ask) -> dict[str, Any]:
    body = await ask.broker.catalog.get_cluster(ask.part("cluster"))
    return msgspec.json.decode(body, type=dict[str, Any])


async def nothing_isolated(ask: Ask) -> dict[str, object]:
    """One server: nothing is isolated from anything, and nothing fails by itself."""
    await ask.broker.catalog.get_cluster(ask.part("cluster"))
    return {}


TABLE: Final[Table] = (
    ("GET", "", listed),
    ("GET", "/{cluster}", get),
    ("PUT", "/{cluster}", create),
    ("POST", "/{cluster}", update),
    ("DELETE", "/{cluster}", delete),
    ("GET", "/{cluster}/peers", get_peers),
    ("POST", "/{cluster}/peers", set_peers),
    ("GET", "/{cluster}/failureDomains", nothing_isolated),
    ("GET", "/{cluster}/namespaceIsolationPolicies", nothing_isolated),
)
