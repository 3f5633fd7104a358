"""Transactions of Pulsar's clients, as admin tools see them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from magnetar.core.entry.pulsar import form
from magnetar.core.kernel.errors import TransactionNotFound, WrongTransactionState
from magnetar.core.kernel.names import TopicName
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.client import attached
from magnetar.core.testing.entries import entry, part
from magnetar.core.testing.metadata import remove
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.transactions.topic_transactions import RECORDS, TopicTransactions
from magnetar.core.transactions.transaction_id import TransactionId
from magnetar.wire.http.admin.stats.transaction_stats import TABLE
from magnetar.wire.http.tests.visitor import Visitor, visiting

DOCS = Path(__file__).resolve().parents[5] / "docs/admin.md"
NAMES = {"timeout": "MS"}
HERE = "/admin/v3/transactions"
TOPIC = TopicName.parse("t")
OVER = (TransactionNotFound, WrongTransactionState)


def mine(_owner: str) -> bool:
    return True


def given(visitor: Visitor) -> TopicTransactions:
    """Have the server show transactions."""
    services = visitor.services
    made = TopicTransactions(visitor.broker, form)
    services.options = replace(services.options, transactions=made)
    return made


async def test_they_are_off(visitor: Visitor) -> None:
    for path in ("coordinators", "transactionMetadata/0/1", "slowTransactions/0"):
        assert "transactionCoordinatorEnabled" in await visitor.fails(503, "GET", f"{HERE}/{path}")


def test_every_path_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `(GET|POST) {HERE}(\S+?)(?:\?\S*)?` \|", text, re.MULTILINE)
    served = {
        (method, re.sub(r"\{(\w+)\}", lambda found: NAMES.get(found[1], found[1].upper()), path))
        for method, path, *_ in TABLE
        if "rest:" not in path
    }
    assert set(rows) == served


async def test_only_its_owner_and_superusers_see_one() -> None:
    async with visiting(access=guarded(superusers=["root"])) as visitor:
        key = await given(visitor).begin(0, 1_000, "alice")
        path = f"{HERE}/transactionMetadata/{key[0]}/{key[1]}"
        seen = []
        for name in ("alice", "root", "bob"):
            headers = {"authorization": f"Bearer {name}"}
            seen.append((await visitor.ask("GET", path, headers=headers)).status_code)
        assert seen == [200, 200, 404]


async def test_one_over_its_life(visitor: Visitor) -> None:
    transactions = given(visitor)
    topic = await visitor.topic("t")
    (place,) = await visitor.publish("t", [entry()])
    consumer = await attached(topic, SubscriptionType.EXCLUSIVE)
    key = await transactions.begin(2, 60_000, "me")
    await transactions.add_topics(key, [TOPIC.full], mine)
    await transactions.add_subscriptions(key, [("t", "s")], mine)
    topic.publish([part(key)], None, topic.in_transaction(key, lambda _result: None))
    (behind,) = await visitor.publish("t", [entry()])
    topic.subscriptions["s"].hold_up_to(consumer.consumer, key, (*place, 0, 0))

    one = f"{key[0]}/{key[1]}"
    begins = f"{behind[0]}:{behind[1] - 1}"
    found = await visitor.get(f"{HERE}/transactionMetadata/{one}")
    assert found.pop("openTimestamp") > 0
    in_buffer = {"startPosition": begins, "aborted": False}
    pending = {"cumulativeAckPosition": f"{place[0]}:{place[1]}"}
    assert found == {
        "txnId": f"(2,{key[1]})",
        "timeoutAt": 60_000,
        "status": "OPEN",
        "producedPartitions": {"t": in_buffer},
        "ackedPartitions": {"t": {"s": pending}},
        "owner": "me",
    }
    assert await visitor.get(f"{HERE}/transactionInBufferStats/public/default/t/{one}") == in_buffer
    path = f"{HERE}/transactionInPendingAckStats/public/default/t/s/{one}"
    assert await visitor.get(path) == pending
    found = await visitor.get(f"{HERE}/transactionBufferStats/public/default/t")
    assert (found["state"], found["ongoingTxnSize"]) == ("Ready", 1)
    assert found["maxReadPosition"] == f"{place[0]}:{place[1]}"
    found = await visitor.get(f"{HERE}/pendingAckStats/public/default/t/s")
    assert (found["state"], found["ongoingTxnSize"]) == ("Ready", 1)
    found = await visitor.get(f"{HERE}/coordinatorStats?coordinatorId=2")
    assert (found["ongoingTxnSize"], found["leastSigBits"]) == (1, key[1])
    assert list(await visitor.get(f"{HERE}/slowTransactions/0")) == [f"(2,{key[1]})"]
    assert await visitor.get(f"{HERE}/slowTransactions/0?coordinatorId=1") == {}
    assert await visitor.get(f"{HERE}/slowTransactions/60000") == {}
    stats = await visitor.get("/admin/v2/persistent/public/default/t/stats")
    assert stats["ongoingTxnCount"] == 1

    await visitor.does("POST", f"{HERE}/abortTransaction/{one}")
    await visitor.fails(404, "GET", f"{HERE}/transactionMetadata/{one}")
    await visitor.fails(404, "POST", f"{HERE}/abortTransaction/{one}")
    found = await visitor.get(f"{HERE}/transactionInBufferStats/public/default/t/{one}")
    assert found == {"startPosition": None, "aborted": True}
    stats = await visitor.get("/admin/v2/persistent/public/default/t/stats")
    assert (stats["ongoingTxnCount"], stats["abortedTxnCount"]) == (0, 1)


async def test_one_that_hangs_is_shown_and_aborted(visitor: Visitor) -> None:
    transactions = given(visitor)
    topic = await visitor.topic("t")
    key = await transactions.begin(2, 60_000, "me")
    await transactions.add_topics(key, [TOPIC.full], mine)
    topic.publish([part(key)], None, topic.in_transaction(key, lambda _result: None))
    (behind,) = await visitor.publish("t", [entry()])
    stats = "/admin/v2/persistent/public/default/t/stats"
    assert (await visitor.get(stats))["hangingTransactions"] == []
    await remove(visitor.broker.metadata, f"{RECORDS}/2.{key[1]}")
    given(visitor)  # as after a restart
    assert (await visitor.get(stats))["hangingTransactions"] == [f"(2,{key[1]})"]
    await visitor.does("POST", f"{HERE}/abortTransaction/2/{key[1]}")
    found = await visitor.get(stats)
    assert (found["hangingTransactions"], found["abortedTxnCount"]) == ([], 1)
    assert topic.transactions.index.stable_position(topic.ledger.chain.confirmed) > behind
    await visitor.fails(404, "POST", f"{HERE}/abortTransaction/2/{key[1]}")


@pytest.mark.parametrize("asked", ["pendingAckStats", "positionStatsInPendingAck"])
async def test_which_messages_are_held(visitor: Visitor, asked: str) -> None:
    transactions = given(visitor)
    topic = await visitor.topic("t")
    places = await visitor.publish("t", [entry()] * 3)
    consumer = await attached(topic, SubscriptionType.SHARED)
    key = await transactions.begin(0, 60_000, "")
    subscription = topic.subscriptions["s"]
    subscription.hold(consumer.consumer, key, [(*places[1], places[1][1])], [])
    subscription.hold(consumer.consumer, key, [], [(*places[2], 0b01, 2)])
    subscription.cursor.ack_range(*places[0], places[0][1])
    seen = []
    for query in ("0", "1", "2?batchIndex=0", "2?batchIndex=1"):
        path = f"{HERE}/{asked}/public/default/t/s/{places[0][0]}/{query}"
        seen.append((await visitor.get(path))["state"])
    assert seen == ["MarkDelete", "PendingAck", "NotInPendingAck", "PendingAck"]


async def test_coordinators(visitor: Visitor) -> None:
    given(visitor)
    found = await visitor.get(f"{HERE}/coordinators")
    assert [each["id"] for each in found] == list(range(16))
    assert found[0]["brokerServiceUrl"] == "pulsar://127.0.0.1:6650"
    found = await visitor.get(f"{HERE}/coordinatorStats")
    assert {each["state"] for each in found.values()} == {"Ready"}
    assert len(found) == 16
    await visitor.fails(503, "GET", f"{HERE}/coordinatorStats?coordinatorId=16")


async def test_below_the_low_water_mark_all_is_over(visitor: Visitor) -> None:
    """It is one less than the number of the oldest one that is open; -1 while none is."""
    await visitor.topic("t")
    transactions, keys = given(visitor), []
    for _ in range(5):
        keys.append(await transactions.begin(2, 60_000, "me"))
        await transactions.add_topics(keys[-1], [TOPIC.full], mine)
        await transactions.add_subscriptions(keys[-1], [("t", "s")], mine)
    await transactions.begin(3, 60_000, "me")  # of another coordinator
    outcomes: dict[TransactionId, bool] = {}
    marks = []
    for turn, place in enumerate((None, 2, 0, 4, 1, 3)):
        if place is not None:
            outcomes[keys[place]] = bool(turn % 2)
            await transactions.end(keys[place], mine, commit=bool(turn % 2))
        if turn % 2:  # as after a crash
            transactions = given(visitor)
            await transactions.open()
            await wait_all_tasks_blocked()
        found = await visitor.get(f"{HERE}/coordinatorStats?coordinatorId=2")
        mark = found["lowWaterMark"]
        marks.append(mark if mark < 0 else mark - keys[0][1])
        for key in keys:
            if key not in outcomes:
                assert key[1] > mark
                transactions.check_publish(key, TOPIC, mine)
                transactions.check_acknowledge(key, TOPIC, "s", mine)
                continue
            with pytest.raises(OVER):
                transactions.check_publish(key, TOPIC, mine)
            with pytest.raises(OVER):
                transactions.check_acknowledge(key, TOPIC, "s", mine)
            with pytest.raises(OVER):
                await transactions.add_topics(key, [TOPIC.full], mine)
            with pytest.raises(OVER):
                await transactions.end(key, mine, commit=not outcomes[key])
    assert marks == [-1, -1, 0, 0, 2, -1]
    assert await transactions.begin(2, 60_000, "me") > keys[-1], "no number is given twice"


async def test_coordinators_are_found_over_http(visitor: Visitor) -> None:
    """As Go's client looks for them if its service URL is one of HTTP."""
    name = "persistent/pulsar/system/transaction_coordinator_assign"
    found = await visitor.get(f"/admin/v2/{name}/partitions?checkAllowAutoCreation=true")
    assert found["partitions"] == 16
    found = await visitor.get(f"/lookup/v2/topic/{name}-partition-3")
    assert found["brokerUrl"] == "pulsar://127.0.0.1:6650"


async def test_what_is_not_there(visitor: Visitor) -> None:
    given(visitor)
    await visitor.topic("t")
    await visitor.fails(404, "GET", f"{HERE}/transactionMetadata/0/1")
    await visitor.fails(404, "GET", f"{HERE}/transactionBufferStats/public/default/missing")
    await visitor.fails(404, "GET", f"{HERE}/pendingAckStats/public/default/t/missing")
    await visitor.fails(405, "GET", f"{HERE}/coordinatorInternalStats/1")
    await visitor.fails(405, "POST", f"{HERE}/transactionCoordinator/replicas", 17)
    await visitor.fails(400, "GET", f"{HERE}/transactionMetadata/0/x")
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    await visitor.fails(405, "GET", f"{HERE}/transactionBufferStats/public/default/p")
