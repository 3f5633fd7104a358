"""Decisions about producers, carried out: epochs are stored first, and everybody hears."""

from magnetar.core.kernel.errors import ProducerFenced, StorageFailed
from magnetar.core.testing.bench import Bench, settled
from magnetar.core.testing.client import ClientProducer
from magnetar.core.topic.publishing.producer import AccessMode, Producer, ProducerRequest

EXCLUSIVE, WAITS = AccessMode.EXCLUSIVE, AccessMode.WAIT_FOR_EXCLUSIVE


async def test_the_epoch_of_exclusive_producers_is_stored_before_it_is_told(desk: Bench) -> None:
    topic = await desk.topic()
    first = ClientProducer("a", AccessMode.EXCLUSIVE)
    assert await topic.attach_producer(first.producer)
    assert first.events == [("granted", 0)]
    second = ClientProducer("b", AccessMode.EXCLUSIVE_WITH_FENCING)
    await topic.attach_producer(second.producer)
    assert first.events[1:] == ["closed"]
    assert second.events == [("granted", 1)]
    again = await desk.topic()
    assert again.producers.epoch == 1


async def test_an_epoch_that_cannot_be_stored_refuses_and_the_next_in_line_is_asked(
    desk: Bench,
) -> None:
    """Once the one who waited got the topic in the books and was never told."""
    topic = await desk.topic()
    holder = ClientProducer("a", AccessMode.EXCLUSIVE)
    waiters = [ClientProducer(name, AccessMode.WAIT_FOR_EXCLUSIVE) for name in "bc"]
    await topic.attach_producer(holder.producer)
    for each in waiters:
        assert not await topic.attach_producer(each.producer)
    put, failures = desk.metadata.put, [StorageFailed("no")]

    async def fail_once(path: str, value: bytes, expected: int | None = None) -> int:
        if failures:
            raise failures.pop()
        return await put(path, value, expected)

    desk.metadata.put = fail_once  # type: ignore[method-assign]
    topic.detach_producer(holder.producer)
    await settled()
    assert waiters[0].events == [StorageFailed]
    assert waiters[1].events == [("granted", 2)]
    assert topic.producers.all() == [waiters[1].producer]


async def test_who_waited_in_vain_is_told_even_if_nobody_is_granted(desk: Bench) -> None:
    """Its client has stopped its clock: it would wait for ever."""
    topic = await desk.topic()
    first, second, late = (ClientProducer(name, WAITS) for name in ("first", "second", "late"))
    request = ProducerRequest("late", True, mode=WAITS, topic_epoch=0)
    late.producer = Producer(1, request, late, 0)
    for client in (first, second, late):
        await topic.attach_producer(client.producer)
    topic.detach_producer(first.producer)
    await settled()
    assert second.events == [("granted", 1)]
    topic.detach_producer(second.producer)
    await settled()
    assert late.events == [ProducerFenced]
