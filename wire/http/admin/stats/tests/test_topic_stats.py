"""Stats of topics, in Pulsar's JSON names."""

from typing import Any

import pytest

from magnetar.core.broker import rate_sampler
from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.clock import FixedClock
from magnetar.core.testing.entries import entry
from magnetar.core.topic.non_persistent_topic import NonPersistentTopic
from magnetar.core.topic.publishing.producer import Producer, ProducerRequest
from magnetar.core.topic.subscription.consumer import Consumer, ConsumerRequest
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/persistent/public/default"


class Sink:
    """The other side of a producer or a consumer; it keeps nothing."""

    congested = False

    def deliver(self, *_: object) -> None:
        pass

    def activity(self, active: bool) -> None:
        pass

    def end_of_topic(self) -> None:
        pass

    def closed_by_broker(self) -> None:
        pass

    def granted(self, epoch: int | None) -> None:
        pass

    def refused(self, error: object) -> None:
        raise AssertionError(error)


async def busy(visitor: Visitor) -> Any:
    """A topic with one producer, one consumer, ten messages stored and four delivered."""
    topic = await visitor.topic("a")
    request = ProducerRequest(
        "p", True, metadata={"k": "v"}, address="1.2.3.4:5", client_version="X", partial=True
    )
    producer = Producer(3, request, Sink(), visitor.broker.clock.wall_ms())
    await topic.attach_producer(producer)
    producer.messages_in, producer.bytes_in = 10, 100
    subscription = await topic.subscription("s", properties={"a": "b"})
    consumer = topic.attach(
        subscription,
        4,
        ConsumerRequest("c", metadata={"m": "n"}, address="1.2.3.4:6", client_version="Y"),
        SubscriptionType.SHARED,
        Sink(),
    )
    await visitor.publish("a", [b"0123456789"] * 10)
    subscription.flow(consumer, 4)
    visitor.broker.dispatch()
    return topic


async def test_who_is_attached_and_what_waits(visitor: Visitor) -> None:
    topic = await busy(visitor)
    found = await visitor.get(f"{HERE}/a/stats")
    assert found["msgInCounter"] == 10
    assert found["bytesInCounter"] == 100
    assert found["storageSize"] == topic.ledger.size
    (publisher,) = found["publishers"]
    assert publisher["producerName"] == "p"
    assert publisher["producerId"] == 3
    assert publisher["accessMode"] == "Shared"
    assert publisher["address"] == "/1.2.3.4:5"
    assert publisher["clientVersion"] == "X"
    assert publisher["metadata"] == {"k": "v"}
    assert publisher["supportsPartialProducer"] is True
    shown = found["subscriptions"]["s"]
    assert shown["type"] == "Shared"
    assert shown["isDurable"] is True
    assert shown["msgBacklog"] == 10
    assert shown["unackedMessages"] == 4
    assert shown["msgOutCounter"] == 4
    assert shown["subscriptionProperties"] == {"a": "b"}
    (consumer,) = shown["consumers"]
    assert consumer["consumerName"] == "c"
    assert consumer["unackedMessages"] == 4
    assert consumer["availablePermits"] == 0
    assert consumer["metadata"] == {"m": "n"}


async def test_rates_are_true(visitor: Visitor) -> None:
    topic = await busy(visitor)
    await rate_sampler.go_round([topic], visitor.broker.clock.wall_ms() + 10_000)
    found = await visitor.get(f"{HERE}/a/stats")
    assert 0.9 < found["msgRateIn"] <= 1
    assert 9 < found["msgThroughputIn"] <= 10
    assert found["averageMsgSize"] == pytest.approx(10)
    assert 0.3 < found["msgRateOut"] <= 0.4
    assert 0.9 < found["publishers"][0]["msgRateIn"] <= 1
    shown = found["subscriptions"]["s"]
    assert shown["msgRateOut"] == found["msgRateOut"]
    # it came a moment after its subscription
    assert shown["consumers"][0]["msgRateOut"] == pytest.approx(found["msgRateOut"], rel=0.01)


async def test_parts_of_large_messages_are_counted_on_their_way_out(visitor: Visitor) -> None:
    topic = await busy(visitor)
    subscription = topic.subscriptions["s"]
    (consumer,) = subscription.consumers
    large = [entry(bytes(20_000), chunk=(b"u", number, 3)) for number in range(3)]
    await visitor.publish("a", large)
    subscription.flow(consumer, 100)
    visitor.broker.dispatch()
    await rate_sampler.go_round([topic], visitor.broker.clock.wall_ms() + 10_000)
    shown = (await visitor.get(f"{HERE}/a/stats"))["subscriptions"]["s"]
    assert shown["chunkedMessageRate"] == pytest.approx(0.3, rel=0.01)
    assert shown["consumers"][0]["chunkedMessageRate"] == pytest.approx(0.3, rel=0.01)


async def test_hashes_that_change_hands_are_told(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    subscription = await topic.subscription("s")

    def comes(name: str) -> Consumer:
        made = topic.attach(
            subscription, 1, ConsumerRequest(name), SubscriptionType.KEY_SHARED, Sink()
        )
        subscription.flow(made, 100)
        return made

    first = comes("first")
    await visitor.publish("a", [entry(key=b"%d" % number) for number in range(40)])
    visitor.broker.dispatch()
    comes("second")
    shown = (await visitor.get(f"{HERE}/a/stats"))["subscriptions"]["s"]
    one, other = shown["consumers"]
    count = shown["drainingHashesCount"]
    assert 0 < count < 40
    assert one["drainingHashesCount"] == len(one["drainingHashes"]) == count
    assert one["drainingHashesUnackedMessages"] == shown["drainingHashesUnackedMessages"] == count
    assert (other["drainingHashesCount"], other["drainingHashes"]) == (0, [])
    assert one["drainingHashes"][0]["unackMsgs"] == 1
    assert 0 < one["firstConsumedFlowTimestamp"] <= one["firstMessagesSentTimestamp"]
    assert other["firstMessagesSentTimestamp"] == 0
    subscription.ack(first, [(0, 0, 39)])
    shown = (await visitor.get(f"{HERE}/a/stats"))["subscriptions"]["s"]
    assert (shown["drainingHashesCount"], shown["drainingHashesClearedTotal"]) == (0, count)


async def test_what_nobody_could_take_is_told(visitor: Visitor) -> None:
    name = TopicName.parse("non-persistent://public/default/n")
    topic = await visitor.broker.topic(name)
    assert isinstance(topic, NonPersistentTopic)
    subscription = await topic.subscription("s")
    topic.attach(subscription, 1, ConsumerRequest("c"), SubscriptionType.SHARED, Sink())
    topic.publish([b"m"] * 20, None, lambda _: None)
    await rate_sampler.go_round([topic], visitor.broker.clock.wall_ms() + 10_000)
    found = await visitor.get("/admin/v2/non-persistent/public/default/n/stats")
    assert found["msgDropCounter"] == found["subscriptions"]["s"]["msgDropCounter"] == 20
    assert found["msgDropRate"] == pytest.approx(2, rel=0.01)
    assert found["subscriptions"]["s"]["msgDropRate"] == pytest.approx(2, rel=0.01)


async def test_what_a_consumer_took_is_remembered_when_it_has_gone(visitor: Visitor) -> None:
    topic = await busy(visitor)
    (consumer,) = topic.subscriptions["s"].consumers
    topic.detach(consumer)
    found = await visitor.get(f"{HERE}/a/stats")
    assert found["subscriptions"]["s"]["msgOutCounter"] == found["msgOutCounter"] == 4
    await visitor.does("DELETE", f"{HERE}/a/subscription/s")
    assert (await visitor.get(f"{HERE}/a/stats"))["msgOutCounter"] == 4


async def test_batches_and_what_was_done_last_are_told(visitor: Visitor) -> None:
    """Apache: a whole number of messages per entry, and times in milliseconds."""
    topic = await busy(visitor)
    subscription = topic.subscriptions["s"]
    (consumer,) = subscription.consumers
    consumer.messages_out, consumer.entries_out = 35, 4
    subscription.ack(consumer, [(0, 0, 1)])
    found = (await visitor.get(f"{HERE}/a/stats"))["subscriptions"]["s"]
    assert found["consumers"][0]["avgMessagesPerEntry"] == 9
    before = {key: found[key] for key in found if key.startswith("last") and found[key]}
    assert set(before) == {
        "lastAckedTimestamp",
        "lastConsumedFlowTimestamp",
        "lastConsumedTimestamp",
        "lastMarkDeleteAdvancedTimestamp",
    }
    topic.detach(consumer)
    found = (await visitor.get(f"{HERE}/a/stats"))["subscriptions"]["s"]
    assert {key: found[key] for key in before} == before, "they stay when the consumer has left"


async def test_a_topic_is_as_old_as_it_is(visitor: Visitor) -> None:
    born_ms = (await visitor.topic("a")).created_ms
    await visitor.does("PUT", f"{HERE}/a/unload")
    visitor.broker.clock = FixedClock(born_ms + 1_000_000)
    found = await visitor.get(f"{HERE}/a/stats")
    assert found["topicCreationTimeStamp"] == born_ms


async def test_parts_may_be_left_out(visitor: Visitor) -> None:
    await busy(visitor)
    found = await visitor.get(f"{HERE}/a/stats?excludePublishers=true&excludeConsumers=true")
    assert found["publishers"] == []
    assert found["subscriptions"]["s"]["consumers"] == []


async def test_partitions_are_summed(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/p/partitions", 2)
    for index in range(2):
        name = f"persistent://public/default/p-partition-{index}"
        await (await visitor.topic(name)).subscription("s")
        await visitor.publish(name, [b"m"] * 3)
    found = await visitor.get(f"{HERE}/p/partitioned-stats")
    assert found["msgInCounter"] == 6
    assert found["metadata"]["partitions"] == 2
    assert found["subscriptions"]["s"]["msgBacklog"] == 6
    assert {part["msgInCounter"] for part in found["partitions"].values()} == {3}
    without = await visitor.get(f"{HERE}/p/partitioned-stats?perPartition=false")
    assert without["partitions"] == {}
    await visitor.fails(405, "GET", f"{HERE}/p/stats")


async def test_what_is_not_there(visitor: Visitor) -> None:
    await visitor.fails(404, "GET", f"{HERE}/missing/stats")
    await visitor.fails(404, "GET", f"{HERE}/missing/partitioned-stats")
    await visitor.does("PUT", f"{HERE}/a")
    await visitor.fails(405, "GET", f"{HERE}/a/partitioned-stats")


async def test_the_oldest_that_waits_is_told_when_asked_for(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    await topic.subscription("s")
    await topic.subscription("t")
    now_ms = visitor.broker.clock.wall_ms()
    await visitor.publish("a", [entry(b"m", published_ms=now_ms - 90_000), entry(b"m")])
    topic.subscriptions["t"].skip_to((0, 1))
    found = await visitor.get(f"{HERE}/a/stats")
    assert found["earliestMsgPublishTimeInBacklogs"] == 0
    assert found["oldestBacklogMessageAgeSeconds"] == -1
    found = await visitor.get(f"{HERE}/a/stats?getEarliestTimeInBacklog=true")
    assert found["earliestMsgPublishTimeInBacklogs"] == now_ms - 90_000
    assert 90 <= found["oldestBacklogMessageAgeSeconds"] < 95
    assert found["oldestBacklogMessageSubscriptionName"] == "s"
    assert found["subscriptions"]["t"]["earliestMsgPublishTimeInBacklog"] == -1


async def test_single_acknowledgements_have_a_size(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    cursor = (await topic.subscription("s")).cursor
    await visitor.publish("a", [b"m"] * 9)
    key = "nonContiguousDeletedMessagesRangesSerializedSize"
    assert (await visitor.get(f"{HERE}/a/stats"))[key] == 0
    sizes = []
    for entry_id in (2, 4, 6):
        cursor.ack_range(0, entry_id, entry_id)
        found = await visitor.get(f"{HERE}/a/stats")
        assert found["nonContiguousDeletedMessagesRanges"] == len(sizes) + 1
        assert found[key] == found["subscriptions"]["s"][key]
        sizes.append(found[key])
    assert 0 < sizes[0] < sizes[1] < sizes[2]


async def test_whether_duplicates_are_found_out(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/a")
    assert (await visitor.get(f"{HERE}/a/stats"))["deduplicationStatus"] == "Disabled"
    await visitor.does("POST", "/admin/v2/namespaces/public/default/deduplication", True)
    await visitor.does("PUT", f"{HERE}/b")
    assert (await visitor.get(f"{HERE}/b/stats"))["deduplicationStatus"] == "Enabled"
    volatile = "/admin/v2/non-persistent/public/default/v"
    await visitor.does("PUT", volatile)
    assert (await visitor.get(f"{volatile}/stats"))["deduplicationStatus"] == "Disabled"
