"""The policies of one namespace: `/admin/v2/namespaces/T/N/<policy>`, and all of them as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy.declaration import Levels
from magnetar.core.policy.policies import NamespacePolicies, decode
from magnetar.wire.http.admin.policies import level
from magnetar.wire.http.admin.policies.level import Level
from magnetar.wire.http.admin.policies.limits import check_retention, checked_policies
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, changing, not_here

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.core.kernel.names import NamespaceName


UNDECIDED: Final[dict[str, Any]] = {
    "allowed_clusters": [],
    "clusterDispatchRate": {},
    "clusterSubscribeRate": {},
    "deleted": False,
    "is_allow_auto_update_schema": True,
    "latency_stats_sample_rate": {},
    "migrated": False,
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "publishMaxMessageRate": {},
    "replicatorDispatchRate": {},
    "schema_compatibility_strategy": "UNDEFINED",
    "schema_validation_enforced": False,
    "subscriptionDispatchRate": {},
    "subscription_auth_mode": "None",
    "topicDispatchRate": {},
}
"""What Apache's broker shows of a namespace that decides nothing (`Policies.java` of 4.2), and what
its tools read without asking whether it is there."""


def shown(policies: NamespacePolicies) -> dict[str, Any]:
    """All policies of a namespace as tools read them."""
    fields = msgspec.to_builtins(policies)
    return UNDECIDED | {name: value for name, value in fields.items() if value is not None}


def parsed_policies(request: AdminRequest, body: Any) -> NamespacePolicies:
    """All policies of a namespace as tools send them; unknown fields are dropped."""
    if not isinstance(body, dict):
        raise Invalid("policies are a JSON object")
    if body.get("entryFilters"):
        raise not_here("this server runs no entry filters: they are Java classes")
    policies: NamespacePolicies = decode(
        msgspec.json.encode(body), request.broker.catalog.levels.namespace
    )
    check_retention(policies.retention, policies.backlog_quotas)
    return checked_policies(request, request.broker.catalog.levels, policies)


async def _policies(request: AdminRequest) -> NamespacePolicies:
    return await request.broker.catalog.policies(request.namespace)


async def change(request: AdminRequest, **fields: Any) -> None:
    """Store some fields of a namespace and apply them to its topics. Permissions are in force."""
    await change_of(request.broker, request.namespace, **fields)


async def change_of(broker: Broker, namespace: NamespaceName, **fields: Any) -> None:
    """The same of a namespace that is not named by the path."""
    policies = msgspec.structs.replace(await broker.catalog.policies(namespace), **fields)
    check_retention(policies.retention, policies.backlog_quotas)
    await broker.catalog.set_policies(namespace, policies)
    await broker.rules.settled()
    await broker.apply_policies(namespace)


async def _remove_offload_policies(request: AdminRequest) -> None:
    """Under the path that Apache's own client uses (`NamespacesImpl.java` of 4.2)."""
    await change(request, offload_policies=None)


NAMESPACES: Final = Level("namespace", "/{tenant}/{namespace}", _policies, change)


def table(levels: Levels) -> Table:
    """All paths of namespaces' policies."""
    rows = [
        (
            "DELETE",
            f"{NAMESPACES.here}/removeOffloadPolicies",
            _remove_offload_policies,
            Needs.TENANT_ADMIN,
        )
    ]
    return [*changing(rows), *level.table(NAMESPACES, levels)]
