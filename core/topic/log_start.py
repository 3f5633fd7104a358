"""Move the start of a log: what is before a message is gone, and cursors go on behind it.

Invariant: once a caller is answered it may rely on that; a cursor that has not been
saved since then finds itself behind the beginning, and goes on there all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.ledger.log.chain import Position

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


async def begin_at(topic: PersistentTopic, index: int, position: Position) -> None:
    """The topic begins with that message, which is in the entry at `position`."""
    await topic.ledger.cut(index, position)
    pass_over(topic, (position[0], position[1] - 1))


def pass_over(topic: PersistentTopic, last: Position) -> None:
    """Whether no subscription waits for anything up to there."""
    for subscription in topic.subscriptions.values():
        subscription.skip_to(last)
