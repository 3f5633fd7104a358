"""The backlog of a topic: the entries that subscriptions still need, and how much that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.ledger.compacted.compacted_topic import CompactionState
from magnetar.core.ledger.log.chain import Position

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


def slowest(topic: PersistentTopic) -> Position | None:
    """The lowest mark-delete position of a durable subscription; None if there is none."""
    marks = [one.cursor.mark_delete for one in topic.subscriptions.values() if one.cursor.durable]
    return min(marks, default=None)


def needed_from(topic: PersistentTopic) -> Position:
    """The first entry that a subscription, or the compaction beside the log, still needs.

    Folds hold no entry back: their snapshot is stored before one is deleted
    (`core/ledger/fold/fold.py`).
    """
    chain = topic.ledger.chain
    lowest = slowest(topic)
    marks = [chain.confirmed if lowest is None else lowest]
    if holds_for_compaction(topic):
        marks.append(topic.compacted.horizon)
    return chain.after(min(marks))


def holds_for_compaction(topic: PersistentTopic) -> bool:
    """Whether entries that are not compacted yet are not to be deleted, as if `__compaction` were a
    subscription. It is one in Pulsar, from the first compaction on, or as soon as a threshold is
    set, until an administrator deletes it.
    """
    compacted = topic.compacted
    return not topic.name.internal and (
        topic.policies.compaction_threshold > 0
        or compacted.current is not None
        or compacted.progress.state is CompactionState.RUNNING
    )


def own_size(topic: PersistentTopic) -> int:
    """Bytes of payload that are stored for it: none for a shadow, whose source has them."""
    return topic.ledger.size if topic.source is None else 0


def backlog_bytes(topic: PersistentTopic) -> int:
    """The estimated bytes that the slowest subscription has not acknowledged."""
    lowest = slowest(topic)
    return topic.ledger.bytes_after(lowest) if lowest is not None else 0
