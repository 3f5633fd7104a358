import pytest
import trio

from magnetar.bookie.client.connection.question import ask_once
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.requests.tests.peers import serving
from magnetar.bookie.rpc.messages import BookieInfo, GetBookieInfo, ReadLac, Status, StatusOnly
from magnetar.core.kernel.errors import StorageFailed
from magnetar.core.testing.memory_disk import MemoryDisk


async def test_a_bookie_is_asked_and_the_connection_ends() -> None:
    async with serving(MemoryDisk()) as served:
        asked = SystemNetwork(), "127.0.0.1", served._port
        found = await ask_once(*asked, GetBookieInfo(True, True))
        usage = served.services.usage()
        assert found == BookieInfo(Status.OK, usage.total_bytes, usage.free_bytes)
        found = await ask_once(*asked, ReadLac(1))
        assert getattr(found, "status", None) is Status.NO_LEDGER
        assert not isinstance(found, StatusOnly)
        with trio.fail_after(20):
            while served.link._connections:
                await trio.lowlevel.checkpoint()


async def test_who_closes_the_connection_has_not_answered() -> None:
    async def close(stream: trio.SocketStream) -> None:
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, close, 0)
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises((StorageFailed, OSError)):
            await ask_once(SystemNetwork(), "127.0.0.1", port, GetBookieInfo(True, True))
        nursery.cancel_scope.cancel()
