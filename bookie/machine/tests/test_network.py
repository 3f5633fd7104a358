"""TCP connections of this system."""

import pytest
import trio
import trio.testing

from magnetar.bookie.machine.network import SystemNetwork


async def test_bytes_go_both_ways_and_the_end_is_told():
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    connection = await SystemNetwork().connect("127.0.0.1", port)
    peer = await listeners[0].accept()
    assert connection.send_at_once(b"hello") == 5
    assert await peer.receive_some(99) == b"hello"
    await peer.send_all(b"you")
    assert await connection.receive(99) == b"you"
    data = bytes(64 << 20)
    sent = connection.send_at_once(data)
    assert 0 < sent < len(data)
    while (more := connection.send_at_once(data)) > 0:
        sent += more
    left = sent
    while left:
        left -= len(await peer.receive_some(1 << 20))
    await connection.wait_sendable()
    await peer.aclose()
    assert await connection.receive(99) == b""
    connection.close()
    connection.close()
    for listener in listeners:
        await listener.aclose()


async def test_closing_ends_who_waits(nursery):
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    connection = await SystemNetwork().connect("127.0.0.1", port)
    peer = await listeners[0].accept()

    async def receive():
        with pytest.raises(OSError, match="closed"):
            await connection.receive(99)

    nursery.start_soon(receive)
    await trio.testing.wait_all_tasks_blocked()
    connection.close()
    await peer.aclose()
    await listeners[0].aclose()
    with pytest.raises(OSError, match=r".+"):
        await SystemNetwork().connect("127.0.0.1", port)
