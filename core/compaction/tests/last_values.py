"""What the tests of compaction beside a log share: runs of it, and what is in the result."""

from __future__ import annotations

from typing import NamedTuple

from magnetar.core.compaction.last_values import LastValues
from magnetar.core.compaction.retention_rule import Outcomes
from magnetar.core.compaction.tests.histories import unknown
from magnetar.core.entry import conversion, header
from magnetar.core.ledger.compacted.compacted_topic import CompactedTopic
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.testing.bench import Bench


class Value(NamedTuple):
    """One message."""

    position: Position
    place: int
    key: bytes | None
    value: bytes | None


async def compacted_beside(
    made: Bench,
    ledger: ManagedLedger,
    *,
    keys_max: int = 1000,
    retains_keyless: bool = False,
    outcomes: Outcomes = unknown,
) -> int:
    """Compact it; returns how many messages were left out."""
    work = LastValues(
        ledger,
        CompactedTopic(made.storage, ledger),
        outcomes,
        retains_keyless=retains_keyless,
        now_ms=made.clock.wall_ms(),
        keys_max=keys_max,
    )
    await work.run()
    return work.removed


def values_of(position: Position, entry: bytes) -> list[Value]:
    sent = entry[header.read(entry).size :]
    return [Value(position, one.place, one.key, one.value) for one in conversion.records_of(sent)]


async def values(topic: CompactedTopic) -> list[Value]:
    """Everything in the compacted ledger, message by message."""
    found: list[Value] = []
    current = topic.current
    if current is None:
        return found
    reader = topic.use(current)
    position, is_last = START, False
    while not is_last:
        block = await reader.block(position, 300)
        for at, entry in zip(block.positions, block.entries, strict=True):
            found += values_of(at, entry)
        is_last = block.is_last
        if not is_last:
            position = (block.positions[-1][0], block.positions[-1][1] + 1)
    topic.leave(reader)
    return found
