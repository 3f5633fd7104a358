"""When requests are sent, with a network that notes each send."""

import trio
import trio.testing

from magnetar.bookie.client.connection.connections import Connections
from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import Authenticate, Read, ReadEntry, Status


class Noted:
    """Takes everything, and answers nothing."""

    def __init__(self):
        self.sends = []
        self.takes = []
        """What takes the bytes that come on each connection."""

    async def connect(self, host, port):
        await trio.lowlevel.checkpoint()
        return self

    def send_at_once(self, data):
        self.sends.append(bytes(data))
        return len(data)

    async def deliver(self, size_max, take):
        self.takes.append(take)
        await trio.sleep_forever()

    async def wait_sendable(self):
        await trio.lowlevel.checkpoint()

    def close(self):
        pass


class NotedLoop:
    def __init__(self):
        self.said = []

    def begin(self):
        self.said.append("begin")

    def settle(self):
        self.said.append("settle")


async def started(nursery, loop=None):
    network = Noted()
    connections = Connections(network, lambda _: ("h", 1), ConnectionSettings(), loop, nursery)
    nursery.start_soon(connections.run)
    one = connections.to("b:1")
    one.ask(Read(1, 0), print)
    await trio.testing.wait_all_tasks_blocked()
    assert len(network.sends) == 1
    return connections, one, network


async def test_what_is_asked_in_one_turn_is_one_send(nursery):
    _, one, network = await started(nursery)
    for entry_id in range(5):
        one.ask(Read(1, entry_id), print)
    assert len(network.sends) == 1
    await trio.testing.wait_all_tasks_blocked()
    assert len(network.sends) == 2
    assert len(network.sends[1]) == 5 * len(network.sends[0])
    nursery.cancel_scope.cancel()


async def test_a_group_is_sent_at_its_end(nursery):
    connections, one, network = await started(nursery)
    connections.begin_group()
    one.ask(Read(1, 0), print)
    await trio.testing.wait_all_tasks_blocked()
    assert len(network.sends) == 1
    connections.flush_group()
    assert len(network.sends) == 2
    nursery.cancel_scope.cancel()


async def test_what_results_cause_is_sent_behind_them(nursery):
    loop = NotedLoop()
    connections, one, network = await started(nursery, loop)
    loop.said.clear()
    connections.begin()
    connections.begin()
    one.ask(Read(1, 0), print)
    connections.settle()
    assert (loop.said, len(network.sends)) == (["begin"], 1)
    connections.settle()
    assert (loop.said, len(network.sends)) == (["begin", "settle"], 2)
    calls = []
    connections.call_soon(lambda: calls.append(1))
    assert calls == []
    await trio.testing.wait_all_tasks_blocked()
    assert (calls, loop.said[2:]) == ([1], ["begin", "settle"])
    nursery.cancel_scope.cancel()


async def test_what_is_said_to_all_is_said_where_there_is_a_connection(nursery):
    connections, _, network = await started(nursery)
    connections.to("c:1")
    connections.say(Authenticate("token", b"another"))
    await trio.testing.wait_all_tasks_blocked()
    assert len(network.sends) == 2
    assert version2.parse_request(network.sends[1][4:])[1] == Authenticate("token", b"another")
    nursery.cancel_scope.cancel()


async def test_one_connection_for_each_bookie_and_version(nursery):
    connections, one, _ = await started(nursery)
    assert connections.to("b:1") is one
    assert connections.to("b:1", 3) is not one
    assert connections.to("c:1") is not one
    assert connections.failed_at("b:1") is None
    assert connections.failed_at("unknown:1") is None
    nursery.cancel_scope.cancel()


async def test_a_fence_does_not_wait_for_a_plain_read_that_is_never_answered(nursery):
    """Nor does it hear its answer, which may be older than the fence: both have their own."""
    connections, one, network = await started(nursery)
    heard, plain = [], []
    connections.for_fences("b:1").ask(Read(1, 0, bytes(20), fence=True), heard.append)
    one.ask(Read(1, 0), plain.append)
    await trio.testing.wait_all_tasks_blocked()
    assert len(network.sends) == 3
    head = version2.header(version2.READ)
    response = version2.pack_response(head, ReadEntry(Status.NO_ENTRY, 1, 0))
    network.takes[1](len(response).to_bytes(4) + response)
    assert [each.status for each in heard] == [Status.NO_ENTRY]
    assert plain == []
