"""Deduplication of one topic, on or off: what a producer sends again is stored once (PIP-6).

The numbers that tell are in `sequences.py`. A fold keeps them over restarts: its snapshots are the
properties of a cursor, whose name and form are Pulsar's. The cursor is not a subscription: it holds
no entry back, for a snapshot is taken before entries go.

Invariant: the sequences cover every message since deduplication was turned on; turned off, they are
deleted, because they miss what comes then.
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
from magnetar.core.topic.publishing.sequences import ProducerSequences

CURSOR: Final = "pulsar.dedup"
SNAPSHOT_POLICY: Final = SnapshotPolicy("sequence ids", entries=1_000, pause_ms=1_000)


class Deduplication:
    """See the module's docstring."""

    def __init__(self, storage: Storage, ledger: ManagedLedger) -> None:
        self.sequences: ProducerSequences | None = None
        """Present while it is on."""
        self._stored = False
        """There is a snapshot from before the topic was loaded."""
        self._fold: Fold[dict[str, int]] | None = None
        self._storage = storage
        self._ledger = ledger
        self._seen: dict[str, tuple[int, int]] = {}
        """Of each name, the highest id that was stored when `forget_silent` looked last, and since
        when it is that: so no message has to note the time."""

    @property
    def on(self) -> bool:
        return self.sequences is not None

    async def load(self, *, on: bool, stored: bool) -> None:
        """The topic is loaded; `stored` if there is a snapshot from before."""
        self._stored = stored
        await self.turn(on=on)

    async def turn(self, *, on: bool) -> None:
        """On or off."""
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
        return Fold(self._storage, self._ledger, sequences, snapshots, SNAPSHOT_POLICY)

    # -- publishing ---------------------------------------------------------------------------

    def begin(self, name: str, highest: int, done: Appended) -> Appended:
        """A run of new messages goes to storage; returns what hears that it is stored, or not.

        `highest` is the highest sequence id of them, -1 if none counts yet.
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
        """The highest sequence id stored of a producer; -1 if that is not known."""
        return self.sequences.stored.get(name, -1) if self.sequences is not None else -1

    def forget_silent(self, here: Iterable[str], now_ms: int, forgotten_after_ms: int) -> None:
        """Forget names whose producer is not here and has stored nothing for so long; 0: never."""
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

    # -- life of the topic --------------------------------------------------------------------

    async def close(self) -> None:
        """The topic is unloaded, and nothing is on its way to storage any more."""
        if self._fold is not None:
            await self._fold.close()

    async def delete(self) -> None:
        """The topic is deleted."""
        if self._fold is not None:
            await self._fold.delete()
