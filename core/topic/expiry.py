"""Expiry: messages that subscriptions lose because they are too old, or too many.

They count as acknowledged, in every subscription that has them before it. When that is due, and how
much, is decided elsewhere (`core/broker/housekeeping.py`, policies).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from magnetar.core.topic.seek import find_by_time

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


async def expire_before(topic: PersistentTopic, since_ms: int) -> int:
    """Messages published before that count as acknowledged; returns how many entries."""
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
    """Slow subscriptions lose their oldest messages until no more than that waits for them."""
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
