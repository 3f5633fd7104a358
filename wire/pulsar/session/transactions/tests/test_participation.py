"""What may be sent and acknowledged in a transaction, and what is refused."""

from __future__ import annotations

import pytest

from magnetar.core.kernel.names import TopicName
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Player, Stage, consumer, ids, kinds, published
from magnetar.wire.pulsar.session.transactions import participation
from magnetar.wire.pulsar.session.transactions.tests.test_transact import (
    TOPIC,
    begun,
    ended,
    producer,
    texts,
)
from magnetar.wire.pulsar.tests import peer

SHARED = pb.CommandSubscribe.SHARED


def code(received: peer.ReceivedFrame) -> int:
    """The error's code; -1 for none."""
    return int(received.body.error) if received.body.HasField("error") else -1


async def topic_of(stage: Stage) -> PersistentTopic:
    topic = await stage.broker.topic(TopicName.parse(TOPIC))
    assert isinstance(topic, PersistentTopic)
    return topic


def txn_fields(txn: tuple[int, int]) -> dict[str, int]:
    return {"txnid_most_bits": txn[0], "txnid_least_bits": txn[1]}


# -- publishing ---------------------------------------------------------------------------------


async def test_nothing_is_sent_in_a_transaction_without_the_topic(stage: Stage) -> None:
    client = await producer(stage)
    txn = await begun(client)
    for unusable in (txn, (0, 1 << 60), ((1 << 64) - 1, (1 << 64) - 1)):
        received = await client.says_one(peer.send_in(unusable, 1, 0, b"x"))
        assert (received.kind, code(received)) == ("SEND_ERROR", pb.NotAllowedError)
    received = await client.says_one(peer.send(1, 1))
    assert received.kind == "SEND_RECEIPT", "the producer goes on"


async def test_what_comes_after_the_end_is_refused(stage: Stage) -> None:
    client = await producer(stage)
    txn = await begun(client, TOPIC)
    await ended(client, txn)
    received = await client.says_one(peer.send_in(txn, 1, 0, b"x"))
    assert (received.kind, code(received)) == ("SEND_ERROR", pb.NotAllowedError)
    assert not (await topic_of(stage)).ledger.transactions.open


async def test_a_refusal_waits_for_the_receipts_before_it(stage: Stage) -> None:
    """Java's client looks for what is refused at the head of what it waits for."""
    client = await producer(stage)
    txn = await begun(client, TOPIC)
    await ended(client, txn)
    received = await client.says(peer.send(1, 0), peer.send_in(txn, 1, 1, b"x"), peer.send(1, 2))
    assert kinds(received) == ["SEND_RECEIPT", "SEND_ERROR", "SEND_RECEIPT"]
    assert [each.body.sequence_id for each in received] == [0, 1, 2]


async def test_metadata_and_command_name_the_same_transaction(stage: Stage) -> None:
    """Else a replay of the log would find a transaction that nobody ends, or a forged marker."""
    client = await producer(stage)
    txn, other = await begun(client, TOPIC), await begun(client, TOPIC)
    plain = peer.send(1, 0, about=peer.metadata(0, **txn_fields(txn)))
    mixed = peer.send(1, 2, about=peer.metadata(2, **txn_fields(other)), **txn_fields(txn))
    marker = peer.metadata(3, marker_type=21, **txn_fields(txn))
    forged = peer.send(1, 3, about=marker, **txn_fields(txn))
    received = await client.says(plain, mixed, forged)
    assert [(each.kind, code(each)) for each in received] == [
        ("SEND_ERROR", pb.NotAllowedError)
    ] * 3
    assert (await topic_of(stage)).ledger.chain.entries == 0


@pytest.mark.parametrize("checked", [True, False])
async def test_a_command_alone_names_it(stage: Stage, checked: bool) -> None:
    """As Go's does: what is stored says it as well, and is as sound as what was sent."""
    client = await producer(stage)
    txn, other = await begun(client, TOPIC), await begun(client, TOPIC)
    for at, each in enumerate((txn, other)):
        about = peer.metadata(at)
        said = peer.send(1, at, b"%d" % at, about=about, checked=checked, **txn_fields(each))
        assert (await client.says_one(said)).kind == "SEND_RECEIPT"
    await stage.broker.unload(TopicName.parse(TOPIC))
    await ended(client, txn)
    await ended(client, other, commit=False)
    reader = await consumer(stage)
    (message,) = await reader.receive()
    found = peer.open_tail(message.tail)
    assert found.payload == b"0"
    assert (found.metadata.txnid_most_bits, found.metadata.txnid_least_bits) == txn


async def test_open_transactions_are_found_again_in_the_log(stage: Stage) -> None:
    client = await producer(stage)
    txn, other = await begun(client, TOPIC), await begun(client, TOPIC)
    await client.says(peer.send_in(txn, 1, 0, b"a"), peer.send_in(other, 1, 1, b"b"))
    await ended(client, other, commit=False)
    await stage.broker.unload(TopicName.parse(TOPIC))
    topic = await topic_of(stage)
    assert list(topic.ledger.transactions.open) == [txn]
    assert [one.key for one in topic.ledger.transactions.aborted] == [other]
    reader = await consumer(stage)
    assert texts(await reader.receive()) == []
    await ended(client, txn)
    assert texts(await reader.receive()) == [b"a"]


@pytest.mark.parametrize("name", ["non-persistent://public/default/t"])
async def test_what_stores_nothing_takes_no_part(stage: Stage, name: str) -> None:
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, name))
    txn = await begun(client, name)
    received = await client.says_one(peer.send_in(txn, 1, 0, b"x"))
    assert (received.kind, code(received)) == ("SEND_ERROR", pb.NotAllowedError)


async def test_the_last_message_is_one_that_is_delivered(stage: Stage) -> None:
    client = await producer(stage)
    reader = await consumer(stage, permits=0)
    await client.says(*[peer.send(1, number) for number in range(12)])  # over two ledgers

    async def last() -> tuple[int, int]:
        received = await reader.says_one(peer.get_last_message_id(7, 3))
        return received.body.last_message_id.ledger_id, received.body.last_message_id.entry_id

    before = await last()
    txn, other = await begun(client, TOPIC), await begun(client, TOPIC)
    await client.says(*[peer.send_in(txn, 1, number, b"x") for number in range(12, 30)])
    await client.says(peer.send(1, 30))
    assert await last() == before
    await client.says(peer.send_in(other, 1, 31, b"x"))
    await ended(client, other)
    assert await last() == before
    await ended(client, txn, commit=False)
    received = await client.says(peer.send_in(await begun(client, TOPIC), 1, 32, b"x"))
    assert kinds(received) == ["SEND_RECEIPT"]
    assert await last() > before
    await reader.says(peer.flow(3, 100))
    assert ids(await reader.receive()) == []


# -- acknowledging ------------------------------------------------------------------------------


async def with_a_batch(stage: Stage, **fields: object) -> tuple[Player, pb.MessageIdData]:
    """A consumer that has got a batch of four, and its id."""
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    await client.says(peer.send_batch(1, 0, [b"a", b"b", b"c", b"d"]))
    made = await consumer(stage, **fields)
    ((ledger_id, entry_id),) = ids(await made.receive())
    return made, pb.MessageIdData(ledger_id=ledger_id, entry_id=entry_id)


def part(of: pb.MessageIdData, mask: int, size: int = 4) -> pb.MessageIdData:
    found = pb.MessageIdData(ledger_id=of.ledger_id, entry_id=of.entry_id, ack_set=[mask])
    if size:
        found.batch_size = size
    return found


@pytest.mark.parametrize("size", [4, 0], ids=["with its size", "as Go does"])
@pytest.mark.parametrize("cached", [True, False])
async def test_messages_of_a_batch(stage: Stage, size: int, cached: bool) -> None:
    client, batch = await with_a_batch(stage, sub_type=SHARED)
    if not cached:
        stage.broker.tail_cache.bytes_max = 0
        stage.broker.tail_cache.evict()
    first, second = [await begun(client, subscription="s") for _ in range(2)]
    received = await client.says_one(peer.ack_in(first, 5, 3, part(batch, 0b0110, size)))
    assert code(received) == -1
    received = await client.says_one(peer.ack_in(second, 6, 3, part(batch, 0b0011, size)))
    assert code(received) == pb.TransactionConflict, "the last one is in the first transaction"
    received = await client.says_one(peer.ack_in(second, 7, 3, part(batch, 0b1011, size)))
    assert code(received) == -1
    (message,) = await client.says(peer.redeliver(3))
    assert list(message.body.ack_set) == [0b0010]
    await ended(client, second)
    (message,) = [each for each in await ended(client, first, commit=False) if each.tail]
    assert list(message.body.ack_set) == [0b1011]
    received = await client.says(peer.ack(3, batch, request_id=8))
    assert code(received[0]) == -1
    assert (await topic_of(stage)).subscriptions["s"].cursor.backlog == 0


async def test_each_of_many_requests_is_answered(stage: Stage) -> None:
    """They are joined; of which another transaction has some, these alone are refused."""
    await published(stage, *[b"%d" % number for number in range(6)])
    client = await consumer(stage, sub_type=SHARED)
    places = ids(await client.receive())
    first, second = [await begun(client, subscription="s") for _ in range(2)]

    def each(txn: tuple[int, int], *numbers: int) -> list[bytes]:
        return [
            peer.ack_in(txn, 50 + number, 3, pb.MessageIdData(ledger_id=one, entry_id=entry))
            for number, (one, entry) in enumerate(places)
            if number in numbers
        ]

    received = await client.says(b"".join(each(first, 1, 2)))
    assert [(one.body.request_id, code(one)) for one in received] == [(51, -1), (52, -1)]
    assert {(one.body.txnid_most_bits, one.body.txnid_least_bits) for one in received} == {first}
    received = await client.says(b"".join(each(second, 0, 1, 2, 3)))
    refused = {one.body.request_id: code(one) for one in received}
    conflict = int(pb.TransactionConflict)
    assert refused == {50: -1, 51: conflict, 52: conflict, 53: -1}
    await ended(client, second)
    await ended(client, first, commit=False)
    assert ids(await client.says(peer.redeliver(3))) == [places[1], places[2], *places[4:]]
    received = await client.says(b"".join(each(first, 4, 5)))
    assert [code(one) for one in received] == [int(pb.TransactionNotFound)] * 2
    gone = [peer.ack_in(first, 70 + at, 99, pb.MessageIdData(ledger_id=1, entry_id=at))
            for at in range(2)]  # fmt: skip
    received = await client.says(b"".join(gone))
    assert [one.body.request_id for one in received] == [70, 71], "nobody is attached as 99"


async def test_without_acknowledgement_of_single_messages(stage: Stage) -> None:
    """As outside of transactions, parts of batches are not acknowledged then."""
    client = await stage.player(batch_index_acks=False)
    await client.says_one(peer.producer(1, 1, "t"))
    await client.says(peer.send_batch(1, 0, [b"a", b"b"]))
    await client.says(peer.subscribe(1, 3, "t", "s", initial_position=1, sub_type=SHARED))
    ((ledger_id, entry_id),) = ids(await client.says(peer.flow(3, 100)))
    txn = await begun(client, subscription="s")
    whole = pb.MessageIdData(ledger_id=ledger_id, entry_id=entry_id)
    for request_id, one in ((5, part(whole, 0b10, 2)), (6, part(whole, 0b01, 2))):
        assert code(await client.says_one(peer.ack_in(txn, request_id, 3, one))) == -1
    await ended(client, txn)
    cursor = (await topic_of(stage)).subscriptions["s"].cursor
    assert cursor.backlog == 1
    assert cursor.acks.bits((ledger_id, entry_id)) is None


async def test_all_up_to_a_message(stage: Stage) -> None:
    await published(stage, *[b"%d" % number for number in range(5)])
    client = await consumer(stage)
    places = ids(await client.receive())
    first, second = [await begun(client, subscription="s") for _ in range(2)]

    def up_to(txn: tuple[int, int], request_id: int, place: int) -> bytes:
        ledger_id, entry_id = places[place]
        one = pb.MessageIdData(ledger_id=ledger_id, entry_id=entry_id)
        return peer.ack_in(txn, request_id, 3, one, ack_type=pb.CommandAck.CUMULATIVE)

    assert code(await client.says_one(up_to(first, 5, 2))) == -1
    assert code(await client.says_one(up_to(second, 6, 3))) == pb.TransactionConflict
    assert ids(await client.says(peer.redeliver(3))) == places[3:]
    assert ids(await ended(client, first, commit=False)) == places
    assert code(await client.says_one(up_to(second, 7, 3))) == -1
    await ended(client, second)
    assert ids(await client.says(peer.redeliver(3))) == places[4:]
    third = await begun(client, subscription="s")
    assert code(await client.says_one(up_to(third, 8, 1))) == pb.TransactionConflict


async def test_only_where_the_transaction_is(stage: Stage) -> None:
    await published(stage, b"a")
    client = await consumer(stage)
    ((ledger_id, entry_id),) = ids(await client.receive())
    one = pb.MessageIdData(ledger_id=ledger_id, entry_id=entry_id)
    elsewhere = await begun(client, subscription="other")
    received = await client.says_one(peer.ack_in(elsewhere, 5, 3, one))
    assert code(received) == pb.NotAllowedError
    received = await client.says_one(peer.ack_in((1, 77), 6, 3, one))
    assert code(received) == pb.TransactionNotFound
    over = await begun(client, subscription="s")
    await ended(client, over)
    received = await client.says_one(peer.ack_in(over, 7, 3, one))
    assert code(received) == pb.TransactionNotFound
    received = await client.says_one(peer.ack_in(over, 8, 99, one))
    assert received.body.message, "Go looks at the text"


async def test_nothing_is_read_for_what_is_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of a batch is not known: of one that is nowhere, reading it would say so."""
    client, batch = await with_a_batch(stage, sub_type=SHARED)
    nowhere = part(pb.MessageIdData(ledger_id=7_777, entry_id=0), 1, 0)
    txn = await begun(client, subscription="s")
    over = await begun(client, subscription="s")
    await ended(client, over)
    received = await client.says_one(peer.ack_in(over, 5, 3, nowhere))
    assert code(received) == pb.TransactionNotFound
    monkeypatch.setattr(participation, "HELD_MAX", 2)
    received = await client.says_one(peer.ack_in(txn, 6, 3, nowhere, nowhere, nowhere))
    assert code(received) == pb.NotAllowedError
    received = await client.says_one(peer.ack_in(txn, 7, 3, part(batch, 1, 0)))
    assert code(received) == -1


async def test_readers_take_no_part(stage: Stage) -> None:
    await published(stage, b"a")
    client = await consumer(stage, durable=False)
    await client.receive()
    place = pb.MessageIdData(ledger_id=0, entry_id=0)
    txn = await begun(client, subscription="s")
    received = await client.says_one(peer.ack_in(txn, 5, 3, place))
    assert code(received) == pb.NotAllowedError


async def test_all_up_to_a_message_is_for_one_consumer(stage: Stage) -> None:
    client, batch = await with_a_batch(stage, sub_type=SHARED)
    txn = await begun(client, subscription="s")
    said = peer.ack_in(txn, 5, 3, batch, ack_type=pb.CommandAck.CUMULATIVE)
    assert code(await client.says_one(said)) == pb.NotAllowedError


async def test_who_is_not_its_owner(guarded_stage: Stage) -> None:
    stage = guarded_stage
    await stage.permit(alice="produce consume", bob="produce consume")
    alice, bob, root = [await stage.player(name=name) for name in ("alice", "bob", "root")]
    received = await alice.says_one(peer.new_txn(1))
    txn = received.body.txnid_most_bits, received.body.txnid_least_bits
    for request in (
        peer.add_partitions(2, txn, "t"),
        peer.add_subscription(2, txn, "t", "s"),
        peer.end_txn(2, txn),
    ):
        received = await bob.says_one(request)
        assert code(received) == pb.TransactionNotFound
        assert "neither the owner" in received.body.message
    received = await alice.says_one(peer.add_partitions(3, txn, "persistent://other/x/t"))
    assert code(received) == pb.AuthorizationError
    await alice.says_one(peer.producer(4, 1, "t"))
    assert code(await alice.says_one(peer.add_partitions(5, txn, "t"))) == -1
    await bob.says_one(peer.producer(6, 1, "t"))
    received = await bob.says_one(peer.send_in(txn, 1, 0, b"x"))
    assert (received.kind, code(received)) == ("SEND_ERROR", pb.NotAllowedError)
    assert code(await root.says_one(peer.end_txn(7, txn))) == -1
