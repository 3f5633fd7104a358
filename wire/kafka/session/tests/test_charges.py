"""Connections are held to the quotas of their clients."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.link.memory.pauses import PAUSE_RATE
from magnetar.core.quotas.limits import DEFAULT, QuotaEntity, QuotaKey
from magnetar.core.security.tests.people import guarded
from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores, running
from magnetar.wire.kafka import errors
from magnetar.wire.kafka.conftest import Client, Stage, fetch_request, produce_request
from magnetar.wire.kafka.messages.basics import MetadataRequest
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from magnetar.wire.kafka.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from magnetar.wire.kafka.session.charges import ANONYMOUS, Measured
from magnetar.wire.kafka.tests.batch import batch
from magnetar.wire.kafka.tests.frame import framed

LARGE = batch(b"x" * 1000)
EVERYBODY = QuotaEntity(client=DEFAULT)
PRODUCED, FETCHED = QuotaKey.PRODUCED_BYTES, QuotaKey.FETCHED_BYTES


class TrioClock:
    """Trio's clock as the broker's."""

    def monotonic(self) -> float:
        return trio.current_time()

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + round(trio.current_time() * 1000)


@pytest.fixture
async def timed_stage(mock_clock: MockClock) -> AsyncIterator[Stage]:
    """A stage whose time the test moves, by `mock_clock.jump`."""
    stores = Stores()
    clock: Any = TrioClock()
    stores.clock = clock
    async with running(stores) as broker:
        yield Stage(stores, broker)


def limit(stage: Stage, entity: QuotaEntity = EVERYBODY, **limits: float) -> None:
    quotas = stage.front.services.quotas
    quotas.rules.put(entity, {QuotaKey(key): value for key, value in limits.items()})
    quotas.changed()


def is_held(client: Client) -> bool:
    return bool(client.line.paused & PAUSE_RATE)


def ways_of_producing() -> Any:
    """The codec's, the fast path's, and that of a large batch."""
    return pytest.mark.parametrize(
        ("known", "large"), [(False, False), (True, False), (True, True)]
    )


@ways_of_producing()
async def test_a_producer_is_told_and_not_read(
    timed_stage: Stage, mock_clock: MockClock, known: bool, large: bool
) -> None:
    stage, stage.known, stage.large = timed_stage, known, large
    client, other = await stage.client("t"), await stage.client("t")
    await client.produce("t", batch(b"a"))
    limit(stage, producer_byte_rate=100)
    replies = await client.exchange(produce_request("t", LARGE), 9)
    assert 0 < replies.throttle_time_ms <= 1500
    (part,) = replies.responses[0].partition_responses
    assert (part.error_code, part.base_offset) == (0, 1), "it is stored, and answered at once"
    assert is_held(client)
    assert not is_held(other), "each connection is held for its own requests"
    mock_clock.jump(replies.throttle_time_ms / 1000)
    await settled()
    assert not is_held(client)


async def test_waits_are_counted_by_their_kind(timed_stage: Stage, mock_clock: MockClock) -> None:
    """As long as they are, however many requests come meanwhile."""
    client, usage = await timed_stage.client("t"), timed_stage.front.services.quotas
    await client.produce("t", batch(b"a"))
    limit(timed_stage, producer_byte_rate=100, controller_mutation_rate=0.1)
    for _ in range(2):
        client.ask(produce_request("t", LARGE), 9)
    await settled()
    wait = usage.throttled_seconds[PRODUCED]
    assert usage.throttles[PRODUCED] == 1, "the second request waits, too"
    assert 0 < wait < 2
    mock_clock.jump(wait + 0.001)
    await settled()
    assert usage.throttles[PRODUCED] == 2
    assert usage.throttled_seconds[PRODUCED] > 2 * wait
    mock_clock.jump(100)
    await settled()
    client.receive()
    for name in ("a", "b"):
        await client.exchange(topic(name, 2), 6)
    assert usage.throttles[QuotaKey.MUTATIONS] == 1
    assert usage.throttled_seconds[QuotaKey.MUTATIONS] > 5
    others = set(QuotaKey) - {PRODUCED, QuotaKey.MUTATIONS}
    assert {usage.throttles[key] for key in others} == {0}


async def test_within_the_quota_nobody_waits(timed_stage: Stage, mock_clock: MockClock) -> None:
    client = await timed_stage.client("t")
    limit(timed_stage, producer_byte_rate=2000)
    for _ in range(30):
        replies = await client.exchange(produce_request("t", LARGE), 9)
        assert replies.throttle_time_ms == 0
        mock_clock.jump(0.6)
    assert not is_held(client)


async def test_without_acknowledgement_a_producer_is_held_too(
    timed_stage: Stage, mock_clock: MockClock
) -> None:
    client = await timed_stage.client("t")
    await client.produce("t", batch(b"a"))
    limit(timed_stage, producer_byte_rate=10)
    client.ask(produce_request("t", LARGE, acks=0), 9)
    await settled()
    assert is_held(client)


async def test_requests_that_were_received_wait(timed_stage: Stage, mock_clock: MockClock) -> None:
    client = await timed_stage.client("t")
    await client.produce("t", batch(b"a"))
    limit(timed_stage, producer_byte_rate=100)
    for _ in range(2):
        client.ask(produce_request("t", LARGE), 9)
    client.ask(MetadataRequest(topics=None), 9)
    await settled()
    (first,) = client.receive()
    mock_clock.jump(first.throttle_time_ms / 1000 + 0.001)
    await settled()
    (second,) = client.receive()
    assert second.responses[0].partition_responses[0].base_offset == 2
    assert second.throttle_time_ms > 0
    mock_clock.jump(second.throttle_time_ms / 1000 + 0.001)
    await settled()
    (third,) = client.receive()
    assert third.brokers


async def test_a_connection_that_goes_while_it_is_held(
    timed_stage: Stage, mock_clock: MockClock
) -> None:
    client = await timed_stage.client("t")
    await client.produce("t", batch(b"a"))
    limit(timed_stage, producer_byte_rate=100)
    for _ in range(2):
        client.ask(produce_request("t", LARGE), 9)
    await settled()
    client.session.closed("gone")
    mock_clock.jump(100)
    await settled()
    log = timed_stage.front.services.logs.at_once("t", 0)
    assert log is not None
    assert log.end == 2, "what waited is not done"


async def test_a_consumer_gets_nothing_beyond_its_quota(
    timed_stage: Stage, mock_clock: MockClock
) -> None:
    client = await timed_stage.client("t")
    await client.produce("t", LARGE, LARGE)
    limit(timed_stage, consumer_byte_rate=len(LARGE) / 8)
    first = await client.exchange(fetch_request("t", 0, size=10_000), 12)
    assert len(first.responses[0].partitions[0].records) == len(LARGE), "eight of ten seconds"
    assert first.throttle_time_ms == 0
    again = await client.exchange(fetch_request("t", 1), 12)
    assert again.responses == []
    assert again.throttle_time_ms == 6000
    assert is_held(client)
    window = timed_stage.front.services.quotas.window(FETCHED, ANONYMOUS, "c")
    assert window is not None
    assert window.used(trio.current_time()) == len(LARGE), "what is not sent does not count"
    mock_clock.jump(11)
    await settled()
    assert len((await client.fetch("t", 1)).records or b"") == len(LARGE)


async def test_a_batch_that_is_larger_than_its_quota_comes_in_the_end(
    timed_stage: Stage, mock_clock: MockClock
) -> None:
    client = await timed_stage.client("t")
    await client.produce("t", LARGE)
    limit(timed_stage, consumer_byte_rate=1)
    replies = await client.exchange(fetch_request("t", 0), 12)
    assert len(replies.responses[0].partitions[0].records) == len(LARGE)
    assert replies.throttle_time_ms > 1_000_000


async def test_a_share_of_the_loop(
    timed_stage: Stage, mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await timed_stage.client("t")
    clock: Any = timed_stage.broker.clock
    ticks = iter(range(1_000_000))
    monkeypatch.setattr(clock, "monotonic", lambda: trio.current_time() + next(ticks) / 10)
    limit(timed_stage, request_percentage=0.1)
    replies = await client.exchange(MetadataRequest(topics=None), 9)
    assert 0 < replies.throttle_time_ms <= 1000, "a second at most"
    assert is_held(client)


async def test_who_a_quota_is_for(timed_stage: Stage, mock_clock: MockClock) -> None:
    client = await timed_stage.client("t")
    await client.produce("t", batch(b"a"))
    for entity in (QuotaEntity("eve"), QuotaEntity(client="d"), QuotaEntity("eve", "c")):
        limit(timed_stage, entity, producer_byte_rate=1)
    assert (await client.exchange(produce_request("t", LARGE), 9)).throttle_time_ms == 0
    limit(timed_stage, QuotaEntity(ANONYMOUS, "c"), producer_byte_rate=1)
    held = await client.exchange(produce_request("t", LARGE), 9)
    assert held.throttle_time_ms > 0, "a change is for open connections too"


async def test_a_connection_may_have_several_client_ids(
    timed_stage: Stage, mock_clock: MockClock
) -> None:
    client = await timed_stage.client("t")
    limit(timed_stage, QuotaEntity(client="d"), producer_byte_rate=1)
    assert (await client.exchange(produce_request("t", LARGE), 9)).throttle_time_ms == 0
    client.wire.feed(framed(produce_request("t", LARGE), 9, client_id=b"d"))
    for event in client.wire.take_events():
        client.session.handle(event)
    assert is_held(client)


async def test_who_proves_an_identity_has_its_quota(
    mock_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = Stores()
    clock: Any = TrioClock()
    stores.clock = clock
    async with running(stores, access=guarded(("ali",))) as broker:
        stage = Stage(stores, broker)
        limit(stage, QuotaEntity("ali"), request_percentage=1e-9)
        limit(stage, QuotaEntity(ANONYMOUS), request_percentage=1e-9)
        limit(stage, QuotaEntity("ali", "c"), producer_byte_rate=1)
        client = await stage.client()
        await client.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        proof = SaslAuthenticateRequest(auth_bytes=b"\0ali\0secret")
        assert (await client.exchange(proof, 1)).error_code == 0
        with monkeypatch.context() as patched:
            ticks = iter(range(1_000_000))
            patched.setattr(clock, "monotonic", lambda: trio.current_time() + next(ticks) / 10)
            await client.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert (await client.exchange(proof, 1)).error_code == 0
        assert not is_held(client), "a proof is free, at first and again"
        window = stage.front.services.quotas.window(PRODUCED, "ali", "c")
        client.ask(produce_request("t", LARGE), 9)
        await settled()
        assert window is not None
        assert window.used(clock.monotonic()) > len(LARGE)


def topic(name: str, partitions: int) -> CreateTopicsRequest:
    made = CreateTopic(
        name=name, num_partitions=partitions, replication_factor=-1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[made], timeout_ms=1000)


async def test_partitions_beyond_the_quota_are_refused(
    timed_stage: Stage, mock_clock: MockClock
) -> None:
    client = await timed_stage.client()
    limit(timed_stage, controller_mutation_rate=1)
    assert (await client.exchange(topic("a", 12), 6)).topics[0].error_code == 0
    refused = await client.exchange(topic("b", 1), 6)
    assert refused.topics[0].error_code == errors.THROTTLING_QUOTA_EXCEEDED
    assert 1000 < refused.throttle_time_ms <= 1002
    mock_clock.jump(1.1)
    await settled()
    larger = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="a", count=14, assignments=None)],
        timeout_ms=1000,
        validate_only=False,
    )
    assert (await client.exchange(larger, 3)).results[0].error_code == 0
    away = DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000)
    refused = await client.exchange(away, 5)
    assert refused.responses[0].error_code == errors.THROTTLING_QUOTA_EXCEEDED
    mock_clock.jump(5)
    await settled()
    assert (await client.exchange(away, 5)).responses[0].error_code == 0


async def test_an_older_client_is_held_instead(timed_stage: Stage, mock_clock: MockClock) -> None:
    client = await timed_stage.client()
    limit(timed_stage, controller_mutation_rate=1)
    replies = await client.exchange(topic("a", 12), 5)
    assert (replies.topics[0].error_code, is_held(client)) == (0, True)
    assert 1000 < replies.throttle_time_ms <= 1002


async def test_time_is_that_on_the_loop(mock_clock: MockClock) -> None:
    times = iter((0.0, 1.0, 10.0, 12.0, 20.0, 25.0))

    async def work() -> str:
        await trio.sleep(5)
        with pytest.raises(trio.TooSlowError), trio.fail_after(1):
            await trio.sleep(5)
        return "done"

    async with trio.open_nursery() as nursery:
        made: list[str] = []
        measured = Measured(work(), lambda: next(times))

        async def wait() -> None:
            made.append(await measured)

        nursery.start_soon(wait)
        for seconds in (5, 1):
            await settled()
            mock_clock.jump(seconds)
    assert made == ["done"]
    assert measured.seconds == 1 + 2 + 5


@ways_of_producing()
async def test_no_long_client_id_lives_with_its_connection(
    timed_stage: Stage, mock_clock: MockClock, known: bool, large: bool
) -> None:
    """The limit is that of the id itself all the same."""
    stage, stage.known, stage.large = timed_stage, known, large
    name = "c" * 30_000
    limit(stage, QuotaEntity(client=name), producer_byte_rate=100)
    client, other = await stage.client("t"), await stage.client("t")
    for each, client_id in ((client, name), (other, name[1:])):
        each.wire.feed(framed(produce_request("t", LARGE), 9, client_id=client_id.encode()))
        for event in each.wire.take_events():
            each.session.handle(event)
        await settled()
    assert (is_held(client), is_held(other)) == (True, False)
    for each in (client, other):
        assert each.session._charges.client_id is None
        assert sys.getsizeof(each.session._charges._client) < 100
