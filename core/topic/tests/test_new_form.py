"""A form that nobody has heard of joins: topics, times, transactions and compaction take it."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.core.compaction.tests.histories import compacted, messages
from magnetar.core.entry import forms
from magnetar.core.entry.form import MarkKind
from magnetar.core.entry.forms import NATIVE
from magnetar.core.ledger.log.ledger_list_record import MIXED
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.ledger.read.time_lookup import TimedMessage
from magnetar.core.testing import note_form
from magnetar.core.testing.bench import Bench, Outcome, bench, settled
from magnetar.core.testing.client import attached
from magnetar.core.testing.note_form import note
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.seek import find_by_time
from magnetar.core.topic.subscription.subscription import SubscriptionType


@pytest.fixture(autouse=True)
def _joined(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = (*forms.FOREIGN, (note_form.BEGINS, note_form))
    monkeypatch.setattr(forms, "FOREIGN", foreign)
    monkeypatch.setattr(forms, "_CANDIDATES", forms.told_apart(foreign))


async def wrote(topic: PersistentTopic, *notes: bytes) -> None:
    await topic.ledger.set_property(MIXED, "")
    for one in notes:
        topic.publish([one], [max(len(note_form.records(one)), 1)], Outcome())
        await settled()


def values(payloads: list[bytes]) -> list[bytes | None]:
    return [one.value for payload in payloads for one in NATIVE.records(payload)]


@pytest.mark.parametrize("kind", list(SubscriptionType))
async def test_subscriptions_deliver_it(desk: Bench, kind: SubscriptionType) -> None:
    topic = await desk.topic()
    consumer = await attached(topic, kind, permits=100)
    await wrote(topic, note(5, [("k", "a"), ("k", "b")]), note(6, [("k", "c")]))
    await desk.dispatch()
    assert values(consumer.payloads) == [b"a", b"b", b"c"]


async def test_it_is_found_by_its_time(desk: Bench) -> None:
    topic = await desk.topic()
    await wrote(topic, note(5, [("k", "a")]), note(9, [("k", "b")]))
    assert await topic.ledger.times.first_since(6) == TimedMessage(1, 9)
    assert await find_by_time(topic.ledger, 6) == (topic.ledger.chain.confirmed)


async def test_its_transactions_are_hidden_and_known_again(desk: Bench) -> None:
    topic = await desk.topic()
    consumer = await attached(topic, SubscriptionType.EXCLUSIVE, permits=0)
    await topic.begin_transactions()
    await topic.ledger.set_property(MIXED, "")

    def wrote_part(result: Any) -> None:
        index = topic.ledger.delivered_index(result)
        topic.transactions.index.wrote(7, index, result, 1)

    topic.publish([note(5, [("k", "void")], MarkKind.PART)], [1], wrote_part)
    await topic.end_transaction(note_form, 7, 0, committed=False)
    await wrote(topic, note(6, [("k", "plain")]))
    consumer.flow(100)
    await desk.dispatch()
    assert values(consumer.payloads) == [b"plain"]
    before = topic.transactions.index.aborted
    assert before
    again = await desk.topic()
    assert again.transactions.index.aborted == before


async def test_it_is_compacted() -> None:
    async with bench(RollLimits(entries_max=2, age_ms_min=0)) as desk:
        topic = await desk.topic()
        pairs = [[("a", "1"), ("b", "1")], [("a", "2")], [("b", None)], [("c", "1")], [("d", "1")]]
        await wrote(topic, *(note(5, one) for one in pairs))
        assert await compacted(desk, topic.ledger)
        assert [(one.key, one.value) for one in await messages(topic.ledger)] == [
            (b"a", b"2"),
            (b"b", None),
            (b"c", b"1"),
            (b"d", b"1"),
        ]
