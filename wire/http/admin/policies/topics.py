"""The policies of one topic: `/admin/v2/persistent/T/N/topic/<policy>`.

They belong to the whole topic: a partition has those of the topic it is a partition of.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from magnetar.core.kernel.errors import TopicNotFound
from magnetar.core.policy.declaration import Levels
from magnetar.core.policy.policies import TopicPolicies
from magnetar.wire.http.admin.policies import level
from magnetar.wire.http.admin.policies.level import Level
from magnetar.wire.http.admin.policies.limits import check_retention
from magnetar.wire.http.asking import Ask
from magnetar.wire.http.routes import Table, changing


async def _policies(ask: Ask) -> TopicPolicies:
    """Of a topic that exists."""
    name = ask.topic
    if not await ask.broker.catalog.partitions(name) and not await ask.broker.exists(name):
        raise TopicNotFound(f"topic {name} does not exist")
    return await ask.broker.catalog.topic_policies(name)


async def _change(ask: Ask, **fields: Any) -> None:
    policies = msgspec.structs.replace(await _policies(ask), **fields)
    check_retention(policies.retention, policies.backlog_quotas)
    await ask.broker.catalog.set_topic_policies(ask.topic, policies)
    ask.broker.policies_changed(ask.topic.namespace)


async def _remove_all(ask: Ask) -> None:
    """The topic decides nothing any more."""
    await _policies(ask)
    await ask.broker.catalog.set_topic_policies(ask.topic, TopicPolicies())
    ask.broker.policies_changed(ask.topic.namespace)


TOPICS: Final = Level("topic", "/{tenant}/{namespace}/{topic}", _policies, _change)


def table(levels: Levels) -> Table:
    """All paths of topics' policies."""
    rows = [("DELETE", f"{TOPICS.here}/policies", _remove_all)]
    return [*changing(rows), *level.table(TOPICS, levels)]
