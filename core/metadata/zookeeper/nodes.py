"""Nodes that hold values: read, and written over the version that they have.

- A path that only leads to others is a node without data (null), which ZooKeeper tells from empty
  data. It is created on the way to the first path below it and removed with the last one. Nodes of
  Apache's clients on the way have empty data: they are values here, and stay.
- A value that is deleted and has children becomes such a node, and its version goes on from there.

Each write happens once, however many answers are lost (`slots.py`). Only if the session ends before
there is an answer, it is not known whether it has. Then the node is read back:

    put over version n     version n, or less: not; it is tried again
                           n + 1 with other bytes: not; another's, `BadVersion`
                           anything else proves nothing
    put of a new path      no node: not; it is tried again
                           version 0 with other bytes: not; another's, `AlreadyExists`
                           anything else proves nothing
    delete                 no node: done; anything else proves nothing

What proves nothing is `StorageFailed`: the caller reads again and decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar

import trio
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError, NotEmptyError
from kazoo.protocol.serialization import Create, Delete, SetData
from kazoo.security import OPEN_ACL_UNSAFE

from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound, StorageFailed
from magnetar.core.metadata.zookeeper.session import AnswerLost, ZooKeeperSession
from magnetar.core.metadata.zookeeper.sessions import ZooKeeperSessions
from magnetar.core.metadata.zookeeper.slots import PAUSE_SECONDS, Slots, Unproven
from magnetar.core.ports.metadata_store import Versioned

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class Nodes:
    """See the module's docstring. Paths are ZooKeeper's own here."""

    def __init__(self, sessions: ZooKeeperSessions, slots: Slots) -> None:
        self._sessions = sessions
        self._slots = slots

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
        return Versioned(value, stat.version)

    async def create(self, path: str, value: bytes) -> int:
        unproven = False
        while True:
            try:
                await self._slots.write(Create(path, value, OPEN_ACL_UNSAFE, 0))
            except Unproven:
                unproven = True
            except NoNodeError:
                await self.make_parents(path)
            except NodeExistsError:
                version = await self._created(path, value, unproven=unproven)
                if version is not None:
                    return version
            else:
                return 0

    async def _created(self, path: str, value: bytes, *, unproven: bool) -> int | None:
        """The version of a node that led to others only; None if there is none any more."""
        try:
            found, stat = await self.insist(ZooKeeperSession.read, path)
        except NoNodeError:
            return None
        if found is None:
            try:
                return await self.overwrite(path, value, stat.version)
            except BadVersion:
                return None
        if unproven and (found == value or stat.version > 0):
            raise StorageFailed(f"{path}: it is not known whether this server created it")
        raise AlreadyExists(f"{path} exists")

    async def overwrite(self, path: str, value: bytes | None, expected: int) -> int:
        unproven = False
        while True:
            try:
                await self._slots.write(SetData(path, value, expected))
            except Unproven:
                unproven = True
            except (BadVersionError, NoNodeError):
                if unproven and not await self._is_of_another(path, value, expected):
                    raise StorageFailed(
                        f"{path}: it is not known whether this server wrote it"
                    ) from None
                raise BadVersion(f"{path} has not version {expected}") from None
            else:
                return expected + 1

    async def _is_of_another(self, path: str, value: bytes | None, expected: int) -> bool:
        """Whether what is there now proves that a write of ours has not happened."""
        try:
            found, stat = await self.insist(ZooKeeperSession.read, path)
        except NoNodeError:
            return False
        return stat.version <= expected or (stat.version == expected + 1 and found != value)

    async def delete(self, path: str, expected: int, root: str) -> None:
        """Delete a value, and what has led to it only, up to `root`."""
        await self._delete(path, expected)
        await self._remove_parents(path, root)

    async def _delete(self, path: str, expected: int) -> None:
        try:
            await self._slots.write(Delete(path, expected))
        except NotEmptyError:
            await self.overwrite(path, None, expected)
        except NoNodeError:
            raise NotFound(f"{path} does not exist") from None
        except BadVersionError:
            if await self.get(path) is None:
                raise NotFound(f"{path} does not exist") from None
            raise BadVersion(f"{path} has not version {expected}") from None
        except Unproven:
            if await self.get(path) is not None:
                raise StorageFailed(
                    f"{path}: it is not known whether this server deleted it"
                ) from None

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
