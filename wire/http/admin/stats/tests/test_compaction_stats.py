"""What tools see of compaction: its last run, `__compaction`, and the compacted ledger."""

from __future__ import annotations

from magnetar.core.testing.bench import settled
from magnetar.core.testing.entries import entry
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/persistent/public/default/a"
COMPACTION = f"{HERE}/subscription/__compaction"


async def filled(visitor: Visitor) -> None:
    await visitor.topic("a")
    await visitor.publish("a", [entry(b"%d" % at, key=b"%d" % (at % 2)) for at in range(6)])


async def test_what_is_shown(visitor: Visitor) -> None:
    await filled(visitor)
    before = await visitor.get(f"{HERE}/stats")
    assert "__compaction" not in before["subscriptions"]
    assert set(before["compaction"].values()) == {0}
    assert (await visitor.get(f"{HERE}/internalStats"))["compactedLedger"]["ledgerId"] == -1
    await visitor.does("PUT", f"{HERE}/compaction")
    await settled()
    await visitor.publish("a", [entry(b"x", key=b"0")])
    after = await visitor.get(f"{HERE}/stats")
    assert after["compaction"]["lastCompactionRemovedEventCount"] == 4
    assert after["compaction"]["lastCompactionSucceedTimestamp"] > 0
    shown = after["subscriptions"]["__compaction"]
    assert (shown["msgBacklog"], shown["isDurable"], shown["consumers"]) == (1, True, [])
    await visitor.does("PUT", f"{HERE}/subscription/s")
    other = (await visitor.get(f"{HERE}/stats"))["subscriptions"]["s"]
    assert shown.keys() == other.keys()
    ledger = (await visitor.get(f"{HERE}/internalStats"))["compactedLedger"]
    assert (ledger["entries"], ledger["size"] > 0, ledger["ledgerId"] >= 0) == (2, True, True)
    assert await visitor.get(f"{HERE}/subscriptions") == ["__compaction", "s"]


async def test_a_threshold_is_enough(visitor: Visitor) -> None:
    await filled(visitor)
    await visitor.does("POST", f"{HERE}/compactionThreshold", 1000)
    shown = (await visitor.get(f"{HERE}/stats"))["subscriptions"]["__compaction"]
    assert shown["msgBacklog"] == 6


async def test_deleting_it_deletes_the_compacted_ledger(visitor: Visitor) -> None:
    await filled(visitor)
    await visitor.fails(404, "DELETE", COMPACTION)
    await visitor.does("PUT", f"{HERE}/compaction")
    await visitor.fails(412, "DELETE", COMPACTION)
    await settled()
    await visitor.does("DELETE", COMPACTION)
    assert (await visitor.get(f"{HERE}/internalStats"))["compactedLedger"]["ledgerId"] == -1
    assert await visitor.get(f"{HERE}/subscriptions") == []


async def test_that_of_another_broker_goes_too(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    await topic.hold("__compaction")
    await visitor.does("DELETE", COMPACTION)
    assert topic.subscriptions == {}
