"""The policies of one namespace: `/admin/v2/namespaces/T/N/<policy>`, and all of them as one."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from magnetar.core.kernel.errors import Invalid
from magnetar.core.policy.declaration import Levels
from magnetar.core.policy.policies import NamespacePolicies, decode
from magnetar.wire.http.admin.policies import level
from magnetar.wire.http.admin.policies.level import Level
from magnetar.wire.http.admin.policies.limits import check_auto_creation, check_retention
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import Table, changing


def shown(ask: Ask, policies: NamespacePolicies) -> dict[str, Any]:
    """All policies of a namespace as tools read them: loose ones only if they are decided."""
    levels = ask.broker.catalog.levels
    loose = {scope.stored for policy, scope in levels.at("namespace") if policy.loose}
    fields = msgspec.to_builtins(policies)
    return {name: value for name, value in fields.items() if value is not None or name not in loose}


def taken(ask: Ask, body: Any) -> NamespacePolicies:
    """All policies of a namespace as tools send them; unknown fields are dropped."""
    if not isinstance(body, dict):
        raise Invalid("policies are a JSON object")
    policies: NamespacePolicies = decode(
        msgspec.json.encode(body), ask.broker.catalog.levels.namespace
    )
    check_retention(policies.retention, policies.backlog_quotas)
    check_auto_creation(policies.auto_topic_creation)
    return policies


async def _policies(ask: Ask) -> NamespacePolicies:
    return await ask.broker.catalog.policies(ask.namespace)


async def change(ask: Ask, **fields: Any) -> None:
    """Store some fields of a namespace and let its topics know."""
    policies = msgspec.structs.replace(await _policies(ask), **fields)
    check_retention(policies.retention, policies.backlog_quotas)
    await ask.broker.catalog.set_policies(ask.namespace, policies)
    ask.broker.policies_changed(ask.namespace)


async def _remove_offload_policies(ask: Ask) -> None:
    """Under the path that Apache's own client uses (`NamespacesImpl.java` of 4.2)."""
    await change(ask, offload_policies=None)


NAMESPACES: Final = Level("namespace", "/{tenant}/{namespace}", _policies, change)


def table(levels: Levels) -> Table:
    """All paths of namespaces' policies."""
    rows = [("DELETE", f"{NAMESPACES.here}/removeOffloadPolicies", _remove_offload_policies)]
    return [*changing(rows), *level.table(NAMESPACES, levels)]
