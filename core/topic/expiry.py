"""Expiry: acknowledges messages that are too old, or exceed a backlog quota.

They count as acknowledged in every subscription that has not read them, as in Pulsar
(`PersistentMessageExpiryMonitor.java`, `BacklogQuotaManager.java` of 4.2). Housekeeping decides
when, and policies how much (`core/broker/housekeeping.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from magnetar.core.topic.seek import find_by_time

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


async def expire_before(topic: PersistentTopic, since_ms: int) -> int:
    """Acknowledge messages published before `since_ms`; returns the number of entries."""
    chain = topic.ledger.chain
    behind = [
        one for one in topic.subscriptions.values() if one.cursor.mark_delete < chain.confirmed
    ]
    if not behind:
        return 0
    young = await find_by_time(topic.ledger, since_ms)
    target = (young[0], young[1] - 1)
    return sum(one.expire_to(target) for one in behind)


async def evict_backlog(topic: PersistentTopic, bytes_max: int) -> None:
    """Acknowledge the oldest messages of each subscription whose backlog is larger."""
    chain = topic.ledger.chain
    for subscription in topic.subscriptions.values():
        if not subscription.cursor.durable:
            continue
        while topic.ledger.bytes_after(subscription.cursor.mark_delete) > bytes_max:
            first = subscription.cursor.read_from
            if not chain.has(first):
                break
            skipped = max(subscription.cursor.backlog // 10, 1)
            subscription.skip(skipped)
            await trio.lowlevel.checkpoint()
