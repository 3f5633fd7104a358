"""Requests that need time: so many of a connection, so many of all, and who goes first."""

import pytest
import trio

from magnetar.core.kernel.errors import NotReady
from magnetar.core.kernel.names import TopicName
from magnetar.core.link.memory.pauses import PAUSE_REQUESTS
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session import attachment_limit, requests
from magnetar.wire.pulsar.session.client import REASSURE_SECONDS
from magnetar.wire.pulsar.session.conftest import Player, Stage, kinds
from magnetar.wire.pulsar.session.requests import FREE_MAX, REQUESTS_MAX
from magnetar.wire.pulsar.tests import peer


def lookups(count: int, first: int = 0) -> list[bytes]:
    return [peer.lookup(number, "t") for number in range(first, first + count)]


def no_memory_for(client: Player) -> None:
    client.line.has_room_to_wait = lambda size: False  # type: ignore[method-assign]


async def together(stage: Stage, count: int) -> list[Player]:
    """Clients whose requests take turns."""
    return [await stage.player() for _ in range(count)]


async def test_all_are_answered(stage: Stage) -> None:
    """A few at a time, each of which may overtake those that begin with it."""
    client = await stage.player()
    received = await client.says(*lookups(3 * REQUESTS_MAX))
    answered = [each.body.request_id for each in received]
    assert sorted(answered) == list(range(3 * REQUESTS_MAX))
    for place, number in enumerate(answered):
        assert abs(place - number) < 2 * requests.BEGIN_MAX
    assert len(client.session.requests) == 0


async def test_a_connection_that_asks_too_much_is_not_read(stage: Stage) -> None:
    client = await stage.player()
    client.feed(*lookups(REQUESTS_MAX - 1))
    assert not client.line.paused
    client.feed(*lookups(1))
    assert client.line.paused == PAUSE_REQUESTS
    await client.receive()
    assert not client.line.paused


async def test_it_is_read_again_when_half_is_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await stage.player()
    gates: list[trio.Event] = []

    async def answer(_event: object) -> None:
        gates.append(trio.Event())
        await gates[-1].wait()

    for number in range(REQUESTS_MAX):
        client.session.requests.add(answer, events.GetSchema(number, "t", None))
    await client.receive()
    for gate in gates[: REQUESTS_MAX // 2 - 1]:
        gate.set()
    await client.receive()
    assert client.line.paused == PAUSE_REQUESTS
    gates[-1].set()
    await client.receive()
    assert not client.line.paused
    client.session.closed("it went")
    for gate in gates:
        gate.set()


async def test_who_waits_for_long_hears_that_the_server_lives(stage: Stage) -> None:
    client = await stage.player()
    stage.stores.clock.forward(REASSURE_SECONDS)
    assert "PONG" in kinds(await client.says(*lookups(REQUESTS_MAX)))


async def test_nothing_is_done_for_a_connection_that_has_gone(stage: Stage) -> None:
    client = await stage.player()
    client.feed(
        peer.subscribe(1, 1, "t", "s"),
        peer.producer(2, 1, "u"),
        peer.partitioned_metadata(3, "v", metadata_auto_creation_enabled=True),
        *lookups(100),
    )
    client.session.closed("it went")
    assert await client.receive() == []
    assert not stage.broker.topics
    assert len(client.session.requests) == 0


async def test_without_memory_for_more_the_connection_ends(stage: Stage) -> None:
    client, modest = await stage.player(), await stage.player()
    for each in (client, modest):
        no_memory_for(each)
    client.feed(*lookups(FREE_MAX + 1))
    assert "no memory" in (client.line.ending or "")
    assert len(await modest.says(*lookups(FREE_MAX))) == FREE_MAX
    assert modest.line.ending is None


async def test_what_waits_is_dropped_when_there_is_no_memory(stage: Stage) -> None:
    """It would be held for as long as the client does not take what it was sent."""
    client = await stage.player()
    client.feed(*lookups(100))
    no_memory_for(client)
    client.feed(*lookups(1))
    assert client.line.ending
    assert len(client.session.requests) == client.session.requests.under_way <= requests.BEGIN_MAX


async def test_large_requests_always_need_room(stage: Stage) -> None:
    client = await stage.player()
    no_memory_for(client)
    client.feed(peer.lookup(1, "t" * requests.FREE_BYTES_MAX))
    assert client.line.ending


async def test_who_takes_no_answers_gets_no_more(stage: Stage) -> None:
    client = await stage.player()
    client.line.takes_too_little = True
    assert await client.says(*lookups(5)) == []
    client.line.takes_too_little = False
    client.session.relieved()
    assert len(await client.receive()) == 5


async def test_connections_take_turns(stage: Stage) -> None:
    """However much one has asked before, another waits for one of its requests only."""
    many, one = await together(stage, 2)
    order: list[Player] = []
    for each in (many, one):
        each.wire.reply = lambda frame, each=each: order.append(each)  # type: ignore[method-assign]
    many.feed(*lookups(1_000))
    one.feed(*lookups(1))
    await one.receive()
    assert len(order) == 1_001
    assert order.index(one) <= 2 * requests.BEGIN_MAX


async def test_requests_that_take_long_delay_nobody_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "UNDER_WAY_MAX", 2)
    many, one = await together(stage, 2)
    gate = trio.Event()

    async def answer(_event: object) -> None:
        await gate.wait()

    for number in range(5):
        many.session.requests.add(answer, events.GetSchema(number, "t", None))
    await many.receive()
    assert many.session.requests.under_way == 2
    assert len(await one.says(*lookups(3))) == 3
    gate.set()
    await many.receive()
    assert len(many.session.requests) == 0


async def test_those_that_are_coming_count_among_those_that_are_attached(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachment_limit, "ATTACHED_MAX", 2)
    client = await stage.player()
    for make in (
        lambda n: peer.subscribe(n, n, "t", f"s{n}"),
        lambda n: peer.producer(n, n, "t"),
    ):
        received = await client.says(*map(make, range(3)))
        errors = [each.body.error for each in received if each.kind == "ERROR"]
        assert errors == [pb.NotAllowedError]


async def test_few_begin_without_a_task_and_none_before_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = await together(stage, 2)
    waiting, event = client.session.requests, events.GetSchema(1, "t", None)
    for _ in range(FREE_MAX):
        assert waiting.may_begin_at_once(event)
        assert not waiting.begin_at_once(lambda: False)
        assert waiting.begin_at_once(lambda: True)
    assert not waiting.may_begin_at_once(event)
    assert other.session.requests.may_begin_at_once(event)
    monkeypatch.setattr(requests, "AT_ONCE_MAX", FREE_MAX)
    assert not other.session.requests.may_begin_at_once(event)
    for error in (None, NotReady("not yet"), *[None] * (FREE_MAX - 2)):
        waiting.answer(event, error, peer.pong)
    received = await client.receive()
    assert kinds(received).count("PONG") == FREE_MAX - 1
    assert len(received) == FREE_MAX
    assert len(waiting) == 0
    assert waiting.may_begin_at_once(event)
    assert not waiting.may_begin_at_once(events.Lookup(1, "t" * requests.FREE_BYTES_MAX))
    client.line.takes_too_little = True
    assert not waiting.may_begin_at_once(event)
    client.feed(*lookups(1))
    client.line.takes_too_little = False
    assert not waiting.may_begin_at_once(event), "one waits"


async def test_lists_are_made_one_at_a_time(stage: Stage) -> None:
    """And none for a client that has not taken those before it."""
    await stage.broker.topic(TopicName.parse("t"))
    client = await stage.player()
    asks = [peer.topics_of_namespace(number, "public/default") for number in range(4)]
    client.line.congested = True
    assert await client.says(*asks) == []
    assert stage.broker.topics, "and others go on"
    other = await stage.player()
    assert kinds(await other.says(asks[0])) == ["GET_TOPICS_OF_NAMESPACE_RESPONSE"]
    client.line.congested = False
    client.session.relieved()
    assert len(await client.receive()) == 4
    assert client.line.packed_bytes > 0, "they count at once"


def test_the_size_of_an_event() -> None:
    small = requests.size_of(events.Lookup(1, "t"))
    assert requests.EVENT_BYTES < small < 2 * requests.EVENT_BYTES
    assert requests.size_of(events.Lookup(1, "t" * 10_000)) - small == 9_999
    user = events.OriginalUser("p", "d" * 10_000, "m")
    assert requests.size_of(events.Lookup(1, "t", original_user=user)) > 10_000
    ranges = events.KeyShared(sticky=True, ranges=tuple((n, n) for n in range(1_000)))
    shared = events.Subscribe(1, 1, "t", "s", events.SubscriptionType.SHARED, key_shared=ranges)
    assert requests.size_of(shared) > 100_000
