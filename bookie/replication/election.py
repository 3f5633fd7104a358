"""Elects the auditor of a cluster: whoever has the vote with the lowest number.

    underreplication/auditorelection/V_NNNNNNNNNN    a vote, leased: who gave it

Apache's auditors number their votes with ZooKeeper's own sequence, which is higher than any number
that is or was there (`ZkLedgerAuditorManager.java` of BookKeeper 4.18). We take one more than the
highest that is there, which is never more than that sequence: so theirs never meets ours. But it
may be lower than the number of one that voted after we looked, and was elected meanwhile. Hence:

    state       what is seen                             leaves for
    voting      our vote is there, and a higher one      voting, again, without the vote: the other
                                                         one may be the auditor
                our vote is there, and is the highest    waiting
    waiting     a lower vote                             elected, when there is none any more
    elected     our vote                                 voting, when our vote or session is gone

Invariants: of all votes only the lowest is an auditor's, and none comes below it. A vote of ours
that may be there is withdrawn before the next one: nobody would serve for it, and all would wait
behind it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio

from magnetar.bookie.cluster.changes import Changes
from magnetar.bookie.cluster.cluster import BookKeeperCluster
from magnetar.bookie.cluster.under_replication import ROOT
from magnetar.core.kernel.errors import AlreadyExists, BadVersion, NotFound, StorageFailed
from magnetar.core.ports.metadata_store import ABSENT, MetadataStore

RETRY_SECONDS: Final = 1.0
_VOTE: Final = re.compile(r"V_(-?\d+)")
log = logging.getLogger(__name__)


class AuditorElection:
    """See the module's docstring."""

    def __init__(self, store: MetadataStore, cluster: BookKeeperCluster, bookie_id: str) -> None:
        self.is_elected = False
        self._given: set[int] = set()
        """Our votes that may be there."""
        self._store = store
        self._votes = cluster.path(ROOT, "auditorelection")
        self._value = f'bookieId: "{bookie_id}"\n'.encode()

    async def run(self, audit: Callable[[], Awaitable[None]]) -> None:
        """Vote, and `audit` whenever and as long as we are elected, until it is cancelled."""
        while True:
            try:
                await self._term(audit)
            except StorageFailed as error:
                log.warning("the auditor cannot be elected: %s", error)
            await trio.sleep(RETRY_SECONDS)

    async def _term(self, audit: Callable[[], Awaitable[None]]) -> None:
        """One vote, until it is gone."""
        with trio.CancelScope() as scope:
            for given in list(self._given):
                await self._withdraw(given)
            number = await self._vote(scope)
            if number is None:
                return
            try:
                await self._wait_until(lambda numbers: min(numbers, default=number) == number)
                await self._say_so()
                await self._serve(number, audit)
            finally:
                self.is_elected = False
                with trio.move_on_after(RETRY_SECONDS, shield=True), suppress(StorageFailed):
                    await self._withdraw(number)

    async def _vote(self, term: trio.CancelScope) -> int | None:
        """The number of our vote; None if another one may have been elected meanwhile. The term
        ends with the vote's session.
        """
        with suppress(AlreadyExists):
            await self._store.put(self._votes, b"", ABSENT)
        number = max([-1, *await self._numbers()]) + 1

        def lost() -> None:
            self._given.discard(number)
            term.cancel()

        self._given.add(number)
        try:
            await self._store.lease(self._path(number), self._value, lost)
        except AlreadyExists:
            self._given.discard(number)
            return None
        # Our server has carried out all writes before ours by now: the list has all earlier ones.
        if any(other > number for other in await self._numbers()):
            await self._withdraw(number)
            return None
        return number

    def _path(self, number: int) -> str:
        return f"{self._votes}/V_{number:010d}"

    async def _numbers(self) -> list[int]:
        matches = map(_VOTE.fullmatch, await self._store.children(self._votes))
        return [int(match[1]) for match in matches if match is not None]

    async def _wait_until(self, holds: Callable[[list[int]], bool]) -> None:
        with Changes(self._store, self._votes) as changes:
            while True:
                changes.begin()
                if holds(await self._numbers()):
                    return
                await changes.wait()

    async def _say_so(self) -> None:
        """Apache's auditor writes its name here as well, for people."""
        found = await self._store.get(self._votes)
        with suppress(BadVersion, AlreadyExists):
            version = ABSENT if found is None else found.version
            await self._store.put(self._votes, self._value, version)

    async def _serve(self, number: int, audit: Callable[[], Awaitable[None]]) -> None:
        log.info("elected as the auditor of the cluster")
        self.is_elected = True
        async with trio.open_nursery() as nursery:

            async def serve() -> None:
                await audit()
                nursery.cancel_scope.cancel()

            nursery.start_soon(serve)
            try:
                await self._wait_until(lambda numbers: number not in numbers)
            except StorageFailed as error:
                log.warning("whether our vote is there cannot be seen: %s", error)
            else:
                log.warning("our vote is gone: another one may be the auditor")
            nursery.cancel_scope.cancel()

    async def _withdraw(self, number: int) -> None:
        if number not in self._given:
            return
        found = await self._store.get(self._path(number))
        if found is not None and found.value == self._value:
            with suppress(BadVersion, NotFound):
                await self._store.delete(self._path(number), found.version)
        self._given.discard(number)
