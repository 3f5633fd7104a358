"""Key_Shared: of each key one holder, in order, whoever comes and goes."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.kernel.errors import HashRangeTaken, SubscriptionBusy
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.trim import RollLimits
from magnetar.core.testing.bench import Bench, bench, settled
from magnetar.core.testing.client import ClientConsumer, attached
from magnetar.core.testing.entries import entry
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.key_shared import TURN_ENTRIES_MAX, KeyedDispatcher
from magnetar.core.topic.subscription.subscription import SubscriptionType

KEYED = SubscriptionType.KEY_SHARED


def dispatcher_of(topic: PersistentTopic) -> KeyedDispatcher:
    dispatcher = topic.subscriptions["s"].dispatcher
    assert isinstance(dispatcher, KeyedDispatcher)
    return dispatcher


def nothing_left(dispatcher: KeyedDispatcher) -> bool:
    out = dispatcher.out
    kept = (out.pending, out.replay, out.delayed, out.deliveries, dispatcher._hashes)
    return [len(each) for each in kept] == [0] * 5


async def test_a_key_stays_with_its_consumer(desk: Bench) -> None:
    topic = await desk.topic()
    clients = [await attached(topic, KEYED, name=name) for name in "abc"]
    keys = [b"%d" % (i % 20) for i in range(200)]
    places = await desk.published(topic, *[entry(key=key) for key in keys])
    await desk.dispatch()
    for key in set(keys):
        of_key = [place for place, each in zip(places, keys, strict=True) if each == key]
        holders = [c for c in clients if set(c.got) & set(of_key)]
        assert len(holders) == 1
        assert [p for p in holders[0].got if p in of_key] == of_key
    assert all(client.got for client in clients)


async def test_a_consumer_without_permits_holds_up_its_own_keys_only(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, KEYED, name="a", permits=1)
    b = await attached(topic, KEYED, name="b")
    places = await desk.published(topic, *[entry(key=b"%d" % (i % 10)) for i in range(40)])
    await desk.dispatch()
    assert len(a.got) == 1
    a.flow(100)
    await desk.dispatch()
    assert sorted(a.got + b.got) == places
    assert a.got == sorted(a.got)
    a.ack(*a.got)
    b.ack(*b.got)
    assert nothing_left(dispatcher_of(topic))


async def test_a_key_changes_hands_when_its_holder_holds_nothing_of_it(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, KEYED, name="a")
    keys = [b"%d" % i for i in range(20)]
    first = await desk.published(topic, *[entry(key=key) for key in keys])
    await desk.dispatch()
    assert a.take() == first
    b = await attached(topic, KEYED, name="b")
    second = await desk.published(topic, *[entry(key=key) for key in keys])
    await desk.dispatch()
    assert b.take() == [], "all of its keys are out with the other"
    kept = set(a.take())
    moved = [place for place in second if place not in kept]
    assert moved
    a.ack(*first)
    await desk.dispatch()
    assert b.take() == moved


async def test_what_comes_back_goes_before_what_is_new_of_its_key(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, KEYED, name="a", permits=2)
    places = await desk.published(topic, *[entry(key=b"k")] * 4)
    await desk.dispatch()
    a.take()
    a.nack(places[0])
    a.flow(9)
    await desk.dispatch()
    assert a.take() == [places[0], places[2], places[3]]
    assert a.redelivered == {places[0]: 1}


async def test_acknowledged_while_it_is_held_back(desk: Bench) -> None:
    """Once the hashes of such entries were kept for ever."""
    topic = await desk.topic()
    a = await attached(topic, KEYED, name="a", permits=1)
    places = await desk.published(topic, *[entry(key=b"k")] * 3)
    await desk.dispatch()
    a.ack(*places)
    await desk.dispatch()
    assert nothing_left(dispatcher_of(topic))


async def test_no_more_is_held_back_than_the_limit(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, KEYED, name="a", permits=1)
    dispatcher = dispatcher_of(topic)
    dispatcher.set_limits(type(dispatcher.out.limits)(replay_max=5))
    places = await desk.published(topic, *[entry(key=b"k")] * 30)
    await desk.dispatch()
    assert len(dispatcher.out.replay) == 5
    for _ in places:
        a.ack(*a.got)
        a.flow(1)
        await desk.dispatch()
        assert len(dispatcher.out.replay) <= 5
    assert a.got == places


async def test_ranges_that_consumers_name_themselves(desk: Bench) -> None:
    topic = await desk.topic()
    a = await attached(topic, KEYED, name="a", sticky=True, hash_ranges=((0, 30_000),))
    with pytest.raises(HashRangeTaken):
        await attached(topic, KEYED, name="x", sticky=True, hash_ranges=((30_000, 40_000),))
    with pytest.raises(SubscriptionBusy):
        await attached(topic, KEYED, name="y")
    places = await desk.published(topic, *[entry(key=b"%d" % i) for i in range(50)])
    await desk.dispatch()
    assert 0 < len(a.got) < 50
    b = await attached(topic, KEYED, name="b", sticky=True, hash_ranges=((30_001, 65_535),))
    await desk.dispatch()
    assert sorted(a.got + b.got) == places


async def test_a_first_consumer_that_is_refused_leaves_no_trace(desk: Bench) -> None:
    topic = await desk.topic()
    with pytest.raises(HashRangeTaken):
        await attached(topic, KEYED, sticky=True)
    a = await attached(topic, KEYED)
    places = await desk.published(topic, b"x")
    await desk.dispatch()
    assert a.got == places


async def test_acknowledged_entries_hold_up_nobody(desk: Bench) -> None:
    """Those between a few that are missing take permits of a plan, and then none."""
    topic = await desk.topic()
    a = await attached(topic, KEYED, permits=20)
    places = await desk.published(topic, *[entry(key=b"%d" % i) for i in range(20)])
    await desk.dispatch()
    missing = [places[0], places[9], places[15]]
    a.ack(*[place for place in places if place not in missing])
    topic.subscriptions["s"].detach(a.consumer)
    b = await attached(topic, KEYED, permits=3)
    await desk.dispatch()
    assert b.got == missing


async def test_entries_that_were_trimmed_are_not_waited_for(desk: Bench) -> None:
    """A reader's held-back entries may go, as readers hold no ledger."""
    topic = await desk.topic()
    a = await attached(topic, KEYED, permits=1)
    gone = await desk.published(topic, *[entry(key=b"k")] * 10)
    places = await desk.published(topic, *[entry(key=b"k")] * 5)
    await desk.dispatch()
    a.take()
    await topic.ledger.trim([gone[0][0]])
    a.flow(100)
    await desk.dispatch()
    assert a.take() == places


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["come", "leave", "flow", "flow", "ack", "ack", "nack", "publish"]),
        st.integers(0, 7),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_per_key_order_and_one_holder_whatever_happens(steps: list[tuple[str, int]]) -> None:
    trio.run(_play, steps)


async def _play(steps: list[tuple[str, int]]) -> None:
    async with bench() as desk:
        topic = await desk.topic()
        clients: list[ClientConsumer] = [await attached(topic, KEYED, name="first", permits=3)]
        keys: dict[Position, int] = {}
        holders: dict[Position, ClientConsumer] = {}
        acked: set[Position] = set()

        def see() -> None:
            for client in clients:
                last: dict[int, Position] = {}
                for position in client.take():
                    key = keys[position]
                    earlier = [p for p in keys if keys[p] == key and p < position]
                    # everything before it of its key is acknowledged, or out with the same one
                    for known in earlier:
                        assert known in acked or holders.get(known) is client, (known, position)
                    assert last.get(key, position) <= position
                    last[key] = position
                    holders[position] = client

        for number, (what, which) in enumerate(steps):
            client = clients[which % len(clients)] if clients else None
            mine = sorted(p for p, holder in holders.items() if holder is client)
            if what == "come":
                clients.append(await attached(topic, KEYED, name=f"c{number}", permits=which))
            elif what == "publish":
                places = await desk.published(topic, *[entry(key=b"%d" % k) for k in range(4)])
                keys.update(zip(places, range(4), strict=True))
            elif client is None:
                continue
            elif what == "leave":
                clients.remove(client)
                topic.detach(client.consumer)
                for position in mine:
                    del holders[position]
            elif what == "flow":
                client.flow(which + 1)
            elif what == "ack" and mine:
                position = mine[which % len(mine)]
                client.ack(position)
                acked.add(position)
                del holders[position]
            elif what == "nack":
                client.nack()
                for position in mine:
                    del holders[position]
            await desk.dispatch()
            see()
        await _drain(desk, topic, clients, see, holders, acked)
        assert acked == set(keys)


async def _drain(desk, topic, clients, see, holders, acked):  # type: ignore[no-untyped-def]
    """Nothing is stuck: whoever takes and acknowledges everything gets everything."""
    if not clients:
        clients.append(await attached(topic, KEYED, name="last", permits=0))
    while topic.subscriptions["s"].cursor.backlog:
        before = len(acked)
        for client in clients:
            client.flow(100)
        await desk.dispatch()
        see()
        for position, holder in list(holders.items()):
            holder.ack(position)
            acked.add(position)
            del holders[position]
        assert len(acked) > before, "stuck"


def opcodes(call: Callable[[], object]) -> int:
    """How much work a call is: bytecodes run, which is the same on every machine, every time."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


async def work_beside(held: int) -> tuple[int, int, int]:
    """With so many entries held back for one consumer: the work of a dispatch that delivers ten to
    another, of one that finds nothing to do, and of one that delivers ten of those held back.
    """
    async with bench(RollLimits()) as desk:
        topic = await desk.topic()
        slow = await attached(topic, KEYED, name="slow", permits=0)
        quick = await attached(topic, KEYED, name="quick")
        keys = dispatcher_of(topic).keys
        of: dict[ClientConsumer, list[bytes]] = {slow: [], quick: []}
        for number in range(held):
            key = b"%d" % number
            owner = keys.owner(keys.hash_of(key))
            of[slow if owner is slow.consumer else quick].append(key)
        subscription = topic.subscriptions["s"]
        await desk.published(topic, *[entry(key=of[slow][i % 100]) for i in range(held)])
        await desk.dispatch()
        assert len(dispatcher_of(topic).out.replay) == held
        await desk.published(topic, *[entry(key=of[quick][i]) for i in range(10)])
        delivering = opcodes(subscription.dispatch)
        assert len(quick.take()) == 10
        idle = opcodes(subscription.dispatch)
        slow.consumer.grant(10, 0)
        catching_up = opcodes(subscription.dispatch)
        assert len(slow.take()) == 10
        return delivering, idle, catching_up


async def test_a_dispatch_costs_nothing_for_what_is_held_back() -> None:
    few, many = await work_beside(400), await work_beside(6_400)
    for name, of_few, of_many in zip(("new", "nothing", "held"), few, many, strict=True):
        # heaps grow by four levels while their contents grow sixteenfold
        assert of_many < of_few * 1.25, f"{name}: {of_few} grew to {of_many}"


async def test_a_turn_has_an_end() -> None:
    """Where no two keys are the same an entry takes 20 us, and others wait."""
    async with bench(RollLimits()) as desk:
        topic = await desk.topic()
        client = await attached(topic, KEYED)
        payloads = [entry(key=b"%d" % number) for number in range(900)]
        topic.publish(payloads, None, lambda _result: None)
        await settled()
        subscription, turns = topic.subscriptions["s"], []
        while subscription.dispatch():
            turns.append(len(client.take()))
        assert turns == [TURN_ENTRIES_MAX] * 2
        assert len(client.take()) == 900 - 2 * TURN_ENTRIES_MAX
