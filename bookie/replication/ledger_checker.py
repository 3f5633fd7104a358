"""Looks whether the bookies of a ledger have what they should have.

Of each fragment the first and the last entry of each bookie are read, as Apache's `LedgerChecker`
does with its default of `auditorLedgerVerificationPercentage`. A bookie that does not run, or does
not give them intact, whatever the reason, is a bad one.

The last fragment of an open ledger is looked at as far as it is known to be confirmed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from magnetar.bookie.client.quorum.answers import Answers
from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.recovery import ask_for_end
from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.format import ledger_metadata
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.replication.fragments import LedgerFragment, fragments_of
from magnetar.bookie.rpc.messages import Read, ReadEntry
from magnetar.core.kernel.errors import BrokerError, Corrupted, StorageFailed


class BadFragment(Struct, frozen=True):
    """A fragment, and the positions whose bookies do not have their part of it."""

    fragment: LedgerFragment
    positions: Sequence[int]
    absent: Sequence[int]
    """Those of them whose bookies do not run."""

    @property
    def bookies(self) -> list[str]:
        return [self.fragment.ensemble[position] for position in self.positions]


class LedgerChecker:
    """See the module's docstring."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def runs(self, bookie_id: str) -> bool:
        """Whether a bookie is registered, as one that takes writes or not."""
        bookies = self._client.bookies
        return bookie_id in bookies.writable or bookie_id in bookies.read_only

    async def check(self, view: LedgerView, ledger: LedgerMetadata) -> list[BadFragment]:
        """The fragments that lack replicas."""
        confirmed = await self._confirmed(view, ledger)
        return [
            bad
            for fragment in fragments_of(ledger, confirmed)
            if (bad := await self._check(view, fragment)) is not None
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

    async def _check(self, view: LedgerView, fragment: LedgerFragment) -> BadFragment | None:
        absent = [p for p, bookie in enumerate(fragment.ensemble) if not self.runs(bookie)]
        present = [p for p in range(len(fragment.ensemble)) if p not in absent]
        bad = {*absent, *await self._without_entries(view, fragment, present)}
        return BadFragment(fragment, sorted(bad), absent) if bad else None

    async def _without_entries(
        self, view: LedgerView, fragment: LedgerFragment, positions: Iterable[int]
    ) -> set[int]:
        answers = Answers(self._client.services.connections)
        asked: list[tuple[int, int]] = []
        for position in positions:
            for entry_id in fragment.stored(view.striping, position):
                request = Read(view.ledger_id, entry_id)
                answers.ask(len(asked), fragment.ensemble[position], request)
                asked.append((position, entry_id))
        bad = set()
        while answers.waiting:
            number, response = await answers.next()
            position, entry_id = asked[number]
            if isinstance(response, BrokerError) or not isinstance(response, ReadEntry):
                bad.add(position)
                continue
            try:
                view.open_entry(entry_id, response.entry or b"")
            except Corrupted:
                bad.add(position)
        return bad
