"""TLS as a wire, with both ends in memory."""

import gc
import ssl
import weakref

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.kernel.errors import PeerLeft, WireError
from magnetar.core.link.layers.tls import TlsWire
from magnetar.core.link.tests.echo import SizedWire, running

Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


class Weighed(SizedWire):
    """Knows how many bytes it was fed, those again that it had left."""

    fed = 0

    def feed(self, data: bytes) -> int:
        self.fed += len(data)
        return super().feed(data)


class Peer:
    """The other end: what it says comes as records of TLS."""

    def __init__(self, context: ssl.SSLContext, wire: TlsWire) -> None:
        self._heard, self._said = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._heard, self._said, server_hostname="localhost")
        established = False
        while not established:
            try:
                self._tls.do_handshake()
                established = True
            except ssl.SSLWantReadError:
                pass
            wire.feed(self._said.read())
            for piece in wire.take_outgoing():
                self._heard.write(piece)

    def sealed(self, plain: bytes) -> bytes:
        """As one record."""
        self._tls.write(plain)
        return self._said.read()

    def goodbye(self) -> bytes:
        """Its close_notify."""
        with pytest.raises(ssl.SSLWantReadError):
            self._tls.unwrap()
        return self._said.read()

    def hears(self, sealed: bytes) -> bytes:
        """All that was said to it until close_notify, which has to be there."""
        self._heard.write(sealed)
        plain = b""
        try:
            while True:
                plain += self._tls.read(10_000)
        except ssl.SSLZeroReturnError:
            return plain


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4) + body for body in bodies)


def test_a_frame_that_comes_in_many_records_is_copied_once(tls_contexts: Contexts) -> None:
    """Copied with each of them, five megabytes in small packets took seconds."""
    server, client = tls_contexts
    above = Weighed()
    wire = TlsWire(server, above)
    peer = Peer(client, wire)
    frame = framed(b"x" * 200_000)
    for start in range(0, len(frame), 100):
        wire.feed(peer.sealed(frame[start : start + 100]))
    assert above.take_events() == [b"x" * 200_000]
    assert above.fed < 2 * len(frame)


def test_words_that_wait_when_tls_breaks_harm_nobody(tls_contexts: Contexts) -> None:
    """A record that is none, and somebody else's message for that peer in the same sweep."""
    server, client = tls_contexts
    above = Weighed()
    wire = TlsWire(server, above)
    peer = Peer(client, wire)
    assert wire.feed(peer.sealed(framed(b"x")))
    assert above.take_events() == [b"x"]
    with pytest.raises(WireError, match="TLS"):
        wire.feed(b"\x17\x03\x03\x00\x20" + bytes(32))
    above.outgoing.append(b"a message\n")
    assert wire.take_outgoing(), "an alert"
    assert not wire.take_outgoing()
    assert not wire.farewell()


def test_who_says_close_notify_gets_replies_and_ours(tls_contexts: Contexts) -> None:
    server, client = tls_contexts
    above = Weighed()
    wire = TlsWire(server, above)
    peer = Peer(client, wire)
    said = peer.sealed(framed(b"x", b"y")) + peer.goodbye()
    with pytest.raises(PeerLeft):
        wire.feed(said)
    assert above.take_events() == [b"x", b"y"]
    above.outgoing.append(b"a reply\n")
    assert peer.hears(b"".join(wire.take_outgoing() + wire.farewell())) == b"a reply\n"


async def test_a_client_that_waits_for_close_notify_is_not_left_waiting(
    tls_contexts: Contexts,
) -> None:
    server, client = tls_contexts
    async with running(tls=server) as bench:
        stream = trio.SSLStream(await bench.dial(), client, server_hostname="localhost")
        await stream.send_all(framed(b"x"))
        with trio.fail_after(5):
            transport, _ = await stream.unwrap()
            await transport.aclose()


@settings(deadline=None, max_examples=30)
@given(
    bodies=st.lists(st.sampled_from([0, 1, 100, 5_000]), max_size=5),
    records=st.lists(st.integers(50, 16_384), min_size=1, max_size=5),
    pieces=st.lists(st.integers(100, 20_000), min_size=1, max_size=5),
)
def test_frames_come_whole_however_they_are_cut(
    tls_contexts: Contexts, bodies: list[int], records: list[int], pieces: list[int]
) -> None:
    """Into records by the peer, and those again on their way."""
    server, client = tls_contexts
    above = Weighed()
    wire = TlsWire(server, above)
    peer = Peer(client, wire)
    frames = framed(*[bytes([place]) * size for place, size in enumerate(bodies)])
    sealed = b""
    turn = 0
    while frames:
        size = records[turn % len(records)]
        sealed, frames, turn = sealed + peer.sealed(frames[:size]), frames[size:], turn + 1
    while sealed:
        size = pieces[turn % len(pieces)]
        assert wire.feed(sealed[:size]) == len(sealed[:size])
        sealed, turn = sealed[size:], turn + 1
    assert above.take_events() == [bytes([place]) * size for place, size in enumerate(bodies)]


async def test_nothing_of_openssl_is_left_of_a_connection_that_is_closed(
    tls_contexts: Contexts,
) -> None:
    """Though the connection itself waits for the collector: thousands of half handshakes that had
    gone held 270 MB for as long as the server was idle.
    """
    server, _ = tls_contexts
    gc.disable()
    try:
        async with running(tls=server) as bench:
            stream = await bench.dial()
            await stream.send_all(b"\x16\x03\x01")
            await trio.testing.wait_all_tasks_blocked(0.05)
            (connection,) = bench.connections
            wire = weakref.ref(connection.wire)
            await stream.aclose()
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not connection.open
            assert wire() is None
    finally:
        gc.enable()
