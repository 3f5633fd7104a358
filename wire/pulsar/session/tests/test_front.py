"""A connection too many."""

import socket
from contextlib import closing

from magnetar.core.link.front import Door, Refusal
from magnetar.core.testing.broker import running
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
