"""Serving many consumers by key: Key_Shared.

Theory. As `shared.py`, but who gets an entry is decided by the hash of its key (see
`core/dispatch/key_shared.py`, which also keeps order when consumers come and go). An entry whose
consumer cannot take it now is held back: it joins replay, and later entries of its key wait behind
it, while entries of other keys go on, up to a limit of entries held back.

Invariant: of one key, entries are delivered in order; `_hashes` has the hash of each entry that is
pending, and of those in replay except such as were delayed, which are read again for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from core.dispatch.key_shared import KeyShared, Mode, sticky_hash
from core.entry.pulsar_metadata import sticky_key
from core.ledger.chain import Position
from core.ledger.cursor import Cursor
from core.ledger.managed import ManagedLedger
from core.ledger.tail_cache import Slice
from core.topic.consumer import Consumer
from core.topic.environment import Environment
from core.topic.outstanding import Outstanding, SharedLimits
from core.topic.source import EntrySource

TURN_ENTRIES_MAX: Final = 2_000
"""Entries looked at in one turn: deciding by key costs more than by turn."""
LOOK_ENTRIES_MAX: Final = 500
"""Entries looked at in one decision."""


class KeyedDispatcher:
    """See the module's docstring."""

    def __init__(
        self,
        cursor: Cursor,
        ledger: ManagedLedger,
        env: Environment,
        limits: SharedLimits,
        look: Callable[[], None],
        mode: Mode,
    ) -> None:
        self.consumers: list[Consumer] = []
        self.read: Position = cursor.read_from
        self.out = Outstanding(cursor, env, limits, look, self._left)
        self.keys: KeyShared[Consumer] = KeyShared(mode)
        self._hashes: dict[Position, int] = {}
        self._cursor = cursor
        self._ledger = ledger
        self._look = look
        self._fresh = EntrySource(ledger, env.spawn, look)
        self._again = EntrySource(ledger, env.spawn, look)
        self._told_end = False

    # -- consumers ----------------------------------------------------------------------------

    def attach(self, consumer: Consumer) -> None:
        request = consumer.request
        self.keys.attach(consumer, mode_of(consumer), request.hash_ranges)
        self.consumers.append(consumer)
        self._told_end = False

    def detach(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        self.out.redeliver(consumer, None)
        self.keys.detach(consumer)
        if not self.consumers:
            self.stop()

    def stop(self) -> None:
        """Nobody is here any more."""
        self.consumers.clear()
        self.out.clear()
        self._hashes.clear()

    def set_limits(self, limits: SharedLimits) -> None:
        self.out.set_limits(limits)

    @property
    def unacked(self) -> int:
        return self.out.unacked

    # -- delivery -----------------------------------------------------------------------------

    def dispatch(self) -> bool:
        """Deliver what may be delivered now; True if the turn ended before the work."""
        self.out.wake_delayed()
        if not any(consumer.ready for consumer in self.consumers):
            return False
        if not self._deliver_again():
            return False
        seen = 0
        while not self.out.blocked and not self.out.full:
            if seen >= TURN_ENTRIES_MAX:
                return True
            work = self._new()
            if work is None:
                self._tell_end()
                return False
            if not any(consumer.ready for consumer in self.consumers):
                return False
            seen += self._deal_new(work)
        return False

    def _new(self) -> Slice | None:
        self.read = self._ledger.chain.normal(self.read)
        found = self._fresh.at(self.read)
        if found is None:
            return None
        whole, start = found
        return whole.part(start, start + LOOK_ENTRIES_MAX)

    def _deal_new(self, work: Slice) -> int:
        """Deliver what can be, hold back the rest; returns how many entries were seen to."""
        hashes = [hash_of(payload) for payload in work.payloads]
        ledger_id, first = work.ledger_id, work.first_entry
        room = self.out.limits.replay_max - len(self.out.replay)
        plan = self.keys.choose(hashes, work.counts, self._waiting_hashes(), room)
        for portion in plan.portions:
            part = work.part(portion.start, portion.start + portion.count)
            self._send(
                portion.consumer, part, hashes[portion.start : portion.start + portion.count]
            )
        for at in plan.held:
            position = (ledger_id, first + at)
            if not self._cursor.acks.is_acked(position):
                self._hashes[position] = hashes[at]
                self.out.replay.add(position)
        self.read = max(self.read, (ledger_id, first + plan.seen))
        return max(plan.seen, 1)

    def _send(self, consumer: Consumer, part: Slice, hashes: list[int]) -> None:
        for piece, partial in self.out.wanted(part):
            for at in range(len(piece.payloads)):
                entry_id = piece.first_entry + at
                hash_ = hashes[entry_id - part.first_entry]
                self._hashes[(piece.ledger_id, entry_id)] = hash_
                self.keys.sent(consumer, hash_)
            self.out.send(consumer, piece, partial)

    def _deliver_again(self) -> bool:
        """Deliver what waits in replay and may go; False if some of it is still being read."""
        if not self.out.replay:
            return True
        positions = sorted(self.out.replay)
        if not self._learn_hashes(positions):
            return False
        hashes = [self._hashes[position] for position in positions]
        plan = self.keys.choose(hashes, None, (), len(positions))
        for portion in plan.portions:
            chosen = positions[portion.start : portion.start + portion.count]
            for run in _runs(chosen):
                if self.out.blocked:
                    return False
                found = self._again.at(run[0], len(run))
                if found is None:
                    return False
                whole, start = found
                part = whole.part(start, start + len(run))
                taken = run[: len(part.payloads)]
                self._send(portion.consumer, part, [self._hashes[known] for known in taken])
                for position in taken:
                    self.out.replay.discard(position)
                    if position not in self.out.pending:  # acknowledged meanwhile, or not due
                        self._hashes.pop(position, None)
                if len(taken) < len(run):
                    self._look()
                    return False
        return True

    def _learn_hashes(self, positions: list[Position]) -> bool:
        """Entries that were delayed have no known hash yet; False while one must be read."""
        first = self._ledger.chain.first
        while positions and positions[0] < first:  # trimmed meanwhile
            self.out.replay.discard(positions[0])
            self._hashes.pop(positions.pop(0), None)
        for position in positions:
            if position not in self._hashes:
                found = self._again.at(position, 1)
                if found is None:
                    return False
                self._hashes[position] = hash_of(found[0].payloads[found[1]])
        return True

    def _waiting_hashes(self) -> set[int]:
        """Hashes of what waits in replay: nothing of these may overtake."""
        hashes = self._hashes
        return {hashes[known] for known in self.out.replay if known in hashes}

    def _tell_end(self) -> None:
        if self._ledger.terminated and not self._told_end and not self._cursor.backlog:
            self._told_end = True
            for consumer in self.consumers:
                consumer.sink.end_of_topic()

    # -- acknowledgement and coming back ------------------------------------------------------

    def _left(self, position: Position, owner: Consumer | None) -> None:
        """An entry is acknowledged or has come back: its hash may go on elsewhere."""
        hash_ = self._hashes.get(position)
        if position not in self.out.replay:
            self._hashes.pop(position, None)
        if owner is not None and hash_ is not None and self.keys.returned(owner, hash_):
            self._look()

    def acked(self, _consumer: Consumer, ledger_id: int, first: int, last: int) -> int:
        return self.out.acked(ledger_id, first, last)

    def acked_partly(self, position: Position, messages: int) -> int:
        return self.out.acked_partly(position, messages)

    def redeliver(self, consumer: Consumer, positions: list[Position] | None) -> None:
        self.out.redeliver(consumer, positions)

    def moved(self) -> None:
        """The mark-delete position was moved from outside: what it passed is done with."""
        self.out.passed(self._cursor.mark_delete)
        self.read = max(self.read, self._cursor.read_from)


def mode_of(consumer: Consumer) -> Mode:
    """How this consumer wants keys to be divided."""
    return Mode(consumer.request.sticky, consumer.request.out_of_order)


def hash_of(payload: bytes) -> int:
    """The hash of an entry's key."""
    return sticky_hash(sticky_key(payload) or b"")


def _runs(positions: list[Position]) -> Iterator[list[Position]]:
    """Stretches of consecutive entries of one ledger."""
    run: list[Position] = []
    for position in positions:
        if run and position != (run[-1][0], run[-1][1] + 1):
            yield run
            run = []
        run.append(position)
    if run:
        yield run
