"""One Kafka connection without its socket: requests in, responses out, in the same order.

A frame is a size and that many bytes. Each parsed request joins a queue. Its response may come at
any time, and is sent after all earlier responses. A request without a response (Produce with
acks=0) leaves the queue.

Invariant: no byte is parsed after `WireError` or `close`; each response is packed once, or never if
the connection is closed before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final

from magnetar.core.entry.kafka import form, record_batch
from magnetar.core.kernel.errors import Corrupted, WireError
from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.wire import Piece
from magnetar.wire.kafka import apis
from magnetar.wire.kafka.api_keys import PRODUCE, ApiKey
from magnetar.wire.kafka.codec.declare import Request, Response
from magnetar.wire.kafka.errors import NONE
from magnetar.wire.kafka.hot import Shape, Shapes
from magnetar.wire.kafka.messages.records import ProduceRequest
from magnetar.wire.kafka.messages.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse

FRAME_BYTES_MAX: Final = 100 * 1024 * 1024
"""Kafka's default limit for a request (`socket.request.max.bytes`)."""
HELLO_BYTES_MAX: Final = 64 * 1024
"""The same before authentication: Kafka's `sasl.server.max.receive.size` is 512 KiB, but no proof
that is accepted here has more than 16 KiB (`core/security/tokens.py`).
"""
WORDS_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest request without records: decoded, it takes many times its size in memory."""
BEGINS: Final = (b"\0\0", b"\0", b"")
"""Beginnings of a frame of Produce, API key 0, of which fewer bytes may be received."""
NO_RECORDS: Final = memoryview(b"")
BARE: Final = -1
"""In place of the version of a token that has no header."""
_SIZE = Layout(">i").unpack_from
_SIZED = Layout(">i").pack


class KafkaRequest:
    """One request, and its place in the queue."""

    __slots__ = (
        "_request",
        "client_id",
        "correlation_id",
        "key",
        "pieces",
        "size",
        "storing",
        "version",
        "weight",
    )

    def __init__(
        self,
        key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        request: Request | None,
        size: int = 0,
    ) -> None:
        self.key = key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id or ""
        self._request = request
        self.size = size
        """The size of its frame, or of its records, which are most of it."""
        self.weight = 0
        """The memory that it counts for until it is answered (`KafkaSession.weigh`)."""
        self.storing = False
        """Whether the memory counts as on its way to storage."""
        self.pieces: list[Piece] | None = None
        """The packed response; None before it is packed, empty if there is none."""

    @property
    def request(self) -> Request | None:
        """The decoded request; None for ApiVersions in an unknown version."""
        return self._request

    def replace(self, request: Request) -> None:
        """Leave only a part of the request, which its client may have."""
        self._request = request

    def release(self) -> None:
        """Release the memory of a request whose response may take long."""
        self._request = None


class RepeatedProduce(KafkaRequest):
    """A Produce request of a known shape, which is decoded only when it is needed."""

    __slots__ = ("body", "records", "shape")

    def __init__(
        self,
        shape: Shape,
        correlation_id: int,
        records: memoryview,
        body: LargeFrame | None = None,
    ) -> None:
        # does not call the base class, because it runs for each batch
        self.key = PRODUCE
        self.version = shape.version
        self.correlation_id = correlation_id
        self.client_id = shape.client_id
        self._request = self.pieces = None
        self.size = len(records)
        self.weight = 0
        self.storing = False
        self.shape = shape
        self.records = records
        self.body = body
        """The records, with free bytes before them for the entry's header."""

    @property
    def request(self) -> Request | None:
        if self._request is None:
            self._request = self.shape.asks(self.records)
        return self._request

    def release(self) -> None:
        self._request = self.body = None
        self.records = NO_RECORDS


class KafkaWire:
    """See the module's docstring."""

    packs_unasked = False
    bytes_held = 0

    def __init__(self) -> None:
        self.frame_bytes_wanted = 0
        self.frame_bytes_max = FRAME_BYTES_MAX
        self.reads_tokens = False
        """Frames are tokens of SASL without a header, and so are their answers: what follows
        SaslHandshake 0 (`SaslServerAuthenticator.handleSaslToken` of 4.3).
        """
        self._closed = False
        self._requests: list[KafkaRequest] = []
        self._line: deque[KafkaRequest] = deque()
        """Requests whose responses are not sent, in order."""
        self._outgoing: list[Piece] = []
        self._begun: tuple[Shape, bytes] | None = None
        """The shape of a request whose records are being received, and the bytes before them."""
        self.shapes = Shapes()

    @property
    def waiting(self) -> int:
        """The number of unanswered requests."""
        return len(self._line)

    def is_first(self, request: KafkaRequest) -> bool:
        """Whether all requests before it are answered."""
        return self._line[0] is request

    # -- in -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> int:
        """Parse all whole frames in `data`; returns how many bytes they took."""
        offset, size = 0, len(data)
        self.frame_bytes_wanted = 0
        while size - offset >= 4:
            if self._closed:
                raise WireError("bytes after the end")
            (frame_bytes,) = _SIZE(data, offset)
            if not 0 <= frame_bytes <= self.frame_bytes_max:
                self.close()
                raise WireError(f"a frame of {frame_bytes} bytes")
            end = offset + 4 + frame_bytes
            if frame_bytes > WORDS_BYTES_MAX and data[offset + 4 : offset + 6] not in BEGINS:
                self.close()
                raise WireError(f"a request of {frame_bytes} bytes that brings no records")
            if end > size:
                self.frame_bytes_wanted = end - offset
                break
            try:
                if end == size:  # it is the last one, and need not be copied
                    self._take(data, offset + 4)
                else:
                    self._take(data[offset + 4 : end], 0)
            except WireError:
                self.close()
                raise
            offset = end
        return offset

    def body_in(self, begin: bytes) -> tuple[int, int]:
        """Receive the records of a large Produce of a known shape with free bytes before them for
        the entry's header, so that they are not copied.
        """
        found = self.shapes.begun(begin, self.frame_bytes_wanted)
        if found is None:
            return 0, 0
        shape, at = found
        try:
            last_delta = record_batch.header_of(memoryview(begin)[at:]).last_delta
        except Corrupted:
            return 0, 0
        if last_delta < 0:
            return 0, 0
        self._begun = shape, begin[:at]
        self.frame_bytes_wanted -= at
        return at, form.head_bytes(last_delta + 1)

    def feed_large(self, frame: LargeFrame) -> None:
        begun, self._begun = self._begun, None
        if begun is None:
            self.feed(frame.whole())
            return
        self.frame_bytes_wanted = 0
        shape, words = begun
        tail = frame.cut(len(shape.tail))
        if tail != shape.tail:
            self.feed(b"".join((words, frame.view(), tail)))
            return
        (correlation_id,) = _SIZE(words, 8)
        request = RepeatedProduce(shape, correlation_id, frame.view(), frame)
        self._line.append(request)
        self._requests.append(request)

    def _take(self, frame: bytes, at: int) -> None:
        if self.reads_tokens:
            said = SaslAuthenticateRequest(auth_bytes=frame[at:])
            token = KafkaRequest(ApiKey.SASL_AUTHENTICATE, BARE, 0, None, said, len(frame) - at)
            self._line.append(token)
            self._requests.append(token)
            return
        again = self.shapes.read(frame, at)
        if again is not None:
            shape, records = again
            (correlation_id,) = _SIZE(frame, at + 4)
            request: KafkaRequest = RepeatedProduce(shape, correlation_id, records)
        else:
            request = self._read(frame, at)
        self._line.append(request)
        self._requests.append(request)

    def _read(self, frame: bytes, begin: int) -> KafkaRequest:
        key, version, correlation_id, client_id, at = apis.decode_header(frame, begin)
        request = apis.decode_request(key, version, frame, at)
        size = len(frame) - begin
        query = KafkaRequest(key, version, correlation_id, client_id, request, size)
        if isinstance(request, ProduceRequest):
            self.shapes.remember(frame, begin, version, client_id, request)
        return query

    def take_events(self) -> Sequence[KafkaRequest]:
        """The requests since the last call."""
        taken, self._requests = self._requests, []
        return taken

    # -- out ----------------------------------------------------------------------------------

    def answer(
        self, request: KafkaRequest, response: Response | list[bytes] | list[Piece] | None
    ) -> None:
        """Pack a response, which may be encoded or None; it is sent when its turn comes."""
        pieces: list[Piece] = []
        if request.version == BARE:
            assert isinstance(response, SaslAuthenticateResponse)
            if response.error_code == NONE:  # there is no other way to say it than to close
                pieces += (_SIZED(len(response.auth_bytes)), response.auth_bytes)
        elif isinstance(response, list):
            pieces += response
        elif response is not None:
            key, version, number = request.key, request.version, request.correlation_id
            pieces += apis.encode_response(key, version, number, response)
        self.answer_packed(request, pieces)

    def answer_packed(self, request: KafkaRequest, pieces: list[Piece]) -> None:
        """Pack a response that is encoded already."""
        request.pieces = pieces
        line = self._line
        while line and line[0].pieces is not None:
            self._outgoing += line.popleft().pieces or ()

    def take_outgoing(self) -> list[Piece]:
        """The responses whose turn has come, in order."""
        taken, self._outgoing = self._outgoing, []
        return taken

    # -- the end ------------------------------------------------------------------------------

    def release(self) -> None:
        """Drop requests and responses of a closed connection. Wire and session refer to each other,
        so they would stay in memory until garbage collection, which is rare. A handler keeps its
        request.
        """
        self._line.clear()
        self._requests.clear()
        self._outgoing.clear()
        self._begun = None

    def close(self) -> None:
        """Parse no more bytes; packed responses may still be sent."""
        self._closed = True
        self.frame_bytes_wanted = 0
