"""What of a topic somebody still needs: the entries that may not go, and how much that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.ledger.chain import Position

if TYPE_CHECKING:
    from magnetar.core.topic.topic import Topic


def slowest(topic: Topic) -> Position | None:
    """The lowest mark-delete position of a durable subscription; None if there is none."""
    marks = [one.cursor.mark_delete for one in topic.subscriptions.values() if one.cursor.durable]
    return min(marks, default=None)


def needed_from(topic: Topic) -> Position:
    """The first entry that somebody still needs: a subscription, or deduplication."""
    chain = topic.ledger.chain
    lowest = slowest(topic)
    mark = lowest if lowest is not None else chain.confirmed
    return chain.after(min(mark, topic.once.mark_delete or mark))


def backlog_bytes(topic: Topic) -> int:
    """How many bytes the slowest subscription has before it, roughly."""
    lowest = slowest(topic)
    return topic.ledger.bytes_after(lowest) if lowest is not None else 0
