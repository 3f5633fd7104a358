"""Where a consumer that reads compacted goes: by time, and the last message."""

from __future__ import annotations

import pytest

from magnetar.core.compaction.tests.histories import appended, wrapped
from magnetar.core.compaction.tests.histories import batch as kafka_batch
from magnetar.core.compaction.tests.last_values import compacted_beside
from magnetar.core.entry.forms import NATIVE, form_of
from magnetar.core.testing.bench import Bench
from magnetar.core.testing.entries import entry
from magnetar.core.topic.compacted.compacted_reads import last_compacted, mark_by_time
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.seek import mark_before


async def filled(desk: Bench) -> PersistentTopic:
    """Messages published at 10, 11, ... 21, of which the last four are left, and one more."""
    topic = await desk.topic()
    sent = [entry(b"x", key=b"%d" % (at % 4), published_ms=10 + at) for at in range(12)]
    await desk.published(topic, *sent)
    await compacted_beside(desk, topic.ledger)
    await desk.published(topic, entry(b"y", key=b"0", published_ms=30))
    return topic


@pytest.mark.parametrize("trimmed", [False, True])
async def test_by_time(desk: Bench, trimmed: bool) -> None:
    topic = await filled(desk)
    if trimmed:
        await topic.ledger.trim([topic.ledger.chain.segments[0].ledger_id])

    async def found(since_ms: int) -> tuple[int, int]:
        mark = await mark_by_time(topic, since_ms, compacted=True)
        return (mark[0], mark[1] + 1)

    assert await found(0) == await found(18) == (0, 8)
    assert await found(19) == (0, 9)
    assert await found(21) == (0, 11)
    assert await found(22) == await found(30) == (2, 0)
    assert await found(31) == (2, 1)
    others = await mark_by_time(topic, 12, compacted=False)
    assert others == ((2, -1) if trimmed else (0, 1))


async def test_the_last_one(desk: Bench) -> None:
    topic = await desk.topic()
    assert await last_compacted(topic) is None
    places = await desk.published(topic, entry(b"1", key=b"a"), entry(b"2", key=b"b"))
    await desk.published(topic, entry(b"", key=b"b"))
    await compacted_beside(desk, topic.ledger)
    found = await last_compacted(topic)
    assert found is not None
    assert found == (places[0], entry(b"1", key=b"a"))
    await desk.published(topic, entry(b"", key=b"a"))
    await compacted_beside(desk, topic.ledger)
    assert await last_compacted(topic) is None


async def test_the_last_one_of_another_protocol(desk: Bench) -> None:
    topic = await desk.topic()
    await appended(topic.ledger, wrapped(kafka_batch([(b"a", b"1")])))
    await compacted_beside(desk, topic.ledger)
    found = await last_compacted(topic)
    assert found is not None
    assert form_of(found[1]) is NATIVE


async def test_by_position(desk: Bench) -> None:
    topic = await filled(desk)
    await topic.ledger.trim([topic.ledger.chain.segments[0].ledger_id])
    chain = topic.ledger.chain
    assert mark_before(chain, (0, 5)) == (2, -1)
    assert mark_before(chain, (0, 5), topic.compacted.horizon) == (0, 4)
    assert mark_before(chain, (2, 1), topic.compacted.horizon) == (2, 0)
    assert mark_before(chain, (9, 9), topic.compacted.horizon) == (2, 0)
