"""Key_Shared: queues of waiting entries, from which a deliverable one is found at once. Pure.

Theory. Waiting entries are in one queue per hash, in order, and only the head of a queue is
deliverable. Each head is in the line of the consumer that owns its hash, lowest first. A consumer
with permits looks at its own line only, and each look delivers an entry, sets a queue aside, or
drops a stale place; so entries that cannot be delivered cost nothing, however many there are.
Pulsar scans its replay set instead, up to a look-ahead limit (`keySharedLookAheadMsgInReplay...` of
PIP-379, `MessageRedeliveryController.java` of 4.2).

    queue of a hash --head--> in line before its owner --take_run--> out
                                  |            ^
         another holds the hash   v            | freed
                                 aside --------+

Owners change only when consumers attach or leave; then all lines are built again (`reform`).
Entries whose hash is not known (they were delayed) wait in `unread` until they are read
(`learned`).

Removal from a queue is lazy: a place stays until it reaches the front. Invariants: the head of each
queue that is not set aside is in a line, at its own position or a lower one; a hash is in
`hashes_waiting` exactly while entries of it wait; a queue or line is no longer than twice its
waiting entries and a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping
from heapq import heapify, heappop, heappush
from typing import Generic

from magnetar.core.dispatch.key_shared import C, KeyShared
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.subscription.replay import STALE_MAX, Replay


class _Queue:
    """The queue of one hash: a heap of places, and how many of them still wait."""

    __slots__ = ("live", "places")

    def __init__(self, places: list[Position]) -> None:
        self.places = places
        self.live = len(places)


class KeyQueues(Generic[C]):
    """See the module's docstring."""

    __slots__ = ("_hash_of", "_in_line", "_keys", "_lines", "_live", "_places", "_queues", "unread")
    _hash_of: Callable[[Position], int | None]

    def __init__(self, keys: KeyShared[C], hashes: Mapping[Position, int]) -> None:
        """`hashes` has the hash of each added entry, if it is known."""
        self.unread = Replay()
        """Waiting entries whose hash is unknown."""
        self._keys = keys
        self._hash_of = hashes.get
        self._live: dict[Position, int] = {}
        """The hashes of waiting entries."""
        self._queues: dict[int, _Queue] = {}
        """By hash."""
        self._places = 0
        """The length of all queues, stale places included."""
        self._lines: dict[C | None, list[tuple[Position, int]]] = {}
        """By owner: a heap of heads."""
        self._in_line: dict[int, Position] = {}
        """The place of each queue's head in a line, unless the queue is set aside."""

    # -- coming and going ---------------------------------------------------------------------

    def add(self, position: Position) -> None:
        """Add an entry."""
        if position in self._live:
            return
        hash_ = self._hash_of(position)
        if hash_ is None:
            self.unread.add(position)
        else:
            self._join(position, hash_)

    def learned(self, position: Position) -> None:
        """Move an entry out of `unread`, now that its hash is known."""
        self.unread.discard(position)
        self.add(position)

    def _join(self, position: Position, hash_: int) -> None:
        self._live[position] = hash_
        queue = self._queues.get(hash_)
        if queue is None:
            self._queues[hash_] = _Queue([position])
            self._stand(position, hash_)
        else:
            heappush(queue.places, position)
            queue.live += 1
            standing = self._in_line.get(hash_)
            if standing is not None and position < standing:
                self._stand(position, hash_)
        self._places += 1
        if self._places > 2 * len(self._live) + STALE_MAX:
            self._tidy()

    def _stand(self, position: Position, hash_: int) -> None:
        self._in_line[hash_] = position
        line = self._lines.setdefault(self._keys.owner(hash_), [])
        heappush(line, (position, hash_))
        if len(line) > 2 * len(self._queues) + STALE_MAX:
            self.reform()

    def discard(self, position: Position) -> None:
        """Remove an entry."""
        hash_ = self._live.pop(position, None)
        if hash_ is None:
            self.unread.discard(position)
            return
        queue = self._queues[hash_]
        queue.live -= 1
        if not queue.live:
            del self._queues[hash_]
            self._places -= len(queue.places)
            self._in_line.pop(hash_, None)

    def clear(self) -> None:
        """Remove all entries."""
        for each in (self._live, self._queues, self._lines, self._in_line):
            each.clear()
        self._places = 0
        self.unread.clear()

    def __len__(self) -> int:
        return len(self._live) + len(self.unread)

    def __contains__(self, position: Position) -> bool:
        return position in self._live or position in self.unread

    def __iter__(self) -> Iterator[Position]:
        yield from self._live
        yield from self.unread

    @property
    def hashes_waiting(self) -> KeysView[int]:
        """Hashes whose new entries must wait, to keep the order."""
        return self._queues.keys()

    # -- who may go ---------------------------------------------------------------------------

    def head(self, consumer: C) -> Position | None:
        """The lowest entry that may be delivered to this consumer now."""
        while line := self._lines.get(consumer):
            position, hash_ = line[0]
            if self._in_line.get(hash_) != position:  # a stale place
                heappop(line)
            elif not self._keys.free(hash_, consumer):
                heappop(line)
                del self._in_line[hash_]
            elif position not in self._live:
                heappop(line)
                self._step_up(hash_)
            else:
                return position
        return None

    def take_run(self, consumer: C, entries_max: int) -> list[int]:
        """Take consecutive entries from the head on; returns their hashes."""
        first = self.head(consumer)
        hashes: list[int] = []
        position = first
        while position is not None and first is not None:
            if position != (first[0], first[1] + len(hashes)) or len(hashes) >= entries_max:
                break
            hash_ = self._live[position]
            hashes.append(hash_)
            heappop(self._lines[consumer])
            self.discard(position)
            if hash_ in self._queues:
                self._step_up(hash_)
            position = self.head(consumer)
        return hashes

    def _step_up(self, hash_: int) -> None:
        """Put the next entry of this hash in line."""
        self._stand(self._first(self._queues[hash_]), hash_)

    def _first(self, queue: _Queue) -> Position:
        places = queue.places
        while places[0] not in self._live:
            heappop(places)
            self._places -= 1
        return places[0]

    def freed(self, hash_: int) -> None:
        """Only the owner has pending entries of the hash, so waiting ones may be delivered."""
        if hash_ in self._queues and hash_ not in self._in_line:
            self._step_up(hash_)

    def reform(self) -> None:
        """Owners have changed: build all lines again."""
        self._lines.clear()
        self._in_line.clear()
        for hash_, queue in self._queues.items():
            first = self._in_line[hash_] = self._first(queue)
            self._lines.setdefault(self._keys.owner(hash_), []).append((first, hash_))
        for line in self._lines.values():
            heapify(line)

    def _tidy(self) -> None:
        """Remove all stale places."""
        queues: dict[int, list[Position]] = {}
        for position, hash_ in self._live.items():
            queues.setdefault(hash_, []).append(position)
        for places in queues.values():
            heapify(places)
        self._queues = {hash_: _Queue(places) for hash_, places in queues.items()}
        self._places = len(self._live)
        self.reform()
