"""Finds places in a topic for a consumer that reads compacted: by time, and the last message.

What such a consumer reads is the compacted ledger up to its horizon, and then the log; the log may
have lost what is in the compacted ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from magnetar.core.entry import header
from magnetar.core.entry.conversion import converted
from magnetar.core.entry.forms import NATIVE, form_of
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.seek import find_by_time, mark_before

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


async def mark_by_time(topic: PersistentTopic, since_ms: int, *, compacted: bool) -> Position:
    """The mark-delete position before the first entry published at `since_ms` or later."""
    current = topic.compacted.current if compacted else None
    if current is not None:
        reader = topic.compacted.use(current)
        try:
            found = await reader.find_by_time(since_ms)
        finally:
            topic.compacted.leave(reader)
        if found is not None:
            return (found[0], found[1] - 1)
    position = await find_by_time(topic.ledger, since_ms)
    if current is not None:
        position = max(position, (current.horizon[0], current.horizon[1] + 1))
    return mark_before(topic.ledger.chain, position)


async def last_compacted(topic: PersistentTopic) -> tuple[Position, bytes] | None:
    """The last entry of the compacted ledger, in the native form; None if there is none."""
    current = topic.compacted.current
    if current is None:
        return None
    reader = topic.compacted.use(current)
    try:
        found = await reader.last()
    finally:
        topic.compacted.leave(reader)
    if found is None:
        return None
    position, entry = found
    about = header.read(entry)
    sent = entry[about.size :]
    if form_of(sent) is not NATIVE:
        sent, _ = converted(sent, NATIVE, about.first_index)
    return position, sent
