"""Copies the entries of a closed fragment to bookies that do not have them.

Entries are read from the bookies that do, their digests checked, and stored as recoveries store
them, byte for byte as they were read: whoever holds the ledger fenced refuses other adds. Apache's
writes all entries of a fragment to each new bookie (`LedgerFragmentReplicator.java` of 4.18); here
each gets only those that its position stores.

A batch is read when the one before is stored, so that never more than a batch is in memory: so
many bytes, and `READS_AT_ONCE` entries more, since how large they are is not known before.

Invariant: `replicate` returns when all is durable at all new bookies; the metadata may name them
only then. A copy that fails leaves entries that nobody asks for, and can be begun anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

import trio

from magnetar.bookie.client.connection.statuses import error_of
from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.reader import QuorumReader
from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.format.entries import Run, run_of
from magnetar.bookie.replication.fragments import LedgerFragment
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.rpc.client_wire import pack_adds
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError

BATCH_ENTRIES_MIN: Final = 8
READS_AT_ONCE: Final = 8
"""With 5 MiB each, they and a batch are less than may be on its way to a bookie
(`ConnectionSettings.adds_bytes_max`).
"""


class FragmentBatches:
    """Which entries are to be read next: those that the new bookies should have, in order."""

    def __init__(
        self,
        view: LedgerView,
        fragment: LedgerFragment,
        bookies: Mapping[int, str],
        settings: RecoverySettings,
        entries: Sequence[int] | None,
    ) -> None:
        self.bytes_max = settings.batch_bytes
        self.single = False
        """Whether a batch could not be read: by bookies before 4.17, or behind damage."""
        self.waiting: list[int] = []
        self._ids = fragment.entries(view.striping, bookies) if entries is None else iter(entries)
        self._count = BATCH_ENTRIES_MIN
        self._count_max = settings.batch_entries_max
        self._fill()

    def _fill(self) -> None:
        self.waiting += islice(self._ids, max(self._count - len(self.waiting), 0))

    def read(self, count: int, size: int) -> None:
        """So many of those that wait were read; as many are next as seem to fit."""
        del self.waiting[:count]
        fitting = self.bytes_max * count // max(size, 1)
        self._count = min(max(fitting, 1), 2 * self._count, self._count_max)
        self._fill()


async def _read_together(reader: QuorumReader, batches: FragmentBatches) -> list[Run]:
    """What one bookie gives at once: entries next to each other, for all of them have all."""
    if not batches.single:
        try:
            run = await reader.read_run(batches.waiting[0], batches.waiting[-1], batches.bytes_max)
        except BrokerError:
            batches.single = True
        else:
            batches.read(run.count, run.size)
            return [run]
    return await _read_striped(reader, batches)


async def _read_striped(reader: QuorumReader, batches: FragmentBatches) -> list[Run]:
    """One by one, several at the same time, each from those that have it."""
    found: list[Run] = []
    size = 0
    while len(found) < len(batches.waiting) and size < batches.bytes_max:
        ids = batches.waiting[len(found) : len(found) + READS_AT_ONCE]
        entries = await reader.read_entries(ids)
        found += map(run_of, entries)
        size += sum(map(len, entries))
    batches.read(len(found), size)
    return found


class FragmentReplicator:
    """See the module's docstring."""

    def __init__(
        self, client: ClusterClient, settings: RecoverySettings, counters: ReplicationCounters
    ) -> None:
        self._client = client
        self._settings = settings
        self._counters = counters

    async def replicate(
        self,
        view: LedgerView,
        fragment: LedgerFragment,
        bookies: Mapping[int, str],
        entries: Sequence[int] | None = None,
    ) -> None:
        """Copy to each position what it stores, or only these entries of that; an error if anything
        cannot be read or stored.
        """
        assert fragment.closed
        reader = QuorumReader(
            view, self._client.services, self._client.settings, lambda: fragment.last, _nothing_new
        )
        together = entries is None and view.striping.write == view.striping.ensemble
        read = _read_together if together else _read_striped
        rate = self._settings.bytes_per_second_max
        batches = FragmentBatches(view, fragment, bookies, self._settings, entries)
        while batches.waiting:
            begun = trio.current_time()
            runs = await read(reader, batches)
            size = sum(run.size for run in runs)
            self._counters.entries_read += sum(run.count for run in runs)
            self._counters.bytes_read += size
            await self._store(view, bookies, runs)
            if rate:
                await trio.sleep_until(begun + size / rate)

    async def _store(
        self, view: LedgerView, bookies: Mapping[int, str], runs: Sequence[Run]
    ) -> None:
        stored: list[Completion[None]] = []
        for run in runs:
            frames = pack_adds(run, view.master_key, recovery=True)
            for position, bookie in bookies.items():
                if view.striping.has(position, run.first):
                    stored.append(self._send(bookie, run, frames))
        for one in stored:
            await one.result()

    def _send(self, bookie: str, run: Run, frames: Sequence[bytes]) -> Completion[None]:
        completion: Completion[None] = Completion()
        answered = partial(self._answered, bookie, run, completion.done)
        self._client.services.connections.to(bookie).add(run, frames, answered)
        return completion

    def _answered(
        self,
        bookie: str,
        run: Run,
        done: Callable[[BrokerError | None], None],
        result: Status | BrokerError,
    ) -> None:
        if isinstance(result, BrokerError):
            done(result)
        elif result is not Status.OK:
            done(error_of(result, bookie, f"entry {run.ledger_id}:{run.first}"))
        else:
            self._counters.entries_written += run.count
            self._counters.bytes_written += run.size
            done(None)


async def _nothing_new() -> bool:
    return False
