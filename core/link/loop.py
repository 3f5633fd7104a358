"""The link: one loop for all sockets.

Theory. A private poller, nested in trio's, gathers the readiness of all sockets. When any is ready,
one *sweep* runs, and nothing in it awaits:

    receive from each ready socket -> wire.feed -> session.handle   (plain calls, runs of messages)
    settle: the backend dispatches, and hands appends to storage (`backend.py`)
            flush each touched connection, one send each

After the first sweep that follows an idle time, the link waits a moment for the write of the
journal that it started, and sweeps again: that saves a turn of trio, a sixth of a lone message.

A peer that waits for each reply sends its next request a moment later. Where the last ones came so
quickly, the link waits for the next one likewise, as long as no write is on its way and no other
task of trio is ready to run: that saves another turn. After `TURN_SECONDS` it asks whether trio has
received something for others (`readiness/`), and goes on if not, for `TURN_SECONDS_MAX` in all.

Work from outside a sweep (a synced journal group, a task with a reply) ends in `settle` too: a
caller with many results calls it once after the last; a single `touch` schedules it.

Limits: bytes received in one sweep (`memory/pace.py`), bytes waiting for one peer, connections in
all and per address, silence (`LinkLimits`), memory of all peers together (`memory/`).

`acceptor.py` accepts connections and refuses them. An orderly end (`Connection.end`, `stop`) sends
all packed bytes and lets the peer receive them (`linger.py`); a broken or silent peer is dropped at
once.

The link is made first, because storage and broker report to it. It gets both by `serve`, before a
client may connect.

Invariant: only the loop touches sockets, and no connection is read while it is paused.
"""

from __future__ import annotations

import logging
import math
import socket
from collections.abc import Callable
from typing import Final

import trio

from magnetar.core.kernel.clock import Clock
from magnetar.core.kernel.complaints import Complaints
from magnetar.core.kernel.errors import PeerLeft, WireError
from magnetar.core.link import foreign_protocols
from magnetar.core.link.acceptor import Accepted, Acceptor
from magnetar.core.link.backend import NO_BACKEND, Backend, steps_of
from magnetar.core.link.connection import Connection, TouchedConnections
from magnetar.core.link.foreign_protocols import NO_HTTP, HttpAddress
from magnetar.core.link.front import Listener, Protocol
from magnetar.core.link.keep_alive import Silence
from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.layers.tls import TlsWire
from magnetar.core.link.limits import LinkLimits
from magnetar.core.link.linger import LINGER_SECONDS, LINGERING_MAX, Lingering
from magnetar.core.link.memory.held_writers import HeldWriters
from magnetar.core.link.memory.inbound import ASKING_BYTES, LARGE_BYTES_TIGHT, InboundMemory
from magnetar.core.link.memory.outbound import OutboundMemory
from magnetar.core.link.memory.pace import LongestSweep, Pace
from magnetar.core.link.memory.pauses import PAUSE_STOP
from magnetar.core.link.memory.stalls import Stalls
from magnetar.core.link.partial_frame import EXPECTED_BYTES
from magnetar.core.link.readiness.other_tasks import OtherTasks
from magnetar.core.link.readiness.passed_over import PassedOver
from magnetar.core.link.readiness.poller import GONE, READ, WRITE, new_poller
from magnetar.core.link.readiness.thread_calls import CallsInSweeps
from magnetar.core.link.settler import Settler
from magnetar.core.link.sockets import receive
from magnetar.core.link.statistics import LinkStatistics
from magnetar.core.link.wire import NO_SESSION
from magnetar.core.ports.group_commit import GroupCommit

log = logging.getLogger(__name__)

SWEEP_CONNECTIONS_MAX: Final = 64
SERVED_SECONDS: Final = 0.002
"""How long connections are served in one sweep; sending may take as long."""
SERVED_UNSEEN: Final = 8
"""Connections that are served without a look at the clock: a millisecond at most, as a rule."""
CLOSINGS_PER_SWEEP: Final = 10
"""Each takes 100 us of CPU, and three times as long while thousands of peers leave at once."""
DUE_SECONDS: Final = 0.001
"""How long the link polls for an expected event; all other tasks of trio wait meanwhile."""
DUE_SWEEPS_MAX: Final = 4
"""So often it does that for one write."""
TURN_SECONDS: Final = 0.001
"""After so long the link looks whether others have received something."""
TURN_SECONDS_MAX: Final = 0.005
"""After so long it waits in trio for the next request: others may have a deadline."""
SWEEPS_PER_TURN: Final = 16
"""The most sweeps before that, if the clock stands still."""


class Link:
    """See the module's docstring."""

    def __init__(self, clock: Clock, limits: LinkLimits, http: HttpAddress = NO_HTTP) -> None:
        """`http` is the address for peers that speak HTTP to another protocol's listener."""
        self.clock = clock
        self.limits = limits
        self.poller = new_poller()
        self.now = clock.monotonic()
        self._storage: GroupCommit = NO_BACKEND
        self._backend: Backend = NO_BACKEND
        self._steps = steps_of(NO_BACKEND, NO_BACKEND)
        self.nursery: trio.Nursery
        """For tasks of sessions."""
        self._connections: dict[int, Connection] = {}
        self.complaints = Complaints(clock)
        self._accepting = Acceptor(self.poller, limits, self.complaints)
        self._watched: dict[int, Callable[[], None]] = {}
        self._servers: dict[int, Callable[[], None]] = {}
        """The same for connections to servers of ours."""
        self.thread_calls = CallsInSweeps()
        self._due: list[Callable[[], bool]] = [self.thread_calls.are_expected]
        self._touched = TouchedConnections()
        self.incoming = InboundMemory(limits.partial_bytes_max, limits.storing_bytes_max)
        self.writers = HeldWriters(self.incoming)
        self.outgoing = OutboundMemory(limits.sending_bytes_max, limits.outbox_high_bytes)
        self._http = http
        self._stalls = Stalls(self.incoming, self.outgoing, limits.stalled_seconds)
        self._silence = Silence(limits)
        self._pace = Pace()
        self._buffer = bytearray(limits.receive_bytes)
        self._view = memoryview(self._buffer)
        self._lingering = Lingering(self.poller, self._view)
        self._all_gone: trio.Event | None = None
        """Set when no connection is left; None unless a task waits for that."""
        self._settler = Settler(self.settle)
        self._active = self._wanted = self._closed = False
        self._sweeping = self._settling = self._again = False
        self._passed = PassedOver()
        self._others = OtherTasks()
        self._was_due = False
        """Whether a write of the journal, or of metadata, was on its way after the last turn."""
        self._slept = -math.inf
        """When the link last began to wait in trio."""
        self._requests_high = False
        self._bytes_received = self._sweeps = self._closings = 0
        self._longest = LongestSweep()

    # -- life ---------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Begin to accept on a listener."""
        self._accepting.listen(listener)

    def serve(self, storage: GroupCommit, backend: Backend) -> None:
        """Set storage and backend; called once, before `listen`."""
        assert self._backend is NO_BACKEND, "a link has one backend"
        self._storage, self._backend = storage, backend
        self._steps = steps_of(storage, backend)

    def watch(self, fd: int, call: Callable[[], None], due: Callable[[], bool]) -> None:
        """Make a call in a sweep whenever `fd` is readable, as long as it is open. `due` tells
        whether that is expected within a moment.
        """
        self._watched[fd] = call
        self._due.append(due)
        self.poller.watch(fd, READ)

    def watch_server(self, fd: int, call: Callable[[], None]) -> None:
        """Call in a sweep whenever `fd`, a server's of ours, is readable, and perhaps otherwise."""
        if not self._closed:
            self._servers[fd] = call
            self.poller.watch(fd, READ)

    def unwatch_server(self, fd: int) -> None:
        """Make no more calls for it; it is still open."""
        if self._servers.pop(fd, None) is not None:
            self.poller.forget(fd)

    def stop_listening(self) -> None:
        """Accept no new connections; existing ones go on."""
        self._accepting.stop()

    def stop_reading(self) -> None:
        """Stop to accept and to read; requests are still answered."""
        self.stop_listening()
        for connection in self._connections.values():
            connection.pause(PAUSE_STOP)

    async def stop(self) -> None:
        """Send all packed bytes, end all connections, and wait up to `LINGER_SECONDS` for peers."""
        self.stop_reading()
        self._all_gone = trio.Event()
        for connection in list(self._connections.values()):
            connection.end("the server stops")
        self.settle()
        self._note_gone()
        with trio.move_on_after(LINGER_SECONDS):
            await self._all_gone.wait()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; then every connection is closed."""
        self._settler.begin()
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            task_status.started()
            self.settle()  # for connections that are touched already
            nursery.start_soon(self._look_around)
            nursery.start_soon(self._settler.run)
            trio.lowlevel.add_instrument(self._others)
            try:
                self._watched[self.thread_calls.begin(self.poller)] = self.thread_calls.make
                await trio.lowlevel.wait_readable(self.poller.fileno())
                self._others.find_events(self.poller.fileno())
                while True:
                    self._turn()
                    await trio.lowlevel.wait_readable(self.poller.fileno())
            finally:
                trio.lowlevel.remove_instrument(self._others)
                nursery.cancel_scope.cancel()
                self.stop_listening()
                for connection in list(self._connections.values()):
                    self.drop(connection, "the server stops")
                self._lingering.close()
                self._servers.clear()
                self._closed = True
                self.thread_calls.end()
                self.poller.close()

    def statistics(self) -> LinkStatistics:
        return LinkStatistics(
            connections=len(self._connections),
            accepted=self._accepting.accepted,
            refused=self._accepting.refused,
            bytes_received=self._bytes_received,
            sweeps=self._sweeps,
            longest_pause_seconds=self._longest.seconds,
            longest_own_seconds=self._longest.own_seconds,
        )

    # -- the sweep ----------------------------------------------------------------------------

    def _turn(self) -> None:
        """Sweep, as often as that saves a turn of trio."""
        slept = self._slept
        self._sweep()
        begun = self.now
        self._sweep_if_due()
        if begun - slept > DUE_SECONDS:
            self._slept = self.clock.monotonic()
            return  # nobody is expected to send at once
        looked = begun
        for _ in range(SWEEPS_PER_TURN):
            if self._was_due or self._others.ready or self._settler.is_scheduled:
                break
            if self.now - looked > TURN_SECONDS:
                if self.now - begun > TURN_SECONDS_MAX or self._others.have_events():
                    break
                looked = self.now
            if not self._sweep(DUE_SECONDS):
                break
            self._sweep_if_due()
        self._slept = self.clock.monotonic()

    def _sweep_if_due(self) -> None:
        """Sweep again, if the sweep before has begun a write of the journal, until that has ended.
        A slow disk is not awaited here while there is something for others.
        """
        if not self._was_due:
            begun, others = self.now, self._others
            for _ in range(DUE_SWEEPS_MAX):
                if not self._is_due():
                    break
                swept = self._sweep(DUE_SECONDS)
                seconds = self.now - begun
                if others.ready or self._settler.is_scheduled or seconds > TURN_SECONDS_MAX:
                    break
                if (not swept or seconds > TURN_SECONDS) and others.have_events():
                    break
        self._was_due = self._is_due()

    def _is_due(self) -> bool:
        for due in self._due:  # noqa: SIM110  # no generator: it is asked in each sweep
            if due():
                return True
        return False

    def _sweep(self, wait_seconds: float = 0.0) -> bool:
        """Serve what is ready, now or within that time; returns whether anything was."""
        ready = self.poller.ready(wait_seconds, SWEEP_CONNECTIONS_MAX)
        if wait_seconds and not ready:
            return False
        self.now = started = self.clock.monotonic()
        self._longest.begin()
        self._sweeps += 1
        self._sweeping = self._active = True  # a touch within the sweep needs no settle of its own
        size = self._share(len(ready))
        self._requests_high = self.incoming.requests_high
        self._closings = 0
        if len(ready) == SWEEP_CONNECTIONS_MAX:
            self._serve_servers()
        if self._passed:
            ready = self._passed.come_first(ready, self._connections)
        served = self._serve_all(ready, size)
        if served < len(ready) or self._passed:
            self._passed.note(ready, served, are_all=len(ready) < SWEEP_CONNECTIONS_MAX)
        self._sweeping = False
        self.settle()
        seconds = self.clock.monotonic() - started
        self._pace.adjust(seconds, filled_by_few=served < min(len(ready), SERVED_UNSEEN + 1))
        self._longest.end(seconds)
        return True

    def _serve_all(self, ready: list[tuple[int, int]], size: int) -> int:
        """Serve what is ready until that has taken long since `now`; how many that were."""
        unseen = SERVED_UNSEEN
        served = 0
        for fd, readiness in ready:
            if not unseen:
                if self.clock.monotonic() - self.now > SERVED_SECONDS:
                    break  # the others are still ready in the next one
                unseen = SERVED_UNSEEN
            unseen -= 1
            served += 1
            connection = self._connections.get(fd)
            if connection is None:
                self._serve_other(fd)
            elif readiness == READ == connection.interest and not self.writers.holding:
                self._receive(connection, size)
            else:
                self._serve(connection, readiness, size)
            if self._closings:
                if self._closings >= CLOSINGS_PER_SWEEP:
                    break
                unseen = 0  # one may take long: that of a client with 10,000 subscriptions 50 ms
        return served

    def _serve_servers(self) -> None:
        """Thousands of ready clients wait for many sweeps; what they wait for does not."""
        self.thread_calls.make_waiting()
        for call in list(self._servers.values()):
            call()

    def _share(self, ready: int) -> int:
        """The bytes to receive from each of so many ready connections."""
        size = self._pace.share(ready)
        if self.incoming.tight:
            size = min(size, LARGE_BYTES_TIGHT)
        return min(size, self.limits.receive_bytes)

    def _serve(self, connection: Connection, readiness: int, size: int) -> None:
        """Serve one ready connection."""
        if readiness & (WRITE | GONE) and connection.outbox:
            connection.drain()
        if connection.interest & READ and connection.fd >= 0:
            if readiness & (READ | GONE):
                if self.writers.holding and connection.writes:
                    self.writers.hold(connection)
                else:
                    self._receive(connection, size)
        elif readiness & GONE:
            # A paused connection is not read, so epoll would report it for ever.
            self.drop(connection, "the peer is gone")

    def _serve_other(self, fd: int) -> None:
        """Serve a ready descriptor that is no connection."""
        if fd in self._watched:
            self._watched[fd]()
        elif fd in self._servers:
            self._servers[fd]()
        elif fd in self._accepting:
            for one in self._accepting.accept(fd):
                self._begin(one)
        else:
            self._lingering.receive(fd)
            self._note_gone()

    def begin(self) -> None:
        """Begin to deliver results; `settle` follows, so a touch needs none of its own."""
        self._active = True

    def settle(self) -> None:
        """Finish a burst of work: run the backend, then send all packed bytes.

        Within a sweep it does nothing, since the sweep ends with it. Called by the backend itself,
        it makes the backend run once more, because an earlier step may have new work.
        """
        if self._sweeping:
            return
        if self._settling:
            self._again = True
            return
        self._active = self._settling = True
        self._settler.is_scheduled = self._wanted = self._again = False
        if self.outgoing.may_relieve:
            self.outgoing.relieve()
        self._work()
        if self._again:
            self._wanted = False
            self._work()
        if self._touched:
            self._touched.flush(self.clock)
        self._active = self._settling = False
        if self._wanted or self._touched or self.outgoing.may_relieve:
            self._settler.schedule()

    def _work(self) -> None:
        """The backend's part of a sweep."""
        for step in self._steps:
            step()
        self.check_writers()

    def schedule_settle(self) -> None:
        """Schedule `settle`: there is work for the backend."""
        self._wanted = True
        if not self._active and not self._settler.is_scheduled:
            self._settler.schedule()

    def touched(self, connection: Connection) -> None:
        """`connection` may have something to send (see `Connection.touch`)."""
        self._touched.add(connection)
        if not self._active and not self._settler.is_scheduled:
            self._settler.schedule()

    def _receive(self, connection: Connection, size: int) -> None:
        partial = connection.partial
        data: bytes | LargeFrame | None
        expects = False
        try:
            if partial.large is None:
                left = partial.left
                if self._requests_high and not partial.proven:
                    size = min(size, ASKING_BYTES)
                if partial.large_bytes:
                    expects, size = True, EXPECTED_BYTES
                data = receive(connection.fd, left, self._view, size)
                count = len(data) - len(left)
            else:
                count, data = partial.gather()
        except BlockingIOError:
            return
        except OSError as error:
            self.drop(connection, f"receiving failed: {error.strerror}")
            return
        if not count:
            self.drop(connection, "the peer closed")
            return
        self._bytes_received += count
        connection.received_bytes += count
        connection.heard = self.now
        connection.pinged = False
        if data:
            self._feed(connection, data)
        if expects:
            self._expect_large(connection)

    def _expect_large(self, connection: Connection) -> None:
        """After a large frame, receive little at first: another large one is likely to follow, and
        its beginning has to be copied.
        """
        if connection.partial.large is None:
            connection.partial.large_bytes = 0
        elif connection.interest & READ:
            self._receive(connection, 0)

    def _feed(self, connection: Connection, data: bytes | LargeFrame) -> None:
        wire = connection.wire
        ending, last_words = None, b""
        try:
            rest = b""
            try:
                if isinstance(data, bytes):
                    rest = data[wire.feed(data) :]
                else:
                    wire.feed_large(data)
            except WireError as error:
                ending, last_words = str(error), self._last_words(connection, data, error)
            if rest:
                connection.partial.keep(rest)
            else:
                connection.partial.kept_nothing()
            handle = connection.session.handle
            for event in wire.take_events():
                if connection.ending is not None:
                    break
                connection.introduced = True
                handle(event)
        except Exception:
            log.exception("%s: closed, this server failed", connection.peer)
            self.drop(connection, "this server failed")
            return
        if ending is not None:
            connection.end(ending, last_words)
        if wire.packs_unasked:
            connection.touch()

    def _last_words(
        self, connection: Connection, data: bytes | LargeFrame, error: WireError
    ) -> bytes:
        """Log the error, if it is one; returns what is sent after all replies."""
        foreign = self._foreign_name(connection, data)
        if foreign:
            return self._answer_foreign(connection, foreign)
        if not isinstance(error, PeerLeft):
            connection.complain("bytes that make no sense", f"closed: {error}")
        return b""

    def _foreign_name(self, connection: Connection, begin: bytes | LargeFrame) -> str:
        """The foreign protocol of its first bytes; empty for none, and under a layer."""
        if connection.introduced or connection.layered or not isinstance(begin, bytes):
            return ""
        return foreign_protocols.spoken(begin)

    def _answer_foreign(self, connection: Connection, name: str) -> bytes:
        """The reply to a peer of that protocol, with the address of its front."""
        connection.complain(f"{name} at another protocol's port", f"closed: this is {name}")
        return foreign_protocols.answer(name, self._http.reached_from(connection.reached_at[0]))

    # -- coming and going ---------------------------------------------------------------------

    def adopt(self, name: str, sock: socket.socket, protocol: Protocol, begin: bytes) -> None:
        """Serve a connection that somebody else has accepted, with what it has sent."""
        self.now = self.clock.monotonic()
        self._feed(self._begin(self._accepting.adopted(name, sock, protocol)), begin)

    def _begin(self, accepted: Accepted) -> Connection:
        connection = Connection(self, accepted.socket, accepted.peer, accepted.refusal)
        for displaced in self._accepting.displaced_by(connection):
            self.drop(displaced, "refused")
        wire, session = accepted.listener.protocol(connection)
        tls = accepted.listener.door.tls
        connection.serve(wire if tls is None else TlsWire(tls.current, wire), session)
        self._connections[connection.fd] = connection
        self._accepting.enter(connection, self.now)
        self.poller.watch(connection.fd, READ)
        self._silence.enter(connection, self.now)
        log.debug("%s: connected to %s", accepted.peer, accepted.listener.door.name)
        return connection

    def drop(self, connection: Connection, reason: str) -> None:
        """Close at once and notify the session."""
        if connection.fd < 0:
            return
        self.poller.forget(connection.fd)
        connection.socket.close()
        self._forget(connection, reason)

    def linger(self, connection: Connection, reason: str) -> None:
        """Close once the peer has received everything; the session is notified now."""
        if connection.fd < 0:
            return
        while self._all_gone is None and len(self._lingering) >= LINGERING_MAX:
            self._lingering.close_oldest()
        self._watched.pop(connection.fd, None)  # closed, and its number reused
        deadline = self.clock.monotonic() + LINGER_SECONDS  # `now` is older, outside of sweeps
        self._lingering.begin(connection.socket, deadline)
        self._forget(connection, reason)

    def _forget(self, connection: Connection, reason: str) -> None:
        self._closings += 1
        del self._connections[connection.fd]
        self._passed.forget(connection.fd)
        self.writers.forget(connection)
        self._silence.leave(connection)
        self._accepting.leave(connection)
        connection.release()
        log.debug("%s: closed: %s", connection.peer, reason)
        session, connection.session = connection.session, NO_SESSION
        try:
            session.closed(reason)
        except Exception:
            log.exception("%s: this server failed after the connection", connection.peer)
        self._note_gone()

    def _note_gone(self) -> None:
        if self._all_gone is not None and not self._connections and not self._lingering:
            self._all_gone.set()

    # -- pressure and silence -----------------------------------------------------------------

    def check_writers(self) -> None:
        """Hold connections that write, or release some (`core/link/memory/held_writers.py`)."""
        if self.writers.check(congested=self._storage.congested):
            self._wanted = True

    async def _look_around(self) -> None:
        """Periodic checks."""
        while True:
            await trio.sleep(min(1.0, self.limits.silence_seconds / 4))
            self.now = self.clock.monotonic()
            self._lingering.close_overdue(self.now)
            self._note_gone()
            self._accepting.wake()
            self.complaints.count_up()
            for overdue in self._accepting.overdue(self.now):
                self.drop(overdue, "refused")
            for connection, reason in self._silence.expired(self.now):
                self.drop(connection, reason)
            present = self._connections.values()
            for connection, reason in list(self._stalls.stalled(present, self.now)):
                connection.complain("holding memory", f"closed: it {reason}")
                self.drop(connection, reason)
            self.outgoing.look_again()
            self.settle()
