"""`/admin/v2/clusters`: the addresses of clusters. Data is stored as tools send it, unchanged."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from magnetar.core.kernel.errors import AlreadyExists
from magnetar.wire.http.request import AdminRequest, parsed
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import JSON, Table


async def listed(request: AdminRequest) -> list[str]:
    return await request.broker.catalog.clusters()


async def get(request: AdminRequest) -> Response:
    body = await request.broker.catalog.get_cluster(request.part("cluster"))
    return Response(body, media_type=JSON)


async def create(request: AdminRequest) -> None:
    name, body = request.part("cluster"), await _body(request)
    try:
        await request.broker.catalog.put_cluster(name, body, create=True)
    except AlreadyExists as error:
        raise AlreadyExists("Cluster already exists") from error


async def update(request: AdminRequest) -> None:
    await request.broker.catalog.put_cluster(
        request.part("cluster"), await _body(request), create=False
    )


async def _body(request: AdminRequest) -> bytes:
    body = await request.body()
    return body if body.strip() and parsed(body) is not None else b""


async def delete(request: AdminRequest) -> None:
    await request.broker.catalog.delete_cluster(request.part("cluster"))


async def get_peers(request: AdminRequest) -> list[str]:
    return list((await _data(request)).get("peerClusterNames") or [])


async def set_peers(request: AdminRequest) -> None:
    """Without any, or with `null`, it has none. `pulsarctl` sends one without a name where none is
    given: that one does not exist (Apache's broker fails at its path, with 500).
    """
    peers = await request.value(list[str]) or []
    known = await request.broker.catalog.clusters()
    for peer in peers:
        if peer.lower() == request.part("cluster").lower():
            raise HTTPException(412, f"{peer} itself can't be part of peer-list")
        if peer not in known:
            raise HTTPException(412, f"Peer cluster {peer} does not exist")
    data = await _data(request) | {"peerClusterNames": peers}
    body = msgspec.json.encode(data)
    await request.broker.catalog.put_cluster(request.part("cluster"), body, create=False)


async def _data(request: AdminRequest) -> dict[str, Any]:
    body = await request.broker.catalog.get_cluster(request.part("cluster"))
    return msgspec.json.decode(body, type=dict[str, Any])


async def nothing_isolated(request: AdminRequest) -> dict[str, object]:
    """Empty: a single server has no isolation policies and no failure domains."""
    await request.broker.catalog.get_cluster(request.part("cluster"))
    return {}


TABLE: Final[Table] = (
    ("GET", "", listed, Needs.IDENTITY),
    ("GET", "/{cluster}", get, Needs.SUPERUSER),
    ("PUT", "/{cluster}", create, Needs.SUPERUSER),
    ("POST", "/{cluster}", update, Needs.SUPERUSER),
    ("DELETE", "/{cluster}", delete, Needs.SUPERUSER),
    ("GET", "/{cluster}/peers", get_peers, Needs.SUPERUSER),
    ("POST", "/{cluster}/peers", set_peers, Needs.SUPERUSER),
    ("GET", "/{cluster}/failureDomains", nothing_isolated, Needs.SUPERUSER),
    ("GET", "/{cluster}/namespaceIsolationPolicies", nothing_isolated, Needs.SUPERUSER),
)
