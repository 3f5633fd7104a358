"""Limits as clients feel them: rates that only slow down, refusals that come in their place."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.link.memory.pauses import PAUSE_RATE
from magnetar.core.policy.policies import NamespacePolicies, TopicPolicies
from magnetar.core.policy.values import BacklogQuota
from magnetar.core.topic.restrictions import PROPERTIES_BYTES_MAX
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session import attachment_limit
from magnetar.wire.pulsar.session.conftest import Player, Stage, consumer, kinds, published
from magnetar.wire.pulsar.tests import peer

DEFAULT = NamespaceName("public", "default")


async def decide(stage: Stage, topic: TopicPolicies | None = None, **rates: object) -> None:
    """Policies of the namespace, and of topic `t`."""
    by_cluster = {name: {"standalone": value} for name, value in rates.items()}
    await stage.broker.catalog.set_policies(DEFAULT, NamespacePolicies(**by_cluster))
    if topic is not None:
        await stage.broker.catalog.set_topic_policies(TopicName.parse("t"), topic)
    await stage.broker.apply_policies(DEFAULT)


async def writer(stage: Stage, topic: str = "t") -> Player:
    client = await stage.player()
    await client.says_one(peer.producer(1, 7, topic))
    return client


def sends(first: int, count: int) -> list[bytes]:
    return [peer.send(7, number) for number in range(first, first + count)]


async def test_a_publish_rate_slows_down_and_refuses_nothing(
    stage: Stage, autojump_clock: MockClock
) -> None:
    await decide(stage, publish_rate={"publishThrottlingRateInMsg": 10})
    client, other = await writer(stage), await writer(stage, "u")
    assert kinds(await client.says(*sends(0, 9))) == ["SEND_RECEIPT"] * 9
    assert not client.line.paused
    client.feed(*sends(9, 21))
    assert client.line.paused == PAUSE_RATE, "it owes two seconds"
    assert kinds(await client.receive()) == ["SEND_RECEIPT"] * 21
    other.feed(*sends(0, 9))
    assert not other.line.paused, "each topic has a rate of its own"
    stage.stores.clock.forward(1)
    await trio.sleep(2.1)
    assert client.line.paused, "time is what the server's clock says"
    stage.stores.clock.forward(1.1)
    await trio.sleep(2.1)
    assert not client.line.paused
    client.feed(*sends(30, 2))
    assert client.line.paused, "the bucket was not filled"


async def test_who_pays_for_long_hears_that_the_server_lives(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """Its pings are not read, and without an answer it would leave, come again, and send it all."""
    await decide(stage, publish_rate={"publishThrottlingRateInMsg": 1})
    client = await writer(stage)
    assert kinds(await client.says(*sends(0, 51))) == ["SEND_RECEIPT"] * 51, "at once: no word more"
    results = []
    for _ in range(5):
        stage.stores.clock.forward(10)
        await trio.sleep(10)
        results += [(each.kind, client.line.paused) for each in await client.receive()]
    assert results == [("PONG", PAUSE_RATE)] * 2, "after 20 s, and after 40"
    stage.stores.clock.forward(1)
    await trio.sleep(20)
    assert (kinds(await client.receive()), client.line.paused) == ([], 0)
    client.feed(*sends(51, 1))
    stage.stores.clock.forward(20)
    client.feed(*sends(52, 30))
    assert kinds(await client.receive())[0] == "PONG", "many short waits are as bad as a long one"


async def test_connections_share_the_rate_of_a_topic(
    stage: Stage, autojump_clock: MockClock
) -> None:
    await decide(stage, publish_rate={"publishThrottlingRateInByte": 1000})
    a, b = await writer(stage), await writer(stage)
    a.feed(peer.send(7, 0, bytes(2000)))
    b.feed(peer.send(7, 0, bytes(10)))
    assert (a.line.paused, b.line.paused) == (PAUSE_RATE, PAUSE_RATE)
    a.session.closed("it went")
    stage.stores.clock.forward(5)
    await trio.sleep(5)
    assert not b.line.paused


async def test_what_a_topic_refuses_comes_in_its_place(slow_stage: Stage) -> None:
    """Clients look for a refused message at the head of what they wait for."""
    await decide(slow_stage, TopicPolicies(max_message_size=100))
    client = await writer(slow_stage)
    small, large = b"x", bytes(200)
    run = [peer.send(7, i, large if i in (1, 2, 4) else small) for i in range(5)]
    assert await client.says(*run) == [], "nothing overtakes what is on its way to storage"
    slow_stage.stores.ledgers.sync()
    received = await client.receive()
    results = [(each.kind, each.body.sequence_id) for each in received]
    receipt, refusal = "SEND_RECEIPT", "SEND_ERROR"
    assert results == [(receipt, 0), (refusal, 1), (refusal, 2), (receipt, 3), (refusal, 4)]
    assert received[1].body.error == pb.NotAllowedError
    assert "maximum message size" in received[1].body.message
    first = await client.says_one(peer.send(7, 5, large))
    assert first.kind == "SEND_ERROR", "at once where nothing comes before"


async def test_what_no_consumer_can_read_is_refused_by_itself(stage: Stage) -> None:
    client = await writer(stage)
    about = peer.metadata(1, num_messages_in_batch=3)
    empty = peer.send(7, 1, peer.batch([b"a", b"b"]), about=about, num_messages=3)
    garbage = peer.metadata(2, compression=1, uncompressed_size=50)
    packed = peer.send(7, 2, b"garbage", about=garbage)
    received = await client.says(
        peer.send(7, 0, b"x"), empty, packed, peer.send_batch(7, 3, [b"a"])
    )
    results = [(each.kind, each.body.sequence_id) for each in received]
    receipt, refusal = "SEND_RECEIPT", "SEND_ERROR"
    assert sorted(results, key=lambda one: one[1]) == [
        (receipt, 0),
        (refusal, 1),
        (refusal, 2),
        (receipt, 3),
    ]
    assert {each.body.error for each in received if each.kind == refusal} == {pb.NotAllowedError}


async def test_too_many_lookups(stage: Stage) -> None:
    """In the words of each question's own answer."""
    client = await stage.player(lookups_max=0)
    received = await client.says(peer.lookup(5, "t"), peer.partitioned_metadata(6, "t"))
    assert sorted(kinds(received)) == ["LOOKUP_RESPONSE", "PARTITIONED_METADATA_RESPONSE"]
    assert [each.body.error for each in received] == [pb.TooManyRequests] * 2
    patient = await stage.player(lookups_max=1)
    for number in range(3):
        received = await patient.says(peer.lookup(number, "t"))
        assert received[0].body.response == pb.CommandLookupTopicResponse.CONNECT


async def test_a_subscribe_rate(stage: Stage, autojump_clock: MockClock) -> None:
    rate = {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 60}
    await decide(stage, subscribe_rate=rate)
    client = await stage.player()
    results = []
    for number in range(3):
        received = await client.says(peer.subscribe(number, 3, "t", "s"))
        results += [each.body.error if each.kind == "ERROR" else each.kind for each in received]
        await client.says(peer.close_consumer(100 + number, 3))
    assert results == ["SUCCESS", pb.TooManyRequests, pb.TooManyRequests]


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
async def test_so_many_of_each(stage: Stage, domain: str) -> None:
    policies = NamespacePolicies(
        max_producers_per_topic=1,
        max_consumers_per_topic=2,
        max_consumers_per_subscription=1,
        max_subscriptions_per_topic=2,
        max_topics_per_namespace=2,
    )
    await stage.broker.catalog.set_policies(DEFAULT, policies)
    client, topic = await stage.player(), f"{domain}://public/default/t"
    shared = pb.CommandSubscribe.SHARED
    received = await client.says(
        peer.producer(1, 1, topic),
        peer.subscribe(3, 1, topic, "a", sub_type=shared),
        peer.subscribe(5, 3, topic, "b", sub_type=shared),
    )
    assert not [each for each in received if each.kind == "ERROR"]
    refusals = {
        pb.ProducerBusy: peer.producer(2, 2, topic),
        pb.ConsumerBusy: peer.subscribe(4, 2, topic, "a", sub_type=shared),
    }
    for code, request in refusals.items():
        assert (await client.says_one(request)).body.error == code
    await client.says(peer.close_consumer(8, 3))
    if domain == "persistent":  # else the subscription went with its consumer
        third = await client.says_one(peer.subscribe(6, 4, topic, "c", sub_type=shared))
        assert third.body.error == pb.NotAllowedError
    await stage.broker.topic(TopicName.parse(f"{domain}://public/default/u"))
    heard_one = await client.says_one(peer.producer(7, 5, f"{domain}://public/default/v"))
    assert heard_one.body.error == pb.NotAllowedError


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("producer_request_hold", pb.ProducerBlockedQuotaExceededError),
        ("producer_exception", pb.ProducerBlockedQuotaExceededException),
        ("consumer_backlog_eviction", None),
    ],
)
async def test_a_quota_holds_from_the_first_producer_on(
    stage: Stage, policy: Any, code: int | None
) -> None:
    """A topic that was just loaded has not been looked at by anybody who goes round."""
    await consumer(stage, permits=0)
    await published(stage, bytes(100), bytes(100))
    quota = BacklogQuota(limit_size=100, policy=policy)
    await stage.broker.catalog.set_policies(
        DEFAULT, NamespacePolicies(backlog_quotas={"destination_storage": quota})
    )
    await stage.broker.unload(TopicName.parse("t"))
    client = await stage.player()
    received = await client.says_one(peer.producer(1, 7, "t"))
    results = received.body.error if received.kind == "ERROR" else None
    assert results == code


async def test_names_of_clients_have_an_end(stage: Stage) -> None:
    """They are kept, hashed a hundred times each, and stored with what was sent."""
    client = await stage.player()
    received = await client.says(
        peer.producer(1, 1, "t", producer_name="p" * 4_097),
        peer.subscribe(2, 1, "t", "s", consumer_name="c" * 4_097),
    )
    assert [(each.kind, each.body.error) for each in received] == [
        ("ERROR", pb.InvalidTopicName)
    ] * 2
    received = await client.says(
        peer.producer(3, 1, "t", producer_name="p" * 4_096),
        peer.subscribe(4, 1, "t", "s", consumer_name="c" * 4_096),
    )
    assert sorted(kinds(received)) == ["PRODUCER_SUCCESS", "SUCCESS"]


async def test_what_clients_say_of_themselves_has_an_end(stage: Stage) -> None:
    client = await stage.player()
    much = [pb.KeyValue(key="k", value="v" * PROPERTIES_BYTES_MAX)]
    enough = [pb.KeyValue(key="k", value="v" * (PROPERTIES_BYTES_MAX - 1))]
    for frame in (
        peer.producer(1, 1, "t", metadata=much),
        peer.subscribe(1, 1, "t", "s", metadata=much),
        peer.subscribe(1, 1, "t", "s", subscription_properties=much),
    ):
        received = await client.says_one(frame)
        assert received.kind == "ERROR"
        assert "65536 bytes" in received.body.message
    assert kinds(await client.says(peer.producer(1, 2, "t", metadata=enough))) == [
        "PRODUCER_SUCCESS"
    ]


async def test_so_many_on_one_connection(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachment_limit, "ATTACHED_MAX", 1)
    client = await stage.player()
    await client.says_one(peer.producer(1, 1, "t"))
    assert (await client.says_one(peer.producer(1, 1, "t"))).kind == "PRODUCER_SUCCESS"
    received = await client.says_one(peer.producer(2, 2, "t"))
    assert (received.kind, received.body.error) == ("ERROR", pb.NotAllowedError)
    assert (await client.says(peer.subscribe(3, 1, "t", "s")))[-1].kind == "SUCCESS"
    received = await client.says_one(peer.subscribe(4, 2, "t", "s"))
    assert (received.kind, received.body.error) == ("ERROR", pb.NotAllowedError)
