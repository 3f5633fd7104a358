"""`/admin/v2/tenants`: who administers what, and where it may live."""

from __future__ import annotations

from typing import Final

from magnetar.core.broker import administration
from magnetar.core.broker.catalog import Tenant
from magnetar.core.kernel.errors import AlreadyExists
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import Table


async def listed(ask: Ask) -> list[str]:
    return await ask.broker.catalog.tenants()


async def get(ask: Ask) -> Tenant:
    return await ask.broker.catalog.get_tenant(ask.part("tenant"))


async def create(ask: Ask) -> None:
    tenant = await ask.json(Tenant)
    try:
        await ask.broker.catalog.put_tenant(ask.part("tenant"), tenant, create=True)
    except AlreadyExists as error:
        raise AlreadyExists("Tenant already exists") from error


async def update(ask: Ask) -> None:
    tenant = await ask.json(Tenant)
    await ask.broker.catalog.put_tenant(ask.part("tenant"), tenant, create=False)


async def delete(ask: Ask) -> None:
    force = ask.flag("force")
    await administration.delete_tenant(ask.broker, ask.part("tenant"), force=force)


TABLE: Final[Table] = (
    ("GET", "", listed),
    ("GET", "/{tenant}", get),
    ("PUT", "/{tenant}", create),
    ("POST", "/{tenant}", update),
    ("DELETE", "/{tenant}", delete),
)
