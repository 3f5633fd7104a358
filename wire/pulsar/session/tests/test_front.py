"""A connection too many, and transactions that outlive their setting."""

from __future__ import annotations

import socket
from contextlib import closing

import trio
from trio.testing import MockClock

from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.link.front import Door, Refusal
from magnetar.core.testing.broker import Stores, running
from magnetar.core.testing.entries import part
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.wire.pulsar.session.front import PulsarFront
from magnetar.wire.pulsar.session.options import PulsarOptions


async def test_a_connection_too_many_is_told_so() -> None:
    with closing(socket.socket()) as sock:
        async with running() as broker:
            front = PulsarFront(broker, PulsarOptions(), [Door("pulsar", sock)])
            (listener,) = front.listeners
            assert (listener.door.name, listener.refusal) == ("pulsar", Refusal.EXPLAINED)
            front.close()
            assert sock.fileno() == -1


async def test_open_transactions_end_where_new_ones_are_off(autojump_clock: MockClock) -> None:
    """Else their topics would hold readers back until transactions are on again."""
    stores, name = Stores(), TopicName.parse("t")
    async with running(stores) as broker:
        transactions = PulsarFront(broker, PulsarOptions()).services.coordinated
        topic = await broker.topic(name)
        assert isinstance(topic, PersistentTopic)
        key = await transactions.begin(0, 5_000, "")
        await transactions.add_topics(key, [name.full], lambda _owner: True)
        stored = Completion[Position]()
        topic.publish([part(key, b"x")], None, topic.in_transaction(key, stored.done))
        await stored.result()
    async with running(stores) as broker, trio.open_nursery() as nursery:
        front = PulsarFront(broker, PulsarOptions(transactions=False))
        assert front.services.transactions is None
        await front.open()
        topic = await broker.topic(name)
        assert isinstance(topic, PersistentTopic)
        assert list(topic.ledger.transactions.open) == [key]
        nursery.start_soon(front.run)
        stores.clock.forward(6)
        await trio.sleep(3)
        assert not topic.ledger.transactions.open
        nursery.cancel_scope.cancel()
