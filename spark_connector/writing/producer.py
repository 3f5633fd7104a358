"""Sends rows to partitions as an idempotent producer of Kafka's protocol, and blocks.

Theory. A row is added to the open batch of its partition. A full batch is encoded and waits until
it is sent; a sent one until it is acknowledged. Each broker has at most `REQUESTS_IN_FLIGHT`
requests under way, and each request at most one batch of a partition.

    open -> ready -> in flight -> acknowledged
              ^_________|   after any failure that may pass

After such a failure all connections are closed, leaders are looked up, and what was not
acknowledged is sent again in its order. Nothing comes twice by that: the server knows the numbers
of a producer's last five batches (KIP-98), and no more than that are in flight.

Invariants: the sequence number of a row is its place among the rows of this producer in its
partition; batches of a partition are sent in the order of these numbers; of open, ready and
unacknowledged batches about `buffer_bytes` are held. `flush` returns when all are acknowledged.
A producer that `resumes` leaves out the rows that one of the same identity has stored before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from magnetar.spark_connector.writing.brokers import Brokers, LogName
from magnetar.spark_connector.writing.columns import SinkRow
from magnetar.spark_connector.writing.connection import BrokerConnection
from magnetar.spark_connector.writing.errors import DUPLICATE, check
from magnetar.spark_connector.writing.options import SinkOptions
from magnetar.spark_connector.writing.partitioner import Partitioner
from magnetar.spark_connector.writing.patience import Patience
from magnetar.spark_connector.writing.record_batches import (
    BatchEncoder,
    EncodedBatch,
    ProducerIdentity,
)
from magnetar.spark_connector.writing.requests import produce_request, results

REQUESTS_IN_FLIGHT: Final = 5
"""To one broker: it knows as many batches of a producer again."""
REQUEST_BYTES_MAX: Final = 1 << 20
"""Of one request, unless a single batch is larger."""


class OutgoingLog:
    """What is on its way to one partition."""

    __slots__ = ("in_flight", "name", "open", "ready", "rows", "stored_before")

    def __init__(self, name: LogName, stored_before: int) -> None:
        self.name = name
        self.stored_before = stored_before
        """Rows that are in the log already."""
        self.rows = 0
        self.open: BatchEncoder | None = None
        self.ready: deque[EncodedBatch] = deque()
        self.in_flight: deque[EncodedBatch] = deque()


class BlockingProducer:
    """See the module's docstring."""

    def __init__(
        self,
        brokers: Brokers,
        who: ProducerIdentity,
        options: SinkOptions,
        first_partition: int = 0,
        *,
        resumes: bool = False,
    ) -> None:
        """Rows without a key begin at `first_partition`, so that tasks begin at different ones."""
        self._brokers = brokers
        self._who = who
        self._options = options
        self._first_partition = first_partition
        self._resumes = resumes
        self._partitioners: dict[str, Partitioner] = {}
        self._logs: dict[LogName, OutgoingLog] = {}
        self._in_transaction: set[LogName] = set()
        self._held = 0
        self._patience = Patience(options.timeout_seconds, self._start_over)
        self.acknowledged = 0
        """Rows."""

    def send(self, row: SinkRow, now_ms: int) -> None:
        """Take a row; wait if there are too many already."""
        log = self._log_of(row)
        number = log.rows
        log.rows += 1
        if number < log.stored_before:
            return
        if log.open is None:
            log.open = BatchEncoder(number)
        before = log.open.size
        time_ms = now_ms if row.time_ms is None else row.time_ms
        log.open.add(row.key, row.value, row.headers, time_ms)
        self._held += log.open.size - before
        if log.open.size >= self._options.batch_bytes:
            self._close(log)
            while log.ready:
                self._patience.insist(self._step)
        if self._held > self._options.buffer_bytes:
            self._drain(self._options.buffer_bytes // 2)

    def flush(self) -> None:
        """Wait until all rows are acknowledged."""
        self._drain(0)

    # -- batches ------------------------------------------------------------------------------

    def _log_of(self, row: SinkRow) -> OutgoingLog:
        topic, partition = row.topic, row.partition
        if partition is None:
            chooses = self._partitioners.get(topic)
            if chooses is None:
                partitions = self._patience.answer(lambda: self._brokers.partitions(topic))
                chooses = Partitioner(partitions, self._first_partition)
                self._partitioners[topic] = chooses
            partition = chooses.of(row.key)
        name = topic, partition
        log = self._logs.get(name)
        if log is None:
            stored = self._patience.answer(lambda: self._stored_before(name))
            log = self._logs[name] = OutgoingLog(name, stored)
        return log

    def _stored_before(self, name: LogName) -> int:
        if not self._resumes:
            return 0
        return self._brokers.last_sequence(self._who, name) + 1

    def _close(self, log: OutgoingLog) -> None:
        """Encode the open batch."""
        if log.open is not None:
            batch = log.open.encoded(self._who, self._options.compression)
            self._held += len(batch.data) - log.open.size
            log.ready.append(batch)
            log.open = None

    def _drain(self, held_max: int) -> None:
        """Send until no more than so many bytes are held."""
        for log in self._logs.values():
            self._close(log)
        while self._held > held_max:
            self._patience.insist(self._step)

    # -- sending ------------------------------------------------------------------------------

    def _step(self) -> None:
        """Send what can be sent; if nothing can, wait for a response."""
        waiting = [log for log in self._logs.values() if log.ready]
        self._add_to_transaction(waiting)
        by_connection: dict[BrokerConnection, list[OutgoingLog]] = {}
        for log in waiting:
            by_connection.setdefault(self._brokers.leader(log.name), []).append(log)
        sent = False
        for connection, logs in by_connection.items():
            if connection.waiting < REQUESTS_IN_FLIGHT:
                self._send(connection, logs)
                sent = True
        if not sent:
            busiest = max(self._brokers.connections(), key=lambda each: each.waiting)
            self._receive(busiest)

    def _add_to_transaction(self, logs: Iterable[OutgoingLog]) -> None:
        if self._who.transactional_id is None:
            return
        new = {log.name for log in logs} - self._in_transaction
        if new:
            self._brokers.add_to_transaction(self._who, sorted(new))
            self._in_transaction |= new

    def _send(self, connection: BrokerConnection, logs: list[OutgoingLog]) -> None:
        """One request: a batch of each partition, as long as they fit."""
        size = 0
        chosen: dict[LogName, EncodedBatch] = {}
        for log in logs:
            batch = log.ready[0]
            if chosen and size + len(batch.data) > REQUEST_BYTES_MAX:
                break
            size += len(batch.data)
            chosen[log.name] = batch
            log.in_flight.append(log.ready.popleft())
        seconds = self._options.timeout_seconds
        connection.send(produce_request(self._who, chosen, seconds))

    def _receive(self, connection: BrokerConnection) -> None:
        """Take the response that comes next."""
        assert connection.waiting, "what is held and was sent is under way"
        _, response = connection.receive()
        failed: tuple[LogName, int, str | None] | None = None
        for name, code, said in results(response):
            if code and code != DUPLICATE:
                failed = failed or (name, code, said)
                continue
            batch = self._logs[name].in_flight.popleft()
            self._held -= len(batch.data)
            self.acknowledged += batch.rows
            self._patience.succeeded()
        if failed is not None:
            (topic, partition), code, said = failed
            check(code, f"{topic}, partition {partition}", said)

    def _start_over(self) -> None:
        """Send again what was not acknowledged, in its order, over new connections."""
        self._brokers.close()
        for log in self._logs.values():
            log.ready.extendleft(reversed(log.in_flight))
            log.in_flight.clear()
