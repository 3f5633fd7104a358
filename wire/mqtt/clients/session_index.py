"""An index of the sleeping sessions: where the record of each is stored, and when it is due. Pure.

A million clients with random ids may leave sessions behind (mosquitto #3273). So the index has no
object for a session, not even its client id, but a slot of 24 bytes in arrays: a fingerprint of the
client id, and the position, size and due time of the record. A third to two thirds of the slots are
used by sessions that were never fewer, so one takes 36 to 72 bytes. A table has 256 parts, so that
one that grows or is searched delays nothing else by more than a few milliseconds.

    slot empty      its fingerprint is 0
    slot deleted    its fingerprint is 1: a search goes on behind it
    slot used       any other fingerprint

The fingerprint is a keyed hash of 64 bits whose key nobody knows: nobody can choose client ids with
equal ones, and among a million sessions two are equal once in 40 million tables. Who reads a record
compares its client id.

Invariant: `bytes_stored` is the sum of the sizes; no due time is before `earliest` of its part.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import Final, NamedTuple

from magnetar.core.ledger.log.chain import Position

PARTS: Final = 256
SLOTS_MIN: Final = 8
NEVER: Final = 0xFFFF_FFFF
"""The due time of a session that does not end."""
_EMPTY, _DELETED, _FIRST = 0, 1, 2


class IndexedSession(NamedTuple):
    """Where a record is stored."""

    position: Position
    size: int
    due: int
    """When it has to be looked at, in seconds since 1970; `NEVER` for not at all."""


class _Part:
    """One part of the table: a hash table with open addressing."""

    __slots__ = ("dues", "earliest", "entries", "fingerprints", "ledgers", "sizes", "taken", "used")

    def __init__(self, slots: int = SLOTS_MIN) -> None:
        self.fingerprints = array("Q", bytes(8 * slots))
        self.ledgers, self.entries, self.sizes, self.dues = (
            array("I", bytes(4 * slots)) for _ in range(4)
        )
        self.used = 0
        self.taken = 0
        """Slots that are not empty."""
        self.earliest = NEVER

    def slot_of(self, fingerprint: int) -> int:
        """The slot of a fingerprint, or -1 - the slot where it may be put."""
        fingerprints = self.fingerprints
        mask, free = len(fingerprints) - 1, -1
        slot = fingerprint & mask
        while True:
            found = fingerprints[slot]
            if found == fingerprint:
                return slot
            if found == _EMPTY:
                return -1 - (slot if free < 0 else free)
            if found == _DELETED and free < 0:
                free = slot
            slot = (slot + 1) & mask

    def put(self, fingerprint: int, ledger: int, entry: int, size: int, due: int) -> None:
        slot = self.slot_of(fingerprint)
        if slot < 0:
            slot = -1 - slot
            self.taken += self.fingerprints[slot] == _EMPTY
            self.used += 1
            self.fingerprints[slot] = fingerprint
        self.ledgers[slot], self.entries[slot] = ledger, entry
        self.sizes[slot], self.dues[slot] = size, due
        self.earliest = min(self.earliest, due)

    def remove(self, slot: int) -> None:
        self.fingerprints[slot] = _DELETED
        self.used -= 1

    @property
    def is_full(self) -> bool:
        """Whether more than two thirds of the slots would be taken by one more."""
        return 3 * (self.taken + 1) > 2 * len(self.fingerprints)

    def grown(self) -> _Part:
        """A copy without deleted slots that is half full at most."""
        slots = SLOTS_MIN
        while slots < 2 * (self.used + 1):
            slots *= 2
        copy = _Part(slots)
        for slot, fingerprint in enumerate(self.fingerprints):
            if fingerprint >= _FIRST:
                copy.put(
                    fingerprint, self.ledgers[slot], self.entries[slot], self.sizes[slot],
                    self.dues[slot],
                )  # fmt: skip
        return copy

    def due_slots(self, now: int) -> list[int]:
        """The slots that are due; brings `earliest` up to date."""
        found, earliest = [], NEVER
        for slot, fingerprint in enumerate(self.fingerprints):
            if fingerprint >= _FIRST:
                due = self.dues[slot]
                if due <= now:
                    found.append(slot)
                earliest = min(earliest, due)
        self.earliest = earliest
        return found


class SessionIndex:
    """See the module's docstring."""

    __slots__ = ("_key", "_ledgers", "_numbers", "_parts", "bytes_stored", "count")

    def __init__(self, key: bytes) -> None:
        """`key` is secret, and new for each process."""
        self._key = key
        self._parts: list[_Part | None] = [None] * PARTS
        self._ledgers: list[int] = []
        """The ledgers that positions name by number."""
        self._numbers: dict[int, int] = {}
        self.count = 0
        self.bytes_stored = 0

    def _fingerprint(self, client_id: str) -> int:
        digest = blake2b(client_id.encode(), digest_size=8, key=self._key).digest()
        return max(int.from_bytes(digest), _FIRST)

    def _find(self, client_id: str) -> tuple[_Part | None, int]:
        fingerprint = self._fingerprint(client_id)
        part = self._parts[fingerprint >> 56]
        return part, -1 if part is None else part.slot_of(fingerprint)

    def __len__(self) -> int:
        return self.count

    def __contains__(self, client_id: str) -> bool:
        return self._find(client_id)[1] >= 0

    def get(self, client_id: str) -> IndexedSession | None:
        part, slot = self._find(client_id)
        if part is None or slot < 0:
            return None
        return IndexedSession(self._position(part, slot), part.sizes[slot], part.dues[slot])

    def put(self, client_id: str, session: IndexedSession) -> None:
        """Add a session, or replace its entry."""
        self.remove(client_id)
        fingerprint = self._fingerprint(client_id)
        part = self._parts[fingerprint >> 56]
        if part is None or part.is_full:
            part = self._parts[fingerprint >> 56] = _Part() if part is None else part.grown()
        ledger_id, entry_id = session.position
        number = self._numbers.get(ledger_id)
        if number is None:
            number = self._numbers[ledger_id] = len(self._ledgers)
            self._ledgers.append(ledger_id)
        part.put(fingerprint, number, entry_id, session.size, session.due)
        self.count += 1
        self.bytes_stored += session.size

    def remove(self, client_id: str) -> bool:
        """Remove a session; returns whether it was there."""
        return self.remove_found(self._fingerprint(client_id))

    def remove_found(self, fingerprint: int) -> bool:
        """Remove the session with that fingerprint, which `due` has returned."""
        part = self._parts[fingerprint >> 56]
        slot = -1 if part is None else part.slot_of(fingerprint)
        if part is None or slot < 0:
            return False
        self.bytes_stored -= part.sizes[slot]
        self.count -= 1
        part.remove(slot)
        return True

    def _position(self, part: _Part, slot: int) -> Position:
        return self._ledgers[part.ledgers[slot]], part.entries[slot]

    def due(self, now: int, limit: int) -> list[tuple[int, Position]]:
        """Fingerprints, and positions of records, of sessions that are due; they stay here."""
        found: list[tuple[int, Position]] = []
        for part in self._parts:
            if part is not None and part.earliest <= now:
                found += [
                    (part.fingerprints[slot], self._position(part, slot))
                    for slot in part.due_slots(now)
                ]
                if len(found) >= limit:
                    break
        return found[:limit]
