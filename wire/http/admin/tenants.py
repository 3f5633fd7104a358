"""`/admin/v2/tenants`: tenants, with their administrators and allowed clusters.

Invariant: administrators are in force when a change is answered.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.broker import administration
from magnetar.core.broker.catalog import Tenant
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.wire.http.request import AdminRequest, distinct
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table


async def listed(request: AdminRequest) -> list[str]:
    return await request.broker.catalog.tenants()


async def get(request: AdminRequest) -> Tenant:
    return await request.broker.catalog.get_tenant(request.part("tenant"))


async def _sent(request: AdminRequest) -> Tenant:
    sent = await request.json(Tenant)
    return Tenant(distinct(sent.admin_roles), distinct(sent.allowed_clusters))


async def create(request: AdminRequest) -> None:
    tenant = await _sent(request)
    try:
        await request.broker.catalog.put_tenant(request.part("tenant"), tenant, create=True)
    except AlreadyExists as error:
        raise AlreadyExists("Tenant already exists") from error
    await request.broker.rules.settled()


async def update(request: AdminRequest) -> None:
    tenant = await _sent(request)
    await request.broker.catalog.put_tenant(request.part("tenant"), tenant, create=False)
    await request.broker.rules.settled()


async def delete(request: AdminRequest) -> None:
    force = request.flag("force")
    await administration.delete_tenant(request.broker, request.part("tenant"), force=force)
    await request.broker.rules.settled()


TABLE: Final[Table] = (
    ("GET", "", listed, Needs.SUPERUSER),
    ("GET", "/{tenant}", get, Needs.TENANT_ADMIN),
    ("PUT", "/{tenant}", create, Needs.SUPERUSER),
    ("POST", "/{tenant}", update, Needs.SUPERUSER),
    ("DELETE", "/{tenant}", delete, Needs.SUPERUSER),
)
