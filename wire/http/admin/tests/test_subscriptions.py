"""Subscriptions, and moving their cursors."""

from typing import Any

import pytest

from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.consumer import ConsumerRequest
from magnetar.core.topic.subscription.subscription import PersistentSubscription, SubscriptionType
from magnetar.wire.http.tests.visitor import Visitor

HERE = "/admin/v2/persistent/public/default"
S = f"{HERE}/a/subscription/s"


class Nobody:
    """The other side of a consumer that never takes anything."""

    congested = True

    def deliver(self, *_: object) -> None:
        raise AssertionError("it has no permits")

    def activity(self, active: bool) -> None:
        pass

    def end_of_topic(self) -> None:
        pass

    def closed_by_broker(self) -> None:
        pass


@pytest.fixture
async def topic(visitor: Visitor) -> PersistentTopic:
    """Five messages, and a subscription that has seen none."""
    found = await visitor.topic("a")
    await found.subscription("s")
    await visitor.publish("a", [b"%d" % number for number in range(5)])
    return found


def backlog(topic: PersistentTopic) -> int:
    return topic.subscriptions["s"].cursor.backlog


async def test_a_subscription_comes_and_goes(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.does("PUT", f"{HERE}/a/subscription/new")
    await visitor.fails(409, "PUT", f"{HERE}/a/subscription/new")
    assert await visitor.get(f"{HERE}/a/subscriptions") == ["new", "s"]
    assert topic.subscriptions["new"].cursor.backlog == 0
    await visitor.does("DELETE", f"{HERE}/a/subscription/new")
    await visitor.fails(404, "DELETE", f"{HERE}/a/subscription/new")
    await visitor.fails(412, "PUT", f"{HERE}/a/subscription/pulsar.dedup")
    await visitor.fails(404, "PUT", f"{HERE}/missing/subscription/s")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, 0),
        ({"ledgerId": -1, "entryId": -1, "partitionIndex": -1}, 5),
        ({"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "partitionIndex": -1}, 0),
        ({"ledgerId": 0, "entryId": 2, "partitionIndex": -1}, 3),
        ({"ledgerId": 0, "entryId": 2, "isExcluded": True}, 2),
        ({"ledgerId": 0, "entryId": 99}, 0),
        ("latest", 0),
        ("earliest", 5),
    ],
)
async def test_a_subscription_begins_where_it_is_told(
    visitor: Visitor, topic: PersistentTopic, body: object, expected: int
) -> None:
    await visitor.does("PUT", f"{HERE}/a/subscription/new", body)
    assert topic.subscriptions["new"].cursor.backlog == expected


async def test_a_partitioned_topic_has_it_on_every_partition(visitor: Visitor) -> None:
    await visitor.does("PUT", f"{HERE}/p/partitions", 2)
    await visitor.does("PUT", f"{HERE}/p/subscription/s", {"properties": {"a": "b"}})
    for index in range(2):
        assert await visitor.get(f"{HERE}/p-partition-{index}/subscriptions") == ["s"]
    assert await visitor.get(f"{HERE}/p/subscriptions") == ["s"]
    assert await visitor.get(f"{HERE}/p/subscription/s/properties") == {"a": "b"}
    await visitor.does("POST", f"{HERE}/p/partitions", 3)
    await visitor.does("POST", f"{HERE}/p/subscription/s/skip_all")
    await visitor.fails(405, "POST", f"{HERE}/p/subscription/s/skip/1")
    await visitor.does("DELETE", f"{HERE}/p/subscription/s")
    assert await visitor.get(f"{HERE}/p/subscriptions") == []


async def test_one_that_is_used_goes_only_by_force(
    visitor: Visitor, topic: PersistentTopic
) -> None:
    request = ConsumerRequest(name="c")
    topic.attach(topic.subscriptions["s"], 1, request, SubscriptionType.SHARED, Nobody())
    await visitor.fails(412, "DELETE", S)
    await visitor.does("DELETE", f"{S}?force=true")


async def test_messages_are_skipped(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.does("POST", f"{S}/skip/2")
    assert backlog(topic) == 3
    await visitor.does("POST", f"{S}/skip/0")
    await visitor.does("POST", f"{S}/skip/1000000")
    assert backlog(topic) == 0
    await visitor.fails(404, "POST", f"{HERE}/a/subscription/other/skip/1")
    await visitor.fails(400, "POST", f"{S}/skip/some")


async def test_all_messages_are_skipped_for_good(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.does("POST", f"{S}/skip_all")
    await visitor.does("PUT", f"{HERE}/a/unload")
    assert backlog(await visitor.topic("a")) == 0
    assert (await visitor.topic("a")) is not topic


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"{S}/skip/5", None),
        ("POST", f"{S}/skip_all", None),
        ("POST", f"{S}/expireMessages/1", None),
        ("POST", f"{HERE}/a/all_subscription/expireMessages/1", None),
        ("POST", f"{S}/expireMessages", {"ledgerId": 0, "entryId": 4}),
        ("DELETE", f"{HERE}/a/truncate", None),
        ("POST", "/admin/v2/namespaces/public/default/clearBacklog", None),
    ],
)
async def test_what_is_answered_is_stored(
    visitor: Visitor, topic: PersistentTopic, method: str, path: str, body: object
) -> None:
    """Whoever takes over after a crash reads it."""
    await visitor.does(method, path, body)
    next_owner = PersistentTopic(topic.env, topic.name, topic.policies)
    await next_owner.load()
    assert backlog(next_owner) == 0


async def test_a_topic_that_is_put_away_meanwhile_is_taken_again(
    visitor: Visitor, topic: PersistentTopic
) -> None:
    """It was idle, or was unloaded, between being found and being changed."""
    subscription = topic.subscription

    async def late(name: str, **more: Any) -> PersistentSubscription:
        await visitor.broker.unload(topic.name)
        return await subscription(name, **more)

    topic.subscription = late  # type: ignore[method-assign, assignment]
    await visitor.does("PUT", f"{HERE}/a/subscription/new")
    again = await visitor.topic("a")
    assert again is not topic
    assert set(again.subscriptions) == {"s", "new"}


async def test_a_cursor_is_reset_to_a_message(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.does("POST", f"{S}/resetcursor", {"ledgerId": 0, "entryId": 3})
    assert backlog(topic) == 2
    await visitor.does("POST", f"{S}/resetcursor", {"ledgerId": -1, "entryId": -1})
    assert backlog(topic) == 5
    excluded = {"ledgerId": 0, "entryId": 0, "isExcluded": True}
    await visitor.does("POST", f"{S}/resetcursor", excluded)
    assert backlog(topic) == 4
    await visitor.does("POST", f"{S}/resetcursor", None)
    assert backlog(topic) == 0
    for word, left in (("earliest", 5), ("latest", 0)):
        await visitor.does("POST", f"{S}/resetcursor", word)
        assert backlog(topic) == left
    await visitor.fails(400, "POST", f"{S}/resetcursor", "LATEST")


class Leaver(Nobody):
    """A consumer that notes where the cursor stood, and was stored, when it was sent away."""

    def __init__(self, topic: PersistentTopic) -> None:
        self.topic = topic
        self.found: list[tuple[int, bool]] = []

    def closed_by_broker(self) -> None:
        self.found.append((backlog(self.topic), self.topic.subscriptions["s"].fenced))


@pytest.mark.parametrize(
    "path", [f"{S}/resetcursor", f"{S}/resetcursor/0"], ids=["to a position", "to a time"]
)
async def test_consumers_are_sent_away_once_the_cursor_is_stored(
    visitor: Visitor, topic: PersistentTopic, path: str
) -> None:
    await visitor.does("POST", f"{S}/skip_all")
    leaver = Leaver(topic)
    subscription = topic.subscriptions["s"]
    topic.attach(subscription, 1, ConsumerRequest(name="c"), SubscriptionType.SHARED, leaver)
    await visitor.does("POST", path, {"ledgerId": -1, "entryId": -1})
    assert leaver.found == [(5, True)], "nobody could come in before it was stored"
    assert not subscription.consumers
    topic.attach(subscription, 2, ConsumerRequest(name="c"), SubscriptionType.SHARED, Nobody())
    await visitor.does("PUT", f"{HERE}/a/unload")
    assert backlog(await visitor.topic("a")) == 5


def batch_of(messages: int) -> bytes:
    """An entry that says it has so many messages."""
    metadata = b"\x0a\x01p\x10\x00\x18\x01\x58" + bytes((messages,))
    return len(metadata).to_bytes(4, "big") + metadata + b"payload"


@pytest.mark.parametrize(
    ("index", "excluded", "left"),
    [(0, False, 0b1111), (2, False, 0b1100), (2, True, 0b1000), (0, True, 0b1110)],
)
async def test_reading_begins_inside_a_batch(
    visitor: Visitor, index: int, excluded: bool, left: int
) -> None:
    topic = await visitor.topic("b")
    await topic.subscription("s")
    (place,) = await visitor.publish("b", [batch_of(4)])
    body = {"ledgerId": place[0], "entryId": 0, "batchIndex": index, "isExcluded": excluded}
    await visitor.does("POST", f"{HERE}/b/subscription/s/resetcursor", body)
    cursor = topic.subscriptions["s"].cursor
    assert cursor.backlog == 1
    assert (cursor.acks.bits(place) or 0b1111) == left


async def test_behind_the_last_of_a_batch_is_the_next_entry(visitor: Visitor) -> None:
    topic = await visitor.topic("b")
    await topic.subscription("s")
    (place,) = await visitor.publish("b", [batch_of(4)])
    body = {"ledgerId": place[0], "entryId": 0, "batchIndex": 3, "isExcluded": True}
    await visitor.does("POST", f"{HERE}/b/subscription/s/resetcursor", body)
    assert topic.subscriptions["s"].cursor.backlog == 0


async def test_an_index_where_there_is_no_batch_does_not_matter(
    visitor: Visitor, topic: PersistentTopic
) -> None:
    for ledger, expected in ((0, 3), (77, 0)):
        body = {"ledgerId": ledger, "entryId": 2, "batchIndex": 1}
        await visitor.does("POST", f"{S}/resetcursor", body)
        assert backlog(topic) == expected


async def test_positions_are_expired(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.does("POST", f"{S}/expireMessages", {"ledgerId": 0, "entryId": 1})
    assert backlog(topic) == 3
    assert topic.subscriptions["s"].messages_expired == 2


async def test_properties_are_replaced(visitor: Visitor, topic: PersistentTopic) -> None:
    await visitor.does("PUT", f"{S}/properties", {"a": "1"})
    await visitor.does("PUT", f"{S}/properties", {"b": "2"})
    await visitor.does("PUT", f"{HERE}/a/unload")
    assert await visitor.get(f"{S}/properties") == {"b": "2"}
