"""Deduplication of one topic: a message that a producer sends again is stored once (PIP-6).

`sequences.py` has the sequence ids, and a fold stores them. Its snapshots are the position
properties of a cursor with Pulsar's name and form (`MessageDeduplication.java` of 4.2). The cursor
is not a subscription: it holds no entry back, because a snapshot is stored before entries are
deleted.

Snapshots bound what is read again when a topic is loaded after a crash. One is taken when enough
entries were stored since the last one, and when the last one is old enough (`snapshot_if_due`);
whichever rule comes first, and both count anew from there.

Invariant: the sequence ids cover every message since deduplication was turned on. When it is turned
off they are deleted, because they would miss messages from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.fold.fold import Fold, SnapshotPolicy
from magnetar.core.ledger.fold.snapshots import CursorSnapshots
from magnetar.core.ledger.log.appends import Appended
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.storage import Storage
from magnetar.core.policy.policies import Effective
from magnetar.core.topic.publishing.sequences import ProducerSequences

CURSOR: Final = "pulsar.dedup"
PAUSE_MS: Final = 1_000
"""The least time between two snapshots, however many entries are stored."""


class Deduplication:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger, policies: Effective) -> None:
        self.sequences: ProducerSequences | None = None
        """None while deduplication is off."""
        self._stored = False
        """Whether a snapshot was stored before the topic was loaded."""
        self._fold: Fold[dict[str, int]] | None = None
        self._storage = storage
        self._ledger = ledger
        self._rules = SnapshotPolicy(
            "sequence ids", entries=policies.deduplication_entries_interval, pause_ms=PAUSE_MS
        )
        self._seen: dict[str, tuple[int, int]] = {}
        """For each name, the last stored id as of the last `forget_silent`, and since when it has
        not changed: so no message has to note the time."""

    @property
    def on(self) -> bool:
        return self.sequences is not None

    async def load(self, *, on: bool, stored: bool) -> None:
        """Restore the sequence ids; `stored` if there is a snapshot."""
        self._stored = stored
        await self.turn(on=on)

    async def turn(self, *, on: bool) -> None:
        """Turn deduplication on or off."""
        if on and self._fold is None:
            sequences = ProducerSequences()
            fold = self._new_fold(sequences)
            if self._stored:
                await fold.load()
            else:
                await fold.begin()
            self._fold, self.sequences = fold, sequences
        elif not on:
            if self._fold is not None:
                await self._fold.delete()
            elif self._stored:
                await self._new_fold(ProducerSequences()).delete()
            self._fold = self.sequences = None
        self._stored = False

    def _new_fold(self, sequences: ProducerSequences) -> Fold[dict[str, int]]:
        snapshots = CursorSnapshots(self._storage, self._ledger, CURSOR)
        return Fold(self._storage, self._ledger, sequences, snapshots, self._rules)

    # -- publishing ---------------------------------------------------------------------------

    def begin(self, name: str, highest: int, done: Appended) -> Appended:
        """Note a run of new messages; returns the callback for its result.

        `highest` is their highest sequence id, -1 if none counts yet.
        """
        sequences = self.sequences
        if sequences is None:
            return done
        if highest >= 0:
            sequences.push(name, highest)

        def settled(result: Position | BrokerError) -> None:
            if not isinstance(result, tuple):
                sequences.fail(name)
            elif highest >= 0:
                sequences.store(name, highest)
            done(result)

        return settled

    def last_of(self, name: str) -> int:
        """The highest stored sequence id of a producer; -1 if it is not known."""
        return self.sequences.stored.get(name, -1) if self.sequences is not None else -1

    def forget_silent(self, here: Iterable[str], now_ms: int, forgotten_after_ms: int) -> None:
        """Remove producers that are not attached and have stored nothing for so long; 0: never.

        Pulsar's `brokerDeduplicationProducerInactivityTimeoutMinutes`.
        """
        sequences, before = self.sequences, self._seen
        if sequences is None or self._fold is None:
            return
        attached = set(here)
        self._seen = {}
        for name, highest in list(sequences.stored.items()):
            known, since_ms = before.get(name, (-1, now_ms))
            if known != highest or name in attached:
                since_ms = now_ms
            settled = sequences.pushed.get(name, highest) == highest
            if settled and now_ms - since_ms >= forgotten_after_ms > 0:
                sequences.forget(name)
                self._fold.changed()
            else:
                self._seen[name] = (highest, since_ms)

    async def snapshot_if_due(self, interval_seconds: int) -> None:
        """Store the sequence ids if that is so long ago and anything has changed; 0: never.

        Pulsar's `deduplicationSnapshotIntervalSeconds` (`MessageDeduplication.takeSnapshot`).
        """
        if self._fold is not None and interval_seconds > 0:
            await self._fold.save_if_old(interval_seconds * 1000)

    # -- life of the topic --------------------------------------------------------------------

    async def close(self) -> None:
        """The topic is unloaded, and no append is in flight."""
        if self._fold is not None:
            await self._fold.close()

    async def delete(self) -> None:
        """The topic is deleted."""
        if self._fold is not None:
            await self._fold.delete()
