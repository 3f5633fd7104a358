"""What sessions need stays in the logs, and nothing else."""

from __future__ import annotations

from typing import Any

import trio

from magnetar.core.kernel.names import TopicName
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.mqtt.clients.hold import SUBSCRIPTION
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests.peer import publish, subscribe, unsubscribe

FUNNEL = TopicName.parse("public/default/mqtt")


async def topic_of(stage: Stage) -> PersistentTopic:
    topic = (await stage.broker.topic(FUNNEL)).stored
    assert topic is not None
    return topic


async def backlog(stage: Stage) -> int:
    await stage.services.hold.advance()
    await stage.forward(1)
    await stage.services.hold.advance()
    return (await topic_of(stage)).subscriptions[SUBSCRIPTION].cursor.backlog


async def write(stage: Stage, count: int) -> None:
    writer = await stage.connected("w")
    for number in range(count):
        await writer.says(publish("t", b"%d" % number, qos=1, number=number + 1))
    await writer.leaves()


async def test_a_sleeping_session_keeps_what_it_has_not_read() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        sleeper = await stage.subscribed("d", ("t", 1), clean=False)
        await write(stage, 3)
        await sleeper.acknowledges(*(await sleeper.receive())[:2])
        await sleeper.leaves()
        await write(stage, 35)
        assert await backlog(stage) == 36, "the one in flight, and those that came later"
        topic = await topic_of(stage)
        await settled()
        await stage.broker.housekeeping.trim(topic)
        again, (_, *got) = await stage.connects("d", clean=False)
        assert [one.payload for one in got] == [b"2", *(b"%d" % n for n in range(35))]
        await again.acknowledges(*got)
        assert await backlog(stage) == 0
        await stage.broker.housekeeping.trim(topic)
        assert len(topic.ledger.chain.segments) == 1


async def test_a_session_of_an_empty_log_keeps_all_that_comes(stage: Stage) -> None:
    """Whatever the places of sessions are that begin later."""
    first = await stage.subscribed("first", ("t", 1), clean=False)
    await first.leaves()
    await first.is_cut()
    await write(stage, 3)
    second = await stage.subscribed("second", ("t", 1), clean=False)
    await second.leaves()
    await second.is_cut()
    assert await backlog(stage) == 3


async def test_a_session_that_fell_asleep_when_its_log_was_empty_keeps_all() -> None:
    """Its place, the beginning of the log, is in no ledger yet."""
    stores = Stores()
    async with serving(stores) as stage:
        sleeper = await stage.subscribed("d", ("t", 1), clean=False)
        await sleeper.leaves()
        await write(stage, 35)
        assert await backlog(stage) == 35
        await stage.services.hold.advance()
        await stage.broker.housekeeping.trim(await topic_of(stage))
        _, (_, *got) = await stage.connects("d", clean=False)
        assert [one.payload for one in got] == [b"%d" % n for n in range(35)]


async def test_a_log_that_no_session_needs_is_released(stage: Stage) -> None:
    sleeper = await stage.subscribed("d", ("t", 1), clean=False)
    assert await backlog(stage) == 0
    await sleeper.says(unsubscribe("t"))
    await stage.services.hold.advance()
    await stage.services.hold.advance()
    assert SUBSCRIPTION not in (await topic_of(stage)).subscriptions


async def test_a_client_that_is_slow_keeps_what_it_has_not_read(stage: Stage) -> None:
    slow = await stage.subscribed("s", ("t", 1), version=5, properties=b"\x21\0\x01")
    await write(stage, 5)
    assert await backlog(stage) == 5
    await slow.is_cut()
    await stage.services.hold.advance()
    assert SUBSCRIPTION not in (await topic_of(stage)).subscriptions


async def test_messages_of_qos_0_hold_nothing(stage: Stage) -> None:
    await stage.subscribed("s", ("t", 0), clean=False)
    assert SUBSCRIPTION not in (await topic_of(stage)).subscriptions


async def test_one_that_has_published_with_qos_2_holds_nothing(stage: Stage) -> None:
    """Its mark, from which on a crash would have its messages searched, moves on."""
    reader = await stage.subscribed("d", ("t", 1), clean=False)
    publisher = await stage.connected("p", clean=False)
    await publisher.completes(*await publisher.says(publish("t", b"x", qos=2, number=1)))
    await write(stage, 5)
    for _ in range(6):
        await reader.acknowledges(*await reader.receive())
    assert await backlog(stage) == 0


async def test_a_client_subscribes_while_the_log_is_released(stage: Stage) -> None:
    client = await stage.subscribed("d", ("t", 1), clean=False)
    topic = await topic_of(stage)
    held: Any = topic.subscriptions[SUBSCRIPTION]
    delete, go = held.delete, trio.Event()

    async def slow() -> None:
        await go.wait()
        await delete()

    held.delete = slow
    await client.says(unsubscribe("t"))
    await stage.services.hold.advance()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.services.hold.advance)
        nursery.start_soon(stage.services.hold.advance)
        await settled()
        assert await client.says(subscribe(("t", 1))) == [], "it waits"
        go.set()
    (suback,) = await client.receive()
    assert suback.reasons == (1,)
    assert SUBSCRIPTION in topic.subscriptions


async def test_rounds_pass_while_a_client_subscribes(stage: Stage) -> None:
    keep: Any = stage.services.hold.keep

    async def slow(kept: Any, **options: Any) -> None:
        await keep(kept, **options)
        hold.keep = keep
        await hold.advance()
        await hold.advance()

    hold: Any = stage.services.hold
    hold.keep = slow
    await stage.subscribed("d", ("t", 1), clean=False)
    assert SUBSCRIPTION in (await topic_of(stage)).subscriptions
