"""Pulsar's WebSocket API as a wire under the binary protocol's wire.

Theory. Apache's proxy is a Java client behind a web server. Here, too, each WebSocket is a client
of the binary protocol, and its session is the one that all clients have: so limits, rights, memory
and back-pressure are those of any connection. Between the two, this layer translates: it says
commands to the wire above, as frames, and reads the frames that this one packs.

    HANDSHAKE   the head of the HTTP request is incomplete
    ATTACHING   CONNECT, then what there is of the topic, then what the dialogue attaches; nothing
                is answered yet, for an error is an HTTP status
    OPEN        101 was sent; text frames
    CLOSED      a Close frame, or the refusal of the request, is packed

What the session packs is translated when the link takes it, some MiB at a time: the rest is counted
as bytes to be sent, and translated when the peer has taken those. If that makes the dialogue say
something to the broker, it is carried out at once (`act`), and again, until nothing more is said.

Invariants: before 101 is packed, no frame of the peer is looked at; a message of a peer is at most
as long as base64 makes the longest one; nothing is fed to the wire above but whole frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.handshake import H11Handshake
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from magnetar.core.kernel.errors import PeerLeft, WireError
from magnetar.core.kernel.lazy_queue import LazyQueue
from magnetar.core.link.layers.layer import Layer
from magnetar.core.link.layers.websocket_options import Permits
from magnetar.core.security.conversation import CERTIFICATE
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.frames import SIZE, command_frame
from magnetar.wire.pulsar.replies import FIELDS, PONG, Type
from magnetar.wire.pulsar.websocket.attached_logs import HEARD, AttachedLogs
from magnetar.wire.pulsar.websocket.consuming import ConsumerDialogue
from magnetar.wire.pulsar.websocket.documents import encoded
from magnetar.wire.pulsar.websocket.endpoint import (
    NOTHING_SAID,
    Kind,
    RefusedRequest,
    endpoint_of,
)
from magnetar.wire.pulsar.websocket.exchange import TRY_AGAIN_LATER, Dialogue
from magnetar.wire.pulsar.websocket.held_entries import HeldEntries
from magnetar.wire.pulsar.websocket.producing import ProducerDialogue
from magnetar.wire.pulsar.wire import PulsarWire

HEAD_BYTES_MAX: Final = 16 * 1024
IDLE_FRAMES_MAX: Final = 1_000
"""Frames in a row without data, which are a flood."""
DOCUMENT_SLACK_BYTES: Final = 64 * 1024
"""Of a producer's message, beside the payload in base64."""
EARLY_BYTES_MAX: Final = 64 * 1024
"""Sent before 101; clients wait for it."""
TRANSLATIONS_MAX: Final = 1_000
"""So often the broker's answers are taken in one turn. Each is to something that was said."""
TRANSLATED_BYTES_MAX: Final = 4 * 1024 * 1024
"""What is made for the peer in one turn; compressed entries may expand a thousandfold."""
VERSION: Final = "Pulsar-WebSocket"
"""As CONNECT states it, and statistics show it."""
PROTOCOL_VERSION: Final = 21
PARTITIONS_MS: Final = 60_000
"""How often a partitioned topic is asked whether it has grown, as Java's client does
(`autoUpdatePartitionsInterval`)."""
HEAD_END: Final = b"\r\n\r\n"

STATUSES: Final = {
    pb.AuthenticationError: 401,
    pb.AuthorizationError: 403,
    pb.TopicNotFound: 404,
    pb.SubscriptionNotFound: 404,
    pb.InvalidTopicName: 400,
    pb.ProducerBusy: 409,
    pb.ConsumerBusy: 409,
    pb.ProducerFenced: 409,
    pb.ConsumerAssignError: 409,
    pb.IncompatibleSchema: 409,
    pb.TooManyRequests: 429,
    pb.ProducerBlockedQuotaExceededError: 503,
    pb.ProducerBlockedQuotaExceededException: 503,
    pb.TopicTerminatedError: 503,
    pb.ServiceNotReady: 503,
}
"""HTTP statuses of the broker's errors; all others are 500 (`AbstractWebSocketHandler.java`)."""


class WebSocketState(Enum):
    """See the module's docstring."""

    HANDSHAKE = "handshake"
    ATTACHING = "attaching"
    OPEN = "open"
    CLOSED = "closed"


class WebSocketSurroundings(NamedTuple):
    """What the layer gets from the front; plain calls."""

    cluster: str
    permits: Permits
    """Which web pages may connect, by `Origin` and `Host`."""
    act: Callable[[Iterable[Any]], None]
    """Carries out the events of the wire above."""
    sends: Callable[[], bool]
    """Whether nothing waits to be sent to the peer."""
    keep: Callable[[int], None]
    """Counts bytes that are not translated yet, and has `take_outgoing` called again."""
    end: Callable[[str], None]
    """Ends the connection when all is sent."""
    now_ms: Callable[[], int]
    wake_in: Callable[[int], None]
    """Has `woken` called."""
    chance: int
    """A random number."""
    held: HeldEntries
    """Of all WebSockets."""
    certified: bool = False
    """Whether the peer has shown a certificate, which counts if it says nothing else."""


class PulsarWebSocket(Layer):
    """See the module's docstring."""

    inner: PulsarWire

    def __init__(self, inner: PulsarWire, surroundings: WebSocketSurroundings) -> None:
        super().__init__(inner)
        self._around = surroundings
        self._state = WebSocketState.HANDSHAKE
        self._head = bytearray()
        """The beginning of the request, and later what came too early."""
        self._handshake: H11Handshake | None = None
        self._frames: Connection | None = None
        self._dialogue: Dialogue | None = None
        self._logs: AttachedLogs | None = None
        self._text = bytearray()
        """An incomplete message of the peer, in UTF-8: many small strings would take 60 bytes each.
        """
        self._text_size = self._idle_frames = 0
        self._translated_bytes = 0
        """What was made for the peer since that was taken."""
        self._pinged = False
        self._ask_at: int | None = None
        """When the number of partitions is asked for again."""
        self._dialogue_at: int | None = None
        """When the dialogue is woken."""
        self._unheard = LazyQueue[bytes]()
        """What the session has packed and is not translated, in whole frames."""
        self._heard_of_first = self._unheard_bytes = 0
        self._outgoing: list[bytes] = []
        self._said: list[bytes] = []
        """Frames for the wire above."""
        self._reason: int = CloseReason.GOING_AWAY
        message_bytes_max = inner.options.message_bytes_max
        self._document_size_max = message_bytes_max * 4 // 3 + DOCUMENT_SLACK_BYTES

    @property
    def bytes_held(self) -> int:
        return len(self._head) + self._text_size

    # -- in -----------------------------------------------------------------------------------

    def feed(self, data: bytes) -> int:
        if self._state is WebSocketState.HANDSHAKE:
            self._shake_hands(data)
        elif self._state is WebSocketState.ATTACHING:
            self._head += data
            if len(self._head) > EARLY_BYTES_MAX:
                self._refuse(400, "frames before the WebSocket is accepted")
                raise WireError("WebSocket: too much before 101")
        elif self._state is WebSocketState.OPEN:
            self._take(data)
        self._feed_said()
        return len(data)

    def _take(self, data: bytes) -> None:
        """Take frames of the peer."""
        assert self._frames is not None
        assert self._dialogue is not None
        try:
            self._frames.receive_data(data)
            for event in self._frames.events():
                self._check_idle(event)
                if isinstance(event, TextMessage):
                    self._take_text(event)
                elif isinstance(event, Ping):
                    self._outgoing.append(self._frames.send(event.response()))
                elif isinstance(event, Pong):
                    self._said.append(PONG)
                elif isinstance(event, BytesMessage):
                    self.close(CloseReason.UNSUPPORTED_DATA, "JSON is text")
                elif isinstance(event, CloseConnection):
                    self._outgoing.append(self._frames.send(event.response()))
                    self._state = WebSocketState.CLOSED
                    raise PeerLeft("the peer closed the WebSocket")
                if self._state is not WebSocketState.OPEN:
                    return
            self._dialogue.settle()
        except RemoteProtocolError as error:
            reason = error.event_hint.code if isinstance(error.event_hint, CloseConnection) else 0
            self._close_frame(reason or CloseReason.PROTOCOL_ERROR, "")
            raise WireError(f"WebSocket: {error}") from error

    def _take_text(self, event: TextMessage) -> None:
        # letters of other alphabets take up to four bytes each
        self._text_size += len(event.data) * (1 if event.data.isascii() else 4)
        if self._text_size > self._document_size_max:
            self.close(CloseReason.MESSAGE_TOO_BIG, "the message is too long")
            return
        if event.message_finished and not self._text:
            text = event.data
        else:
            self._text += event.data.encode()
            if not event.message_finished:
                return
            text = self._text.decode()
            self._text = bytearray()
        self._text_size = 0
        assert self._dialogue is not None
        self._dialogue.say(text)

    def _check_idle(self, event: Event) -> None:
        """End a connection whose frames carry nothing: empty ones, Ping, and Pong unasked."""
        if isinstance(event, TextMessage) and event.data:
            self._idle_frames = 0
            return
        if isinstance(event, Pong) and self._pinged:
            self._pinged = False
            return
        self._idle_frames += 1
        if self._idle_frames > IDLE_FRAMES_MAX:
            self._close_frame(CloseReason.POLICY_VIOLATION, "")
            raise WireError("WebSocket: a flood of frames without data")

    def _feed_said(self) -> None:
        """Have the wire above parse what is said to it."""
        if self._said:
            said, self._said = self._said, []
            self.inner.feed(b"".join(said))

    def _carry_out(self) -> None:
        """Have what was said without the peer parsed and carried out."""
        try:
            self._feed_said()
        except WireError as error:  # the wire above is closed, or the dialogue is mistaken
            self.close(CloseReason.INTERNAL_ERROR, str(error))
        self._around.act(self.inner.take_events())

    # -- the handshake ------------------------------------------------------------------------

    def _shake_hands(self, data: bytes) -> None:
        """Read the request, and begin to attach once it is complete."""
        head = self._head
        begin = max(0, len(head) - len(HEAD_END) + 1)
        head += data
        end = head.find(HEAD_END, begin) + len(HEAD_END)
        if end < len(HEAD_END):
            if len(head) > HEAD_BYTES_MAX:
                self._refuse(431, "the head of the request is too long")
                raise WireError("WebSocket: the head of the request is too long")
            return
        rest = head[end:]
        handshake = H11Handshake(ConnectionType.SERVER)
        try:
            handshake.receive_data(bytes(head[:end]))
            (request,) = handshake.events()
            assert isinstance(request, Request)
            self._begin(handshake, request)
        except RemoteProtocolError as error:
            status = 426 if "header" in str(error) else 400
            self._refuse(status, f"this is a WebSocket's path: {error}")
            raise WireError(f"WebSocket: {error}") from error
        except (LocalProtocolError, UnicodeError, ValueError) as error:
            self._refuse(400, "this is no request for a WebSocket")
            raise WireError("WebSocket: no request") from error
        except RefusedRequest as refused:
            self._refuse(refused.status, str(refused))
            self._around.end(f"WebSocket refused: {refused}")
            return
        self._head = rest
        self._state = WebSocketState.ATTACHING

    def _begin(self, handshake: H11Handshake, request: Request) -> None:
        for header, value in request.extra_headers:
            origin = value.decode("latin-1")
            if header == b"origin" and not self._around.permits(origin, request.host):
                raise RefusedRequest(403, f"a page of {origin[:100]!r} may not connect")
        endpoint = endpoint_of(request.target, request.extra_headers, self._around.cluster)
        limit = self.inner.options.message_bytes_max
        if endpoint.kind is Kind.PRODUCER:
            self._dialogue = ProducerDialogue(endpoint, self, limit, self._around.chance)
        else:
            name = f"reader-{self._around.chance:010x}"
            self._dialogue = ConsumerDialogue(endpoint, self, limit, name, self._around.held)
        self._handshake, self._logs = handshake, AttachedLogs(endpoint, self)
        method = endpoint.credentials.method
        if method == NOTHING_SAID and self._around.certified:
            method = CERTIFICATE
        self.command(
            Type.CONNECT,
            pb.CommandConnect(
                client_version=VERSION,
                protocol_version=PROTOCOL_VERSION,
                auth_method_name=method,
                auth_data=endpoint.credentials.data,
            ),
        )

    def _refuse(self, status: int, reason: str) -> None:
        """Answer the request with an error."""
        self._state = WebSocketState.CLOSED
        self._head = bytearray()
        body = msgspec.json.encode({"reason": reason})
        more = b""
        if status == 426:
            more = b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
        elif status == 401:
            more = b"www-authenticate: Bearer\r\n"
        self._outgoing.append(
            b"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\n%s"
            b"content-length: %d\r\nconnection: close\r\n\r\n%s"
            % (status, HTTPStatus(status).phrase.encode(), more, len(body), body)
        )

    # -- what the broker says -----------------------------------------------------------------

    def take_outgoing(self) -> list[bytes]:
        """Translate what the session has packed, and carry out what that causes. What is left when
        that has become much waits until the peer has taken it.
        """
        waits = bool(self._unheard) and not self._around.sends()
        for _ in range(TRANSLATIONS_MAX):
            packed = b"".join(self.inner.take_outgoing())
            if packed:
                self._unheard.append(packed)
                self._unheard_bytes += len(packed)
            if not self._unheard or waits:
                break
            waits = not self._hear()
            self._carry_out()
        if self._state is WebSocketState.CLOSED:
            self._unheard.clear()
            self._unheard_bytes = 0
        if self._unheard:
            self._around.keep(self._unheard_bytes)
        outgoing, self._outgoing = self._outgoing, []
        self._translated_bytes = 0
        return outgoing

    def _hear(self) -> bool:
        """Translate; False if it has become too much for one turn."""
        while self._unheard and self._state in (WebSocketState.ATTACHING, WebSocketState.OPEN):
            if self._translated_bytes >= TRANSLATED_BYTES_MAX:
                return False
            frames, at = self._unheard.first, self._heard_of_first
            (size,) = SIZE.unpack_from(frames, at)
            (command_size,) = SIZE.unpack_from(frames, at + 4)
            behind, end = at + 8 + command_size, at + 4 + size
            self._heard_of_first = end
            self._unheard_bytes -= end - at
            if end == len(frames):
                self._unheard.popleft()
                self._heard_of_first = 0
            command = pb.BaseCommand.FromString(frames[at + 8 : behind])
            self._hear_one(command, frames[behind:end])
        return True

    def _hear_one(self, command: pb.BaseCommand, tail: bytes) -> None:
        assert self._dialogue is not None
        assert self._logs is not None
        kind = command.type
        if kind == Type.CONNECTED:
            self._logs.ask()
        elif kind in HEARD:
            self._hear_names(command, self._logs)
        elif kind == Type.PING:
            self._ping()
        elif kind == Type.AUTH_CHALLENGE:
            self.refused(pb.AuthenticationError, "this way to authenticate takes several steps")
        else:
            self._dialogue.hear(command, tail)

    def _hear_names(self, command: pb.BaseCommand, logs: AttachedLogs) -> None:
        """Attach to what there is; or later, to what has been added."""
        names = logs.hear(command)
        assert self._dialogue is not None
        if names is not None and self._state is WebSocketState.OPEN:
            self._dialogue.grow(names)
        elif names is not None:
            self._dialogue.attach(names, numbered=logs.are_numbered)
        if logs.may_grow and self._ask_at is None:
            self._ask_at = self.now_ms() + PARTITIONS_MS
            self._wake()

    def _ping(self) -> None:
        """Ask the peer whether it is there; the session, which asks, has its answer."""
        if self._frames is not None and self._state is WebSocketState.OPEN:
            self._outgoing.append(self._frames.send(Ping()))
            self._pinged = True

    def woken(self) -> None:
        """The time has come that the dialogue waited for."""
        if self._dialogue is None or self._logs is None:
            return
        if self._state is WebSocketState.OPEN:
            now = self.now_ms()
            if self._ask_at is not None and self._ask_at <= now:
                self._ask_at = None
                self._logs.ask()
            if self._dialogue_at is not None and self._dialogue_at <= now:
                self._dialogue_at = None
                self._dialogue.woken()
            self._carry_out()
            self._wake()

    def _wake(self) -> None:
        """Be woken when the first thing is due."""
        due = [at for at in (self._ask_at, self._dialogue_at) if at is not None]
        if due:
            self._around.wake_in(max(min(due) - self.now_ms(), 0))

    # -- what the dialogue does (`DialogueExchange`) ------------------------------------------

    def command(self, kind: pb.BaseCommand.Type, command: Any, tail: bytes = b"") -> None:
        base = pb.BaseCommand(type=kind, **{FIELDS[kind]: command}).SerializeToString()
        if tail:
            head = SIZE.pack(4 + len(base) + len(tail)) + SIZE.pack(len(base))
            self._said += (head, base, tail)
        else:
            self._said.append(command_frame(base))

    def text(self, document: Any) -> None:
        if self._frames is not None and self._state is WebSocketState.OPEN:
            frame = self._frames.send(TextMessage(encoded(document)))
            self._translated_bytes += len(frame)
            self._outgoing.append(frame)

    def attached(self) -> None:
        if self._state is not WebSocketState.ATTACHING:
            return
        assert self._handshake is not None
        self._outgoing.append(self._handshake.send(AcceptConnection()))
        self._handshake = None
        self._frames = Connection(ConnectionType.SERVER)
        self._state = WebSocketState.OPEN
        early, self._head = bytes(self._head), bytearray()
        if early:
            try:
                self._take(early)
            except WireError as error:
                self._around.end(str(error))

    def refused(self, code: int, reason: str) -> None:
        if self._state is WebSocketState.ATTACHING:
            status = STATUSES.get(code, 500)  # type: ignore[call-overload]  # an enum of protobuf
            self._refuse(status, reason)
            self._around.end(f"WebSocket refused: {reason}")
        else:
            self.close(CloseReason.INTERNAL_ERROR, reason)

    def close(self, code: int, reason: str) -> None:
        if self._state is WebSocketState.ATTACHING:
            self._refuse(503 if code == TRY_AGAIN_LATER else 500, reason)
        self._close_frame(code, reason)
        self._around.end(f"WebSocket: {reason}")

    def now_ms(self) -> int:
        return self._around.now_ms()

    def wake_in(self, milliseconds: int) -> None:
        self._dialogue_at = self.now_ms() + milliseconds
        self._wake()

    # -- the end ------------------------------------------------------------------------------

    def over(self) -> None:
        """The connection is closed. Layer and dialogue refer to each other, so they would live
        until the garbage collector looks at old objects; and what is left of an incomplete message,
        which nothing counts any more, with them.
        """
        if self._dialogue is not None:
            self._dialogue.over()
        self._dialogue = self._logs = self._frames = self._handshake = None
        self._state = WebSocketState.CLOSED
        self._text, self._head = bytearray(), bytearray()
        self._text_size = self._unheard_bytes = 0
        self._said, self._outgoing = [], []
        self._unheard.clear()

    def _close_frame(self, code: int, reason: str) -> None:
        if self._frames is not None and self._frames.state is ConnectionState.OPEN:
            text = reason.encode()[:120].decode(errors="ignore")
            self._outgoing.append(self._frames.send(CloseConnection(code, text or None)))
        self._state = WebSocketState.CLOSED

    def farewell(self) -> list[bytes]:
        if self._state is WebSocketState.OPEN:
            self._close_frame(self._reason, "")
        elif self._state is WebSocketState.ATTACHING:
            self._refuse(503, "the connection ends")
        return self.take_outgoing()
