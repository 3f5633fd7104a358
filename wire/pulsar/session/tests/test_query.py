"""Questions about what is attached, and refusals in kind."""

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Stage, consumer, published
from magnetar.wire.pulsar.tests import peer


async def test_how_a_consumer_is_doing(stage: Stage) -> None:
    await published(stage, b"a", b"b")
    client = await consumer(stage, permits=5)
    await client.receive()
    received = await client.says_one(peer.consumer_stats(9, 3))
    assert (received.kind, received.body.request_id) == ("CONSUMER_STATS_RESPONSE", 9)
    assert received.body.connected_since == "2023-11-14T22:13:20.000+00:00"
    received = await client.says_one(peer.consumer_stats(10, 99))
    assert received.kind == "CONSUMER_STATS_RESPONSE"
    assert received.body.error_code == pb.ConsumerNotFound


async def test_transactions_are_refused_in_the_words_that_clients_look_for(stage: Stage) -> None:
    client = await stage.player(transactions=False)
    txn = (0, 0)
    for frame in (
        peer.tc_connect(4),
        peer.new_txn(4),
        peer.add_partitions(4, txn, "t"),
        peer.add_subscription(4, txn, "t", "s"),
        peer.end_txn(4, txn),
    ):
        received = await client.says_one(frame)
        assert (received.kind, received.body.message) == ("ERROR", "Transactions are not enabled.")
    received = await client.says_one(peer.producer(5, 1, "t", txn_enabled=True))
    assert received.body.error == pb.NotAllowedError
    await client.says_one(peer.producer(6, 1, "t"))
    received = await client.says_one(peer.send_in(txn, 1, 0, b"x"))
    assert (received.kind, received.body.error) == ("SEND_ERROR", pb.NotAllowedError)
