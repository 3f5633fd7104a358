"""Streams lose no bytes but at their end; partitions hold them; who is gone is heard of, or not."""

import random

import pytest
import trio

from magnetar.core.testing.simulation.timeline import Timeline
from magnetar.core.testing.simulation.virtual_network import (
    WINDOW_BYTES,
    HostNetwork,
    VirtualNetwork,
    Weather,
)


class Pair:
    """A client and a server that notes what it gets."""

    def __init__(self, nursery):
        self.timeline = Timeline()
        nursery.start_soon(self.timeline.run)
        self.network = VirtualNetwork(self.timeline, random.Random(1))
        self.host, self.server = self.timeline.host(), self.timeline.host()
        self.client = HostNetwork(self.network, "client", self.host)
        self.got, self.ends = [], []
        self.listen()

    def listen(self):
        self.network.listen("server", self.server, self._accept)

    def _accept(self, end):
        self.ends.append(end)
        end.received = self.got.append

    async def connect(self):
        return await self.client.connect("server", 1)


@pytest.fixture
def pair(nursery, autojump_clock):
    return Pair(nursery)


async def test_what_lags_comes_late_and_in_order(pair):
    end = await pair.connect()
    pair.network.lags["client"] = 3.0
    end.send_at_once(b"late")
    pair.network.lags.clear()
    end.send_at_once(b"r")
    await trio.sleep(2.9)
    assert not pair.got
    pair.ends[0].send_all(b"answers do not lag")
    await trio.sleep(0.05)
    assert await end.receive(100)
    await trio.sleep(1.0)
    assert b"".join(pair.got) == b"later"


async def test_bytes_arrive_in_order_in_any_pieces(pair):
    end = await pair.connect()
    sent = [bytes([i]) * 50 for i in range(20)]
    for piece in sent:
        assert end.send_at_once(piece) == 50
    await trio.sleep(1.0)
    assert b"".join(pair.got) == b"".join(sent)
    assert len(pair.got) > len(sent), "in other pieces"
    pair.ends[0].send_all(b"answer")
    found = b""
    while len(found) < 6:
        found += await end.receive(4)
    assert found == b"answer"
    end.close()
    await trio.sleep(1.0)
    assert pair.got[-1] == b""
    with pytest.raises(OSError, match="closed"):
        end.send_at_once(b"x")


async def test_a_window_is_on_its_way_at_most(pair):
    end = await pair.connect()
    assert end.send_at_once(bytes(WINDOW_BYTES + 1)) == WINDOW_BYTES
    assert end.send_at_once(b"x") == 0
    await end.wait_sendable()
    assert end.send_at_once(b"x") == 1


async def test_a_partition_holds_what_is_sent_in_its_direction(pair):
    end = await pair.connect()
    pair.network.partition("client", "server")
    end.send_at_once(b"abc")
    pair.ends[0].send_all(b"passes")
    assert await end.receive(6)
    await trio.sleep(5.0)
    assert pair.got == []
    with trio.move_on_after(5.0) as scope:
        await pair.connect()
    assert scope.cancelled_caught
    assert pair.network.partitions == [("client", "server")]
    pair.network.heal("client", "server")
    assert b"".join(pair.got) == b"abc"
    await pair.connect()


async def test_a_reset_ends_both_sides(pair):
    end = await pair.connect()
    pair.network.reset(end)
    with pytest.raises(ConnectionResetError):
        await end.receive(1)
    await trio.sleep(1.0)
    assert pair.got == [b""]
    assert not pair.network.ends


async def test_who_is_gone_is_heard_of(pair):
    end = await pair.connect()
    pair.network.cut("server")
    with pytest.raises(ConnectionResetError):
        await end.receive(1)
    with pytest.raises(ConnectionRefusedError):
        await pair.connect()
    pair.listen()
    await pair.connect()


async def test_who_is_gone_silently_is_not(pair):
    end = await pair.connect()
    pair.network.cut("server", silent=True)
    end.send_at_once(b"into the void")
    for call in (lambda: end.receive(1), pair.connect):
        with trio.move_on_after(5.0) as scope:
            await call()
        assert scope.cancelled_caught
    pair.network.revive("server")
    with pytest.raises(ConnectionResetError):
        await end.receive(1)
    assert pair.got == []


async def test_a_frozen_host_takes_nothing(pair):
    end = await pair.connect()
    pair.server.freeze()
    end.send_at_once(b"abc")
    await trio.sleep(1.0)
    assert pair.got == []
    pair.server.thaw()
    assert b"".join(pair.got) == b"abc"


async def test_the_weather_makes_it_slow(pair):
    pair.network.weather = Weather(1.0)
    begun = trio.current_time()
    await pair.connect()
    assert trio.current_time() - begun > 0.1
    assert max(VirtualNetwork(pair.timeline, random.Random(2)).latency() for _ in range(9)) < 0.1
    pair.network.weather = Weather(0.001, spike=1.0)
    assert sum(pair.network.latency() for _ in range(100)) > 1.0


async def test_a_client_may_be_refused(pair):
    pair.network.refuse("client", "server")
    with pytest.raises(ConnectionRefusedError):
        await pair.connect()
    pair.network.allow("client", "server")
    await pair.connect()
