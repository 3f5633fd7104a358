"""The policies of one topic: `/admin/v2/persistent/T/N/topic/<policy>`.

They belong to the whole topic: a partition has those of its partitioned topic, and none may be
asked for or changed by its name (`PersistentTopicsBase.preValidation` of 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException

from magnetar.core.broker import administration
from magnetar.core.kernel.errors import InvalidName, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy import rates
from magnetar.core.policy.declaration import Levels
from magnetar.core.policy.policies import TopicPolicies
from magnetar.wire.http.admin.policies import level
from magnetar.wire.http.admin.policies.level import Level
from magnetar.wire.http.admin.policies.limits import check_numbers, check_retention
from magnetar.wire.http.request import AdminRequest, distinct
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, changing

RATES_MAX: Final = 1_000


async def _policies(request: AdminRequest) -> TopicPolicies:
    """The policies of an existing topic."""
    name, broker = request.topic, request.broker
    if name.partitioned:
        raise HTTPException(405, "Not allowed to set/get topic policy for a partition")
    if not await broker.catalog.partitions(name):
        if name.full not in broker.topics:
            # Only the owner knows a topic that stores nothing, and only the owner applies a change
            # at once. Pulsar checks it too.
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


async def _rate(request: AdminRequest) -> object:
    """The dispatch rate of one subscription; with `?applied=true` the one in force."""
    record = await _policies(request)
    own = record.subscription_rates.get(request.subscription)
    if own is not None and own.dispatch_rate is not None:
        return own.dispatch_rate
    if not request.flag("applied"):
        return None
    found = await request.broker.catalog.effective(request.topic)
    return rates.show_dispatch_rate(found.dispatch_rate_of(request.subscription))


async def _set_rate(request: AdminRequest) -> None:
    sent = await request.record(rates.DispatchRate) or rates.DispatchRate()
    check_numbers("dispatchRate", sent)
    await _change_rate(request, {request.subscription: rates.SubscriptionPolicies(sent)})


async def _remove_rate(request: AdminRequest) -> None:
    await _change_rate(request, {})


async def _change_rate(
    request: AdminRequest, decided: Mapping[str, rates.SubscriptionPolicies]
) -> None:
    """Names need not be of subscriptions that exist; there are so many at most."""
    kept = dict((await _policies(request)).subscription_rates)
    kept.pop(request.subscription, None)
    if len(kept) + len(decided) > RATES_MAX:
        raise HTTPException(412, f"at most {RATES_MAX} subscriptions of a topic have a rate")
    await _change(request, subscription_rates={**kept, **decided})


# -- shadow topics: the list is for tools, since a shadow shows its source's messages anyway -----


async def _shadows(request: AdminRequest) -> list[str]:
    return (await _policies(request)).shadow_topics or []


async def _set_shadows(request: AdminRequest) -> None:
    """With the statuses of Apache's broker (4.2.4, as seen), which takes a topic that is no shadow
    of this one, and replicates to it in vain.
    """
    sent = await request.value(list[str])
    if not sent:
        raise HTTPException(
            412, "Cannot specify empty shadow topics, please use remove command instead."
        )
    names = [await _shadow(request, text) for text in sent]
    await _change(request, shadow_topics=distinct(names))


async def _shadow(request: AdminRequest, text: str) -> str:
    """The full name of a shadow of the topic."""
    try:
        name = TopicName.parse(text)
    except InvalidName:
        raise HTTPException(403, f"Invalid shadow topic name: {text}") from None
    if not name.persistent:
        raise HTTPException(412, "Only persistent topic can be set as shadow topic")
    if await request.broker.source_of(name) != request.topic:
        raise HTTPException(412, f"Shadow topic [{name}] not exists, or is none of {request.topic}")
    return name.full


async def _remove_shadows(request: AdminRequest) -> None:
    await _change(request, shadow_topics=None)


TOPICS: Final = Level("topic", "/{tenant}/{namespace}/{topic}", _policies, _change)


def table(levels: Levels) -> Table:
    """All paths of topics' policies."""
    rate = f"{TOPICS.here}/{{subscription}}/dispatchRate"
    shadows = f"{TOPICS.here}/shadowTopics"
    rows = [
        ("GET", shadows, _shadows, Needs.TENANT_ADMIN),
        ("POST PUT", shadows, _set_shadows, Needs.TENANT_ADMIN),
        ("DELETE", shadows, _remove_shadows, Needs.TENANT_ADMIN),
        ("DELETE", f"{TOPICS.here}/policies", _remove_all, Needs.TENANT_ADMIN),
        ("GET", rate, _rate, Needs.TENANT_ADMIN),
        ("POST PUT", rate, _set_rate, Needs.TENANT_ADMIN),
        ("DELETE", rate, _remove_rate, Needs.TENANT_ADMIN),
    ]
    return [*changing(rows), *level.table(TOPICS, levels)]
