"""What `analyzeBacklog` counts."""

from typing import Any

import pytest

from magnetar.core.entry.pulsar import form
from magnetar.core.kernel.completion import Completion
from magnetar.core.ledger.log.chain import Position
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.http.admin.stats import backlog_analysis
from magnetar.wire.http.tests.visitor import Visitor

TOPIC = "/admin/v2/persistent/public/default/a"
S = f"{TOPIC}/subscription/s"
ANALYSIS = f"{S}/analyzeBacklog"


async def analysed(visitor: Visitor, body: object = None) -> Any:
    return (await visitor.ask("POST", ANALYSIS, body)).json()


@pytest.fixture
async def topic(visitor: Visitor) -> PersistentTopic:
    """Five messages, and a subscription that has seen none."""
    found = await visitor.topic("a")
    await found.subscription("s")
    await visitor.publish("a", [entry(b"%d" % number) for number in range(5)])
    return found


async def test_what_is_not_acknowledged(visitor: Visitor, topic: PersistentTopic) -> None:
    cursor = topic.subscriptions["s"].cursor
    cursor.ack_range(0, 0, 0)
    cursor.ack_range(0, 2, 2)
    found = await analysed(visitor)
    assert (found["entries"], found["messages"], found["aborted"]) == (3, 3, False)
    assert (found["firstMessageId"], found["lastMessageId"]) == ("0:1", "0:4")
    assert found["filterAcceptedEntries"] == found["filterAcceptedMessages"] == 3
    found = await analysed(visitor, {"ledgerId": 0, "entryId": 3})
    assert (found["entries"], found["firstMessageId"]) == (2, "0:3")
    before = {"ledgerId": -1, "entryId": -1}
    assert (await analysed(visitor, before))["entries"] == 3
    await visitor.does("POST", f"{S}/skip_all")
    found = await analysed(visitor)
    assert (found["entries"], found["firstMessageId"], found["lastMessageId"]) == (0, None, None)


async def test_batches_and_markers(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.publish("a", [form.marker((1, 2), 0, 1, committed=True)])
    stored = Completion[Position]()
    topic.publish([entry(b"nine")], [9], stored.done)
    await stored.result()
    found = await analysed(visitor)
    assert (found["entries"], found["messages"], found["markerMessages"]) == (6, 14, 1)


async def test_it_ends_at_its_limit(
    visitor: Visitor, topic: PersistentTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_analysis, "ENTRIES_MAX", 3)
    found = await analysed(visitor)
    assert (found["entries"], found["lastMessageId"], found["aborted"]) == (3, "0:2", True)
    monkeypatch.setattr(backlog_analysis, "ENTRIES_MAX", 5)
    found = await analysed(visitor)
    assert (found["entries"], found["aborted"]) == (5, False)


async def test_it_ends_in_time(
    visitor: Visitor, topic: PersistentTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_analysis, "SECONDS_MAX", 0.0)
    found = await analysed(visitor)
    assert found["aborted"]


async def test_what_it_refuses(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.fails(404, "POST", f"{TOPIC}/subscription/other/analyzeBacklog")
    await visitor.fails(404, "POST", ANALYSIS.replace("/a/", "/missing/"))
    await visitor.fails(400, "POST", ANALYSIS, {"ledgerId": "x"})
    await visitor.does("PUT", f"{TOPIC[:-1]}p/partitions", 2)
    await visitor.fails(405, "POST", ANALYSIS.replace("/a/", "/p/"))
