"""Frames that come in parts: small ones, large ones, and those for which there is no room."""

import ssl
from contextlib import AsyncExitStack

import trio
import trio.testing

from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.tests.echo import SizedWire, receive_end, receive_exactly, running

KIB = 1024
TIGHT = LinkLimits(partial_bytes_max=1024 * KIB, stalled_seconds=0.3, silence_seconds=2.0)
"""Room for three frames of 300 KiB of peers that nobody knows."""


async def test_a_large_frame_is_gathered_in_one_buffer() -> None:
    body = bytes(range(256)) * 8192  # 2 MiB
    async with running(wire=SizedWire) as bench, await bench.dial() as stream:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                stream.send_all, len(body).to_bytes(4) + body + (3).to_bytes(4) + b"end"
            )
            assert await receive_exactly(stream, len(body) + 1) == body + b"\n"
        assert await receive_end(stream) == b"end\n"


async def test_large_frames_behind_each_other_have_their_room_at_once() -> None:
    """The rest of the second is received with its beginning; what is small ends that."""
    body = bytes(range(256)) * 2048  # 512 KiB
    frame = len(body).to_bytes(4) + body
    async with running(wire=SizedWire) as bench, await bench.dial() as stream:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, frame * 3)
            assert await receive_exactly(stream, 3 * len(body) + 3) == (body + b"\n") * 3
        (connection,) = bench.connections
        assert connection.partial.large_bytes == len(frame)
        await stream.send_all(frame[:5000])
        await trio.testing.wait_all_tasks_blocked()
        assert connection.partial.large.room == len(frame)
        assert connection.partial.large.filled == 5000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, frame[5000:] + (3).to_bytes(4) + b"end")
            assert await receive_exactly(stream, len(body) + 5) == body + b"\nend\n"
        assert connection.partial.large_bytes == 0


async def test_a_body_is_received_by_itself() -> None:
    class BodyWire(SizedWire):
        """Four bytes of words, and four left free for others."""

        def body_in(self, begin: bytes) -> tuple[int, int]:
            self.words = begin[:4]
            self.frame_bytes_wanted -= 4
            return 4, 4

        def feed_large(self, frame: LargeFrame) -> None:
            assert frame.before == 4
            self.frame_bytes_wanted = 0
            assert int.from_bytes(self.words) == len(frame.view())
            self.events.append(frame.behind(b"body"))

    body = bytes(range(256)) * 4096
    expected = (b"body" + body + b"\n") * 2
    async with (
        running(wire=BodyWire) as bench,
        await bench.dial() as stream,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(stream.send_all, (len(body).to_bytes(4) + body) * 2)
        assert await receive_exactly(stream, len(expected)) == expected


async def test_a_large_frame_that_does_not_come_takes_no_room() -> None:
    async with running(wire=SizedWire) as bench, await bench.dial() as stream:
        await stream.send_all((2**21).to_bytes(4) + bytes(5000))
        async with await bench.dial() as other:  # served later, so the first has been read
            await other.send_all((3).to_bytes(4) + b"end")
            assert await receive_end(other) == b"end\n"
        (connection,) = [each for each in bench.connections if each.partial.large is not None]
        assert connection.partial.large.room <= 4 * 5004


def frame(size: int) -> bytes:
    return size.to_bytes(4) + bytes(size)


async def test_frames_wait_for_each_other_and_all_come_through() -> None:
    async with running(TIGHT, wire=SizedWire) as bench, trio.open_nursery() as nursery:
        for _ in range(12):
            nursery.start_soon(echoed, await bench.dial(), 300 * KIB)
    assert bench.link.incoming.partial == 0
    assert not bench.link.incoming.short


async def test_one_larger_than_all_the_room_comes_through() -> None:
    async with running(TIGHT, wire=SizedWire) as bench:
        await echoed(await bench.dial(), 3 * 1024 * KIB)
    assert bench.link.incoming.partial == 0


async def echoed(stream: trio.SocketStream, size: int) -> None:
    async with stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, frame(size))
        assert await receive_exactly(stream, size + 1) == bytes(size) + b"\n"


async def test_who_stops_in_the_middle_does_not_keep_others_from_coming_through() -> None:
    async with running(TIGHT, wire=SizedWire) as bench, AsyncExitStack() as stack:
        stalled = [await stack.enter_async_context(await bench.dial()) for _ in range(8)]
        async with trio.open_nursery() as nursery:
            for stream in stalled:
                nursery.start_soon(sent_in_part, stream, frame(300 * KIB)[: 250 * KIB])
            await echoed(await bench.dial(), 300 * KIB)
        assert any("while others wait" in reason for reason in bench.events)
        assert all(one.partial.held <= TIGHT.partial_bytes_max for one in bench.connections)


async def sent_in_part(stream: trio.SocketStream, part: bytes) -> None:
    """As much as is taken before it is closed."""
    with trio.move_on_after(5):
        try:
            await stream.send_all(part)
            await receive_end(stream)
        except trio.BrokenResourceError:
            return


async def test_what_is_decrypted_counts_too(
    tls_contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    server, client = tls_contexts
    async with running(TIGHT, wire=SizedWire, tls=server) as bench:
        stream = trio.SSLStream(await bench.dial(), client, server_hostname="localhost")
        await stream.send_all(frame(300 * KIB)[: 200 * KIB])
        while bench.link.incoming.partial < 180 * KIB:
            await trio.testing.wait_all_tasks_blocked(0.01)
        await stream.send_all(frame(300 * KIB)[200 * KIB :])
        assert len(await receive_exactly(stream, 300 * KIB + 1)) == 300 * KIB + 1
        assert bench.link.incoming.partial == 0
        await stream.aclose()
