"""A place that is taken by somebody who may be dead."""

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.link.memory.pauses import PAUSE_STORAGE
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.session.conftest import Player, Stage, kinds
from magnetar.wire.pulsar.tests import peer

TAKE = {
    "consumer": peer.subscribe(1, 3, "t", "s"),
    "reader": peer.subscribe(1, 3, "t", "r", durable=False),
    "producer": peer.producer(1, 3, "t", producer_name="p"),
}
BUSY = {
    "consumer": pb.ConsumerBusy,
    "reader": pb.ConsumerBusy,
    "producer": pb.ProducerBusy,
}
TAKEN = ("SUCCESS", "PRODUCER_SUCCESS")


async def holder(stage: Stage, place: str) -> Player:
    first = await stage.player()
    assert (await first.says_one(TAKE[place])).kind in TAKEN
    return first


@pytest.mark.parametrize("place", TAKE)
async def test_who_answers_keeps_its_place(stage: Stage, place: str) -> None:
    first, second = await holder(stage, place), await stage.player()
    assert await second.says(TAKE[place]) == [], "the holder is asked first"
    assert kinds(await first.says(peer.pong())) == ["PING"]
    (received,) = await second.receive()
    assert received.body.error == BUSY[place]
    assert first.line.ending is None


@pytest.mark.parametrize("place", TAKE)
async def test_who_does_not_answer_loses_it(
    stage: Stage, autojump_clock: MockClock, place: str
) -> None:
    """It cannot say so, of course: half of its connection is gone."""
    first, second = await holder(stage, place), await stage.player()
    second.feed(TAKE[place])
    await trio.sleep(6)
    assert [each for each in kinds(await second.receive()) if each in TAKEN]
    assert first.line.ending is not None
    first.session.closed("the link has noticed")
    (topic,) = stage.broker.topics.values()
    attached = [*topic.producers.all(), *topic.subscriptions.values()]
    assert len(attached) == 1


@pytest.mark.parametrize("place", TAKE)
async def test_whoever_is_not_read_just_now_is_not_dead(stage: Stage, place: str) -> None:
    first, second = await holder(stage, place), await stage.player()
    first.line.pause(PAUSE_STORAGE)
    assert (await second.says_one(TAKE[place])).body.error == BUSY[place]


@pytest.mark.parametrize("place", TAKE)
async def test_nobody_evicts_himself(stage: Stage, place: str) -> None:
    first = await holder(stage, place)
    again = {
        "consumer": peer.subscribe(2, 4, "t", "s"),
        "reader": peer.subscribe(2, 4, "t", "r", durable=False),
        "producer": peer.producer(2, 4, "t", producer_name="p"),
    }[place]
    assert (await first.says_one(again)).body.error == BUSY[place]


@pytest.mark.parametrize("place", TAKE)
async def test_a_newcomer_that_leaves_meanwhile_gets_nothing(
    stage: Stage, autojump_clock: MockClock, place: str
) -> None:
    _first, second = await holder(stage, place), await stage.player()
    second.feed(TAKE[place])
    await trio.testing.wait_all_tasks_blocked()
    second.feed(peer.close_producer(2, 3) if place == "producer" else peer.close_consumer(2, 3))
    second.session.closed("it went")
    await trio.sleep(6)
    for topic in stage.broker.topics.values():
        assert not topic.producers.all()
        assert not [one for each in topic.subscriptions.values() for one in each.consumers]


async def test_who_takes_what_waited_for_it_is_alive(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """A slow consumer is not read meanwhile, so its answer is not heard."""
    first, second = await holder(stage, "producer"), await stage.player()
    first.line.outbox_bytes = 1_000_000
    second.feed(TAKE["producer"])
    await trio.sleep(1)
    first.line.outbox_bytes, first.line.taken_bytes = 900_000, 100_000
    await trio.sleep(6)
    assert first.line.ending is None
    assert (await second.receive())[-1].body.error == pb.ProducerBusy


async def test_a_holder_that_has_much_to_say_is_alive(
    stage: Stage, autojump_clock: MockClock
) -> None:
    """Its PONG is behind what it asked, for which it was not read for a while."""
    first, second = await holder(stage, "producer"), await stage.player()
    second.feed(TAKE["producer"])
    await trio.sleep(1)
    first.line.pause(PAUSE_STORAGE)
    first.line.received_bytes += 100
    first.line.resume(PAUSE_STORAGE)
    await trio.sleep(6)
    assert first.line.ending is None
    assert (await second.receive())[-1].body.error == pb.ProducerBusy
