"""Key_Shared: entries that wait to go out, so that those which may are found at once. Pure.

Theory. Waiting entries stand in one queue per hash, in order, and only the head of a queue may go.
Each queue's head stands in line before the owner of its hash, lowest first. A consumer that can
take something looks at its own line alone, and every look ends in an entry that goes, in a queue
that is put aside, or in a place in line that is given up; so what cannot go costs nothing, however
much of it there is.

    queue of a hash --head--> in line before its owner --take_run--> out
                                  |            ^
         another holds the hash   v            | freed
                                 aside --------+

Owners change only when consumers come or go: then all lines are formed anew (`reform`). Entries
whose hash is not known (they were delayed) wait apart until somebody has read them (`learned`).

Taking an entry out of a queue is lazy: its place stays until it comes to the front. Invariants: the
head of each queue that is not aside is in line, at its own position or a lower one; a hash is in
`hashes_waiting` exactly while something of it waits; no queue or line is longer than twice what
waits and a little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping
from heapq import heapify, heappop, heappush
from typing import Generic

from magnetar.core.dispatch.key_shared import C, KeyShared
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.subscription.replay import STALE_MAX, Replay


class _Queue:
    """Of one hash: a heap of places, and how many of them still wait."""

    __slots__ = ("live", "places")

    def __init__(self, places: list[Position]) -> None:
        self.places = places
        self.live = len(places)


class KeyQueues(Generic[C]):
    """See the module's docstring."""

    __slots__ = ("_hash_of", "_in_line", "_keys", "_lines", "_live", "_places", "_queues", "unread")
    _hash_of: Callable[[Position], int | None]

    def __init__(self, keys: KeyShared[C], hashes: Mapping[Position, int]) -> None:
        """`hashes` gets the hash of each added entry, if it is known."""
        self.unread = Replay()
        """Waiting entries whose hash is unknown."""
        self._keys = keys
        self._hash_of = hashes.get
        self._live: dict[Position, int] = {}
        """What waits, with its hash."""
        self._queues: dict[int, _Queue] = {}
        """By hash."""
        self._places = 0
        """In all queues, with those that are stale."""
        self._lines: dict[C | None, list[tuple[Position, int]]] = {}
        """By owner: a heap of heads."""
        self._in_line: dict[int, Position] = {}
        """Where the head of a queue stands, if it is not aside."""

    # -- coming and going ---------------------------------------------------------------------

    def add(self, position: Position) -> None:
        """It waits from now on."""
        if position in self._live:
            return
        hash_ = self._hash_of(position)
        if hash_ is None:
            self.unread.add(position)
        else:
            self._join(position, hash_)

    def learned(self, position: Position) -> None:
        """The hash of an entry among `unread` is known now."""
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
        """It waits no more, wherever it was."""
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
        """Nothing waits."""
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
        """Nothing new of these may go: it would overtake."""
        return self._queues.keys()

    # -- who may go ---------------------------------------------------------------------------

    def head(self, consumer: C) -> Position | None:
        """The lowest entry that this consumer may be given now."""
        while line := self._lines.get(consumer):
            position, hash_ = line[0]
            if self._in_line.get(hash_) != position:  # given up, or it stands elsewhere by now
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
        """The next that waits of this hash stands in line."""
        self._stand(self._first(self._queues[hash_]), hash_)

    def _first(self, queue: _Queue) -> Position:
        places = queue.places
        while places[0] not in self._live:
            heappop(places)
            self._places -= 1
        return places[0]

    def freed(self, hash_: int) -> None:
        """Only the owner holds entries of it now: held-back entries may go on."""
        if hash_ in self._queues and hash_ not in self._in_line:
            self._step_up(hash_)

    def reform(self) -> None:
        """Hashes have changed hands: every queue's head finds its line anew."""
        self._lines.clear()
        self._in_line.clear()
        for hash_, queue in self._queues.items():
            first = self._in_line[hash_] = self._first(queue)
            self._lines.setdefault(self._keys.owner(hash_), []).append((first, hash_))
        for line in self._lines.values():
            heapify(line)

    def _tidy(self) -> None:
        """Give up all stale places."""
        queues: dict[int, list[Position]] = {}
        for position, hash_ in self._live.items():
            queues.setdefault(hash_, []).append(position)
        for places in queues.values():
            heapify(places)
        self._queues = {hash_: _Queue(places) for hash_, places in queues.items()}
        self._places = len(self._live)
        self.reform()
