"""Frames that are large, peers that do not read, and what is counted meanwhile."""

import trio
import trio.testing

from core.link.gathering import Gathering
from core.link.limits import LinkLimits
from core.link.tests.echo import SizedWire, receive_end, receive_exactly, running


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
        assert connection.large_bytes == len(frame)
        await stream.send_all(frame[:5000])
        await trio.testing.wait_all_tasks_blocked()
        assert connection.large.room == len(frame)
        assert connection.large.filled == 5000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, frame[5000:] + (3).to_bytes(4) + b"end")
            assert await receive_exactly(stream, len(body) + 5) == body + b"\nend\n"
        assert connection.large_bytes == 0


async def test_a_body_is_received_by_itself() -> None:
    class BodyWire(SizedWire):
        """Four bytes of words, and four left free for others."""

        def body_in(self, begin: bytes) -> tuple[int, int]:
            self.words = begin[:4]
            self.frame_bytes_wanted -= 4
            return 4, 4

        def feed_large(self, frame: Gathering) -> None:
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
        (connection,) = [each for each in bench.connections if each.large is not None]
        assert connection.large.room <= 4 * 5004


async def test_a_peer_that_never_reads_is_not_read_either() -> None:
    limits = LinkLimits(outbox_high_bytes=64 * 1024)
    line = b"x" * 9999 + b"\n"
    async with running(limits) as bench, await bench.dial() as stream:
        sent = 0
        with trio.move_on_after(0.5):
            while True:
                await stream.send_all(line)
                sent += len(line)
        (connection,) = bench.connections
        # one receive's worth may come on top of the mark
        assert connection.outbox_bytes <= limits.outbox_high_bytes + 600_000
        assert connection.congested
        before = bench.told.count("relieved")
        echoed = await receive_exactly(stream, sent // 2)
        assert bench.told.count("relieved") > before, "whoever held back may go on"
        assert set(echoed.split(b"\n")[:-1]) == {line[:-1]}


async def test_what_is_packed_counts_before_it_is_flushed() -> None:
    async with running(LinkLimits(outbox_high_bytes=100)) as bench, await bench.dial() as stream:
        await stream.send_all(b"a\n")
        await receive_exactly(stream, 2)
        connection = bench.connections[0]
        connection.packed(60)
        assert not connection.congested
        connection.packed(60)
        assert connection.congested
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert not connection.congested
        assert "relieved" in bench.told  # whoever held back is told to go on
