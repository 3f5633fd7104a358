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
    client = await stage.player()
    message = pb.CommandNewTxn(request_id=4, tc_id=0)
    received = await client.says_one(peer.frame("NEW_TXN", message))
    assert (received.kind, received.body.message) == ("ERROR", "Transactions are not enabled.")
