"""One incarnation of a bookie as its clients reach it: the link's part, without sockets.

`SimulatedLoop` does what `core/link/loop.py` does for storage and sessions, and `ServedConnection`
what `core/link/connection.py` does for one session: bytes in, events to the real `BookieSession`,
the real wire's bytes out, appends handed over once a sweep, writers held while storage is
congested.
Memory limits of the link are not simulated.
"""

from collections import deque

from magnetar.bookie.requests.session import BookieSession
from magnetar.bookie.rpc.adds import Adds
from magnetar.bookie.rpc.wire import BookieWire
from magnetar.core.kernel.errors import WireError
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.memory.outbound import OutboundMemory


class SimulatedLoop:
    """An `EventLoop` for storage, and the `link` of connections."""

    def __init__(self, host, nursery, clock):
        self.nursery = nursery
        self.now = clock.monotonic()
        self._clock = clock
        limits = LinkLimits()
        self.outgoing = OutboundMemory(limits.sending_bytes_max, limits.outbox_high_bytes)
        self.running = None
        self.connections = {}
        self._host = host
        self._watched = {}
        self._touched = {}
        self._held = deque()
        self._depth = 0
        self._scheduled = False

    # -- what storage asks for ----------------------------------------------------------------

    def watch(self, fd, call, due):
        self._watched[fd] = call

    def ended(self, fd):
        """A submitted write has ended."""
        if fd in self._watched:
            self.begin()
            self._watched[fd]()
            self.settle()

    def begin(self):
        if not self._depth:
            self.now = self._clock.monotonic()
        self._depth += 1

    def settle(self):
        self._depth -= 1
        if not self._depth:
            self._finish()

    def schedule_settle(self):
        if not self._scheduled:
            self._scheduled = True
            self._host.call_in(0.0, self._settle_soon)

    def _settle_soon(self):
        self._scheduled = False
        self.begin()
        self.settle()

    def _finish(self):
        """The end of a sweep, and of one for each piece that waited for room."""
        self._flush()
        while self._held and not self.running.congested:
            connection, piece = self._held.popleft()
            self.begin()
            connection.feed(piece)
            self._depth -= 1
            self._flush()

    def _flush(self):
        """Appends go to the journal, packed bytes to the network."""
        if self.running is not None:
            self._depth += 1  # results that come meanwhile are part of this sweep
            self.running.flush_group()
            self._depth -= 1
        while self._touched:
            touched, self._touched = self._touched, {}
            for connection in touched:
                connection.flush()

    # -- what connections ask for -------------------------------------------------------------

    def touch(self, connection):
        self._touched[connection] = None
        if not self._depth:
            self.schedule_settle()

    def receive(self, connection, piece):
        """A piece has arrived."""
        if self._held or (connection.writes and self.running.congested):
            self._held.append((connection, piece))
            self.schedule_settle()
            return
        self.begin()
        connection.feed(piece)
        self.settle()

    def stop(self):
        """The process is gone: nobody gets an answer any more."""
        for connection in list(self.connections):
            connection.forget("the bookie is gone")
        self._held.clear()


class TappedWire:
    """A `BookieWire` whose answers are noted as promises."""

    def __init__(self, wire, promises, bookie_id):
        self._wire = wire
        self._promises = promises
        self._bookie_id = bookie_id
        self.feed = wire.feed
        self.take_outgoing = wire.take_outgoing
        self.close = wire.close

    def take_events(self):
        events = self._wire.take_events()
        for event in events:
            self._promises.asked(self._bookie_id, event)
        return events

    def reply(self, call, response):
        self._promises.answered(self._bookie_id, call, response)
        self._wire.reply(call, response)

    def reply_adds(self, row, status):
        assert isinstance(row, Adds)
        self._promises.added(self._bookie_id, row, row.run, row.recovery, status)
        self._wire.reply_adds(row, status)


class ServedConnection:
    """One connection of a client, as `BookieSession` sees it."""

    layered = reads = False
    ending = None
    outbox_bytes = packed_bytes = 0
    """A client receives at once what the network brings."""

    def __init__(self, loop, end, services, promises, bookie_id, fences=None):
        """`fences` answers some reads before the session does."""
        self.link = loop
        self._fences = fences
        self.fd = 1
        self.writes = False
        self._end = end
        self._partial = b""
        self._wire = TappedWire(BookieWire(), promises, bookie_id)
        self._session = BookieSession(services, self, self._wire)
        loop.connections[self] = None
        end.received = self._received

    @property
    def open(self):
        return self.fd >= 0

    @property
    def takes_too_little(self):
        return not self.open

    def _received(self, piece):
        if not self.open:
            return
        if piece:
            self.link.receive(self, piece)
        else:
            self.forget("the client has left")

    def feed(self, piece):
        if not self.open:
            return
        data = self._partial + piece
        try:
            taken = self._wire.feed(data)
        except WireError as error:
            raise AssertionError(f"a client of ours sent nonsense: {error}") from error
        self._partial = data[taken:]
        for event in self._wire.take_events():
            if self._fences is None or not self._fences.answer(event, self._wire):
                self._session.handle(event)
        self.touch()

    def flush(self):
        if self.open and (packed := b"".join(self._wire.take_outgoing())):
            self._end.send_all(packed)

    def forget(self, reason):
        """The connection is over."""
        if self.open:
            self.fd = -1
            self.link.connections.pop(self, None)
            self._end.close()
            self._session.closed(reason)

    # -- what the session says ----------------------------------------------------------------

    def probe(self):
        """Silence is the network's to simulate."""

    def will_write(self):
        self.writes = True

    def storing(self, size):
        """Bytes of all connections are not limited here."""

    def stored(self, size, *, proves=True):
        """As above."""

    def pause(self, reason):
        """Nor are the notes of one."""

    def resume(self, reason):
        """As above."""

    def end(self, reason):
        raise AssertionError(f"a bookie gave up a connection: {reason}")

    def packed(self, size):
        self.touch()

    def touch(self):
        self.link.touch(self)

    def begin(self):
        self.link.begin()

    def settle(self):
        self.link.settle()
