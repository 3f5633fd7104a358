"""The place of a cluster's one gateway: a lease, and the name of who took it last.

    taken     the lease is ours
    lost      its session has ended. With the policy `shutdown` the gateway ends; with `reconnect`
              it serves on, and tries to take the lease again as soon as ZooKeeper answers
              (Pulsar's `zookeeperSessionExpiredPolicy`)
    taken     again, if nobody else has had it meanwhile; else the gateway ends: topics that it has
    again     open may have got entries that it would never see

While ZooKeeper is away nobody takes the place. Who is cut off from it alone may have a successor
before it knows: fences and conditional writes keep it from acknowledging anything for a topic that
the successor has opened, but its consumers hear of that only when it ends.

Invariant: `LAST` names whoever had the place last, from before it opens its first topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from magnetar.bookie.cluster.lease import take_lease
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound, StorageFailed
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore
from magnetar.operator_error import OperatorError

log = logging.getLogger(__name__)

GATEWAY: Final = "/magnetar/gateway"
"""The lease of the gateway that runs: its name."""
LAST: Final = "/magnetar/last-gateway"
RETRY_SECONDS: Final = 0.5
ENDED: Final = "the session with ZooKeeper has ended, and another gateway may run"


class GatewayPlace:
    """See the module's docstring. `name` is no other gateway's, not even a former one's."""

    def __init__(
        self,
        metadata: MetadataStore,
        name: str,
        fail: Callable[[str], None],
        *,
        reconnects: bool,
    ) -> None:
        self._metadata = metadata
        self._name = name.encode()
        self._fail = fail
        self._reconnects = reconnects
        self._lost = trio.Event()

    async def take(self, wait_seconds: float) -> None:
        """Take it, once nobody has it; `OperatorError` if somebody still has it after a while."""

        async def held() -> None:
            there = await self._who_is_there()
            log.info("waiting for the end of another gateway, or of its session: %s", there)

        try:
            await take_lease(
                self._metadata, GATEWAY, self._name, self._lose,
                wait_seconds=wait_seconds, held=held,
            )  # fmt: skip
        except AlreadyExists:
            raise OperatorError(
                f"another gateway runs on this cluster ({await self._who_is_there()}): "
                "a cluster has one at a time"
            ) from None
        last = await self._metadata.get(LAST)
        await self._metadata.put(LAST, self._name, ABSENT if last is None else last.version)

    def _lose(self) -> None:
        if self._reconnects:
            self._lost.set()
        else:
            self._fail(ENDED)

    async def keep(self) -> None:
        """Take it again whenever its session has ended, until cancelled."""
        while True:
            await self._lost.wait()
            self._lost = trio.Event()
            log.warning("the session with ZooKeeper has ended: this gateway serves on without")
            while True:
                if await self._try_again():
                    break
                await trio.sleep(RETRY_SECONDS)

    async def _try_again(self) -> bool:
        """Whether we have it, or another one has."""
        try:
            await self._metadata.lease(GATEWAY, self._name, self._lose)
            last = await self._metadata.get(LAST)
        except StorageFailed:
            return False
        except AlreadyExists:
            return await self._is_over()
        if last is None or last.value != self._name:
            self._fail("another gateway has run meanwhile")
        else:
            log.info("this gateway has its place again")
        return True

    async def _is_over(self) -> bool:
        """Whether another gateway has the lease. That of our ended session is not waited for."""
        with suppress(StorageFailed, NotFound, BadVersion):
            found = await self._metadata.get(GATEWAY)
            if found is not None and found.value != self._name:
                self._fail(ENDED)
                return True
            if found is not None:
                await self._metadata.delete(GATEWAY, found.version)
        return False

    async def _who_is_there(self) -> str:
        found = await self._metadata.get(GATEWAY)
        return "it has just ended" if found is None else found.value.decode(errors="replace")
