"""One connection, to a bookie that the test plays."""

from contextlib import asynccontextmanager, suppress

import pytest
import trio
import trio.testing

from magnetar.bookie.client.connection.connections import Connections
from magnetar.bookie.client.connection.settings import ConnectionSettings
from magnetar.bookie.format import digests, entries
from magnetar.bookie.machine.network import SystemNetwork
from magnetar.bookie.rpc import version2, version3
from magnetar.bookie.rpc.client_wire import pack_adds
from magnetar.bookie.rpc.messages import (
    Add,
    Added,
    BatchRead,
    BookieInfo,
    GetBookieInfo,
    Read,
    ReadEntries,
    ReadEntry,
    Status,
)
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import Overloaded, StorageFailed

KEY = digests.master_key(b"")


class Peer:
    """The bookie's end of a connection."""

    def __init__(self, stream):
        self.stream = stream
        self._buffer = b""

    async def frame(self):
        while len(self._buffer) < 4 or len(self._buffer) < 4 + int.from_bytes(self._buffer[:4]):
            received = await self.stream.receive_some()
            if not received:
                raise EOFError
            self._buffer += received
        end = 4 + int.from_bytes(self._buffer[:4])
        frame, self._buffer = self._buffer[4:end], self._buffer[end:]
        return frame

    async def hear(self):
        return version2.parse_request(await self.frame())

    async def say(self, body):
        await self.stream.send_all(len(body).to_bytes(4) + body)


class Scene:
    """A connection, and the peers that it has made."""

    def __init__(self, connections, peers, version):
        self.connections = connections
        self.connection = connections.to("b:1", version)
        self._peers = peers

    async def peer(self):
        with trio.fail_after(5):
            return Peer(await self._peers.receive())

    def add(self, first, *payloads):
        run = entries.seal(1, first, -1, 0, payloads)
        completion = Completion()
        self.connection.add(run, pack_adds(run, KEY), completion.done)
        return completion

    def ask(self, request):
        completion = Completion()
        self.connection.ask(request, completion.done)
        return completion


@asynccontextmanager
async def scene(version=2, **limits):
    settings = ConnectionSettings(expire_seconds=0.01, **limits)
    accepted, peers = trio.open_memory_channel(10)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    streams = []
    async with trio.open_nursery() as nursery:

        async def accept():
            with suppress(trio.ClosedResourceError):
                while True:
                    streams.append(await listeners[0].accept())
                    await accepted.send(streams[-1])

        nursery.start_soon(accept)
        connections = Connections(
            SystemNetwork(), lambda _: ("127.0.0.1", port), settings, None, nursery
        )
        nursery.start_soon(connections.run)
        made = Scene(connections, peers, version)
        made.listener = listeners[0]
        with trio.fail_after(20):
            yield made
        nursery.cancel_scope.cancel()
    for each in (*streams, *listeners):
        await each.aclose()


async def test_requests_are_pipelined_and_matched_in_any_order():
    async with scene() as one:
        first, second = one.add(0, b"a", b"b"), one.add(2, b"c")
        read = one.ask(Read(1, 0))
        batch = one.ask(BatchRead(1, 0, 0, 9, 999))
        peer = await one.peer()
        heard = [await peer.hear() for _ in range(5)]
        assert [(each.ledger_id, each.entry_id) for _, each in heard[:3]] == [
            (1, 0),
            (1, 1),
            (1, 2),
        ]
        assert all(isinstance(each, Add) and each.master_key == KEY for _, each in heard[:3])
        head, request = heard[4]
        assert (request.count_max, request.bytes_max) == (9, 999)
        entry = heard[0][1].entry
        answer = ReadEntries(Status.OK, 1, 0, request.request_id, (entry,))
        await peer.say(version2.pack_response(head, answer))
        await peer.say(version2.pack_response(heard[3][0], ReadEntry(Status.OK, 1, 0, entry)))
        for head, add in (heard[2], heard[1], heard[0]):
            answer = Added(Status.OK, 1, add.entry_id)
            await peer.say(version2.pack_response(head, answer))
        assert (await read.result()).entry == entry
        assert (await batch.result()).records == (len(entry).to_bytes(4) + entry,)
        assert await second.result() is Status.OK
        assert await first.result() is Status.OK


async def test_version_3_matches_by_transaction():
    async with scene(3) as one:
        answers = [one.ask(GetBookieInfo(True, True)) for _ in range(2)]
        peer = await one.peer()
        heads = [version3.parse_request(await peer.frame())[0] for _ in range(2)]
        for number, head in reversed(list(enumerate(heads))):
            await peer.say(version3.pack_response(head, BookieInfo(Status.OK, number, 0)))
        assert [(await each.result()).total for each in answers] == [0, 1]


async def test_when_it_ends_all_that_is_asked_ends_and_the_next_request_connects_again():
    async with scene(retry_seconds_min=0.0) as one:
        add, read = one.add(0, b"a"), one.ask(Read(1, 0))
        peer = await one.peer()
        await peer.frame()
        await peer.stream.aclose()
        for asked in (add, read):
            with pytest.raises(StorageFailed, match="bookie b:1"):
                await asked.result()
        assert one.connection.failed_at is not None
        add = one.add(0, b"a")
        peer = await one.peer()
        head, _ = await peer.hear()
        await peer.say(version2.pack_response(head, Added(Status.OK, 1, 0)))
        assert await add.result() is Status.OK
        assert one.connection.failed_at is None


async def test_after_a_failure_requests_fail_at_once_for_a_while():
    async with scene(retry_seconds_min=60.0, retry_seconds_max=60.0) as one:
        await one.listener.aclose()
        with pytest.raises(StorageFailed):
            await one.add(0, b"a").result()
        with pytest.raises(StorageFailed, match="could not be reached a moment ago"):
            await one.ask(Read(1, 0)).result()


async def test_bytes_that_make_no_sense_end_it():
    async with scene() as one:
        add = one.add(0, b"a")
        peer = await one.peer()
        await peer.stream.send_all(b"\xff" * 100)
        with pytest.raises(StorageFailed, match="a frame of 4294967295 bytes"):
            await add.result()


async def test_a_bookie_that_is_silent_is_given_up():
    async with scene(answer_seconds=0.5) as one:
        first = one.ask(Read(1, 0))
        peer = await one.peer()
        await peer.frame()
        head = version2.header(version2.READ)
        await peer.say(version2.pack_response(head, ReadEntry(Status.NO_ENTRY, 1, 0)))
        await first.result()
        begin = trio.current_time()
        add = one.add(0, b"a")
        with pytest.raises(StorageFailed, match="has not answered in time"):
            await add.result()
        assert trio.current_time() - begin >= 0.4
        await peer.frame()
        with pytest.raises(EOFError):
            await peer.frame()


async def test_a_bookie_that_answers_others_is_not_given_up():
    async with scene(answer_seconds=0.5) as one:
        add = one.add(0, b"a")
        peer = await one.peer()
        await peer.hear()
        late = False
        while not late:
            read = one.ask(Read(1, 0))
            head, _ = await peer.hear()
            await peer.say(version2.pack_response(head, ReadEntry(Status.NO_ENTRY, 1, 0)))
            await read.result()
            with trio.move_on_after(0.01):
                with pytest.raises(StorageFailed, match="has not answered in time"):
                    await add.result()
                late = True
        read = one.ask(Read(1, 0))
        head, _ = await peer.hear()
        await peer.say(version2.pack_response(head, ReadEntry(Status.NO_ENTRY, 1, 0)))
        assert (await read.result()).status is Status.NO_ENTRY


class Tube:
    """A network with one connection, which takes so many bytes and no more, and brings what the
    test says.
    """

    def __init__(self, room=1 << 30):
        self.room = room
        self.sent = b""
        self.closed = False

    async def connect(self, host, port):
        await trio.lowlevel.checkpoint()
        return self

    def send_at_once(self, data):
        taken = bytes(data[: self.room])
        self.sent += taken
        self.room -= len(taken)
        return len(taken)

    async def wait_sendable(self):
        await trio.sleep_forever()

    async def deliver(self, size_max, take):
        self.take = take
        await trio.sleep_forever()

    def close(self):
        self.closed = True

    def added(self, entry_id):
        body = version2.pack_response(version2.header(version2.ADD), Added(Status.OK, 1, entry_id))
        self.take(len(body).to_bytes(4) + body)


@asynccontextmanager
async def tube_scene(tube, **limits):
    """In virtual time, to which no other work on the machine matters."""
    async with trio.open_nursery() as nursery:
        settings = ConnectionSettings(**limits)
        connections = Connections(tube, lambda _: ("h", 1), settings, None, nursery)
        nursery.start_soon(connections.run)
        yield Scene(connections, None, 2)
        nursery.cancel_scope.cancel()


async def test_a_bookie_that_takes_too_little_is_given_up(autojump_clock):
    """It answers now and then, so that it is not silent; but what waits for it must not pile up."""
    tube = Tube(room=3_500_000)
    async with tube_scene(tube) as one:
        adds = [one.add(i, bytes(1_000_000)) for i in range(30)]
        await trio.sleep(3)
        tube.added(0)
        assert await adds[0].result() is Status.OK
        for add in adds[1:]:
            with pytest.raises(StorageFailed):
                await add.result()
        assert 5 <= trio.current_time() < 6
        await trio.testing.wait_all_tasks_blocked()
        assert tube.closed
        assert len(tube.sent) == 3_500_000


async def test_too_many_bytes_to_one_bookie_are_refused(autojump_clock):
    tube = Tube()
    async with tube_scene(tube, adds_bytes_max=1000) as one:
        waits = one.add(0, b"a" * 900)
        with pytest.raises(Overloaded, match="bookie b:1 does not keep up"):
            await one.add(1, b"a" * 900).result()
        await trio.testing.wait_all_tasks_blocked()
        tube.added(0)
        assert await waits.result() is Status.OK
        third = one.add(2, b"b" * 900)
        await trio.testing.wait_all_tasks_blocked()
        assert tube.sent.endswith(b"b" * 900)
        tube.added(2)
        assert await third.result() is Status.OK


async def test_what_the_system_does_not_take_at_once_is_sent_later():
    async with scene() as one:
        payload = bytes(range(256)) * 4096
        adds = [one.add(i, payload) for i in range(16)]
        peer = await one.peer()
        await trio.testing.wait_all_tasks_blocked()
        for i in range(16):
            head, add = await peer.hear()
            assert (add.entry_id, add.entry[36:]) == (i, payload)
            await peer.say(version2.pack_response(head, Added(Status.OK, 1, i)))
        for add in adds:
            assert await add.result() is Status.OK


async def test_faults_of_a_bookie_are_counted():
    """Errors of its own and silence are, a denial is none."""
    async with scene(answer_seconds=0.2, error_threshold=4) as one:
        asked = [one.ask(Read(1, i)) for i in range(4)]
        peer = await one.peer()
        for i, status in enumerate((Status.NO_ENTRY, Status.IO_ERROR, Status.IO_ERROR)):
            assert isinstance(await peer.hear(), tuple)
            head = version2.header(version2.READ)
            await peer.say(version2.pack_response(head, ReadEntry(status, 1, i)))
            await asked[i].result()
        assert not one.connections.is_in_quarantine("b:1")
        with pytest.raises(StorageFailed):
            await asked[3].result()
        with pytest.raises(StorageFailed):
            await one.ask(Read(1, 9)).result()
        assert one.connections.is_in_quarantine("b:1")
