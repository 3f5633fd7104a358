"""What time does to topics: expiry, trimming, quotas, subscriptions and topics nobody uses."""

import msgspec
import pytest

from magnetar.core.broker import administration
from magnetar.core.broker.attachment import attach
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import QuotaExceeded, QuotaHeld, StorageFailed
from magnetar.core.kernel.names import TopicName
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.values import BacklogQuota, InactiveTopics, LogLimits, Retention
from magnetar.core.testing.bench import settled, stored
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import ClientProducer, attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.backlog import backlog_bytes
from magnetar.core.topic.persistent_topic import READER_KEPT_MS, PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.subscription.tests.test_held import Holder
from magnetar.core.topic.topic import Topic

A = TopicName.parse("a")
SHARED = SubscriptionType.SHARED
FOR_EVER = InactiveTopics(delete_while_inactive=False)


async def topic_of(broker: Broker, name: TopicName = A) -> PersistentTopic:
    topic = await broker.topic(name)
    assert isinstance(topic, PersistentTopic)
    return topic


async def filled(broker: Broker, *, entries: int = 25, payload: bytes = b"x") -> PersistentTopic:
    """A topic with a subscription that has acknowledged nothing."""
    topic = await topic_of(broker)
    await topic.subscription("s", start=(-1, -1))
    now_ms = broker.clock.wall_ms()
    for _ in range(entries):
        await stored(topic.ledger, entry(payload, published_ms=now_ms))
    return topic


async def test_messages_outlive_their_time(caplog: pytest.LogCaptureFixture) -> None:
    stores = Stores()
    async with running(stores, message_ttl_seconds=60, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        await broker.housekeeping.tend(topic)
        assert topic.subscriptions["s"].cursor.backlog == 25
        stores.clock.forward(60.001)
        await stored(topic.ledger, entry(published_ms=stores.clock.wall_ms()))
        await broker.housekeeping.tend(topic)
        assert topic.subscriptions["s"].cursor.backlog == 1
        assert topic.subscriptions["s"].messages_expired == 25


async def test_acknowledged_ledgers_are_trimmed(caplog: pytest.LogCaptureFixture) -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        topic.subscriptions["s"].skip(15)
        await broker.housekeeping.tend(topic)
        assert [s.ledger_id for s in topic.ledger.chain.segments] == [1, 2]
        assert sorted(stores.ledgers.ledgers) == [1, 2]


async def test_deduplication_is_stored_at_the_interval_of_the_policy() -> None:
    stores = Stores()
    async with running(
        stores,
        deduplication=True,
        deduplication_snapshot_interval=90,
        inactive_topics=FOR_EVER,
    ) as broker:
        topic = await topic_of(broker)
        (fold,) = topic.ledger.followers
        covered = []
        for _ in range(5):
            await stored(topic.ledger, entry())
            await broker.housekeeping.tend(topic)
            await settled()
            covered.append(fold.position == topic.ledger.chain.confirmed)
            stores.clock.forward(45)
        assert covered == [True, False, True, False, True]


async def test_retention_keeps_what_is_acknowledged() -> None:
    stores = Stores()
    retention = Retention(retention_time_in_minutes=10, retention_size_in_mb=-1)
    async with running(stores, retention=retention, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        topic.subscriptions["s"].skip(25)
        await broker.housekeeping.tend(topic)
        assert len(topic.ledger.chain.segments) == 3
        stores.clock.forward(600)
        await broker.housekeeping.tend(topic)
        assert len(topic.ledger.chain.segments) == 1


async def test_limits_of_the_log_hold_whether_it_was_read_or_not() -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        limits = LogLimits(age_ms=60_000)
        topic.set_policies(msgspec.structs.replace(topic.policies, log_limits=limits))
        await broker.housekeeping.tend(topic)
        assert topic.subscriptions["s"].cursor.backlog == 25
        stores.clock.forward(61)
        await broker.housekeeping.tend(topic)
        assert topic.ledger.chain.entries == 0
        assert topic.subscriptions["s"].cursor.backlog == 0
        assert not stores.ledgers.ledgers


@pytest.mark.parametrize(
    ("policy", "refusal"),
    [("producer_request_hold", QuotaHeld), ("producer_exception", QuotaExceeded)],
)
async def test_too_large_a_backlog_sends_producers_away(
    policy: str, refusal: type[Exception]
) -> None:
    quota = BacklogQuota(limit_size=1000, policy=policy)  # type: ignore[arg-type]  # one of them
    async with running(
        backlog_quotas={"destination_storage": quota}, inactive_topics=FOR_EVER
    ) as broker:
        topic = await filled(broker, payload=bytes(100))
        producer = ClientProducer("p")
        await topic.attach_producer(producer.producer)
        await broker.housekeeping.tend(topic)
        assert producer.events[-1] == "closed"
        with pytest.raises(refusal):
            topic.check_producer()
        topic.subscriptions["s"].skip(25)
        await broker.housekeeping.tend(topic)
        topic.check_producer()


async def test_too_old_a_backlog_sends_producers_away() -> None:
    stores = Stores()
    quotas = {"message_age": BacklogQuota(limit_time=60)}
    async with running(stores, backlog_quotas=quotas, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        await broker.housekeeping.tend(topic)
        topic.check_producer()
        stores.clock.forward(61)
        await broker.housekeeping.tend(topic)
        with pytest.raises(QuotaHeld):
            topic.check_producer()


async def test_a_backlog_may_be_evicted_instead() -> None:
    stores = Stores()
    quotas = {
        "destination_storage": BacklogQuota(limit_size=1500, policy="consumer_backlog_eviction"),
        "message_age": BacklogQuota(limit_time=60, policy="consumer_backlog_eviction"),
    }
    async with running(stores, backlog_quotas=quotas, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker, payload=bytes(100))
        await broker.housekeeping.tend(topic)
        assert 0 < backlog_bytes(topic) <= 1500
        topic.check_producer()
        stores.clock.forward(61)
        await broker.housekeeping.tend(topic)
        assert backlog_bytes(topic) == 0
        topic.check_producer()


async def test_a_topic_nobody_uses_is_deleted() -> None:
    stores = Stores()
    async with running(stores) as broker:
        topic = await topic_of(broker)
        stores.clock.forward(59)
        await broker.housekeeping.tend(topic)
        assert A.full in broker.topics
        stores.clock.forward(1)
        await broker.housekeeping.tend(topic)
        assert broker.topics == {}
        assert not await broker.exists(A)


async def test_a_topic_with_a_subscription_or_a_producer_stays() -> None:
    stores = Stores()
    async with running(stores) as broker:
        topic = await filled(broker)
        other = await topic_of(broker, TopicName.parse("b"))
        await other.attach_producer(ClientProducer("p").producer)
        stores.clock.forward(600)
        await broker.housekeeping.tend(topic)
        await broker.housekeeping.tend(other)
        assert len(broker.topics) == 2


async def test_a_topic_whose_readers_are_through_may_go() -> None:
    stores = Stores()
    rule = InactiveTopics("delete_when_subscriptions_caught_up")
    async with running(stores, inactive_topics=rule) as broker:
        topic = await filled(broker)
        stores.clock.forward(60)
        await broker.housekeeping.tend(topic)
        assert broker.topics
        topic.subscriptions["s"].skip(25)
        await broker.housekeeping.tend(topic)
        assert not broker.topics


async def test_whoever_comes_at_the_last_moment_saves_the_topic() -> None:
    stores = Stores()
    async with running(stores) as broker:
        topic = await topic_of(broker)
        stores.clock.forward(60)
        requested: list[bool] = []
        idle = topic.idle

        def nearly(*, caught_up_is_enough: bool) -> bool:
            requested.append(idle(caught_up_is_enough=caught_up_is_enough))
            return len(requested) == 1

        topic.idle = nearly  # type: ignore[method-assign]
        await broker.housekeeping.tend(topic)
        assert len(requested) == 2
        assert broker.topics == {A.full: topic}
        assert not topic.fenced


async def test_a_topic_somebody_is_about_to_attach_to_stays() -> None:
    """Once it was deleted under whoever it had just been created for."""
    rule = InactiveTopics(max_inactive_duration_seconds=0)
    async with running(inactive_topics=rule) as broker:

        async def take_place(topic: Topic) -> None:
            await broker.housekeeping.tend(topic)
            assert not topic.fenced

        await attach(broker, A, take_place)
        (topic,) = broker.topics.values()
        await broker.housekeeping.tend(topic)
        assert broker.topics == {}


async def test_only_the_topic_that_was_found_idle_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once its successor was, with whoever had come to it."""
    stores = Stores()
    async with running(stores) as broker:
        old = await topic_of(broker)
        stores.clock.forward(60)

        async def meanwhile(topic: PersistentTopic) -> None:
            await broker.unload(A)
            await (await topic_of(broker)).attach_producer(ClientProducer("p").producer)
            topic.fenced = False  # as if it had been found idle before

        monkeypatch.setattr(broker.housekeeping, "trim", meanwhile)
        await broker.housekeeping.tend(old)
        (topic,) = broker.topics.values()
        assert topic is not old
        assert not topic.fenced


async def test_a_subscription_nobody_uses_is_deleted() -> None:
    stores = Stores()
    async with running(
        stores, subscription_expiration_minutes=5, inactive_topics=FOR_EVER
    ) as broker:
        topic = await topic_of(broker)
        client = await attached(topic, SHARED)
        stores.clock.forward(600)
        await broker.housekeeping.tend(topic)
        assert "s" in topic.subscriptions
        topic.detach(client.consumer)
        stores.clock.forward(299)
        await broker.housekeeping.tend(topic)
        assert "s" in topic.subscriptions
        stores.clock.forward(2)
        await broker.housekeeping.tend(topic)
        assert topic.subscriptions == {}


async def test_a_topic_decides_when_its_subscriptions_are_deleted() -> None:
    stores = Stores()
    async with running(
        stores, subscription_expiration_minutes=5, inactive_topics=FOR_EVER
    ) as broker:
        own, other = await topic_of(broker), await topic_of(broker, TopicName.parse("b"))
        policies = TopicPolicies(subscription_expiration_minutes=0)
        await administration.set_topic_policies(broker, own.name, policies)
        await broker.apply_policies(own.name.namespace)
        for topic in (own, other):
            await topic.subscription("s")
        stores.clock.forward(600)
        for topic in (own, other):
            await broker.housekeeping.tend(topic)
        assert list(own.subscriptions) == ["s"]
        assert other.subscriptions == {}


async def test_a_held_subscription_has_no_consumers_and_does_not_expire() -> None:
    stores = Stores()
    async with running(
        stores, subscription_expiration_minutes=5, inactive_topics=FOR_EVER
    ) as broker:
        broker.env.held.add(Holder("h", 1))
        topic = await topic_of(broker)
        await topic.hold("h")
        stores.clock.forward(600)
        await broker.housekeeping.tend(topic)
        assert "h" in topic.subscriptions


async def test_a_reader_that_never_came_back_from_its_seek_is_forgotten() -> None:
    stores = Stores()
    async with running(stores, inactive_topics=FOR_EVER) as broker:
        topic = await topic_of(broker)
        topic.keep(topic.reader("r", (-1, -1)))
        await broker.housekeeping.tend(topic)
        assert "r" in topic.subscriptions
        stores.clock.forward(READER_KEPT_MS / 1000)
        await broker.housekeeping.tend(topic)
        assert topic.subscriptions == {}


async def test_trouble_with_one_topic_is_not_everybodys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores = Stores()
    async with running(stores) as broker:
        first = await topic_of(broker)
        await topic_of(broker, TopicName.parse("b"))

        async def fail() -> None:
            raise StorageFailed("no")

        monkeypatch.setattr(first.ledger, "roll_if_old", fail)
        stores.clock.forward(60)
        await broker.housekeeping.go_round()
        assert list(broker.topics) == [A.full]


async def test_what_cannot_be_read_keeps_no_newcomer_out() -> None:
    stores = Stores()
    quotas = {"message_age": BacklogQuota(limit_time=60)}
    async with running(stores, backlog_quotas=quotas, inactive_topics=FOR_EVER) as broker:
        topic = await filled(broker)
        stores.clock.forward(61)

        async def lost(*_place: object) -> object:
            raise StorageFailed("no")

        read, topic.ledger.read = topic.ledger.read, lost  # type: ignore[method-assign, assignment]
        topic.ledger.cached = lambda _position: None  # type: ignore[method-assign]
        await broker.housekeeping.check_quota_of_newcomer(topic)
        assert topic.quota_hit is None
        topic.ledger.read = read  # type: ignore[method-assign]
        await broker.housekeeping.check_quota_of_newcomer(topic)
        assert isinstance(topic.quota_hit, QuotaHeld)
