"""The policies of one topic: `/admin/v2/persistent/T/N/topic/<policy>`.

They belong to the whole topic: a partition has those of its partitioned topic.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import TopicNotFound
from magnetar.core.policy.declaration import Levels
from magnetar.core.policy.policies import TopicPolicies
from magnetar.wire.http.admin.policies import level
from magnetar.wire.http.admin.policies.level import Level
from magnetar.wire.http.admin.policies.limits import check_retention
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, changing


async def _policies(request: AdminRequest) -> TopicPolicies:
    """The policies of an existing topic."""
    name, broker = request.topic, request.broker
    if not await broker.catalog.partitions(name):
        if name.full not in broker.topics:
            # Only the owner knows a topic that stores nothing, and only the owner applies a change
            # at once. Pulsar checks it too (`PersistentTopicsBase.preValidation` of 4.x).
            await broker.check_owned(name)
        if not await broker.exists(name):
            raise TopicNotFound(f"topic {name} does not exist")
    return await broker.catalog.topic_policies(name)


async def _change(request: AdminRequest, **fields: Any) -> None:
    policies = msgspec.structs.replace(await _policies(request), **fields)
    check_retention(policies.retention, policies.backlog_quotas)
    await administration.set_topic_policies(request.broker, request.topic, policies)
    await request.broker.apply_policies(request.topic.namespace)


async def _remove_all(request: AdminRequest) -> None:
    """Remove all policies of the topic."""
    await _policies(request)
    await administration.set_topic_policies(request.broker, request.topic, TopicPolicies())
    await request.broker.apply_policies(request.topic.namespace)


TOPICS: Final = Level("topic", "/{tenant}/{namespace}/{topic}", _policies, _change)


def table(levels: Levels) -> Table:
    """All paths of topics' policies."""
    rows = [("DELETE", f"{TOPICS.here}/policies", _remove_all, Needs.TENANT_ADMIN)]
    return [*changing(rows), *level.table(TOPICS, levels)]
