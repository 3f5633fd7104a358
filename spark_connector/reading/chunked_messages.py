"""Messages in chunks (Pulsar's PIP-37): a row is made of the last chunk and those before it.

Chunks are entries of their own, among those of other producers. A range may begin between two of
them, and so may a ledger: those that are before it are looked for backwards, in the ledger of the
range, then in the ledgers before that one, for which the server is asked.

A producer that has lost its connection sends chunks again. A message is a row of its first last
chunk, so what is before a range also says whether there was one already. A range that has a second
copy whole makes a row of it: so does any message that was stored twice.

Invariant: a message is one row, or an error says that chunks of it are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Final

from magnetar.core.entry import header
from magnetar.core.entry.form import Chunk
from magnetar.core.entry.forms import form_of
from magnetar.core.ledger.read.reading_plan import Place
from magnetar.spark_connector.planning.ranges import EntryRange, between
from magnetar.spark_connector.reading.ledger_entries import LedgerEntries, Lose, Run
from magnetar.spark_connector.reading.stored_ledgers import LedgerDirectory

CHUNKS_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of messages in chunks that are held until their last chunk comes."""
FOUND_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of a message that is looked for; and so much is looked at for one that was sent twice."""
COMPLETE_MAX: Final = 1_000
LOOKED_FOR_ENTRIES: Final = 20_000
"""How many entries before a range may have the first chunks of a message in it."""
IN_VAIN_ENTRIES: Final = 50 * LOOKED_FOR_ENTRIES
"""So many are looked at for messages of which chunks are missing; of more, none is looked for."""
CHUNK_BYTES: Final = 300
"""What is held of a chunk takes so much more than its bytes."""
STEP_ENTRIES: Final = 64
"""Ids of entries that are looked at together; twice as many behind a step without entries."""


class ChunkedMessages:
    """See the module's docstring. It belongs to one range."""

    def __init__(
        self,
        wanted: EntryRange,
        directory: LedgerDirectory,
        opened: Callable[[EntryRange, Lose], LedgerEntries],
        lose: Lose,
    ) -> None:
        self._wanted = wanted
        self._directory = directory
        self._opened = opened
        self._lose = lose
        self._chunks: dict[bytes, dict[int, bytes]] = {}
        """Of messages whose last one has not come, by their uuids."""
        self._held = 0
        """Bytes of these chunks."""
        self._forgets = False
        """Whether chunks of the range itself are to be looked for."""
        self._in_vain = 0
        self._complete: dict[bytes, None] = {}
        """Messages that have been read, the last ones."""

    def earlier(self, entry_id: int, sent: bytes, chunk: Chunk) -> list[bytes] | None:
        """The chunks before the last one of a message; None for one that is not the last, and for
        a message that is a row already.
        """
        if chunk.uuid in self._complete:
            return None
        if not chunk.is_last:
            if 0 <= chunk.chunk_id < chunk.chunks - 1:
                self._hold(chunk, sent)
                self._bound()
            return None
        known = self._dropped(chunk.uuid)
        self._complete[chunk.uuid] = None
        self._bound()
        if len(known) < chunk.chunks - 1:
            found = self._looked_for(chunk, entry_id if self._forgets else self._wanted.first)
            if found is None:
                return None  # sent again: it is a row of what is before
            known = found | known
        if len(known) < chunk.chunks - 1:
            where = f"the message that ends in {self._wanted.ledger_id}:{entry_id}"
            if sum(map(len, known.values())) > FOUND_BYTES_MAX:
                self._lose(f"{where} has more than {FOUND_BYTES_MAX >> 20} MiB")
            else:
                self._lose(f"chunks of {where} are missing")
            return None
        return [known[number] for number in range(chunk.chunks - 1)]

    def _hold(self, chunk: Chunk, sent: bytes) -> None:
        known = self._chunks.setdefault(chunk.uuid, {})
        before = known.get(chunk.chunk_id)
        self._held += len(sent) - (-CHUNK_BYTES if before is None else len(before))
        known[chunk.chunk_id] = sent

    def _dropped(self, uuid: bytes) -> dict[int, bytes]:
        """What is held of a message, and is held no more."""
        known = self._chunks.pop(uuid, {})
        self._held -= sum(len(each) + CHUNK_BYTES for each in known.values())
        return known

    def _bound(self) -> None:
        """Forget the oldest messages that do not end: their chunks are looked for if they do."""
        while self._held > CHUNKS_BYTES_MAX:
            self._dropped(next(iter(self._chunks)))
            self._forgets = True
        while len(self._complete) > COMPLETE_MAX:
            del self._complete[next(iter(self._complete))]

    # -- before the range ---------------------------------------------------------------------

    def _looked_for(self, chunk: Chunk, end: int) -> dict[int, bytes] | None:
        """Chunks of a message that are before an entry of the range; None if all of it is."""
        found: dict[int, bytes] = {}
        seen = size = 0
        if self._in_vain >= IN_VAIN_ENTRIES:
            return found
        with closing(self._before(end, lambda: len(found) == chunk.chunks - 1)) as steps:
            for entries in steps:
                step: dict[int, bytes] = {}
                for entry in entries:
                    seen, size = seen + 1, size + len(entry)
                    sent = entry[header.read(entry).size :]
                    other = form_of(sent).chunk(sent)
                    if other is None or other.uuid != chunk.uuid:
                        continue
                    if other.is_last:
                        return None
                    if 0 <= other.chunk_id < chunk.chunks - 1:
                        step[other.chunk_id] = sent
                found = step | found
                if seen >= LOOKED_FOR_ENTRIES or sum(map(len, found.values())) > FOUND_BYTES_MAX:
                    break
                if len(found) == chunk.chunks - 1 and size >= FOUND_BYTES_MAX:
                    break
        if len(found) < chunk.chunks - 1:
            self._in_vain += seen
        return found

    def _before(
        self, end: int, enough: Callable[[], bool]
    ) -> Generator[Iterator[bytes], None, None]:
        """What is before an entry, some entries at a time: the nearest ones first. Ledgers before
        its own are read unless there is `enough`.
        """
        yield from self._backwards(self._wanted, end)
        if enough():
            return
        log, ledger_id = self._wanted.log, self._wanted.ledger_id
        plan = self._directory.plan(log)
        if plan is not None:
            for one in reversed(list(between(log, plan, plan.first, Place(ledger_id, 0, -1)))):
                self._directory.renew(log, one.stored_in)
                yield from self._backwards(one, one.last + 1)
                if enough():
                    return

    def _backwards(self, one: EntryRange, end: int) -> Generator[Iterator[bytes], None, None]:
        """The entries of one ledger before `end`. One that is lost says so as a missing chunk.

        Compaction may have left few of very many ids, so steps without entries become larger.
        """
        step = STEP_ENTRIES
        with self._opened(one, _passed_over) as ledger:
            while end > 0:
                start = max(end - step, 0)
                counted = _Counted(ledger.runs(start, end - 1))
                yield iter(counted)
                step = STEP_ENTRIES if counted.count else min(2 * step, LOOKED_FOR_ENTRIES)
                end = start


class _Counted:
    """Entries of runs, one by one: they may be large."""

    def __init__(self, runs: Iterator[Run]) -> None:
        self._runs = runs
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for _, entries in self._runs:
            self.count += len(entries)
            yield from entries


def _passed_over(_what: str) -> None:
    """Nobody has asked for what is before a range."""
