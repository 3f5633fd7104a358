"""What coordinators answer, and what consumers see of transactions."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Player, Stage, consumer, ids, kinds, published
from magnetar.wire.pulsar.tests import peer

TOPIC = "persistent://public/default/t"


async def begun(client: Player, *topics: str, subscription: str = "") -> tuple[int, int]:
    received = await client.says_one(peer.new_txn(1))
    assert received.kind == "NEW_TXN_RESPONSE"
    txn = received.body.txnid_most_bits, received.body.txnid_least_bits
    if topics:
        received = await client.says_one(peer.add_partitions(2, txn, *topics))
        assert received.kind == "ADD_PARTITION_TO_TXN_RESPONSE"
        assert not received.body.HasField("error"), received
    if subscription:
        received = await client.says_one(peer.add_subscription(3, txn, TOPIC, subscription))
        assert not received.body.HasField("error"), received
    return txn


def texts(received: list[peer.ReceivedFrame]) -> list[bytes]:
    """Of the messages among what was heard."""
    return [peer.open_tail(each.tail).payload for each in received if each.kind == "MESSAGE"]


async def ended(
    client: Player, txn: tuple[int, int], *, commit: bool = True
) -> list[peer.ReceivedFrame]:
    """End it; returns everything that was heard."""
    received = await client.says(peer.end_txn(4, txn, commit=commit))
    (end,) = [each for each in received if each.kind == "END_TXN_RESPONSE"]
    assert not end.body.HasField("error"), end
    return received


async def producer(stage: Stage) -> Player:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t", txn_enabled=True))
    return client


async def test_coordinators_are_here(stage: Stage) -> None:
    client = await stage.player()
    for number, error in ((0, False), (15, False), (16, True)):
        received = await client.says_one(peer.tc_connect(1, number))
        assert received.kind == "TC_CLIENT_CONNECT_RESPONSE"
        assert received.body.HasField("error") is error
    received = await client.says_one(
        peer.partitioned_metadata(2, "persistent://pulsar/system/transaction_coordinator_assign")
    )
    assert received.body.partitions == 16
    received = await client.says_one(
        peer.lookup(3, "persistent://pulsar/system/transaction_coordinator_assign-partition-7")
    )
    assert received.body.response == pb.CommandLookupTopicResponse.CONNECT


@pytest.mark.parametrize("commit", [True, False])
async def test_messages_are_delivered_once_they_are_committed(stage: Stage, commit: bool) -> None:
    reader = await consumer(stage)
    client = await producer(stage)
    txn = await begun(client, TOPIC)
    received = await client.says(
        peer.send(1, 0, b"before"),
        peer.send_in(txn, 1, 1, b"in it"),
        peer.send(1, 2, b"behind"),
    )
    assert kinds(received) == ["SEND_RECEIPT"] * 3
    received = await reader.receive()
    assert texts(received) == [b"before"]
    await ended(client, txn, commit=commit)
    received = await reader.receive()
    assert texts(received) == [b"in it", b"behind"][not commit :]


@pytest.mark.parametrize("kind", ["EXCLUSIVE", "SHARED", "KEY_SHARED"])
async def test_acknowledgements_count_once_they_are_committed(stage: Stage, kind: str) -> None:
    await published(stage, b"a", b"b")
    client = await consumer(stage, sub_type=pb.CommandSubscribe.SubType.Value(kind))
    received = await client.receive()
    first, second = ids(received)
    txn = await begun(client, subscription="s")
    one = pb.MessageIdData(ledger_id=first[0], entry_id=first[1])
    received = await client.says_one(peer.ack_in(txn, 9, 3, one))
    assert (received.kind, received.body.HasField("error")) == ("ACK_RESPONSE", False)
    assert received.body.txnid_least_bits == txn[1]
    # not delivered again while it is open, to anybody
    received = await client.says(peer.redeliver(3))
    assert ids(received) == [second]
    other = await begun(client, subscription="s")
    received = await client.says_one(peer.ack_in(other, 10, 3, one))
    assert received.body.error == pb.TransactionConflict
    # given up, it is delivered again
    assert first in ids(await ended(client, txn, commit=False))
    received = await client.says_one(peer.ack_in(other, 11, 3, one))
    assert not received.body.HasField("error")
    await ended(client, other)
    subscription = (await stage.broker.topic(TopicName.parse(TOPIC))).stored.subscriptions["s"]  # type: ignore[union-attr]
    assert subscription.cursor.acks.is_acked(first)
    received = await client.says_one(peer.ack_in(await begun(client, subscription="s"), 12, 3, one))
    assert received.body.error == pb.TransactionConflict


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("topics", [(), (TOPIC,)])
async def test_the_first_of_two_ends_counts(
    stage: Stage, topics: tuple[str, ...], commit: bool
) -> None:
    """Both come at once; tasks that begin together run in any order."""
    client = await producer(stage)
    for _ in range(20):
        txn = await begun(client, *topics)
        received = await client.says(
            peer.end_txn(5, txn, commit=commit), peer.end_txn(6, txn, commit=not commit)
        )
        answers = {each.body.request_id: each.body for each in received}
        assert not answers[5].HasField("error"), answers
        assert answers[6].error in (pb.InvalidTxnStatus, pb.TransactionNotFound)


async def test_an_end_behind_what_it_ends(stage: Stage) -> None:
    """Messages and acknowledgements that come with the END_TXN, before it."""
    await published(stage, b"1")
    client = await consumer(stage)
    (place,) = ids(await client.receive())
    await client.says_one(peer.producer(2, 1, "t", txn_enabled=True))
    txn = await begun(client, TOPIC, subscription="s")
    message = pb.MessageIdData(ledger_id=place[0], entry_id=place[1])
    received = await client.says(
        peer.send_in(txn, 1, 0, b"2"),
        peer.ack_in(txn, 7, 3, message),
        peer.send_in(txn, 1, 1, b"3"),
        peer.end_txn(8, txn, commit=True),
    )
    answers = [each for each in received if each.kind != "MESSAGE"]
    assert sorted(kinds(answers)) == [
        "ACK_RESPONSE",
        "END_TXN_RESPONSE",
        "SEND_RECEIPT",
        "SEND_RECEIPT",
    ]
    assert not any(each.body.HasField("error") for each in answers if each.kind != "SEND_RECEIPT")
    assert texts([*received, *await client.receive()]) == [b"2", b"3"]
    topic = stage.broker.topics[TOPIC].stored
    assert topic is not None
    assert topic.subscriptions["s"].cursor.acks.is_acked(place)


@pytest.mark.parametrize("ends_first", [False, True])
async def test_additions_and_an_end_keep_their_order(stage: Stage, ends_first: bool) -> None:
    await published(stage, b"1")
    client = await consumer(stage)
    await client.receive()
    for _ in range(20):
        txn = await begun(client)
        added = [peer.add_partitions(5, txn, TOPIC), peer.add_subscription(6, txn, TOPIC, "s")]
        end = peer.end_txn(7, txn, commit=True)
        received = await client.says(*([end, *added] if ends_first else [*added, end]))
        errors = {
            each.body.request_id: each.body.HasField("error")
            for each in received
            if each.kind != "MESSAGE"
        }
        assert errors == {5: ends_first, 6: ends_first, 7: False}
