"""Writes that happen once, and prove it, however many answers are lost.

Theory. When a connection breaks, its last writes have happened, or not, or will when the server
gets to them, while the client goes on over another connection. What stands at the path does not
tell whose it is: another client may have written the same bytes over the same version. So each
write is one transaction with a second one, to a node of this session alone:

    setData(slot, version k)  and  the write

The slot has the version k once, so of all copies of the transaction one can happen. After a lost
answer the same copy is sent again:

    it succeeds                         the first has not happened, and never will
    the slot has not version k          the first has happened: done
    the write is refused                neither has, for the slot still has version k

Slots are ephemeral. If the session ends before there is an answer, the proof is gone with it: the
write may have happened (`Unproven`). A slot whose last write may still be on its way is not used
again, but removed, so that no late copy happens either.

A slot costs a node in ZooKeeper's memory and its share of the transaction, and no round trip.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import trio
from kazoo.exceptions import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    ZookeeperError,
)
from kazoo.protocol.serialization import Create, Delete, SetData

from magnetar.core.metadata.zookeeper.session import AnswerLost, SessionState, ZooKeeperSession
from magnetar.core.metadata.zookeeper.sessions import ZooKeeperSessions

WRITERS: Final = "magnetar-writers"
"""The node of all slots, at the root."""
WRITES_MAX: Final = 100
"""Writes under way at a time, and so slots of a session; more of them wait."""
PAUSE_SECONDS: Final = 0.02
"""Before a request is sent again."""


class Unproven(Exception):
    """The session has ended: the write may have happened, and does not any more."""


class Slot:
    """A node that only one writer writes, one write at a time."""

    def __init__(self, session: ZooKeeperSession, path: str) -> None:
        self.session = session
        self.path = path
        self.version = 0


class Slots:
    """See the module's docstring."""

    def __init__(self, sessions: ZooKeeperSessions, root: str) -> None:
        self._sessions = sessions
        self._parent = f"{root}/{WRITERS}"
        self._free: list[Slot] = []
        self._turns = trio.Semaphore(WRITES_MAX)
        self._made = 0

    async def write(self, request: Create | SetData | Delete) -> ZooKeeperSession:
        """Carry a write out once, and return the session that did.

        Raises kazoo's error if the write is refused: then it has not happened.
        """
        async with self._turns:
            slot = await self._take()
            try:
                refusal, lost = await self._carry_out(slot, request)
            except trio.Cancelled:
                slot.session.remove_soon(slot.path)
                raise
            if refusal is None:
                slot.version += 1
                self._free.append(slot)
                return slot.session
            if lost:  # a copy may be on its way, and must not happen when the path is free again
                slot.session.remove_soon(slot.path)
            else:
                self._free.append(slot)
            raise refusal

    async def clear(self) -> None:
        """Remove our slots, and the node of all if nobody else has one: the next write makes it."""
        session = self._sessions.current
        with suppress(AnswerLost, NotEmptyError):
            while self._free:
                slot = self._free.pop()
                with suppress(NoNodeError):
                    await session.remove(slot.path, -1)
            with suppress(NoNodeError):
                await session.remove(self._parent, -1)

    async def _carry_out(
        self, slot: Slot, request: Create | SetData | Delete
    ) -> tuple[ZookeeperError | None, bool]:
        """Why the write was refused, if it was; and whether an answer was lost before."""
        lost = False
        while True:
            proof, answer = await self._send(slot, request)
            if proof is None:
                lost = True
                await trio.sleep(PAUSE_SECONDS)
            elif isinstance(proof, NoNodeError):
                raise Unproven
            elif isinstance(proof, BadVersionError):
                assert lost, "nobody else writes to a slot"
                return None, lost
            else:
                return (answer if isinstance(answer, ZookeeperError) else None), lost

    async def _send(self, slot: Slot, request: Create | SetData | Delete) -> tuple[Any, Any]:
        """What became of the slot and of the write; None if the answer is lost."""
        try:
            proof, answer = await slot.session.write(
                [SetData(slot.path, b"", slot.version), request]
            )
        except AnswerLost:
            if slot.session.state is SessionState.ENDED:
                raise Unproven from None
            return None, None
        return proof, answer

    async def _take(self) -> Slot:
        while self._free:
            slot = self._free.pop()
            if slot.session is self._sessions.current:
                return slot
        while True:
            session = self._sessions.current
            self._made += 1
            path = f"{self._parent}/{session.session_id:x}-{self._made}"
            try:
                await session.create(path, b"", ephemeral=True)
            except AnswerLost:
                await trio.sleep(PAUSE_SECONDS)
            except NoNodeError:
                await self._make(self._parent, b"")
            except NodeExistsError:
                continue
            else:
                return Slot(session, path)

    async def _make(self, path: str, value: bytes | None) -> None:
        """Create a node, or what is missing on the way there: then it is tried again.

        From below, for ZooKeeper refuses to create what exists where we may not write.
        """
        try:
            await self._sessions.current.create(path, value)
        except (AnswerLost, NodeExistsError):
            return
        except NoNodeError:
            await self._make(path.rpartition("/")[0], None)
