"""Resource groups and topics: who is in which, and what that does to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
from trio.testing import MockClock

from magnetar.core.broker.administration import delete_resource_group
from magnetar.core.broker.broker import Broker, BrokerSettings
from magnetar.core.kernel.errors import NotAllowed, NotFound
from magnetar.core.kernel.names import NamespaceName, TopicName
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.policy.policies import NamespacePolicies
from magnetar.core.ports.metadata_store import Versioned
from magnetar.core.quotas.resource_group import GroupRates
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.client import attached
from magnetar.core.testing.entries import entry
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.dispatch_limit import DispatchLimit
from magnetar.core.topic.subscription.subscription import SubscriptionType
from magnetar.core.topic.throttles import GroupShare
from magnetar.core.topic.topic import Topic

ONE, OTHER = NamespaceName.parse("public/one"), NamespaceName.parse("public/other")
A, B = (TopicName.parse(f"{ONE}/{local}") for local in "ab")
VOLATILE = TopicName.parse(f"non-persistent://{ONE}/v")
ELSEWHERE = TopicName.parse(f"{OTHER}/a")


async def put_into(broker: Broker, namespace: NamespaceName, group: str | None) -> None:
    """As an administrator does it."""
    async with broker.catalog.changing(namespace):
        policies = await broker.catalog.policies(namespace)
        changed = msgspec.structs.replace(policies, resource_group=group)
        await broker.catalog.set_policies(namespace, changed)
    await broker.apply_policies(namespace)


@asynccontextmanager
async def started(stores: Stores | None = None) -> AsyncIterator[Broker]:
    """A broker with two namespaces and a group `g`, which none is in."""
    async with running(stores) as broker:
        for namespace in (ONE, OTHER):
            if not await broker.catalog.has_namespace(namespace):
                await broker.catalog.create_namespace(namespace, NamespacePolicies())
        await broker.groups.put("g", GroupRates(5, -1, 5, -1))
        yield broker


def rates(topic: Topic) -> tuple[list[float], list[float]]:
    """What it publishes and delivers in a second."""
    throttles = topic.throttles
    return (
        [each.limit.messages for each in throttles.publish],
        [each.limit.messages for each in throttles.dispatch],
    )


def bucket_of(topic: Topic) -> object:
    """The bucket of its group."""
    (share,) = topic.throttles.publish
    assert isinstance(share, GroupShare)
    return share.of


async def test_all_topics_of_a_namespace_are_in_its_group() -> None:
    async with started() as broker:
        before = [await broker.topic(name) for name in (A, VOLATILE, ELSEWHERE)]
        assert [rates(topic) for topic in before] == [([], [])] * 3
        await put_into(broker, ONE, "g")
        topics = [*before, await broker.topic(B)]
        limited = [each for each in topics if each.name.namespace == ONE]
        assert len({id(bucket_of(each)) for each in limited}) == 1
        assert [rates(topic) for topic in limited] == [([5], [5])] * 3
        assert rates(before[2]) == ([], [])
        await broker.groups.put("g", GroupRates(7, -1, 0, -1))
        assert [rates(topic) for topic in limited] == [([7], [])] * 3
        await put_into(broker, OTHER, "g")
        assert bucket_of(before[2]) is bucket_of(before[0])
        await put_into(broker, ONE, None)
        assert [rates(topic) for topic in limited] == [([], [])] * 3
        assert rates(before[2]) == ([7], [])


async def test_a_restart_keeps_who_is_in_which() -> None:
    stores = Stores()
    async with started(stores) as broker:
        await put_into(broker, ONE, "g")
    async with running(stores) as broker:
        assert rates(await broker.topic(A)) == ([5], [5])
        assert rates(await broker.topic(ELSEWHERE)) == ([], [])


async def test_a_group_that_does_not_exist_limits_nothing_until_it_does() -> None:
    async with started() as broker:
        await put_into(broker, ONE, "later")
        topic = await broker.topic(A)
        assert rates(topic) == ([], [])
        await broker.groups.put("later", GroupRates(3))
        assert rates(topic) == ([3], [])


async def test_a_group_in_use_is_not_deleted() -> None:
    async with started() as broker:
        await put_into(broker, ONE, "g")
        with pytest.raises(NotAllowed, match="ResourceGroup is in use"):
            await delete_resource_group(broker, "g")
        await put_into(broker, ONE, None)
        await delete_resource_group(broker, "g")
        with pytest.raises(NotFound):
            await delete_resource_group(broker, "g")


async def test_what_is_changed_while_a_topic_is_loaded_is_in_force() -> None:
    """Topics that are being loaded are not among those that a change is applied to."""
    stores = Stores()
    async with started(stores) as broker:
        children, found = stores.metadata.children, []

        async def slow(path: str) -> list[str]:
            if path.startswith("/managed-ledgers"):
                await settled()
                await put_into(broker, ONE, "g")
                await broker.groups.put("g", GroupRates(6))
            return await children(path)

        async def load() -> None:
            found.append(await broker.topic(A))

        stores.metadata.children = slow  # type: ignore[method-assign]
        await load()
        stores.metadata.children = children  # type: ignore[method-assign]
        await settled()
        assert rates(found[0]) == ([6], [5])


async def test_what_was_read_before_a_change_is_not_applied_after_it() -> None:
    stores = Stores()
    async with started(stores) as broker:
        topic = await broker.topic(A)
        get = stores.metadata.get
        may_go_on = trio.Event()

        async def slow(path: str) -> Versioned | None:
            read = await get(path)
            if path.startswith("/magnetar/topic-policies") and not may_go_on.is_set():
                await may_go_on.wait()
            return read

        broker.catalog._forget("/magnetar/topic-policies")
        stores.metadata.get = slow  # type: ignore[method-assign]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.apply_policies, ONE)
            await settled()
            async with broker.catalog.changing(ONE):
                changed = NamespacePolicies(resource_group="g")
                await broker.catalog.set_policies(ONE, changed)
            may_go_on.set()
        stores.metadata.get = get  # type: ignore[method-assign]
        assert rates(topic) == ([5], [5])


class Now:
    """Trio's clock as the broker's."""

    def monotonic(self) -> float:
        return trio.current_time()

    def wall_ms(self) -> int:
        return round(trio.current_time() * 1000)


async def test_who_waits_for_the_rate_of_a_group_takes_turns(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets its part, and none is woken for what another one gets."""
    token = trio.lowlevel.current_trio_token()
    looks, stop = [], DispatchLimit.stop

    def looked(self: DispatchLimit, whole: Slice, start: int, end: int) -> int:
        looks.append(self)
        return stop(self, whole, start, end)

    def soon() -> None:
        token.run_sync_soon(broker.dispatch, idempotent=True)

    monkeypatch.setattr(DispatchLimit, "stop", looked)
    broker = Broker(BrokerSettings(), MemoryLedgers(), MemoryMetadata(), Now(), soon)
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.run)
        await broker.groups.put("g", GroupRates(dispatch_rate_in_msgs=50))
        await broker.catalog.create_namespace(ONE, NamespacePolicies(resource_group="g"))
        clients = []
        for number in range(50):
            topic = await broker.topic(TopicName.parse(f"{ONE}/{number}"))
            assert isinstance(topic, PersistentTopic)
            clients.append(await attached(topic, SubscriptionType.SHARED))
            for _ in range(100):
                topic.publish([entry(b"")], None, lambda _result: None)
        await trio.sleep(1)
        looks.clear()
        await trio.sleep(10)
        counts = [len(client.got) for client in clients]
        assert 550 <= sum(counts) <= 610
        assert min(counts) >= 5, "a just part is 10"
        assert len(looks) < 1_500
        nursery.cancel_scope.cancel()
