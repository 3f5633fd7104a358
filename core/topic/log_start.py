"""Moves the start of a log: messages before it are deleted, and cursors continue after them.

Kafka's DeleteRecords (KIP-107), Pulsar's truncation, and limits of a log do this.

Invariant: the new start is durable when the caller gets its answer. A cursor that is not saved
after that is before the start when it is loaded again, and continues at the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.restrictions import check_changeable, check_log_changeable

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


async def begin_at(topic: PersistentTopic, index: int, position: Position) -> None:
    """Have the topic begin with that message, which is in the entry at `position`."""
    check_changeable(topic.name)
    await topic.ledger.cut(index, position)
    pass_over(topic, (position[0], position[1] - 1))


def pass_over(topic: PersistentTopic, last: Position) -> None:
    """Acknowledge everything up to `last` in all subscriptions."""
    for subscription in topic.subscriptions.values():
        subscription.skip_to(last)


async def truncate(topics: Sequence[PersistentTopic]) -> None:
    """Move all subscriptions to the end, and delete everything before it, retained or not; nothing
    at all if one of the topics may not be truncated.
    """
    for topic in topics:
        check_log_changeable(topic)
        await _check_not_needed(topic)
    for topic in topics:
        for subscription in list(topic.subscriptions.values()):
            if subscription.cursor.backlog:
                subscription.skip_to(topic.ledger.chain.confirmed)
                await subscription.cursor.saved()
        await topic.ledger.roll()
        closed = [segment.ledger_id for segment in topic.ledger.chain.segments if segment.closed_ms]
        await topic.ledger.trim(closed)


async def _check_not_needed(topic: PersistentTopic) -> None:
    """Raise `NotAllowed` if a subscription that a front holds needs messages of the topic."""
    held = topic.env.held
    for name, subscription in list(topic.subscriptions.items()):
        if subscription.cursor.backlog and held.refusal(name) is not None:
            await held.advance()
            if subscription.cursor.backlog:
                held.check(name)
