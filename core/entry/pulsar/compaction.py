"""A Pulsar message, or a batch of them, as compaction looks at it. Pure.

It goes as a whole or not at all. There is a way to write that messages of a batch were compacted
away (`compacted_out`), but not all of Pulsar's clients pass over those: some hand out a message
without key and value for each. So a batch stays until the last of its messages may go.

Left as they are: parts of large messages, what is encrypted, parts of transactions, and markers.

Invariant: taking apart raises `Corrupted` and nothing else.
"""

from __future__ import annotations

from magnetar.core.entry.compaction import Item, Removal
from magnetar.core.entry.pulsar.messages import PulsarMessage


class UnpackedMessages:
    """What a Pulsar producer sent, taken apart."""

    __slots__ = ("is_decided", "items")

    tombstones_until_ms = -1
    """Pulsar's metadata has no field for it."""
    notes_tombstone_time = False
    loses_some = False
    producer = None

    def __init__(self, tail: bytes) -> None:
        self.items: list[Item] = []
        message = PulsarMessage(tail)
        self.is_decided = message.is_plain
        if self.is_decided:
            self.items = [
                Item(one.place, one.key, -1 if one.value is None else len(one.value))
                for one in message.records()
            ]

    def without(self, fate: Removal) -> None:
        """Nothing is left of it."""
        assert len(fate.lost) == len(self.items), "it goes as a whole"
