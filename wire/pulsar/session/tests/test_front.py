"""What connections share, and what happens to one too many."""

import socket
from contextlib import closing

from magnetar.core.link.front import Door, Refusal
from magnetar.core.testing.broker import running
from magnetar.wire.pulsar.session.front import PulsarFront, PulsarOptions
from magnetar.wire.pulsar.session.tests.conftest import Stage


async def test_connections_share_their_limits(stage: Stage) -> None:
    one, other = stage.stranger().session, stage.stranger().session
    assert one.lookups is other.lookups
    assert one.requests is not other.requests


async def test_a_connection_too_many_is_told_so() -> None:
    with closing(socket.socket()) as sock:
        async with running() as broker:
            front = PulsarFront(broker, PulsarOptions(), [Door("pulsar", sock)])
            (listener,) = front.listeners
            assert (listener.door.name, listener.refusal) == ("pulsar", Refusal.EXPLAINED)
            front.close()
            assert sock.fileno() == -1
