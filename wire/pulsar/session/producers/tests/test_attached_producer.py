"""Producers at work: every message answered in its place, whatever becomes of it; most of all those
that are sent again where they are to be stored once.
"""

from magnetar.core.kernel.errors import Fenced
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.testing.bench import settled
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Player, Stage
from magnetar.wire.pulsar.tests import peer

NOWHERE = (1 << 64) - 1


async def writer(stage: Stage, request_id: int = 1) -> Player:
    """The producer `p`, of a client that comes again and again."""
    await stage.broker.catalog.set_policies(
        NamespaceName("public", "default"), NamespacePolicies(deduplication=True)
    )
    client = await stage.player()
    await client.says_one(peer.producer(request_id, 7, "t", producer_name="p", epoch=request_id))
    return client


def results(received: list[peer.ReceivedFrame]) -> list[tuple[str, int, bool]]:
    """Of each answer: its kind, the sequence id, and whether it names a position."""
    return [
        (
            each.kind,
            each.body.sequence_id,
            each.kind == "SEND_RECEIPT" and each.body.message_id.ledger_id != NOWHERE,
        )
        for each in received
    ]


def entries(stage: Stage) -> int:
    (topic,) = stage.broker.topics.values()
    assert isinstance(topic, PersistentTopic)
    return topic.ledger.statistics().entries


async def test_a_second_time_is_a_success_without_a_position(slow_stage: Stage) -> None:
    client = await writer(slow_stage)
    assert await client.says(*[peer.send(7, number) for number in (0, 1, 1, 0, 2)]) == []
    slow_stage.stores.ledgers.sync()
    receipt = "SEND_RECEIPT"
    assert results(await client.receive()) == [
        (receipt, 0, True),
        (receipt, 1, True),
        (receipt, 1, False),
        (receipt, 0, False),
        (receipt, 2, True),
    ], "in the order they were sent"
    assert results(await client.says(peer.send(7, 2))) == [(receipt, 2, False)]
    assert entries(slow_stage) == 3


async def test_a_run_that_a_recovery_has_split_is_receipted_where_it_is(slow_stage: Stage) -> None:
    client = await slow_stage.player()
    await client.says_one(peer.producer(1, 7, "t"))
    assert await client.says(*[peer.send(7, number) for number in range(4)]) == []
    stores = slow_stage.stores.ledgers
    written = stores.ledgers[max(stores.ledgers)]
    written.last_confirmed, written.closed = 1, True
    written.fail(Fenced("a recovery"))
    await settled()
    stores.sync()
    found = [(each.body.sequence_id, each.body.message_id) for each in await client.receive()]
    ledger = written.ledger_id
    assert [(number, at.ledger_id, at.entry_id) for number, at in found] == [
        (0, ledger, 0),
        (1, ledger, 1),
        (2, ledger + 1, 0),
        (3, ledger + 1, 1),
    ]
    assert entries(slow_stage) == 4


async def test_a_batch_counts_with_its_last_message(stage: Stage) -> None:
    client = await writer(stage)
    await client.says(peer.send_batch(7, 10, [b"a", b"b", b"c"]))
    received = await client.says(peer.send(7, 11), peer.send(7, 12), peer.send(7, 13))
    assert [position for _kind, _id, position in results(received)] == [False, False, True]
    heard_one = await client.says_one(peer.send(7, 20, highest_sequence_id=19))
    assert (heard_one.kind, heard_one.body.error) == ("SEND_ERROR", pb.MetadataError)


async def test_parts_of_a_large_message_share_one_id(stage: Stage) -> None:
    client = await writer(stage)

    def part(number: int) -> bytes:
        about = peer.metadata(5, uuid="u", chunk_id=number, num_chunks_from_msg=3)
        command = pb.CommandSend(producer_id=7, sequence_id=5, is_chunk=True)
        return peer.frame("SEND", command, peer.tail(b"x", about))

    whole = [part(number) for number in range(3)]
    assert all(position for _kind, _id, position in results(await client.says(*whole)))
    again = results(await client.says(*whole))
    assert [position for _kind, _id, position in again] == [False] * 3
    assert entries(stage) == 3


async def test_who_comes_again_is_told_where_to_go_on(stage: Stage) -> None:
    client = await writer(stage)
    await client.says(peer.send(7, 41))
    client.session.closed("the cable")
    client = await stage.player()
    received = await client.says_one(peer.producer(2, 7, "t", producer_name="p", epoch=2))
    assert received.body.last_sequence_id == 41
    other = await stage.player()
    assert (await other.says_one(peer.producer(1, 7, "t"))).body.last_sequence_id == -1


async def test_what_may_yet_fail_is_neither_new_nor_known(slow_stage: Stage) -> None:
    """Its producer is to come again, which by then will be known."""
    client = await writer(slow_stage)
    await client.says(peer.send(7, 0))
    client.session.closed("the cable")
    again = await writer(slow_stage, 2)
    received = await again.says_one(peer.send(7, 0))
    assert (received.kind, received.body.producer_id) == ("CLOSE_PRODUCER", 7)
    slow_stage.stores.ledgers.sync()
    await again.says(peer.producer(3, 7, "t", producer_name="p", epoch=3))
    assert results(await again.says(peer.send(7, 0), peer.send(7, 1)))[0] == (
        "SEND_RECEIPT",
        0,
        False,
    )
    slow_stage.stores.ledgers.sync()
    assert results(await again.receive()) == [("SEND_RECEIPT", 1, True)]
    assert entries(slow_stage) == 2
