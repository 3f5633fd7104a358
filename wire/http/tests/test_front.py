"""The front accepts on its own doors, and gives them back."""

import socket

from magnetar.core.link.front import Door
from magnetar.core.testing.broker import running
from magnetar.wire.http.front import HttpFront
from magnetar.wire.http.options import HttpOptions


async def test_a_front_that_never_ran_closes_its_doors() -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    async with running() as broker:
        front = HttpFront(broker, HttpOptions(), doors=[Door("http", sock)])
        assert front.listeners == (), "no connection of it is the link's"
        await front.open()
        front.close()
    assert sock.fileno() == -1
