"""The health check goes all the way to storage and back."""

import trio
import trio.testing

from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.wire.http.round_trip import TOPIC, HealthCheck, message
from magnetar.wire.http.tests.visitor import Visitor, visiting
from magnetar.wire.pulsar.metadata import read

HEALTH = "/admin/v2/brokers/health"


async def test_a_message_is_stored_and_read_back(visitor: Visitor) -> None:
    for checks in (1, 2):
        answer = await visitor.ask("GET", HEALTH, params={"topicVersion": "V2"})
        assert (answer.status_code, answer.text) == (200, "ok")
        topic = visitor.broker.topics[TOPIC.full]
        assert topic.messages_in == checks
        assert not topic.subscriptions, "its reader has left"


async def test_nobody_sees_its_topic(visitor: Visitor) -> None:
    await visitor.ask("GET", HEALTH)
    assert await visitor.get("/admin/v2/namespaces/pulsar/system/topics") == []
    assert await visitor.get("/admin/v2/persistent/pulsar/system") == []


async def test_storage_that_does_not_answer_is_told_of_in_time() -> None:
    ledgers = MemoryLedgers(sync_at_once=False)
    async with visiting(ledgers=ledgers, health=HealthCheck(seconds_max=0.01)) as visitor:
        reason = await visitor.fails(500, "GET", HEALTH)
        assert reason == "storage has not answered within 0.01 s"
        await visitor.fails(500, "GET", HEALTH)
        assert visitor.broker.topics[TOPIC.full].messages_in == 1, "no more is begun behind it"
        ledgers.sync()
        await trio.testing.wait_all_tasks_blocked()
        ledgers.sync_at_once = True
        assert (await visitor.ask("GET", HEALTH)).status_code == 200


async def test_storage_that_refuses_is_quoted() -> None:
    ledgers = MemoryLedgers()
    ledgers.create_failure = StorageFailed("the disk has failed")
    async with visiting(ledgers=ledgers) as visitor:
        assert "the disk has failed" in await visitor.fails(500, "GET", HEALTH)


async def test_storage_that_gives_back_something_else_is_found_out() -> None:
    ledgers = MemoryLedgers()
    async with visiting(ledgers=ledgers) as visitor:
        await visitor.ask("GET", HEALTH)
        (ledger,) = ledgers.ledgers.values()
        genuine = ledger.read

        async def other(first: int, last: int, bytes_max: int) -> list[bytes]:
            return [b"x" * len(entry) for entry in await genuine(first, last, bytes_max)]

        ledger.read = other  # type: ignore[method-assign]  # a disk that lies
        assert "another message" in await visitor.fails(500, "GET", HEALTH)


async def test_a_topic_that_is_unloaded_under_it_ends_the_trip() -> None:
    ledgers = MemoryLedgers(sync_at_once=False)
    async with visiting(ledgers=ledgers) as visitor, trio.open_nursery() as nursery:

        async def ask() -> None:
            assert "unloaded" in await visitor.fails(500, "GET", HEALTH)

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        visitor.broker.topics[TOPIC.full].subscriptions["healthcheck-1"].disconnect_all()
        ledgers.sync()


async def test_many_checks_share_one_trip() -> None:
    ledgers = MemoryLedgers(sync_at_once=False)
    async with visiting(ledgers=ledgers) as visitor:
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                assert (await visitor.ask("GET", HEALTH)).status_code == 200

            for _ in range(5):
                nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            ledgers.sync()
        assert visitor.broker.topics[TOPIC.full].messages_in == 1


def test_its_message_is_one_like_any_other() -> None:
    entry = read(message(b"payload", 1_700_000_000_000))
    assert entry.payload == b"payload"
    assert entry.metadata.publish_time == 1_700_000_000_000
    assert (entry.metadata.producer_name, entry.metadata.sequence_id) == ("healthcheck", 0)
