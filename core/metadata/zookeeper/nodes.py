"""Nodes that hold values: read, and written over the version that they have.

- A path that only leads to others is a node without data (null), which ZooKeeper tells from empty
  data. It is created on the way to the first path below it and removed with the last one. Nodes of
  Apache's clients on the way have empty data: they are values here, and stay.
- A value that is deleted and has children becomes such a node, and its version goes on from there.

Lost answers. When a connection breaks, a request may have been carried out or not, and may even be
later, while the next connection is used. So the store sends it again: every write states the
version that it expects, so of all copies one takes effect at most. If the copy is refused, the
store reads the node and judges:

    put over version n     n + 1 with our bytes, which the node did not have at n: ours
                           n + 1 with other bytes, or not beyond n: another's, `BadVersion`
                           anything else proves nothing: `StorageFailed`, and the caller reads again
    put of a new path      version 0 with our bytes: ours (two creators of the same bytes cannot be
                           told apart; BookKeeper's ledgers have a token for that)
    delete                 no node, or one that was created since: done
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

import trio
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, NotEmptyError

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound, StorageFailed
from magnetar.core.metadata.zookeeper.memory import NodeMemory
from magnetar.core.metadata.zookeeper.session import AnswerLost, ZooKeeperSession
from magnetar.core.metadata.zookeeper.sessions import ZooKeeperSessions
from magnetar.core.ports.metadata_store import Versioned

PAUSE_SECONDS: Final = 0.02
"""Before a request is sent again."""
Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Nodes:
    """See the module's docstring. Paths are ZooKeeper's own here."""

    def __init__(self, sessions: ZooKeeperSessions) -> None:
        self._sessions = sessions
        self._memory = NodeMemory()

    async def insist(
        self,
        request: Callable[Concatenate[ZooKeeperSession, Arguments], Awaitable[Answer]],
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Answer:
        """Ask until there is an answer; only what may be carried out twice."""
        while True:
            try:
                return await request(self._sessions.current, *arguments, **options)
            except AnswerLost:
                await trio.sleep(PAUSE_SECONDS)

    async def get(self, path: str) -> Versioned | None:
        try:
            value, stat = await self.insist(ZooKeeperSession.read, path)
        except NoNodeError:
            return None
        if value is None:
            return None
        self._memory.note(path, stat.version, value, stat.czxid)
        return Versioned(value, stat.version)

    async def create(self, path: str, value: bytes) -> int:
        lost = False
        while True:
            try:
                await self._sessions.current.create(path, value)
            except AnswerLost:
                lost = True
                await trio.sleep(PAUSE_SECONDS)
            except NoNodeError:
                await self.make_parents(path)
            except NodeExistsError:
                version = await self._created(path, value, lost=lost)
                if version is not None:
                    return version
            else:
                self._memory.note(path, 0, value, created=None)
                return 0

    async def _created(self, path: str, value: bytes, *, lost: bool) -> int | None:
        """The version of what was created, after all; None if there is nothing any more."""
        try:
            found, stat = await self.insist(ZooKeeperSession.read, path)
        except NoNodeError:
            return None
        if found is None:
            try:
                return await self.overwrite(path, value, stat.version)
            except BadVersion:
                return None
        if lost and found == value and stat.version == 0:
            self._memory.note(path, 0, value, stat.czxid)
            return 0
        if lost and stat.version > 0:
            raise StorageFailed(f"{path}: it is not known whether this server created it")
        raise AlreadyExists(f"{path} exists")

    async def overwrite(self, path: str, value: bytes | None, expected: int) -> int:
        lost = False
        while True:
            try:
                version = await self._sessions.current.overwrite(path, value, expected)
            except AnswerLost:
                lost = True
                await trio.sleep(PAUSE_SECONDS)
            except (BadVersionError, NoNodeError):
                if lost and await self._is_ours(path, value, expected):
                    version = expected + 1
                    break
                raise BadVersion(f"{path} has not version {expected}") from None
            else:
                break
        self._memory.note(path, version, value, created=None)
        return version

    async def _is_ours(self, path: str, value: bytes | None, expected: int) -> bool:
        """Whether a refused copy of a write was refused because an earlier copy took effect."""
        try:
            found, stat = await self.insist(ZooKeeperSession.read, path)
        except NoNodeError:
            return False
        if stat.version <= expected or (stat.version == expected + 1 and found != value):
            return False
        if stat.version == expected + 1 and self._memory.was_other(path, expected, value):
            return True
        raise StorageFailed(f"{path}: it is not known whether this server wrote it")

    async def delete(self, path: str, expected: int, root: str) -> None:
        """Delete a value, and what has led to it only, up to `root`."""
        await self._delete(path, expected)
        self._memory.forget(path)
        await self._remove_parents(path, root)

    async def _delete(self, path: str, expected: int) -> None:
        lost = False
        while True:
            try:
                await self._sessions.current.remove(path, expected)
            except AnswerLost:
                lost = True
                await trio.sleep(PAUSE_SECONDS)
                if await self._was_replaced(path, expected):
                    return
            except NotEmptyError:
                await self.overwrite(path, None, expected)
                return
            except NoNodeError:
                if lost:
                    return
                raise NotFound(f"{path} does not exist") from None
            except BadVersionError:
                if await self.get(path) is None:
                    raise NotFound(f"{path} does not exist") from None
                raise BadVersion(f"{path} has not version {expected}") from None
            else:
                return

    async def _was_replaced(self, path: str, expected: int) -> bool:
        """Whether the node of that version is known to be gone, and another one in its place."""
        created = self._memory.created(path, expected)
        try:
            _, stat = await self.insist(ZooKeeperSession.read, path)
        except NoNodeError:
            return False
        return created is not None and stat.czxid != created

    async def make_parents(self, path: str) -> None:
        """Create the nodes that lead to a path."""
        parent = path.rpartition("/")[0]
        missing = []
        while parent:
            try:
                await self.insist(ZooKeeperSession.create, parent, None)
            except NodeExistsError:
                pass
            except NoNodeError:
                missing.append(parent)
                parent = parent.rpartition("/")[0]
                continue
            if not missing:
                return
            parent = missing.pop()

    async def _remove_parents(self, path: str, root: str) -> None:
        """Remove the nodes below `root` that have led to nothing but a path."""
        while (path := path.rpartition("/")[0]) != root:
            try:
                value, stat = await self.insist(ZooKeeperSession.read, path)
                if value is not None or stat.numChildren:
                    return
                await self.insist(ZooKeeperSession.remove, path, stat.version)
            except (NoNodeError, NotEmptyError, BadVersionError):
                return
