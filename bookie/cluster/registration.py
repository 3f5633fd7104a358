"""A bookie's registration: the node that says that it runs, and whether it takes writes.

    available/ID             it does
    available/readonly/ID    it serves reads only

Both are leases, so they vanish with the process. After a lost session the bookie registers again:
it goes on to serve meanwhile, since what it has acknowledged is on its disk, but clients with fresh
lists do not find it (Apache's does the same, `BookieStateManager.java` of 4.18).

    state      the node                             leaves for
    ABSENT     none, or still one of a former       HELD when it is gone and ours is there; the
               session or process                   first time: an error after `wait_seconds`
    HELD       ours, of the mode of then            ABSENT when the lease is lost; HELD of the other
                                                    mode, whose node is there before this one goes

Invariants: there is no moment without a node while the mode changes, for clients that see none take
the bookie for lost. A node that stays while we wait belongs to a process with our identity: that is
an error, whenever it happens.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

import trio

from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.lease import take_lease
from magnetar.bookie.format import service_info
from magnetar.bookie.format.service_info import READ_ONLY, ServiceInfo
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound, StorageFailed
from magnetar.core.ports.metadata_store import MetadataStore

WAIT_SECONDS: Final = 30.0
"""For the node of a former process: three times Apache's session timeout."""
END_SECONDS: Final = 2.0
log = logging.getLogger(__name__)


class Registration:
    """See the module's docstring."""

    def __init__(
        self,
        store: MetadataStore,
        cluster: BookKeeperCluster,
        bookie_id: str,
        info: ServiceInfo,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        service_info.check_id(bookie_id)
        self._store = store
        self._cluster = cluster
        self._bookie_id = bookie_id
        self._value = info.encode()
        self._wait_seconds = wait_seconds
        self._read_only = False
        self._held: str | None = None
        self._former: str | None = None
        """The node of the mode before, which has to go."""
        self._scope = trio.CancelScope()
        self._changed = trio.Event()

    @property
    def is_held(self) -> bool:
        """Whether clients can find this bookie, as far as it knows."""
        return self._held is not None

    def set_read_only(self, read_only: bool) -> None:
        """Have clients told, soon."""
        self._read_only = read_only
        self._changed.set()

    def _wanted(self) -> str:
        steps = ("available", READ_ONLY) if self._read_only else ("available",)
        return self._cluster.path(*steps, self._bookie_id)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Register, and stay registered until it is cancelled, or `end`, which also ends a wait for
        a former session: then it never was.
        """
        registered = False
        with self._scope:
            await self._follow()
            registered = True
            task_status.started()
            await self._stay()
        if not registered:
            task_status.started()

    async def _stay(self) -> None:
        while True:
            await self._changed.wait()
            try:
                await self._follow()
            except StorageFailed as error:
                log.warning("bookie %s cannot register yet: %s", self._bookie_id, error)
                self._changed.set()

    async def end(self) -> None:
        """Let clients look for other bookies: this one is about to stop. Without an answer in time
        the node goes with the session.
        """
        self._scope.cancel()
        before, self._held = self._held, None
        if before is not None:
            with trio.move_on_after(END_SECONDS), suppress(StorageFailed):
                await self._give_up(before)

    async def _follow(self) -> None:
        """Hold the node of the mode that is wanted, and no other."""
        self._changed = trio.Event()
        await self._end_former()
        while self._held != (wanted := self._wanted()):
            if not await self._take(wanted):
                continue
            self._former, self._held = self._held, wanted
            log.info("bookie %s is registered at %s", self._bookie_id, wanted)
            await self._end_former()

    async def _end_former(self) -> None:
        """Also one that could not be deleted when the mode changed: the mode may change back."""
        if self._former is not None:
            await self._give_up(self._former)
            self._former = None

    async def _take(self, path: str) -> bool:
        """Whether the node is ours still: its session may have ended before we heard of it."""
        ended = False

        def lost() -> None:
            nonlocal ended
            ended = True
            self._lost(path)

        try:
            await take_lease(
                self._store, path, self._value, lost,
                wait_seconds=self._wait_seconds, held=self._say_that_it_waits,
            )  # fmt: skip
        except AlreadyExists:
            raise AlreadyExists(
                f"another process is registered as bookie {self._bookie_id}, at {path}: "
                "stop it, or give this one its own id and directories"
            ) from None
        return not ended

    async def _say_that_it_waits(self) -> None:
        log.info("bookie %s waits for the end of a former session", self._bookie_id)

    async def _give_up(self, path: str) -> None:
        found = await self._store.get(path)
        if found is not None:
            try:
                await self._store.delete(path, found.version)
            except (NotFound, BadVersion):
                return

    def _lost(self, path: str) -> None:
        if self._former == path:
            self._former = None
        if self._held == path:
            self._held = None
            self._changed.set()
