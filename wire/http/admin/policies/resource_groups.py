"""`/admin/v2/resourcegroups`: rates that namespaces share, and which group a namespace is in.

Statuses and messages are those of Apache's broker (`ResourceGroupsBase.java`, `NamespacesBase.java`
of 4.2). Groups are for superusers, and an administrator of a tenant may put its namespaces into any
of them, or into none.

Invariant: a namespace is put only into a group that exists, and a group is deleted only if no
namespace is in it; a broker of the same cluster may do the opposite at that moment, and then the
group limits nothing.
"""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.quotas.resource_group import GroupRates
from magnetar.core.quotas.resource_groups import UNKNOWN
from magnetar.wire.http.admin.policies.limits import check_numbers
from magnetar.wire.http.admin.policies.namespaces import NAMESPACES, change
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, changing, plain_text


async def listed(request: AdminRequest) -> list[str]:
    return await request.broker.groups.names()


async def get(request: AdminRequest) -> GroupRates:
    return await request.broker.groups.get(request.part("group"))


async def put(request: AdminRequest) -> None:
    """Create a group, or change those rates of it that the body names."""
    sent: GroupRates | None = await request.record(GroupRates)
    if sent is None:
        raise Invalid("the body has the rates of the group")
    check_numbers("resourcegroup", sent)
    await request.broker.groups.put(request.part("group"), sent)


async def delete(request: AdminRequest) -> None:
    await administration.delete_resource_group(request.broker, request.part("group"))


TABLE: Final[Table] = (
    ("GET", "", listed, Needs.SUPERUSER),
    ("GET", "/{group}", get, Needs.SUPERUSER),
    ("PUT", "/{group}", put, Needs.SUPERUSER),
    ("DELETE", "/{group}", delete, Needs.SUPERUSER),
)


# -- of a namespace ----------------------------------------------------------------------------


async def get_group(request: AdminRequest) -> object:
    name = (await request.broker.catalog.policies(request.namespace)).resource_group
    return plain_text(name) if name else None


async def set_group(request: AdminRequest) -> None:
    name = request.part("group")
    async with request.broker.groups.naming:
        await check_exists(request, name)
        await change(request, resource_group=name)


async def remove_group(request: AdminRequest) -> None:
    await change(request, resource_group=None)


async def create_namespace(request: AdminRequest, policies: NamespacePolicies) -> None:
    """Create a namespace, perhaps in a group."""
    catalog, groups = request.broker.catalog, request.broker.groups
    if not policies.resource_group:
        await catalog.create_namespace(request.namespace, policies)
        return
    async with groups.naming:
        await check_exists(request, policies.resource_group)
        await catalog.create_namespace(request.namespace, policies)


async def check_exists(request: AdminRequest, name: str) -> None:
    """Raise unless there is a group of that name, whose `naming` the caller holds."""
    if not await request.broker.groups.exists(name):
        raise HTTPException(412, UNKNOWN)


_GROUP: Final = f"{NAMESPACES.here}/resourcegroup"
OF_NAMESPACES: Final = changing(
    [
        ("GET", _GROUP, get_group, Needs.TENANT_ADMIN),
        ("POST", f"{_GROUP}/{{group}}", set_group, Needs.TENANT_ADMIN),
        ("DELETE", _GROUP, remove_group, Needs.TENANT_ADMIN),
    ]
)
