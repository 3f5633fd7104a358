"""Ledgers and cursors of a topic."""

from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/persistent/public/default"


async def test_ledgers_and_cursors(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    cursor = (await topic.subscription("s")).cursor
    await visitor.publish("a", [b"m"] * 2)
    await topic.ledger.roll()
    (second, *_) = await visitor.publish("a", [b"m"] * 3)
    cursor.ack_range(0, 0, 0)
    cursor.ack_range(second[0], 1, 1)
    found = await visitor.get(f"{HERE}/a/internalStats")
    assert found["numberOfEntries"] == 5
    assert found["entriesAddedCounter"] == 5
    assert found["currentLedgerEntries"] == 3
    assert found["lastConfirmedEntry"] == f"{second[0]}:2"
    assert found["state"] == "LedgerOpened"
    assert [ledger["entries"] for ledger in found["ledgers"]] == [2, 0]
    shown = found["cursors"]["s"]
    assert shown["markDeletePosition"] == "0:0"
    assert shown["individuallyDeletedMessages"] == f"[({second[0]}:0..{second[0]}:1]]"
    assert shown["totalNonContiguousDeletedMessagesRange"] == 1
    assert shown["messagesConsumedCounter"] == 2
    assert (shown["lastLedgerSwitchTimestamp"], shown["state"]) == (None, "NoLedger")
    cursor.set_position_properties({"noted": 7})
    await cursor.saved()
    shown = (await visitor.get(f"{HERE}/a/internalStats"))["cursors"]["s"]
    assert shown["lastLedgerSwitchTimestamp"].startswith("20")
    assert shown["lastLedgerWitchTimestamp"] == shown["lastLedgerSwitchTimestamp"]
    assert shown["properties"] == {"noted": 7}
    assert (shown["cursorLedger"], shown["state"]) == (second[0] + 1, "Open")
    info = await visitor.get(f"{HERE}/a/internal-info")
    assert info["ledgers"][0]["entries"] == 2
    assert info["cursors"]["s"]["markDelete"] == {"ledgerId": 0, "entryId": 0}
    (hole,) = info["cursors"]["s"]["individualDeletedMessages"]
    assert hole["upperEndpoint"] == {"ledgerId": second[0], "entryId": 1}


async def test_a_terminated_topic_says_so(visitor: Visitor) -> None:
    await visitor.publish("a", [b"m"])
    await visitor.ask("POST", f"{HERE}/a/terminate")
    assert (await visitor.get(f"{HERE}/a/internalStats"))["state"] == "Terminated"


async def test_partitions_are_shown_one_by_one(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/p/partitions", 2)
    found = await visitor.get(f"{HERE}/p/partitioned-internalStats")
    assert len(found["partitions"]) == found["metadata"]["partitions"] == 2
    await visitor.fails(405, "GET", f"{HERE}/p/internalStats")
    info = await visitor.get(f"{HERE}/p/internal-info")
    assert set(info["partitions"]) == set(found["partitions"])
    assert info["partitions"]["persistent://public/default/p-partition-1"]["ledgers"] == []
    await visitor.fails(404, "GET", f"{HERE}/missing/internalStats")
