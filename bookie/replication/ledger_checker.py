"""Looks whether the bookies of a ledger have what they should have.

Of each fragment the first and the last entry of each bookie are read, and of the others as many as
`auditorLedgerVerificationPercentage` says (none by default, as by Apache's `LedgerChecker`). A
bookie that does not run, or does not give them intact, whatever the reason, is a bad one.

    who checks    reads                                            learns
    an auditor    a percentage, of each check other entries, so    which bookies are bad
                  that all are read in time
    a worker      all entries of the bookies that the mark names,  which entries they lack, if
                  unless the mark tells of their absence           they have the rest
                  (`presence.py`), and there is no percentage

So a worker finds what any auditor has found, wherever that is, and need not copy the rest.
(Apache's `ReplicationWorker` reads its own percentage; without one it takes back the mark of an
auditor that has one, and repairs nothing.)

The last fragment of an open ledger is looked at as far as it is known to be confirmed.

Limit: `ENTRIES_AT_ONCE` of `FRAGMENTS_AT_ONCE` are in memory, of all ledgers that are checked
together; each may have 5 MiB.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Final

import trio
from msgspec import Struct

from magnetar.bookie.client.quorum.answers import Answers
from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.recovery import ask_for_end
from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.replication.fragments import LedgerFragment, fragments_of
from magnetar.bookie.rpc.messages import BookieMessage, Read, ReadEntry
from magnetar.core.kernel.errors import BrokerError, Corrupted, StorageFailed

FRAGMENTS_AT_ONCE: Final = 4
ENTRIES_AT_ONCE: Final = 16
LACKING_MAX: Final = 1000
"""Entries that one bookie lacks of a fragment: with more, all of them are copied."""


class BadFragment(Struct, frozen=True):
    """A fragment, and the positions whose bookies do not have their part of it."""

    fragment: LedgerFragment
    positions: Sequence[int]
    absent: Sequence[int]
    """Those of them whose bookies do not run."""
    lacking: Mapping[int, Sequence[int]] = {}
    """All entries that a bookie lacks, of those that are known to have the rest."""

    @property
    def bookies(self) -> list[str]:
        return [self.fragment.ensemble[position] for position in self.positions]


class LedgerChecker:
    """See the module's docstring."""

    def __init__(self, client: ClusterClient, percentage: int = 0, turn: int = 0) -> None:
        """`percentage` of the entries between the first and the last ones are read too; any number
        as the first `turn` says which.
        """
        self._client = client
        self._step = -(-100 // percentage) if percentage else 0
        self._turn = turn
        self._room = trio.Semaphore(FRAGMENTS_AT_ONCE)

    def next_turn(self) -> None:
        """Read other entries from now on: a check of all ledgers begins."""
        self._turn += 1

    def runs(self, bookie_id: str) -> bool:
        """Whether a bookie is registered, as one that takes writes or not."""
        bookies = self._client.bookies
        return bookie_id in bookies.writable or bookie_id in bookies.read_only

    async def check(
        self, view: LedgerView, ledger: LedgerMetadata, suspects: Collection[str] = ()
    ) -> list[BadFragment]:
        """The fragments that lack replicas. Of `suspects` that run all entries are read."""
        confirmed = await self._confirmed(view, ledger)
        return [
            bad
            for fragment in fragments_of(ledger, confirmed)
            if (bad := await self._check(view, fragment, suspects)) is not None
        ]

    def without(self, ledger: LedgerMetadata, lost: Collection[str]) -> list[BadFragment]:
        """The fragments that have one of these bookies, whatever it still has."""
        found = []
        for fragment in fragments_of(ledger, -1):
            positions = [p for p, bookie in enumerate(fragment.ensemble) if bookie in lost]
            if positions:
                found.append(BadFragment(fragment, positions, positions))
        return found

    async def _confirmed(self, view: LedgerView, ledger: LedgerMetadata) -> int:
        if ledger.state == ledger_metadata.CLOSED:
            return int(ledger.lastEntryId)
        try:
            end = await ask_for_end(self._client.services, view, fence=False)
        except StorageFailed:  # too few answer, which tells enough
            return -1
        return end.last_confirmed

    async def _check(
        self, view: LedgerView, fragment: LedgerFragment, suspects: Collection[str]
    ) -> BadFragment | None:
        ensemble = fragment.ensemble
        absent = [p for p, bookie in enumerate(ensemble) if not self.runs(bookie)]
        present = [p for p in range(len(ensemble)) if p not in absent]
        thorough = [p for p in present if ensemble[p] in suspects]
        async with self._room:
            replicas = _Replicas(self._client, view, fragment)
            await replicas.read(self._questions(view, fragment, present, thorough))
        bad = {*absent, *replicas.lacking}
        partly = {p: replicas.lacking[p] for p in thorough if replicas.has_the_rest(p)}
        return BadFragment(fragment, sorted(bad), absent, partly) if bad else None

    def _questions(
        self,
        view: LedgerView,
        fragment: LedgerFragment,
        positions: Iterable[int],
        thorough: Collection[int],
    ) -> Iterator[tuple[int, int]]:
        """Positions, and entries that they should have."""
        for position in positions:
            if position in thorough:
                bookies = {position: fragment.ensemble[position]}
                yield from ((position, e) for e in fragment.entries(view.striping, bookies))
                continue
            ends = fragment.stored(view.striping, position)
            yield from ((position, entry_id) for entry_id in ends)
            if self._step and ends:
                first = ends[0] + 1 + self._turn % self._step
                between = range(first, ends[-1], self._step)
                yield from ((position, e) for e in between if view.striping.has(position, e))


class _Replicas:
    """Reads entries of one fragment from each of its bookies."""

    def __init__(self, client: ClusterClient, view: LedgerView, fragment: LedgerFragment) -> None:
        self._connections = client.services.connections
        self._view = view
        self._fragment = fragment
        self.lacking: dict[int, list[int]] = {}
        """By position: what its bookie did not give intact."""
        self._intact: set[int] = set()

    def has_the_rest(self, position: int) -> bool:
        """Whether a bookie lacks entries, and few of those that it was asked for."""
        return position in self._intact and 0 < len(self.lacking.get(position, ())) <= LACKING_MAX

    async def read(self, questions: Iterator[tuple[int, int]]) -> None:
        """Ask for entries; a bookie that lacks too many is not asked any further."""
        answers = Answers(self._connections)
        asked: dict[int, tuple[int, int]] = {}
        numbers = count()
        needed = (q for q in questions if len(self.lacking.get(q[0], ())) <= LACKING_MAX)
        while True:
            for question in islice(needed, ENTRIES_AT_ONCE - answers.waiting):
                number = next(numbers)
                position, entry_id = asked[number] = question
                request = Read(self._view.ledger_id, entry_id)
                answers.ask(number, self._fragment.ensemble[position], request)
            if not answers.waiting:
                return
            number, response = await answers.next()
            position, entry_id = asked.pop(number)
            if self._is_intact(entry_id, response):
                self._intact.add(position)
            else:
                self.lacking.setdefault(position, []).append(entry_id)

    def _is_intact(self, entry_id: int, response: BookieMessage | BrokerError) -> bool:
        if isinstance(response, BrokerError) or not isinstance(response, ReadEntry):
            return False
        try:
            self._view.open_entry(entry_id, response.entry or b"")
        except Corrupted:
            return False
        return True
