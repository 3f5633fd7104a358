"""Copies the entries of a closed fragment to bookies that do not have them.

Entries are read from the bookies that do, their digests checked, and stored as recoveries store
them, byte for byte as they were read: whoever holds the ledger fenced refuses other adds. Apache's
writes all entries of a fragment to each new bookie (`LedgerFragmentReplicator.java` of 4.18); here
each gets only those that its position stores.

A batch is read when the one before is stored, so that never more than a batch is in memory.

Invariant: `replicate` returns when all is durable at all new bookies; the metadata may name them
only then. A copy that fails leaves entries that nobody asks for, and can be begun anew.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice

import trio

from magnetar.bookie.client.connection.statuses import error_of
from magnetar.bookie.client.quorum.ledger_view import LedgerView
from magnetar.bookie.client.quorum.reader import QuorumReader
from magnetar.bookie.client.quorum.store import ClusterClient
from magnetar.bookie.format.entries import LENGTH_BYTES, Run
from magnetar.bookie.replication.fragments import LedgerFragment
from magnetar.bookie.replication.settings import RecoverySettings
from magnetar.bookie.replication.statistics import ReplicationCounters
from magnetar.bookie.rpc.client_wire import pack_adds
from magnetar.bookie.rpc.messages import Status
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError

BATCH_ENTRIES_MIN = 8


class FragmentReplicator:
    """See the module's docstring."""

    def __init__(
        self, client: ClusterClient, settings: RecoverySettings, counters: ReplicationCounters
    ) -> None:
        self._client = client
        self._settings = settings
        self._counters = counters

    async def replicate(
        self, view: LedgerView, fragment: LedgerFragment, bookies: Mapping[int, str]
    ) -> None:
        """Copy to each position what it stores; an error if anything cannot be read or stored."""
        assert fragment.closed
        reader = QuorumReader(
            view, self._client.services, self._client.settings, lambda: fragment.last, _nothing_new
        )
        ids = fragment.entries(view.striping, bookies)
        count = BATCH_ENTRIES_MIN
        while batch := list(islice(ids, count)):
            begun = trio.current_time()
            entries = await reader.read_entries(batch)
            size = sum(map(len, entries))
            self._counters.entries_read += len(entries)
            self._counters.bytes_read += size
            await self._store(view, bookies, dict(zip(batch, entries, strict=True)))
            fitting = self._settings.batch_bytes * len(entries) // max(size, 1)
            count = min(max(fitting, 1), 2 * count, self._settings.batch_entries_max)
            if self._settings.bytes_per_second_max:
                await trio.sleep_until(begun + size / self._settings.bytes_per_second_max)

    async def _store(
        self, view: LedgerView, bookies: Mapping[int, str], entries: Mapping[int, bytes]
    ) -> None:
        stored: list[Completion[None]] = []
        for entry_id, entry in entries.items():
            run = _run_of(view.ledger_id, entry_id, entry)
            frames = pack_adds(run, view.master_key, recovery=True)
            for position, bookie in bookies.items():
                if view.striping.has(position, entry_id):
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
            self._counters.entries_written += 1
            self._counters.bytes_written += run.size
            done(None)


async def _nothing_new() -> bool:
    return False


def _run_of(ledger_id: int, entry_id: int, entry: bytes) -> Run:
    record = len(entry).to_bytes(LENGTH_BYTES, "big") + entry
    return Run(ledger_id, entry_id, record, array("I", (0, len(record))))
