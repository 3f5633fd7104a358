"""Moves the start of a log: messages before it are deleted, and cursors continue after them.

Kafka's DeleteRecords (KIP-107), Pulsar's truncation, and limits of a log do this.

Invariant: the new start is durable when the caller gets its answer. A cursor that is not saved
after that is before the start when it is loaded again, and continues at the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.ledger.log.chain import Position

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


async def begin_at(topic: PersistentTopic, index: int, position: Position) -> None:
    """Have the topic begin with that message, which is in the entry at `position`."""
    await topic.ledger.cut(index, position)
    pass_over(topic, (position[0], position[1] - 1))


def pass_over(topic: PersistentTopic, last: Position) -> None:
    """Acknowledge everything up to `last` in all subscriptions."""
    for subscription in topic.subscriptions.values():
        subscription.skip_to(last)
