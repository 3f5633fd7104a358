"""The tail cache: the newest entries of all topics, for readers close behind the writes.

All topics share one budget in bytes; the oldest run is evicted first. Pulsar's `EntryCache` works
likewise (`managedLedgerCacheSizeMB`), and so does the page cache for Kafka. Adjacent small runs are
joined, so that single publishes do not cost an object each. What is not cached is read from
storage.

Invariant: the runs of one topic are in order and do not overlap; `bytes` of all topics together
exceed `bytes_max` by at most the run added last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import Final

from magnetar.core.entry import header
from magnetar.core.kernel.pieces import size_of

JOIN_ENTRIES_MAX: Final = 64
"""A run takes in its successors up to this many entries."""
FORGET_RUNS: Final = 256
"""Evicted runs are cut off a topic's list this many at a time."""


class Slice:
    """Consecutive entries of one ledger. `counts` is None if each holds one message.

    Entries from the tail have their headers in `headers`. If they were read from storage, `headers`
    is None, and the payloads begin with them.
    """

    __slots__ = ("counts", "first_entry", "headers", "ledger_id", "payloads")

    def __init__(
        self,
        ledger_id: int,
        first_entry: int,
        payloads: list[bytes],
        counts: list[int] | None,
        headers: list[bytes] | None = None,
    ) -> None:
        self.ledger_id = ledger_id
        self.first_entry = first_entry
        self.payloads = payloads
        self.counts = counts
        self.headers = headers

    def part(self, start: int, stop: int) -> Slice:
        """Entries `start`..`stop` (exclusive), counted from the first of this slice."""
        if start == 0 and stop >= len(self.payloads):
            return self
        counts = self.counts
        return Slice(
            self.ledger_id,
            self.first_entry + start,
            self.payloads[start:stop],
            None if counts is None else counts[start:stop],
            None if self.headers is None else self.headers[start:stop],
        )

    def stored(self) -> list[bytes]:
        """The entries as they are stored, each with its header."""
        if self.headers is None:
            return self.payloads
        return [head + payload for head, payload in zip(self.headers, self.payloads, strict=True)]

    def header(self, place: int) -> header.EntryHeader:
        """The broker's header of one of the entries."""
        return header.read((self.payloads if self.headers is None else self.headers)[place])

    def sent(self, place: int) -> bytes:
        """One of the entries as its producer sent it, without the broker's header."""
        payload = self.payloads[place]
        return payload if self.headers is not None else payload[header.read(payload).size :]

    def sent_at(self, place: int) -> int:
        """Where the producer's bytes begin in that payload."""
        return 0 if self.headers is not None else header.read(self.payloads[place]).size

    def messages(self) -> int:
        return len(self.payloads) if self.counts is None else sum(self.counts)


class TopicTail:
    """The cached runs of one topic."""

    __slots__ = ("_cache", "_dropped", "_runs", "_sizes")

    def __init__(self, cache: TailCache) -> None:
        self._cache = cache
        self._runs: list[Slice] = []
        self._sizes: list[int] = []
        self._dropped = 0
        """How many runs at the head of the list are evicted."""

    def add(self, run: Slice) -> None:
        """Append a confirmed run."""
        size = size_of(run.payloads)
        runs = self._runs
        if len(runs) > self._dropped and self._join(runs[-1], run):
            self._sizes[-1] += size
            self._cache.bytes += size
        else:
            runs.append(run)
            self._sizes.append(size)
            self._cache.added(self, run, size)
        self._cache.evict()

    @staticmethod
    def _join(last: Slice, run: Slice) -> bool:
        """Extend `last` by `run`, if they are adjacent and small."""
        count = len(last.payloads)
        if (
            count + len(run.payloads) > JOIN_ENTRIES_MAX
            or last.ledger_id != run.ledger_id
            or last.first_entry + count != run.first_entry
            or last.counts is not None
            or run.counts is not None
            or last.headers is None
            or run.headers is None
        ):
            return False
        # new lists, because consumers may still use slices of the old ones
        last.payloads = last.payloads + run.payloads
        last.headers = last.headers + run.headers
        return True

    def find(self, ledger_id: int, entry_id: int) -> tuple[Slice, int] | None:
        """The cached run with this entry, and the entry's place in it; or None."""
        runs = self._runs
        at = len(runs) - 1
        if at < self._dropped:
            return None
        run = runs[at]
        if run.ledger_id != ledger_id or entry_id < run.first_entry:  # else the newest run
            at = bisect_right(runs, (ledger_id, entry_id), lo=self._dropped, key=_start) - 1
            if at < self._dropped:
                return None
            run = runs[at]
        start = entry_id - run.first_entry
        if run.ledger_id != ledger_id or start >= len(run.payloads):
            return None
        return run, start

    def drop_oldest(self) -> int:
        """Evict the oldest run; returns its size in bytes."""
        size = self._sizes[self._dropped]
        self._runs[self._dropped] = _GONE
        self._dropped += 1
        if self._dropped >= FORGET_RUNS and self._dropped * 2 >= len(self._runs):
            del self._runs[: self._dropped]
            del self._sizes[: self._dropped]
            self._dropped = 0
        return size

    def clear(self) -> None:
        """Forget everything (the topic is unloaded or truncated)."""
        self._cache.removed(self._runs[self._dropped :], sum(self._sizes[self._dropped :]))
        self._runs = []
        self._sizes = []
        self._dropped = 0


_GONE: Final = Slice(-1, -1, [], None)


def _start(run: Slice) -> tuple[int, int]:
    return (run.ledger_id, run.first_entry)


class TailCache:
    """The budget all tails share."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0
        self._order: OrderedDict[Slice, TopicTail] = OrderedDict()
        """Each run and whose it is, oldest first. A plain dict would be slow to tell its oldest."""

    def added(self, tail: TopicTail, run: Slice, size: int) -> None:
        self._order[run] = tail
        self.bytes += size

    def removed(self, runs: list[Slice], size: int) -> None:
        # a stop unloads thousands of topics one by one: none may cost what all of them hold
        for run in runs:
            del self._order[run]
        self.bytes -= size

    def evict(self) -> None:
        """Drop the oldest runs until the budget holds."""
        while self.bytes > self.bytes_max and self._order:
            _run, tail = self._order.popitem(last=False)
            self.bytes -= tail.drop_oldest()
