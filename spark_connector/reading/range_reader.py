"""Reads ranges of entries from bookies, and makes rows of them. It runs in Spark's workers.

Invariant: every entry of a range is read, or an error names the first that cannot be; only without
`failOnDataLoss` is it left out, with a warning that names it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from magnetar.core.entry import header
from magnetar.core.entry.columns.columns import Columns
from magnetar.core.entry.form import Chunk, Form, MarkKind
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.record import DetailedRecord
from magnetar.core.kernel.errors import BrokerError, Corrupted, EntryNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.remaining_entries import (
    decoded,
    id_entries,
    parse_location,
)
from magnetar.core.ledger.read.transaction_index import Aborted, TransactionIndex
from magnetar.spark_connector.errors import RefusedError, ServiceError, lose
from magnetar.spark_connector.planning.ranges import EntryRange
from magnetar.spark_connector.reading.columns import AS_STORED, BatchBuilder
from magnetar.spark_connector.reading.stored_ledgers import StoredLedger, opener
from magnetar.spark_connector.service import LedgerFacts, ReadingService
from magnetar.spark_connector.tls import NO_TLS, TlsOptions
from magnetar.spark_connector.values.decoding import ValueType
from magnetar.spark_connector.worker import freeze_once

if TYPE_CHECKING:
    import pyarrow as pa

CHUNKS_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of messages in chunks that are held until their last chunk comes."""
COMPLETE_MAX: Final = 1_000
PAUSE_SECONDS: Final = 0.5
"""Before bookies that cannot be reached are asked again."""
CHUNKS_LOOKED_FOR_ENTRIES: Final = 20_000
"""How many entries before a range may have the first chunks of a message in it."""


Run = tuple[int, list[bytes]]
"""Consecutive entries, behind the id of the first."""


class Task(Struct, frozen=True):
    """All that a task needs: it asks nobody but bookies, or the server if it cannot reach them."""

    ranges: tuple[EntryRange, ...]
    ledgers: dict[int, bytes]
    bookies: dict[str, tuple[str, int]]
    aborted: dict[str, list[Aborted]]
    """Of each log, if only what is committed is read."""
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    timeout_seconds: float
    service_urls: tuple[str, ...] = ()
    """Addresses of the server, if entries are read from it."""
    tls: TlsOptions = NO_TLS
    """To the server."""
    values: ValueType = AS_STORED


def batches(task: Task) -> Iterator[pa.RecordBatch]:
    """The rows of a task."""
    freeze_once()
    builder = BatchBuilder(task.columns, task.values)
    urls = task.service_urls
    service = ReadingService(urls, task.timeout_seconds, task.tls) if urls else None
    open_stored = opener(LedgerFacts(task.ledgers, task.bookies), service)
    for one in task.ranges:
        reading = RangeReader(
            one,
            open_stored(one.log, one.stored_in),
            task.aborted.get(one.log, ()),
            fails=task.fail_on_data_loss,
            timeout_seconds=task.timeout_seconds,
        )
        for _ in reading.read_into(builder):
            yield builder.build()
    if builder.rows:
        yield builder.build()


class RangeReader:
    """See the module's docstring."""

    def __init__(
        self,
        wanted: EntryRange,
        ledger: StoredLedger,
        aborted: Sequence[Aborted],
        *,
        fails: bool = True,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._wanted = wanted
        self._ledger = ledger
        self._transactions = TransactionIndex()
        self._transactions.aborted = list(aborted)
        self._fails = fails
        self._timeout_seconds = timeout_seconds
        self._chunks: dict[bytes, dict[int, bytes]] = {}
        """Of messages whose last one has not come, by their uuids."""
        self._complete: dict[bytes, None] = {}
        """Messages that have been read, the last ones."""
        name = TopicName.parse(wanted.log)
        self._topic, self._partition = name.base.full, max(name.partition_index, 0)

    def read_into(self, builder: BatchBuilder) -> Iterator[None]:
        """Read the range; yields whenever the builder is full, to be emptied."""
        wanted = self._wanted
        messages = builder.messages
        start, end = wanted.from_offset, wanted.to_offset
        committed = not self._transactions.aborted
        builder.begin(self._topic, self._partition, wanted.ledger_id)
        with self._ledger as ledger:
            for first, entries in self._runs(ledger):
                at = 0
                while at < len(entries):
                    at = messages.add_entries(entries, at, first, start, end, committed)
                    if messages.full:
                        yield
                    elif at < len(entries):
                        self._add(ledger, first + at, entries[at], messages)
                        at += 1

    def _add(self, ledger: StoredLedger, entry_id: int, entry: bytes, messages: Columns) -> None:
        """Add the messages of one entry."""
        try:
            rows = self._rows_of(ledger, entry_id, entry)
        except Corrupted as error:
            self._lose(f"entry {self._wanted.ledger_id}:{entry_id}: {error}")
        else:
            if rows is not None:
                messages.add(entry_id, *rows)

    def _lose(self, what: str) -> None:
        """Something that was asked for cannot be had."""
        lose(f"{self._wanted.log}: {what}", fails=self._fails)

    def _runs(self, ledger: StoredLedger) -> Iterator[Run]:
        wanted = self._wanted
        if not wanted.kept:
            yield from self._read(ledger, wanted.first, wanted.last)
            return
        _, first, count = parse_location(wanted.kept)
        ids_at = first + count
        stored: list[bytes] = []
        for _, entries in self._read(ledger, ids_at, ids_at + id_entries(count) - 1):
            stored += entries
        ids = decoded(stored, count)
        places = [place for place, each in enumerate(ids) if wanted.first <= each <= wanted.last]
        if places:
            for stored_first, entries in self._read(ledger, first + places[0], first + places[-1]):
                for place, entry in enumerate(entries, stored_first - first):
                    yield ids[place], [entry]

    def _read(self, ledger: StoredLedger, first: int, last: int) -> Iterator[Run]:
        """Entries as they are stored, in runs, without those that are lost. Bookies that cannot be
        reached are asked again for a while.
        """
        following, until = first, math.inf
        while following <= last:
            try:
                for run in ledger.read(following, last):
                    following, until = run.first + len(run.payloads), math.inf
                    yield run.first, run.payloads
            except (EntryNotFound, Corrupted) as error:
                self._lose(str(error))
                following += 1
            except RefusedError as error:
                self._lose(f"entries {self._at(following)} to {last}: {error}")
                return
            except BrokerError as error:
                now = time.monotonic()
                until = min(until, now + self._timeout_seconds)
                if now >= until:
                    raise ServiceError(f"{self._wanted.log}: {error}") from error
                time.sleep(PAUSE_SECONDS)

    def _rows_of(
        self, ledger: StoredLedger, entry_id: int, entry: bytes
    ) -> tuple[int | None, str, Sequence[DetailedRecord]] | None:
        """The offset of its first message, its protocol, and its messages that are rows."""
        wanted = self._wanted
        start, end = wanted.from_offset, wanted.to_offset
        about = header.read(entry)
        first = about.first_index if about.index >= 0 else None
        if first is not None and not (start <= about.index and first < end):
            return None
        sent = entry[about.size :]
        form = form_of(sent)
        if self._is_aborted(form, sent, about.index):
            return None
        chunk = form.chunk(sent)
        earlier: Sequence[bytes] = ()
        if chunk is not None:
            found = self._earlier(ledger, entry_id, sent, chunk)
            if found is None:
                return None
            earlier = found
        messages = form.messages(sent, earlier)
        if first is not None and (first < start or about.index >= end):
            messages = [one for one in messages if start <= first + one.place < end]
        if not messages:
            return None
        return first, form.NAME, messages

    def _is_aborted(self, form: Form, sent: bytes, index: int) -> bool:
        if not self._transactions.aborted:
            return False
        mark = form.transaction_mark(sent)
        return (
            mark is not None
            and mark.kind is MarkKind.PART
            and self._transactions.hides(mark.key, index)
        )

    # -- large messages in chunks -------------------------------------------------------------

    def _earlier(
        self, ledger: StoredLedger, entry_id: int, sent: bytes, chunk: Chunk
    ) -> list[bytes] | None:
        """The chunks before the last one of a message; None for one that is not the last: the
        message is a row of its last chunk, and of the first such one if its producer sent it again.
        """
        if chunk.uuid in self._complete:
            return None
        known = self._chunks.setdefault(chunk.uuid, {})
        if not chunk.is_last:
            if 0 <= chunk.chunk_id < chunk.chunks - 1:
                known[chunk.chunk_id] = sent
                self._bound_chunks()
            return None
        del self._chunks[chunk.uuid]
        self._complete[chunk.uuid] = None
        if len(known) < chunk.chunks - 1:
            found = self._looked_for(ledger, chunk)
            if found is None:
                return None  # sent again: it is a row of what is before
            known = found | known
        if len(known) < chunk.chunks - 1:
            self._lose(f"chunks of the message that ends in {self._at(entry_id)} are missing")
            return None
        return [known[number] for number in range(chunk.chunks - 1)]

    def _at(self, entry_id: int) -> str:
        return f"{self._wanted.ledger_id}:{entry_id}"

    def _bound_chunks(self) -> None:
        """Forget the oldest messages that do not end: their chunks are looked for if they do."""
        while sum(len(each) for known in self._chunks.values() for each in known.values()) > (
            CHUNKS_BYTES_MAX
        ):
            del self._chunks[next(iter(self._chunks))]
        while len(self._complete) > COMPLETE_MAX:
            del self._complete[next(iter(self._complete))]

    def _looked_for(self, ledger: StoredLedger, chunk: Chunk) -> dict[int, bytes] | None:
        """Chunks of a message that are before the range, in its ledger; None if all of it is."""
        end = self._wanted.first - 1
        start = max(end + 1 - CHUNKS_LOOKED_FOR_ENTRIES, 0)
        found: dict[int, bytes] = {}
        if self._wanted.kept or end < start:
            return found
        before = (each for _, entries in self._read(ledger, start, end) for each in entries)
        for entry in before:
            sent = entry[header.read(entry).size :]
            other = form_of(sent).chunk(sent)
            if other is None or other.uuid != chunk.uuid:
                continue
            if other.is_last:
                return None
            if 0 <= other.chunk_id < chunk.chunks - 1:
                found[other.chunk_id] = sent
                if sum(map(len, found.values())) > CHUNKS_BYTES_MAX:
                    break
        return found
