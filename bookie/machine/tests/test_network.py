"""TCP connections of this system."""

import pytest
import trio
import trio.testing

from magnetar.bookie.machine.network import SystemNetwork
from magnetar.core.kernel.clock import SystemClock
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.loop import Link


def one_into(taken):
    def take(data):
        taken.append(data)
        raise ValueError("enough")

    return take


@pytest.fixture(params=["trio", "a link"])
async def network(request, nursery):
    """Of a process whose connections are received by trio, or by its link."""
    if request.param == "trio":
        return SystemNetwork()
    link = Link(SystemClock(), LinkLimits())
    await nursery.start(link.run)
    return SystemNetwork(link)


async def test_bytes_go_both_ways_and_the_end_is_told(network):
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    connection = await network.connect("127.0.0.1", port)
    peer = await listeners[0].accept()
    assert connection.send_at_once(b"hello") == 5
    assert await peer.receive_some(99) == b"hello"
    await peer.send_all(b"you")
    taken = []
    with pytest.raises(ValueError, match="enough"):
        await connection.deliver(99, one_into(taken))
    assert taken == [b"you"]
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
    await connection.deliver(99, taken.append)
    assert taken == [b"you"]
    connection.close()
    connection.close()
    for listener in listeners:
        await listener.aclose()


async def test_closing_ends_who_waits(network, nursery):
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    connection = await network.connect("127.0.0.1", port)
    peer = await listeners[0].accept()

    async def receive():
        with pytest.raises(OSError, match="closed"):
            await connection.deliver(99, print)

    nursery.start_soon(receive)
    await trio.testing.wait_all_tasks_blocked()
    connection.close()
    await peer.aclose()
    await listeners[0].aclose()
    with pytest.raises(OSError, match=r".+"):
        await network.connect("127.0.0.1", port)


async def test_a_link_that_has_ended_receives_nothing_more_and_says_nothing(nursery):
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    link = Link(SystemClock(), LinkLimits())
    async with trio.open_nursery() as running, trio.open_nursery() as receiving:
        await running.start(link.run)
        one, other = [await SystemNetwork(link).connect("127.0.0.1", port) for _ in range(2)]
        receiving.start_soon(one.deliver, 99, print)
        await trio.testing.wait_all_tasks_blocked()
        running.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        receiving.start_soon(other.deliver, 99, print)
        await trio.testing.wait_all_tasks_blocked()
        receiving.cancel_scope.cancel()
    for each in (one, other):
        each.close()
    await listeners[0].aclose()


@pytest.mark.parametrize(
    ("host", "port"), [("a..b", 3181), ("x" * 64, 3181), ("127.0.0.1", 70_000), ("127.0.0.1", -5)]
)
async def test_what_is_no_address_is_a_bookie_that_cannot_be_reached(network, host, port):
    with pytest.raises(OSError, match=f"{host}:{port} is no address"):
        await network.connect(host, port)


async def test_who_is_cancelled_once_it_is_connected_leaves_nothing_open(monkeypatch):
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    scope, connect = trio.CancelScope(), trio.open_tcp_stream

    async def connect_and_cancel(host, port):
        stream = await connect(host, port)
        scope.cancel()
        return stream

    monkeypatch.setattr(trio, "open_tcp_stream", connect_and_cancel)
    with scope:
        connection = await SystemNetwork().connect("127.0.0.1", port)
    connection.close()
    await listeners[0].aclose()
