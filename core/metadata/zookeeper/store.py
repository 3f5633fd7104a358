"""The MetadataStore of a cluster: ZooKeeper, in the layout of Pulsar and BookKeeper.

What the port asks for, and how it stands in ZooKeeper:

- A value is the data of a node; a path that only leads to others has a node without (`nodes.py`).
- `next` takes the number of an ephemeral sequential node `ID-NNNNNNNNNN` below the path, as Apache
  does for ledger ids (`ZkLedgerIdGenerator.java` of BookKeeper 4.18).
- A lease is an ephemeral node (`sessions.py`).

Each write happens once, however many answers are lost, and says so (`slots.py`); if the session
ends first, what is there is read back (`nodes.py`). A number whose answer was lost is left out.

Writes are shielded from cancellation, as the port's callers are used to, for `answer_seconds` at
most; then they raise `StorageFailed`, and whether they happened is not known. When the block of the
store itself is cancelled, they end after `LAST_SECONDS`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import trio
from kazoo.exceptions import NodeExistsError, NoNodeError, ZookeeperError
from kazoo.protocol.serialization import Create
from kazoo.security import OPEN_ACL_UNSAFE

from magnetar.core.kernel.errors import (
    AlreadyExists,
    Invalid,
    StorageFailed,
    StorageFull,
)
from magnetar.core.metadata.zookeeper import names
from magnetar.core.metadata.zookeeper.addresses import ZooKeeperAddress
from magnetar.core.metadata.zookeeper.nodes import Nodes
from magnetar.core.metadata.zookeeper.session import AnswerLost, ZooKeeperSession
from magnetar.core.metadata.zookeeper.sessions import ZooKeeperSessions, ZooKeeperStatistics
from magnetar.core.metadata.zookeeper.slots import PAUSE_SECONDS, WRITERS, Slots, Unproven
from magnetar.core.metadata.zookeeper.watches import Watches, is_below
from magnetar.core.ports.metadata_store import ABSENT, PutDone, Versioned

TIMEOUT_SECONDS: Final = 10.0
"""Of a session; BookKeeper's `zkTimeout`."""
LAST_SECONDS: Final = 0.25
"""For answers, and for the good-bye, when this process has no time left to stop in order."""
CLOSE_SECONDS: Final = 2.0
"""How long a stop waits for ZooKeeper's good-bye; without it, the session expires."""
SILENT_SECONDS: Final = 2.0
"""How long nothing is said while the first connection is waited for."""
VALUE_BYTES_MAX: Final = 1_000_000
"""ZooKeeper closes connections that send more than 1 MiB (`jute.maxbuffer`)."""
VALUES_AT_ONCE: Final = 100
"""Values of one request."""
SEQUENCE: Final = "ID-"
HIDDEN: Final = ("zookeeper", WRITERS)
"""At the root: ZooKeeper's own node, and ours."""
EPHEMERAL: Final = 1
log = logging.getLogger(__name__)


class ZooKeeperMetadata:
    """See the module's docstring."""

    def __init__(
        self, address: ZooKeeperAddress, timeout_seconds: float, nursery: trio.Nursery
    ) -> None:
        self._address = address
        self._root = address.root
        self._answer_seconds = 3 * timeout_seconds
        self._close_seconds = CLOSE_SECONDS
        self._calls: set[trio.CancelScope] = set()
        self._watches = Watches(names.encode(address.root))
        self._sessions = ZooKeeperSessions(address.servers, timeout_seconds, self._watches, nursery)
        self._slots = Slots(self._sessions, names.encode(address.root))
        self._nodes = Nodes(self._sessions, self._slots)

    # -- reading ------------------------------------------------------------------------------

    async def get(self, path: str) -> Versioned | None:
        async with self._limit(path, shield=False):
            return await self._nodes.get(self._node(path))

    async def values(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Those of many paths, as far as there are any: a request for many takes little more of
        the processor than one for each.
        """
        found: dict[str, bytes] = {}
        for start in range(0, len(paths), VALUES_AT_ONCE):
            some = paths[start : start + VALUES_AT_ONCE]
            nodes = [self._node(path) for path in some]
            async with self._limit(some[0], shield=False):
                values = await self._nodes.insist(ZooKeeperSession.read_all, nodes)
            each = zip(some, values, strict=True)
            found.update((path, value) for path, value in each if value is not None)
        return found

    async def children(self, path: str) -> list[str]:
        async with self._limit(path, shield=False):
            try:
                found = await self._nodes.insist(ZooKeeperSession.names, self._node(path))
            except NoNodeError:
                return []
        if not path.rstrip("/"):
            found = [name for name in found if name not in HIDDEN]
        return sorted(map(names.decode, found))

    async def sync(self) -> None:
        async with self._limit("/", shield=False):
            await self._nodes.insist(ZooKeeperSession.commit)

    # -- writing ------------------------------------------------------------------------------

    async def put(self, path: str, value: bytes, expected: int) -> int:
        if len(value) > VALUE_BYTES_MAX:
            raise Invalid(f"{path}: ZooKeeper takes {VALUE_BYTES_MAX} bytes, not {len(value)}")
        await trio.lowlevel.checkpoint_if_cancelled()
        async with self._limit(path, shield=True):
            if expected == ABSENT:
                return await self._nodes.create(self._node(path), value)
            return await self._nodes.overwrite(self._node(path), value, expected)

    @property
    def puts_at_once(self) -> bool:
        return False

    def put_at_once(self, path: str, value: bytes, expected: int, done: PutDone) -> bool:
        del path, value, expected, done
        return False  # a request waits for its turn, and perhaps for a session

    async def delete(self, path: str, expected: int) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        async with self._limit(path, shield=True):
            await self._nodes.delete(self._node(path), expected, names.encode(self._root))
            self._sessions.leases.pop(path, None)

    async def remove_writers(self) -> None:
        """Remove the node with which writes prove themselves, if nobody else uses it: for who has
        removed all else.
        """
        async with self._limit("/", shield=True):
            await self._slots.clear()

    # -- leases, numbers, watches -------------------------------------------------------------

    async def lease(self, path: str, value: bytes, lost: Callable[[], None]) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        async with self._limit(path, shield=True):
            while True:
                sent = trio.current_time()
                try:
                    session = await self._slots.write(
                        Create(self._node(path), value, OPEN_ACL_UNSAFE, EPHEMERAL)
                    )
                except Unproven:
                    continue  # and with the session, the node is gone or soon will be
                except NoNodeError:
                    await self._nodes.make_parents(self._node(path))
                except NodeExistsError:
                    raise AlreadyExists(f"{path} is held") from None
                else:
                    break
            if not self._sessions.hold(path, lost, session, sent):
                raise StorageFailed(f"{path}: the session ended while the lease was taken")

    async def next(self, path: str) -> int:
        node = f"{self._node(path)}/{SEQUENCE}"
        await trio.lowlevel.checkpoint_if_cancelled()
        async with self._limit(path, shield=True):
            while True:
                session = self._sessions.current
                try:
                    made = await session.create(node, b"", ephemeral=True, sequence=True)
                except AnswerLost:
                    await trio.sleep(PAUSE_SECONDS)
                except NoNodeError:
                    await self._make_counter(path)
                else:
                    break
        session.remove_soon(made)
        number = int(made.removeprefix(node))
        if number < 0:  # ZooKeeper's number has 32 bits
            raise StorageFull(f"{path} has no more numbers")
        return number

    async def _make_counter(self, path: str) -> None:
        """Create it with data, since it must stay: its numbers would begin again."""
        try:
            await self._nodes.create(self._node(path), b"")
        except AlreadyExists:
            return

    def watch(self, prefix: str, changed: Callable[[str], None]) -> Callable[[], None]:
        node = self._node(prefix)
        writers = self._node(f"/{WRITERS}")

        def heard(found: str) -> None:
            if not is_below(found, writers):
                changed(self._path(found))

        end = self._watches.add(node, heard)
        self._sessions.watch(node)

        def end_both() -> None:
            if end():
                self._sessions.end_watch(node)

        return end_both

    # -- the tree, and the limits -------------------------------------------------------------

    def _node(self, path: str) -> str:
        return names.encode(self._root + path.rstrip("/")) or "/"

    def _path(self, node: str) -> str:
        return names.decode(node).removeprefix(self._root) or "/"

    @asynccontextmanager
    async def _limit(self, path: str, *, shield: bool) -> AsyncIterator[None]:
        """The time for one call; and no error of kazoo's leaves it."""
        deadline = trio.current_time() + self._answer_seconds
        with trio.CancelScope(deadline=deadline, shield=shield) as scope:
            self._calls.add(scope)
            try:
                yield
            except ZookeeperError as error:
                raise StorageFailed(f"{path}: ZooKeeper says {error!r}") from error
            finally:
                self._calls.remove(scope)
            return
        await trio.lowlevel.checkpoint_if_cancelled()
        assert scope.cancelled_caught
        raise StorageFailed(
            f"{path}: ZooKeeper at {self._address.servers} has not answered for "
            f"{self._answer_seconds:g} s"
        )

    async def run(self) -> None:
        """Keep the leases, and end dead sessions, for as long as the store is open."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._sessions.keep)
                nursery.start_soon(self._sessions.guard)
        finally:
            self._hurry()

    def _hurry(self) -> None:
        """Those who use this store are cancelled: what is shielded must not keep them for long."""
        self._answer_seconds = self._close_seconds = LAST_SECONDS
        for call in self._calls:
            call.deadline = min(call.deadline, trio.current_time() + LAST_SECONDS)

    @property
    def session_seconds(self) -> float:
        """How long ZooKeeper keeps what a session leased after its last word: what was asked for,
        or more if this ZooKeeper grants no less (`minSessionTimeout`).
        """
        return self._sessions.timeout_seconds

    def statistics(self) -> ZooKeeperStatistics:
        return self._sessions.statistics()

    async def connected(self) -> None:
        """Wait for the first connection."""
        with trio.move_on_after(self._answer_seconds) as scope:
            with trio.move_on_after(SILENT_SECONDS):
                await self._sessions.wait_connected()
                return
            log.warning("waiting for ZooKeeper at %s", self._address.servers)
            await self._sessions.wait_connected()
        if scope.cancelled_caught:
            raise StorageFailed(
                f"no ZooKeeper answers at {self._address.servers} within {self._answer_seconds:g} s"
            )

    async def close(self) -> None:
        """End the session; what it leased is free at once."""
        await self._sessions.close(self._close_seconds)


@asynccontextmanager
async def open_zookeeper(
    address: ZooKeeperAddress, timeout_seconds: float = TIMEOUT_SECONDS
) -> AsyncIterator[ZooKeeperMetadata]:
    """The metadata of a cluster, for as long as the block lasts.

    `StorageFailed` if there is no ZooKeeper: by itself, for operators read it.
    """
    failure: StorageFailed | None = None
    async with trio.open_nursery() as nursery:
        store = ZooKeeperMetadata(address, timeout_seconds, nursery)
        try:
            try:
                await store.connected()
            except StorageFailed as error:
                failure = error
            else:
                nursery.start_soon(store.run)
                yield store
        finally:
            await store.close()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
