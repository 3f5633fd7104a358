"""Consumers of several topics, and of those that match a pattern."""

from typing import Any

from magnetar.core.broker import administration
from magnetar.core.kernel.names import TopicName
from magnetar.wire.pulsar.session.conftest import Stage, guarded_stage, published, stage
from magnetar.wire.pulsar.websocket.tests.talker import Talker, opened
from magnetar.wire.pulsar.websocket.tests.test_consuming import ack, backlog, payloads

__all__ = ["guarded_stage", "stage"]

SEVERAL = "/ws/v3/consumer/s?subscriptionInitialPosition=Earliest&topics="
PATTERN = "/ws/v3/consumer/s?subscriptionInitialPosition=Earliest&topicsPattern="


async def test_several_topics(stage: Stage) -> None:
    await stage.broker.catalog.create_partitioned(TopicName.parse("u"), 2)
    await published(stage, b"a")
    await published(stage, b"b", topic="u-partition-1")
    talker = await opened(stage, f"{SEVERAL}t,public/default/u,persistent://public/default/t")
    heard = [*talker.early, *await talker.hear()]
    assert sorted(payloads(heard)) == [b"a", b"b"]
    assert len({one["messageId"] for one in heard}) == 2
    assert await talker.say(*[ack(one) for one in heard]) == []
    assert [backlog(stage), backlog(stage, "u-partition-1")] == [0, 0]
    await published(stage, b"c")
    (message,) = await talker.hear()
    assert await talker.say(ack(message), {"type": "unsubscribe"}) == []
    assert not stage.broker.topics["persistent://public/default/t"].subscriptions


async def test_several_topics_are_pulled_exactly(stage: Stage) -> None:
    for topic in "tu":
        await published(stage, b"a", b"b", topic=topic)
    talker = await opened(stage, f"{SEVERAL}t,u&pullMode=true")
    assert talker.early == []
    found: list[Any] = []
    for _ in range(4):
        (message,) = await talker.say({"type": "permit", "permitMessages": 1})
        found.append(message)
    assert sorted(payloads(found)) == [b"a", b"a", b"b", b"b"]


async def test_dead_letters_say_which_topic_they_are_of(stage: Stage) -> None:
    await published(stage, b"a", topic="u")
    more = "&maxRedeliverCount=1&deadLetterTopic=dead&negativeAckRedeliveryDelay=0"
    talker = await opened(stage, f"{SEVERAL}t,u{more}&subscriptionType=Shared")
    heard = [*talker.early, *await talker.hear()]
    while heard:
        heard = await talker.say(ack(heard[0], "negativeAcknowledge"))
    reader = await opened(stage, "/ws/v2/reader/persistent/public/default/dead?messageId=earliest")
    (dead,) = [*reader.early, *await reader.hear()]
    assert dead["properties"]["REAL_TOPIC"] == "persistent://public/default/u"


async def test_topics_that_match_a_pattern(stage: Stage) -> None:
    await published(stage, b"a", topic="log-a")
    await published(stage, b"x", topic="other")
    talker = await opened(stage, f"{PATTERN}public/default/log-.*")
    heard = [*talker.early, *await talker.hear()]
    assert payloads(heard) == [b"a"]
    await published(stage, b"b", topic="log-b")
    (later,) = await talker.hear()
    assert payloads([later]) == [b"b"]
    assert await talker.say(*map(ack, [*heard, later])) == []
    assert [backlog(stage, f"log-{each}") for each in "ab"] == [0, 0]


async def test_a_topic_of_a_pattern_goes_and_comes_again(stage: Stage) -> None:
    await published(stage, b"a", topic="log-a")
    talker = await opened(stage, f"{PATTERN}log-.*")
    await talker.hear()
    await administration.delete_topic(stage.broker, TopicName.parse("log-a"), force=True)
    assert await talker.hear() == []
    assert talker.closed is None
    assert "persistent://public/default/log-a" not in stage.broker.topics
    await published(stage, b"b", topic="log-a")
    assert payloads(await talker.hear()) == [b"b"]


async def test_a_pattern_that_nothing_matches(stage: Stage) -> None:
    talker = await opened(stage, f"{PATTERN}none.*")
    await published(stage, b"a", topic="none-yet")
    assert payloads(await talker.hear()) == [b"a"]


async def test_what_is_refused_of_several(guarded_stage: Stage) -> None:
    await guarded_stage.permit(reader="consume")
    for target, status in (
        (f"{SEVERAL}t,u&subscriptionType=Shared&token=reader", 101),
        (f"{SEVERAL}t,other/ns/u&subscriptionType=Shared&token=reader", 403),
        (f"{SEVERAL}t&subscriptionType=Shared&token=nobody", 403),
        (f"{PATTERN}t.*&subscriptionType=Shared&token=reader", 101),
        (f"{PATTERN}t(?=u)&subscriptionType=Shared&token=reader", 400),
        (f"{PATTERN}other/ns/t.*&subscriptionType=Shared&token=reader", 403),
    ):
        talker = await Talker(guarded_stage).open(target)
        await talker.hear()
        assert talker.status == status, (target, talker.reason)
