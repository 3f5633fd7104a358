"""Reads ranges of entries from bookies, and makes rows of them. It runs in Spark's workers.

Invariant: every entry of a range is read, or an error names the first that cannot be; only without
`failOnDataLoss` is it left out, with a warning that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from magnetar.core.entry import header
from magnetar.core.entry.columns.columns import Columns
from magnetar.core.entry.form import Form, MarkKind
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.record import DetailedRecord
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.read.transaction_index import Aborted, TransactionIndex
from magnetar.spark_connector.errors import lose
from magnetar.spark_connector.planning.ranges import EntryRange
from magnetar.spark_connector.reading.chunked_messages import ChunkedMessages
from magnetar.spark_connector.reading.columns import AS_STORED, BatchBuilder
from magnetar.spark_connector.reading.ledger_entries import LedgerEntries, Lose
from magnetar.spark_connector.reading.stored_ledgers import LedgerDirectory
from magnetar.spark_connector.security import NOTHING_SAID, QuerySecurity
from magnetar.spark_connector.service import LedgerFacts, ReadingService
from magnetar.spark_connector.values.decoding import ValueType
from magnetar.spark_connector.values.topic_schema import definitions, of_side
from magnetar.spark_connector.worker import freeze_once

if TYPE_CHECKING:
    import pyarrow as pa


class Task(Struct, frozen=True):
    """All that a task needs: it asks bookies, and the server where what it reads has moved, or if
    it cannot reach them.
    """

    ranges: tuple[EntryRange, ...]
    ledgers: dict[int, bytes]
    bookies: dict[str, tuple[str, int]]
    tickets: dict[int, bytes]
    """What bookies are shown, by ledger, if they ask."""
    aborted: dict[str, list[Aborted]]
    """Of each log, if only what is committed is read."""
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    timeout_seconds: float
    service_urls: tuple[str, ...]
    """Addresses of the server."""
    from_gateway: bool = False
    """Whether entries are read from the server."""
    security: QuerySecurity = NOTHING_SAID
    """To the server."""
    values: ValueType = AS_STORED


def batches(task: Task) -> Iterator[pa.RecordBatch]:
    """The rows of a task."""
    freeze_once()
    connect = partial(ReadingService, task.service_urls, task.timeout_seconds, task.security)
    builder = BatchBuilder(task.columns, task.values, partial(_versions, task, connect))
    facts = LedgerFacts(task.ledgers, task.bookies, task.tickets)
    with LedgerDirectory(facts, connect, is_server=task.from_gateway) as directory:
        for one in task.ranges:
            reading = RangeReader(
                one,
                directory,
                task.aborted.get(one.log, ()),
                fails=task.fail_on_data_loss,
                timeout_seconds=task.timeout_seconds,
            )
            for _ in reading.read_into(builder):
                yield builder.build()
    if builder.rows:
        yield builder.build()


def _versions(task: Task, connect: Callable[[], ReadingService], side: str) -> Mapping[int, str]:
    """The schemas of the topic as they are now; of pairs, those of that side."""
    topic, service = task.values.options.by_topic, connect()
    try:
        versions = service.schemas(topic)
    finally:
        service.close()
    return definitions(topic, "AVRO", of_side(topic, versions, side) if side else versions)


class RangeReader:
    """See the module's docstring."""

    def __init__(
        self,
        wanted: EntryRange,
        directory: LedgerDirectory,
        aborted: Sequence[Aborted],
        *,
        fails: bool = True,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._wanted = wanted
        self._directory = directory
        self._transactions = TransactionIndex()
        self._transactions.aborted = list(aborted)
        self._fails = fails
        self._timeout_seconds = timeout_seconds
        self._chunked = ChunkedMessages(wanted, directory, self._opened, self._lose)
        name = TopicName.parse(wanted.log)
        self._topic, self._partition = name.base.full, max(name.partition_index, 0)

    def read_into(self, builder: BatchBuilder) -> Iterator[None]:
        """Read the range; yields whenever the builder is full, to be emptied."""
        wanted = self._wanted
        messages = builder.messages
        start, end = wanted.from_offset, wanted.to_offset
        committed = not self._transactions.aborted
        builder.begin(self._topic, self._partition, wanted.ledger_id)
        with self._opened(wanted, self._lose) as ledger:
            for first, entries in ledger.runs(wanted.first, wanted.last):
                at = 0
                while at < len(entries):
                    at = messages.add_entries(entries, at, first, start, end, committed)
                    if messages.full:
                        yield
                    elif at < len(entries):
                        self._add(first + at, entries[at], messages)
                        at += 1

    def _opened(self, one: EntryRange, lose: Lose) -> LedgerEntries:
        return LedgerEntries(self._directory, one, lose, self._timeout_seconds)

    def _add(self, entry_id: int, entry: bytes, messages: Columns) -> None:
        """Add the messages of one entry."""
        try:
            rows = self._rows_of(entry_id, entry)
        except Corrupted as error:
            self._lose(f"entry {self._wanted.ledger_id}:{entry_id}: {error}")
        else:
            if rows is not None:
                messages.add(entry_id, *rows)

    def _lose(self, what: str) -> None:
        """Something that was asked for cannot be had."""
        lose(f"{self._wanted.log}: {what}", fails=self._fails)

    def _rows_of(
        self, entry_id: int, entry: bytes
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
            found = self._chunked.earlier(entry_id, sent, chunk)
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
