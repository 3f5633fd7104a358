"""The rights of commands: the table is complete, and is asked."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from magnetar.core.transactions.topic_transactions import NAMES_MAX
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session.conftest import Player, Stage, ids, kinds
from magnetar.wire.pulsar.session.rights import RIGHTS, Free
from magnetar.wire.pulsar.session.session import FREE
from magnetar.wire.pulsar.tests import peer


def schema(kind: str) -> bytes:
    if kind == "GET_SCHEMA":
        return peer.frame(kind, pb.CommandGetSchema(request_id=1, topic="t"))
    text = pb.Schema(name="s", schema_data=b"", type=1)
    return peer.frame(kind, pb.CommandGetOrCreateSchema(request_id=1, topic="t", schema=text))


REQUESTS: Mapping[type, tuple[bytes, str]] = {
    events.Lookup: (peer.lookup(1, "t"), "look"),
    events.PartitionedMetadata: (peer.partitioned_metadata(1, "t"), "look"),
    events.TopicsOfNamespace: (peer.topics_of_namespace(1, "public/default"), "look"),
    events.WatchTopics: (
        peer.frame(
            "WATCH_TOPIC_LIST",
            pb.CommandWatchTopicList(
                request_id=1, watcher_id=1, namespace="public/default", topics_pattern=".*"
            ),
        ),
        "look",
    ),
    events.Producer: (peer.producer(1, 1, "t"), "produce"),
    events.Subscribe: (peer.subscribe(1, 1, "t", "s"), "consume"),
    events.AddPartitionsToTxn: (peer.add_partitions(1, (0, 0), "t"), "produce"),
    events.AddSubscriptionsToTxn: (peer.add_subscription(1, (0, 0), "t", "s"), "consume"),
    events.GetSchema: (schema("GET_SCHEMA"), "look"),
    events.GetOrCreateSchema: (schema("GET_OR_CREATE_SCHEMA"), "produce"),
}
"""A request for each command with a right that needs no consumer, and what must be permitted."""
OF_CONSUMERS = (events.Unsubscribe, events.Seek, events.GetLastMessageId, events.ConsumerStats)


def code(received: peer.ReceivedFrame) -> int:
    """The error's code, whatever the kind of reply calls it; -1 for success."""
    body = received.body
    for field in ("error", "error_code"):
        if field in body.DESCRIPTOR.fields_by_name and body.HasField(field):
            return int(getattr(body, field))
    return -1


def test_every_command_has_its_right() -> None:
    assert set(RIGHTS) == set(events.ALL)
    checked = {event for event, right in RIGHTS.items() if not isinstance(right, Free)}
    assert checked == {*REQUESTS, *OF_CONSUMERS}, "each is tried below"
    assert checked.isdisjoint(FREE)


@pytest.mark.parametrize("event", REQUESTS, ids=lambda event: event.__name__)
async def test_a_command_needs_its_right(guarded_stage: Stage, event: type) -> None:
    said, needed = REQUESTS[event]
    await guarded_stage.permit(admin="admin", maker="produce", reader="consume", other="sinks")
    for name, can in (
        ("root", True), ("admin", True), ("maker", needed in ("produce", "look")),
        ("reader", needed in ("consume", "look")), ("other", needed == "look"), ("stranger", False),
    ):  # fmt: skip
        client = await guarded_stage.player(name=name)
        received = (await client.says(said))[0]
        assert (code(received) != pb.AuthorizationError) is can, (name, received)
        if not can:
            text = getattr(received.body, "message", "") or received.body.error_message
            assert text.startswith("Client is not authorized to")
        client.session.closed("done")


@pytest.mark.parametrize("guarded", [True, False])
async def test_too_many_names_of_a_transaction_are_refused_before_one_is_looked_at(
    stage: Stage, guarded_stage: Stage, guarded: bool
) -> None:
    """A frame has room for a million of them; not one is parsed, or asked for."""
    client = await (guarded_stage.player(name="stranger") if guarded else stage.player())
    for said in (
        peer.add_partitions(1, (0, 0), *["not://a name"] * (NAMES_MAX + 1)),
        peer.add_subscription(1, (0, 0), "not://a name", *["s"] * (NAMES_MAX + 1)),
    ):
        received = await client.says_one(said)
        assert received.body.error == pb.NotAllowedError
        assert f"at most {NAMES_MAX}" in received.body.message


async def test_the_words_that_suites_compare(guarded_stage: Stage) -> None:
    client = await guarded_stage.player(name="stranger")
    received = await client.says_one(peer.partitioned_metadata(1, "t"))
    assert received.body.message == "Client is not authorized to Get Partition Metadata"


async def test_who_may_not_attach_creates_no_topic(guarded_stage: Stage) -> None:
    client = await guarded_stage.player(name="stranger")
    await client.says(peer.producer(1, 1, "t"), peer.subscribe(2, 2, "t", "s"))
    assert not guarded_stage.broker.topics


async def test_a_producer_with_a_subscription_needs_both_rights(guarded_stage: Stage) -> None:
    await guarded_stage.permit(maker="produce")
    client = await guarded_stage.player(name="maker")
    said = peer.producer(1, 1, "t", initial_subscription_name="s")
    assert code(await client.says_one(said)) == pb.AuthorizationError


async def test_a_subscription_may_be_for_others(guarded_stage: Stage) -> None:
    await guarded_stage.permit(subscriptions={"s": ["alice"]}, alice="consume", bob="consume")
    alice, bob = await guarded_stage.player(name="alice"), await guarded_stage.player(name="bob")
    assert code(await bob.says_one(peer.subscribe(1, 1, "t", "s"))) == pb.AuthorizationError
    assert kinds(await bob.says(peer.subscribe(2, 1, "t", "of-bob"))) == ["SUCCESS"]
    assert kinds(await alice.says(peer.subscribe(1, 1, "t", "s"))) == ["SUCCESS"]


# -- rights that are taken -----------------------------------------------------------------------


async def attached(stage: Stage, name: str) -> Player:
    """A client with a producer and a consumer on one topic."""
    client = await stage.player(name=name)
    assert kinds(await client.says(peer.producer(1, 1, "t"))) == ["PRODUCER_SUCCESS"]
    assert kinds(await client.says(peer.subscribe(2, 2, "t", f"of-{name}"))) == ["SUCCESS"]
    client.feed(peer.flow(2, 100))
    return client


async def test_who_loses_a_right_is_closed_and_others_are_not(guarded_stage: Stage) -> None:
    await guarded_stage.permit(alice="produce consume", bob="produce consume")
    alice, bob = await attached(guarded_stage, "alice"), await attached(guarded_stage, "bob")
    await guarded_stage.permit(alice="consume", bob="produce consume")
    closed = await alice.receive()
    assert kinds(closed) == ["CLOSE_PRODUCER"]
    assert closed[0].body.producer_id == 1
    assert await alice.says(peer.send(1, 0)) == [], "what was under way is dropped"
    received = await alice.says_one(peer.producer(3, 1, "t"))
    assert code(received) == pb.AuthorizationError
    received = [*await bob.says(peer.send(1, 0)), *await bob.receive()]
    assert kinds(received) == ["SEND_RECEIPT", "MESSAGE"]
    assert len(ids(await alice.receive())) == 1, "alice still reads"

    await guarded_stage.permit(bob="produce consume")
    closed = await alice.receive()
    assert kinds(closed) == ["CLOSE_CONSUMER"]
    assert closed[0].body.consumer_id == 2
    assert code(await alice.says_one(peer.subscribe(4, 2, "t", "of-alice"))) == 4
    assert alice.line.ending is None
    assert await bob.receive() == []


async def test_requests_about_a_consumer_need_its_right(guarded_stage: Stage) -> None:
    await guarded_stage.permit(alice="produce consume")
    alice = await attached(guarded_stage, "alice")
    assert guarded_stage.broker.access.judge is not None
    guarded_stage.broker.access.judge.permissions.namespaces.clear()
    guarded_stage.broker.access.judge.changed()
    for said in (
        peer.frame("UNSUBSCRIBE", pb.CommandUnsubscribe(request_id=5, consumer_id=2)),
        peer.frame("SEEK", pb.CommandSeek(request_id=5, consumer_id=2, message_publish_time=1)),
        peer.frame("GET_LAST_MESSAGE_ID", pb.CommandGetLastMessageId(request_id=5, consumer_id=2)),
        peer.frame("CONSUMER_STATS", pb.CommandConsumerStats(request_id=5, consumer_id=2)),
    ):
        assert code(await alice.says_one(said)) == pb.AuthorizationError


async def test_a_right_that_is_lost_while_attaching(guarded_stage: Stage) -> None:
    await guarded_stage.permit(alice="produce consume")
    alice = await guarded_stage.player(name="alice")
    alice.feed(peer.producer(1, 1, "t"), peer.subscribe(2, 2, "t", "s"))
    judge = guarded_stage.broker.access.judge
    assert judge is not None
    judge.permissions.namespaces.clear()
    judge.changed()
    received = await alice.receive()
    assert [code(each) for each in received] == [pb.AuthorizationError] * 2
    assert len(alice.session.producers) == len(alice.session.consumers.attached) == 0
