"""Dispatch rates, under all three dispatchers: what goes out in a second, and that it goes on."""

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.kernel.rates import Inflow
from magnetar.core.kernel.throttle import RateLimit
from magnetar.core.policy.policies import Effective
from magnetar.core.quotas.resource_group import GroupRates, ResourceGroup
from magnetar.core.testing.bench import Bench
from magnetar.core.testing.client import ClientConsumer, attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import SubscriptionType

KINDS = [SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]


async def second(desk: Bench, seconds: float = 1.0) -> None:
    """Time passes; whoever waits for it gets on."""
    await desk.dispatch()
    desk.clock.forward(seconds)
    await trio.sleep(seconds + 0.01)
    await desk.dispatch()


async def published(desk: Bench, topic: PersistentTopic, count: int, size: int = 1) -> None:
    await desk.published(topic, *[entry(bytes(size), key=b"%d" % i) for i in range(count)])


@pytest.mark.parametrize("kind", KINDS)
async def test_so_many_messages_a_second(
    desk: Bench, autojump_clock: MockClock, kind: SubscriptionType
) -> None:
    topic = await desk.topic(subscription_dispatch_rate=RateLimit(5))
    client = await attached(topic, kind)
    await published(desk, topic, 17)
    await desk.dispatch()
    got = [len(client.take())]
    for _ in range(3):
        await second(desk)
        got.append(len(client.take()))
    assert got == [5, 5, 5, 2]


async def test_a_rate_that_follows_what_is_published(
    desk: Bench, autojump_clock: MockClock
) -> None:
    """Consumers catch up slowly, however much is published."""
    of_topic, own = RateLimit(5, relative=True), RateLimit(7, relative=True)
    topic = await desk.topic(dispatch_rate=of_topic, subscription_dispatch_rate=own)
    client = await attached(topic, SubscriptionType.SHARED)
    await published(desk, topic, 60)
    topic.rates.sample(Inflow(messages=100), desk.clock.wall_ms() + 10_000)
    got = []
    for _ in range(3):
        await second(desk)
        got.append(len(client.take()))
    assert got[1:] == [15, 15], "ten of them are as many as came in"


@pytest.mark.parametrize("kind", KINDS)
async def test_so_many_bytes_a_second(
    desk: Bench, autojump_clock: MockClock, kind: SubscriptionType
) -> None:
    topic = await desk.topic(subscription_dispatch_rate=RateLimit(0, 2_500))
    client = await attached(topic, kind)
    await published(desk, topic, 12, size=1_000)
    await desk.dispatch()
    assert len(client.take()) == 3, "the last one goes whole"
    for _ in range(3):
        await second(desk)
    assert 6 <= len(client.take()) <= 8


async def test_all_subscriptions_of_a_topic_share_its_rate(
    desk: Bench, autojump_clock: MockClock
) -> None:
    topic = await desk.topic(dispatch_rate=RateLimit(6))
    clients = [await attached(topic, KINDS[0], subscription=name) for name in "ab"]
    await published(desk, topic, 10)
    await second(desk)
    assert sum(len(client.got) for client in clients) == 12
    await second(desk, 10)
    await second(desk, 10)
    assert [len(client.got) for client in clients] == [10, 10]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_comes_back_is_paid_for_as_well(
    desk: Bench, autojump_clock: MockClock, kind: SubscriptionType
) -> None:
    topic = await desk.topic(subscription_dispatch_rate=RateLimit(4))
    client = await attached(topic, kind)
    await published(desk, topic, 4)
    await desk.dispatch()
    assert len(client.take()) == 4
    client.nack()
    await desk.dispatch()
    assert client.take() == []
    await second(desk)
    assert len(client.take()) == 4


@pytest.mark.parametrize("kind", KINDS)
async def test_a_rate_comes_and_goes_with_the_policy(
    desk: Bench, autojump_clock: MockClock, kind: SubscriptionType
) -> None:
    topic = await desk.topic()
    client = await attached(topic, kind)
    assert topic.subscriptions["s"]._dispatch_limit is None
    slow = await desk.topic("slow", subscription_dispatch_rate=RateLimit(1))
    topic.set_policies(slow.policies)
    await published(desk, topic, 10)
    await desk.dispatch()
    assert len(client.take()) == 1
    topic.set_policies(slow.policies)  # the same again gives nothing
    await desk.dispatch()
    assert client.take() == []
    topic.set_policies((await desk.topic("free")).policies)
    await desk.dispatch()
    assert len(client.take()) == 9


async def test_nobody_waits_twice(desk: Bench, autojump_clock: MockClock) -> None:
    topic = await desk.topic(subscription_dispatch_rate=RateLimit(1))
    client: ClientConsumer = await attached(topic, KINDS[1])
    await published(desk, topic, 5)
    for _ in range(20):
        client.flow(1)
        await desk.dispatch()
    limit = topic.subscriptions["s"]._dispatch_limit
    assert limit is not None
    assert limit._waiting
    assert len(client.take()) == 1


def of_group(desk: Bench, rate: int) -> ResourceGroup:
    group = ResourceGroup("g")
    group.set(GroupRates(dispatch_rate_in_msgs=rate), desk.clock.monotonic())
    return group


async def test_nobody_waits_for_a_rate_that_is_gone(desk: Bench, autojump_clock: MockClock) -> None:
    """A wait may be of days: each change of a low rate left one more, with its topic."""
    topic = await desk.topic(subscription_dispatch_rate=RateLimit(1))
    client = await attached(topic, SubscriptionType.SHARED)
    await desk.published(topic, *[entry()] * 50)
    before = trio.lowlevel.current_statistics().tasks_living
    for rate in (2, 1, 3, 1):
        topic.set_policies(Effective(subscription_dispatch_rate=RateLimit(rate)))
        await desk.dispatch()
    assert trio.lowlevel.current_statistics().tasks_living <= before + 1
    topic.set_policies(Effective())
    await desk.dispatch()
    assert trio.lowlevel.current_statistics().tasks_living <= before
    assert len(client.take()) == 50


async def test_topics_of_a_group_share_its_rate(desk: Bench, autojump_clock: MockClock) -> None:
    group, clients = of_group(desk, 4), []
    for name in "abc":
        topic = await desk.topic(name)
        topic.join(group)
        clients.append(await attached(topic, KINDS[1]))
        await published(desk, topic, 20)
    await desk.dispatch()
    assert sum(len(client.got) for client in clients) == 4
    for _ in range(8):
        await second(desk, 0.5)
    assert 20 <= sum(len(client.got) for client in clients) <= 26
    for _ in range(30):
        await second(desk)
    assert [len(client.got) for client in clients] == [20, 20, 20]


async def test_a_slow_subscription_takes_no_turns_of_others(
    desk: Bench, autojump_clock: MockClock
) -> None:
    group = of_group(desk, 4)
    slow = await desk.topic("slow", subscription_dispatch_rate=RateLimit(1, period_seconds=3600))
    quick = await desk.topic("quick")
    for topic in (slow, quick):
        topic.join(group)
    idle = await attached(slow, KINDS[1])
    busy = await attached(quick, KINDS[1])
    for topic in (slow, quick):
        await published(desk, topic, 20)
    for _ in range(12):
        await second(desk, 0.5)
    assert len(idle.got) <= 2
    assert len(busy.got) == 20


@pytest.mark.parametrize("kind", KINDS)
async def test_a_group_that_is_left_holds_nobody(
    desk: Bench, autojump_clock: MockClock, kind: SubscriptionType
) -> None:
    group, topic = of_group(desk, 1), await desk.topic()
    topic.join(group)
    client = await attached(topic, kind)
    await published(desk, topic, 9)
    await desk.dispatch()
    assert len(client.take()) == 1
    topic.join(None)
    await desk.dispatch()
    assert len(client.take()) == 8
    assert topic.subscriptions["s"]._dispatch_limit is None
