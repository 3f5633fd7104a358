"""One connection of a bookie without its socket: requests in, responses out, in any order. Pure.

A frame is a length of 4 bytes and that many bytes. Both versions of the protocol share the port,
and nothing is negotiated: a connection speaks version 3 until a frame of it makes no sense as one;
that frame and all after it are of version 2 (`BookieProtoEncoding.RequestDecoder` of BookKeeper
4.18). No frame of version 2 makes sense in version 3: it begins with a byte that protobuf forbids.
A response is in the version of its request.

Invariant: no byte is parsed after `WireError` or `close`; what the peer sends never takes more
memory here than one frame, of `frame_bytes_max` at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final, Protocol

from magnetar.bookie.rpc import adds, version2, version3
from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.messages import BookieMessage, ReadEntries, StartTls, Status
from magnetar.core.kernel.errors import WireError
from magnetar.core.kernel.structs import FrozenLeafStruct

FRAME_BYTES_MAX: Final = 5 * 1024 * 1024
"""Apache's default (`nettyMaxFrameSizeBytes`)."""
_length = Layout(">I")


class Received(Protocol):
    """A large frame that was received into a buffer of its own."""

    def whole(self) -> bytes: ...


class Call(FrozenLeafStruct, frozen=True, gc=False):
    """A request, with what its response repeats: a header of version 2 or 3."""

    header: int | version3.Header
    request: BookieMessage


class BookieWire:
    """See the module's docstring."""

    packs_unasked = False
    bytes_held = 0

    def __init__(
        self, frame_bytes_max: int = FRAME_BYTES_MAX, *, stops_for_tls: bool = False
    ) -> None:
        """`stops_for_tls`: nothing behind a request to start TLS is parsed in this turn, because it
        is not plain.
        """
        self._stops_for_tls = stops_for_tls
        self.frame_bytes_wanted = 0
        self._frame_bytes_max = frame_bytes_max
        self._version = 3
        self._closed = False
        self._events: list[Call | Adds] = []
        self._outgoing: list[bytes | memoryview] = []

    # -- in -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> int:
        """Parse all whole frames in `data`; returns how many bytes they took."""
        try:
            return self._feed(data)
        except WireError:
            self.close()
            raise

    def body_in(self, begin: bytes) -> tuple[int, int]:
        """Large frames are received whole: what is stored follows its header without a copy."""
        return 0, 0

    def feed_large(self, frame: Received) -> None:
        self.feed(frame.whole())

    def _feed(self, data: bytes) -> int:
        self.frame_bytes_wanted = 0
        at, end = 0, len(data)
        while end - at >= _length.size:
            if self._closed:
                raise WireError("bytes after the end")
            (size,) = _length.unpack_from(data, at)
            if size > self._frame_bytes_max:
                raise WireError(f"a frame of {size} bytes, more than {self._frame_bytes_max}")
            after = at + _length.size + size
            if after > end:
                self.frame_bytes_wanted = after - at
                break
            row = adds.adds_at(data, at) if self._version == version2.VERSION else None
            if row is None:
                self._take(data[at:after])
                at = after
                if self._stops_for_tls and self._asks_for_tls():
                    break
            else:
                found, at = row
                self._events.append(found)
        return at

    def _asks_for_tls(self) -> bool:
        last = self._events[-1]
        return isinstance(last, Call) and isinstance(last.request, StartTls)

    def _take(self, framed: bytes) -> None:
        """Parse one frame, with its length."""
        frame = framed[_length.size :]
        if self._version == 3:
            try:
                self._events.append(Call(*version3.parse_request(frame)))
                return
            except WireError:
                self._version = version2.VERSION
            if (row := adds.adds_at(framed, 0)) is not None:
                self._events.append(row[0])
                return
        self._events.append(Call(*version2.parse_request(frame)))

    def take_events(self) -> Sequence[Call | Adds]:
        events, self._events = self._events, []
        return events

    # -- out ----------------------------------------------------------------------------------

    def reply(self, call: Call, response: BookieMessage) -> None:
        """Answer a request."""
        header = call.header
        if self._closed:
            return
        if not isinstance(header, int):
            body = version3.pack_response(header, response)
        elif isinstance(response, ReadEntries):
            pieces = version2.pack_entries(header, response)
            self._outgoing += (_length.pack(sum(map(len, pieces))), *pieces)
            return
        else:
            body = version2.pack_response(header, response)
        self._outgoing += (_length.pack(len(body)), body)

    def reply_adds(self, row: Adds, status: Status) -> None:
        """Answer a row of adds, which ended alike."""
        if not self._closed:
            self._outgoing.append(adds.pack_responses(row, status))

    def close(self) -> None:
        """Parse and pack nothing more."""
        self._closed = True

    def take_outgoing(self) -> list[bytes | memoryview]:
        outgoing, self._outgoing = self._outgoing, []
        return outgoing
