"""The link against real sockets on free loopback ports, with a protocol of lines."""

import contextlib
import gc
import math
import socket
import ssl
import struct
import weakref
from itertools import pairwise
from typing import Any, cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from magnetar.core.link import loop
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.linger import LINGER_SECONDS, LINGERING_MAX
from magnetar.core.link.memory import held_writers
from magnetar.core.link.memory.pauses import PAUSE_PUBLISHES, PAUSE_STORAGE
from magnetar.core.link.tests.echo import (
    EchoSession,
    LineWire,
    SizedWire,
    receive_end,
    receive_exactly,
    running,
)
from magnetar.core.link.tests.test_acceptor import no_more_descriptors
from magnetar.core.testing.bench import settled
from magnetar.core.testing.clock import FixedClock


async def test_what_is_sent_in_pieces_comes_back_whole() -> None:
    async with running() as bench, await bench.dial() as stream:
        for piece in (b"he", b"llo\nwor", b"ld\n"):
            await stream.send_all(piece)
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert await receive_exactly(stream, 12) == b"hello\nworld\n"


async def test_a_forbidden_line_gets_a_last_word_and_the_end() -> None:
    async with running() as bench, await bench.dial() as stream:
        await stream.send_all(b"one\n!\ntwo\n")
        assert await receive_end(stream) == b"forbidden\none\n"
        assert bench.events == ["a forbidden line"]


async def test_our_own_mistake_costs_one_connection_only(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as bench, await bench.dial() as bad, await bench.dial() as good:
        await bad.send_all(b"fail\n")
        assert await receive_end(bad) == b""
        await good.send_all(b"still here\n")
        assert await receive_exactly(good, 11) == b"still here\n"
        assert bench.events == ["this server failed"]
    assert "a mistake of ours" in caplog.text


async def test_our_own_mistake_after_a_connection_ends_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as bench, await bench.dial() as good:
        async with await bench.dial() as bad:
            await bad.send_all(b"fail at the end\n")
            assert await receive_exactly(bad, 16) == b"fail at the end\n"
        while not bench.events:
            await trio.lowlevel.checkpoint()
        await good.send_all(b"still here\n")
        assert await receive_exactly(good, 11) == b"still here\n"
    assert "a mistake of ours" in caplog.text


class FragileWire(LineWire):
    """Meets bytes that nobody has thought of."""

    def feed(self, data: bytes) -> int:
        if data.startswith(b"?"):
            raise ValueError("a mistake of ours")
        return super().feed(data)


class SpeechlessWire(LineWire):
    """Cannot encode a line that nobody has thought of."""

    def take_outgoing(self) -> list[bytes]:
        outgoing = super().take_outgoing()
        if b"?\n" in outgoing:
            raise ValueError("a mistake of ours")
        return outgoing


@pytest.mark.parametrize(("wire", "said"), [(FragileWire, b"?"), (SpeechlessWire, b"?\n")])
async def test_a_mistake_in_a_wire_costs_one_connection_only(
    wire: type[LineWire], said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It ended the process, for whoever knew the bytes. Layers translate when they are asked for
    bytes.
    """
    async with (
        running(wire=wire) as bench,
        await bench.dial() as bad,
        await bench.dial() as good,
    ):
        await bad.send_all(said)
        assert await receive_end(bad) == b""
        await good.send_all(b"still here\n")
        assert await receive_exactly(good, 11) == b"still here\n"
        assert bench.events == ["this server failed"]
    assert "a mistake of ours" in caplog.text


async def test_what_is_packed_before_the_end_still_arrives() -> None:
    async with running() as bench, await bench.dial() as stream:
        await stream.send_all(b"x\nend\n")
        assert await receive_end(stream) == b"x\nend\n"


MUCH = b"x" * 16 * 1024 * 1024
"""More than the system keeps of a connection that is not read."""


async def test_the_last_word_reaches_a_peer_that_does_not_stop_talking() -> None:
    async with running() as bench, await bench.dial() as stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, b"end\n" + MUCH)
        assert await receive_end(stream) == b"end\n"
        assert bench.events == ["asked to"], "the session does not wait for that"
        assert bench.link.statistics().connections == 0


async def send_until_closed(stream: trio.SocketStream) -> None:
    with contextlib.suppress(trio.BrokenResourceError):
        while True:
            await stream.send_all(b"and another thing")


async def test_those_who_do_not_close_are_few() -> None:
    """The oldest goes for the next, and one that is gone is no harm."""
    async with running() as bench:
        ended = [await bench.dial() for _ in range(LINGERING_MAX + 1)]
        for stream in ended:
            await stream.send_all(b"end\n")
            assert await receive_end(stream) == b"end\n"
        await send_until_closed(ended[0])
        await ended[1].send_all(MUCH)
        for stream in ended:
            await stream.aclose()


async def test_time_is_up_for_those_who_do_not_close() -> None:
    async with running(LinkLimits(silence_seconds=0.1)) as bench, await bench.dial() as stream:
        bench.link.clock = clock = FixedClock()
        await stream.send_all(b"end\n")
        assert await receive_end(stream) == b"end\n"
        await stream.send_all(MUCH)
        clock.forward(LINGER_SECONDS)
        await send_until_closed(stream)


async def test_a_stop_lets_everybody_hear_what_is_packed() -> None:
    async with running() as bench, await bench.dial() as talker, await bench.dial() as quiet:
        await talker.send_all(b"a\n")
        await quiet.send_all(b"b\n")
        await receive_exactly(talker, 2)
        await receive_exactly(quiet, 2)
        bench.link.stop_reading()
        with pytest.raises(OSError, match="all attempts to connect"):
            await bench.dial()
        sent = trio.Event()

        async def talk() -> None:
            await talker.send_all(b"too late\n" + MUCH)
            sent.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk)
            for connection in bench.connections:
                connection.session.quiet()
            nursery.start_soon(bench.link.stop)
            for stream in (talker, quiet):
                assert await receive_end(stream) == b"ping\n"
            await quiet.aclose()
            await sent.wait()
            await talker.aclose()
        assert bench.events == ["quiet", "quiet", "the server stops", "the server stops"]


async def test_a_stop_of_nobody_is_over_at_once() -> None:
    async with running() as bench:
        before = trio.current_time()
        await bench.link.stop()
        assert trio.current_time() - before < LINGER_SECONDS


async def test_a_stop_waits_for_nobody_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Neither who does not read nor who does not close holds it up."""
    async with running() as bench, await bench.dial(), await bench.dial():
        await trio.testing.wait_all_tasks_blocked()
        bench.connections[0].session.handle(MUCH)
        bench.connections[0].touch()
        before = trio.current_time()
        await bench.link.stop()
        assert trio.current_time() - before == LINGER_SECONDS
        assert bench.events == ["the server stops"], "the deaf one is cut when the loop ends"
        assert bench.connections[0].open


async def test_a_paused_connection_is_not_read_until_resumed() -> None:
    async with running() as bench, await bench.dial() as stream:
        await stream.send_all(b"a\n")
        await receive_exactly(stream, 2)
        (connection,) = bench.connections
        connection.pause(PAUSE_PUBLISHES)
        connection.pause(PAUSE_STORAGE)
        await stream.send_all(b"b\n")
        with trio.move_on_after(0.1) as waited:
            await receive_exactly(stream, 2)
        assert waited.cancelled_caught
        connection.resume(PAUSE_PUBLISHES)
        connection.resume(PAUSE_STORAGE)
        assert await receive_exactly(stream, 2) == b"b\n"


async def test_a_paused_connection_whose_peer_resets_is_dropped_at_once() -> None:
    async with running() as bench, await bench.dial() as stream:
        await stream.send_all(b"hello\n")
        await receive_exactly(stream, 6)
        (connection,) = bench.connections
        connection.pause(1)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.close()
        while connection.open:
            await trio.lowlevel.checkpoint()
        assert len(bench.events) == 1


async def test_what_is_on_its_way_to_storage_holds_writers_until_half_of_it_is_stored() -> None:
    """Storage itself may be idle: what it has not been given yet counts too."""
    limits = LinkLimits(storing_bytes_max=1000)
    async with running(limits) as bench, await bench.dial() as stream:
        await stream.send_all(b"a\n")
        await receive_exactly(stream, 2)
        (connection,) = bench.connections
        connection.will_write()
        connection.storing(1000)
        assert bench.link.writers.holding
        assert not connection.paused, "it has sent nothing"
        await stream.send_all(b"b\n")
        while not connection.paused & PAUSE_STORAGE:
            await trio.lowlevel.checkpoint()
        connection.stored(400)
        bench.link.settle()
        assert bench.link.writers.holding, "more than half is still on its way"
        connection.stored(100)
        bench.link.settle()
        assert not connection.paused & PAUSE_STORAGE
        assert await receive_exactly(stream, 2) == b"b\n"
        bench.backend.congested = True
        connection.storing(10)
        assert not bench.link.writers.holding, "it is looked at when the sweep ends"
        bench.link.settle()
        assert bench.link.writers.holding
        connection.stored(510)
        bench.link.settle()
        assert bench.link.writers.holding, "storage is still behind"


async def test_held_writers_resume_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that ten thousand do not hold up the loop; those that have gone are forgotten at once, as
    storage may be congested for long, while others come and go.
    """
    monkeypatch.setattr(held_writers, "RELEASED_MAX", 2)
    async with running() as bench, contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await bench.dial()) for _ in range(5)]
        for stream in streams:
            await stream.send_all(b"a\n")
            await receive_exactly(stream, 2)
        for connection in bench.connections:
            connection.will_write()
        bench.backend.congested = True
        bench.link.settle()
        for stream in streams:
            await stream.send_all(b"b\n")
        while not all(one.paused & PAUSE_STORAGE for one in bench.connections):
            await trio.lowlevel.checkpoint()
        streams[0].socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        streams[0].socket.close()
        while bench.connections[0].open:
            await trio.lowlevel.checkpoint()
        bench.backend.congested = False
        bench.link.settle()
        held = [one for one in bench.connections if one.paused & PAUSE_STORAGE and one.open]
        assert len(held) == 2, "the one that has gone is not among the first two"
        for stream in streams[1:]:
            assert await receive_exactly(stream, 2) == b"b\n"
        assert not any(one.paused & PAUSE_STORAGE for one in bench.connections[1:])


async def test_those_who_leave_at_once_are_closed_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "CLOSINGS_PER_SWEEP", 2)
    async with running() as bench, contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await bench.dial()) for _ in range(5)]
        for stream in streams:
            await stream.send_all(b"a\n")
            await receive_exactly(stream, 2)
        after_sweeps = [0]
        bench.backend.at_dispatch = lambda: after_sweeps.append(len(bench.events))
        for stream in streams:
            stream.socket.close()
        while len(bench.events) < 5:
            await trio.lowlevel.checkpoint()
        assert bench.events == ["the peer closed"] * 5
        closed = [now - before for before, now in pairwise([*after_sweeps, 5])]
        assert max(closed) == 2


async def test_congested_storage_holds_who_writes_and_nobody_else() -> None:
    async with running() as bench, await bench.dial() as stream, await bench.dial() as late:
        for each in (stream, late):
            await each.send_all(b"a\n")
            await receive_exactly(each, 2)
        bench.connections[0].will_write()
        bench.backend.congested = True
        bench.link.settle()
        await stream.send_all(b"b\n")
        await late.send_all(b"reads on\n")
        assert await receive_exactly(late, 9) == b"reads on\n"
        bench.connections[1].will_write()  # a newcomer among the writers waits with them
        await late.send_all(b"c\n")
        with trio.move_on_after(0.1) as waited:
            await receive_exactly(late, 2)
        assert waited.cancelled_caught
        bench.backend.congested = False
        bench.link.schedule_settle()
        assert await receive_exactly(stream, 2) == b"b\n"
        assert await receive_exactly(late, 2) == b"c\n"


async def test_without_descriptors_the_loop_does_not_spin(mock_clock: MockClock) -> None:
    """The peer waits in the system's queue, and comes in when there is one again."""
    async with running() as bench:
        await settled()
        sock = trio.socket.socket()
        with no_more_descriptors():
            await sock.connect(("127.0.0.1", bench.port))
            before = bench.link.statistics().sweeps
            for _ in range(50):
                await trio.lowlevel.checkpoint()
            assert bench.link.statistics().sweeps <= before + 1
        mock_clock.jump(1)
        async with trio.SocketStream(sock) as stream:
            await stream.send_all(b"a\n")
            assert await receive_exactly(stream, 2) == b"a\n"


async def test_a_silent_peer_is_asked_and_then_closed() -> None:
    async with running(LinkLimits(silence_seconds=0.2)) as bench, await bench.dial() as stream:
        await stream.send_all(b"a\n")
        assert await receive_end(stream) == b"a\nping\n"
        assert bench.events[0] == "quiet"
        assert "silent" in bench.events[1]


async def test_a_session_may_allow_more_silence() -> None:
    limits = LinkLimits(silence_seconds=0.2)
    async with running(limits) as bench, await bench.dial() as patient:
        await patient.send_all(b"a\n")
        await receive_exactly(patient, 2)
        session = cast(EchoSession, bench.connections[0].session)
        session.silence_seconds_allowed = math.inf
        async with await bench.dial() as other:
            await other.send_all(b"b\n")
            while await other.receive_some():
                pass  # pinged, then closed: meanwhile the first has been silent for longer
        await patient.send_all(b"a\n")
        assert await receive_exactly(patient, 2) == b"a\n"
        assert bench.events == ["quiet", bench.events[1]]
        assert "silent" in bench.events[1]


async def test_tls_carries_the_same_protocol(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = tls_contexts
    body = b"z" * 300_000
    async with running(wire=SizedWire, tls=server) as bench:
        stream = trio.SSLStream(await bench.dial(), client, server_hostname="localhost")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, len(body).to_bytes(4) + body)
            assert await receive_exactly(stream, len(body) + 1) == body + b"\n"
        await stream.aclose()


async def test_tls_says_goodbye_behind_the_last_word(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    """Otherwise a client cannot tell the end from a cut: trio's would raise."""
    server, client = tls_contexts
    async with running(tls=server) as bench:
        stream = trio.SSLStream(await bench.dial(), client, server_hostname="localhost")
        await stream.send_all(b"x\nend\n" + MUCH[: 1024 * 1024])
        assert await receive_end(stream) == b"x\nend\n"
        bench.connections[0].session.quiet()  # too late, and no harm
        await stream.aclose()


async def test_an_end_before_the_handshake_is_done(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with running(tls=tls_contexts[0]) as bench, await bench.dial() as stream:
        await trio.testing.wait_all_tasks_blocked(0.01)
        bench.connections[0].end("enough")
        assert await receive_end(stream) == b""
        assert bench.events == ["enough"]


async def test_plain_bytes_on_a_tls_listener_close_it(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with running(tls=tls_contexts[0]) as bench, await bench.dial() as stream:
        await stream.send_all(b"GET / HTTP/1.0\n\n")
        await receive_end(stream)
        assert "TLS" in bench.events[0]


async def test_a_watched_descriptor_brings_work_to_a_sweep() -> None:
    """What it packs is sent when the sweep ends, and once: `settle` in it does nothing."""
    async with running() as bench, await bench.dial() as stream:
        await stream.send_all(b"hello\n")
        assert await receive_exactly(stream, 6) == b"hello\n"
        (connection,) = bench.connections
        ours, theirs = socket.socketpair()
        order: list[str] = []

        def call() -> None:
            ours.recv(1)
            bench.link.begin()
            connection.session.quiet()
            order.append("packed")
            bench.link.settle()
            order.append("called")

        def settle() -> None:
            order.append("settled")  # a write that ends so early may be work for all steps
            bench.link.settle()

        bench.backend.at_dispatch = settle
        bench.link.watch(ours.fileno(), call, lambda: False)
        theirs.send(b"x")
        assert await receive_exactly(stream, 5) == b"ping\n"
        assert order == ["packed", "called", "settled", "settled"]
        ours.close()
        theirs.close()


async def test_nothing_is_kept_of_those_who_came_and_went() -> None:
    """Each was remembered until its silence was due: thousands a second took gigabytes. The garbage
    collector is not needed for it.
    """
    gone: list[weakref.ref[Any]] = []
    gc.disable()
    try:
        async with running() as bench:
            for _ in range(20):
                async with await bench.dial() as stream:
                    await stream.send_all(b"a\n")
                    await receive_exactly(stream, 2)
                    gone.append(weakref.ref(bench.connections[-1].session))
            while bench.link.statistics().connections:
                await trio.lowlevel.checkpoint()
            bench.connections.clear()
            assert len(gone) == 20
            assert [one() for one in gone] == [None] * 20
    finally:
        gc.enable()
