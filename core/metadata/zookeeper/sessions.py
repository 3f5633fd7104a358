"""Sessions with ZooKeeper, one after the other, and the leases that end with each.

Theory. ZooKeeper ends a session T seconds after it has heard the last of it, and deletes its
ephemeral nodes; then another session can take them. It tells the client when the client reaches it
again, which may be long after (a client that is cut off stays in kazoo's SUSPENDED for ever). So
this process must stop by its own clock, and before ZooKeeper's runs out:

    good until = sending of the newest request that a quorum has answered + T * GOOD_PART

- ZooKeeper has heard of us no earlier than we sent, so its T begins no earlier than ours.
- The request is a write that changes nothing. A read is answered by one server, which may have lost
  the others without knowing it yet, while they count us as silent.
- A follower reports its sessions to the leader with the answer to the leader's ping, every half
  tick (`Leader.java` and `Learner.java` of 3.9). So the leader may be half a tick behind, and T is
  two ticks at least (`minSessionTimeout`): a quarter of T. GOOD_PART leaves a third.

    state      means                                     leaves for
    no lease   nothing to give up; nothing is sent       leased, by a creation that was answered
    leased     a proof is sent BEATS times within T      no lease, when all are given up, or lost:
                                                         `good until` is past, or ZooKeeper said so

Invariant: leases are told to be lost in one step, before the session is left to ZooKeeper, and with
it the session ends for us. A lease lives in one session only, and none comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import trio
from kazoo.exceptions import UnimplementedError
from msgspec import Struct

from magnetar.core.kernel.errors import Unsupported
from magnetar.core.metadata.zookeeper.session import AnswerLost, SessionState, ZooKeeperSession
from magnetar.core.metadata.zookeeper.watches import Watches

GOOD_PART: Final = 2 / 3
BEATS: Final = 6
log = logging.getLogger(__name__)


class ZooKeeperStatistics(Struct, frozen=True):
    """The connection to ZooKeeper, as an operator sees it."""

    connected: bool
    sessions_ended: int
    """Sessions that ended while the store was open: their leases were lost."""
    leases: int
    requests_waiting: int


class ZooKeeperSessions:
    """See the module's docstring. Paths are ZooKeeper's own here."""

    def __init__(
        self, servers: str, timeout_seconds: float, watches: Watches, nursery: trio.Nursery
    ) -> None:
        self.watches = watches
        self.leases: dict[str, Callable[[], None]] = {}
        self._servers = servers
        self._timeout_seconds = timeout_seconds
        self._nursery = nursery
        self._connected = trio.Event()
        self._leased = trio.Event()
        self._good_until = 0.0
        self._ended = 0
        self.current = self._begin()

    def _begin(self) -> ZooKeeperSession:
        def told(state: SessionState) -> None:
            self._told(session, state)

        session = ZooKeeperSession(self._servers, self._timeout_seconds, self.watches.heard, told)
        return session

    def _told(self, session: ZooKeeperSession, state: SessionState) -> None:
        if session is not self.current:
            return
        if state is SessionState.CONNECTED:
            log.info("connected to ZooKeeper at %s, session %#x", self._servers, session.session_id)
            self._connected.set()
            for prefix in self.watches.prefixes():
                self._watch_again(prefix)
        elif state is SessionState.ENDED:
            self.lose("ZooKeeper has expired it")
        else:
            log.warning("the connection to ZooKeeper at %s broke", self._servers)

    def statistics(self) -> ZooKeeperStatistics:
        return ZooKeeperStatistics(
            connected=self.current.state is SessionState.CONNECTED,
            sessions_ended=self._ended,
            leases=len(self.leases),
            requests_waiting=self.current.waiting,
        )

    @property
    def timeout_seconds(self) -> float:
        """That of sessions: what was asked for, or what ZooKeeper granted if that is longer."""
        return max(self._timeout_seconds, self.current.timeout_seconds)

    async def wait_connected(self) -> None:
        """Until a connection was there once."""
        await self._connected.wait()

    # -- watches ------------------------------------------------------------------------------

    def watch(self, prefix: str) -> None:
        """Have changes reported; no later request is carried out before."""
        self.current.add_watch(prefix, self._watched)

    def end_watch(self, prefix: str) -> None:
        """Have them reported no longer."""
        self.current.remove_watch(prefix)

    def _watch_again(self, prefix: str) -> None:
        def added(error: BaseException | None) -> None:
            self._watched(error)
            if error is None:
                self.watches.missed(prefix)

        self.current.add_watch(prefix, added)

    def _watched(self, error: BaseException | None) -> None:
        if isinstance(error, UnimplementedError):
            self._nursery.start_soon(self._refuse_server)
        # any other error is that of the connection; with the next one the watch is added again

    async def _refuse_server(self) -> None:
        raise Unsupported(
            f"ZooKeeper at {self._servers} has no persistent watches: 3.6 is the oldest that this "
            "server works with"
        )

    # -- leases -------------------------------------------------------------------------------

    def hold(
        self, path: str, lost: Callable[[], None], session: ZooKeeperSession, sent: float
    ) -> bool:
        """Note a lease that was created by a request of then; False if that is too long ago."""
        if session is not self.current:
            return False
        self.leases[path] = lost
        self._proven(session, sent)
        if trio.current_time() >= self._good_until:
            self.lose("its answers take too long")
            return False
        self._leased.set()
        return True

    def _proven(self, session: ZooKeeperSession, sent: float) -> None:
        until = sent + session.timeout_seconds * GOOD_PART
        self._good_until = max(self._good_until, until)

    async def keep(self) -> None:
        """Prove to ourselves that the session lives, as long as there are leases."""
        while True:
            if not self.leases:
                self._leased = trio.Event()
                await self._leased.wait()
            session, sent = self.current, trio.current_time()
            with trio.CancelScope(deadline=self._good_until):
                try:
                    await session.commit()
                except AnswerLost:
                    pass
                else:
                    if session is self.current:
                        self._proven(session, sent)
            if session is self.current and self.leases:
                if trio.current_time() >= self._good_until:
                    self.lose("it has not answered for too long")
                else:
                    await trio.sleep_until(sent + session.timeout_seconds / BEATS)

    async def guard(self) -> None:
        """End a session whose connection stands and brings nothing: the way is gone."""
        while True:
            await trio.sleep(self._timeout_seconds / 2)
            if self.current.is_silent():
                self.lose("it answers nothing")

    def lose(self, why: str) -> None:
        """End the session; another one begins."""
        leases, self.leases = self.leases, {}
        old, self._good_until = self.current, 0.0
        self._ended += 1
        log.warning(
            "the session %#x with ZooKeeper at %s has ended: %s; leases lost: %s",
            old.session_id, self._servers, why, ", ".join(leases) or "none",
        )  # fmt: skip
        old.end()
        self.current = self._begin()
        for lost in leases.values():
            lost()
        self._nursery.start_soon(_close, old)

    async def close(self, seconds: float) -> None:
        """End the last session; its leases are given up, and nobody is told. ZooKeeper has so long
        to answer.
        """
        self.leases = {}
        self.current.end()
        with trio.move_on_after(seconds, shield=True):
            await _close(self.current)


async def _close(session: ZooKeeperSession) -> None:
    await trio.to_thread.run_sync(session.close, abandon_on_cancel=True)
