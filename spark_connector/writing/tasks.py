"""What one task of a query writes. It runs in Spark's workers.

A task may run twice, at the same time even (a lost executor, speculation), and a batch may be run
again after a crash of the driver. `delivery` decides under which identity an attempt writes, and so
what becomes of rows that are written twice:

    at_least_once   a new producer: all rows stay
    exactly_once    a transaction of its own: the driver commits those of the attempts that count,
                    as one group. A batch that is committed already is not written again
    dedup           the producer of this task, with the batch's epoch: it leaves out the rows that
                    an earlier attempt has stored, by their number

Invariant: all rows are stored when `write` returns, unless their batch is committed already.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from magnetar.spark_connector.worker import freeze_once
from magnetar.spark_connector.writing.brokers import Brokers
from magnetar.spark_connector.writing.columns import rows
from magnetar.spark_connector.writing.options import Delivery, SinkOptions
from magnetar.spark_connector.writing.patience import Patience
from magnetar.spark_connector.writing.producer import BlockingProducer
from magnetar.spark_connector.writing.record_batches import ProducerIdentity
from magnetar.spark_connector.writing.service import TaskPlace, WritingService
from magnetar.spark_connector.writing.sign_of_life import given

if TYPE_CHECKING:
    import pyarrow as pa

ATTEMPT_SECONDS_MAX: Final = 30.0
"""For one answer of a broker, which stores what it is sent before it answers."""


class WrittenRows(Struct, frozen=True):
    """What an attempt has written, for the driver."""

    rows: int = 0
    attempt: tuple[int, int] | None = None
    """Its producer's id and epoch, if the driver is to commit it."""
    was_known: bool = False
    """Whether the batch was committed before, and this attempt has written nothing."""


def write(batches: Iterable[pa.RecordBatch], options: SinkOptions, place: TaskPlace) -> WrittenRows:
    """Write all rows of a task."""
    freeze_once()
    with closing(TaskAttempt(options, place)) as attempt:
        for batch in batches:
            if not attempt.take(batch):
                return WrittenRows(was_known=True)
        return attempt.finished()


class TaskAttempt:
    """One attempt to write. It begins with its first row: a task without rows leaves nothing."""

    def __init__(self, options: SinkOptions, place: TaskPlace) -> None:
        self._options = options
        self._place = place
        self._service = WritingService(options)
        self._producer: BlockingProducer | None = None
        self._who: ProducerIdentity | None = None
        self._open = ExitStack()

    def take(self, batch: pa.RecordBatch) -> bool:
        """Write these rows; False if their batch is committed already."""
        now_ms = time.time_ns() // 1_000_000
        for row in rows(batch, self._options.topic):
            if self._producer is None:
                self._producer = self._begun()
            if self._producer is None:
                return False
            self._producer.send(row, now_ms)
        return True

    def finished(self) -> WrittenRows:
        """Wait until all is stored."""
        if self._producer is None or self._who is None:
            return WrittenRows()
        self._producer.flush()
        transactional = self._who.transactional_id is not None
        attempt = (self._who.producer_id, self._who.epoch) if transactional else None
        return WrittenRows(self._producer.acknowledged, attempt)

    def close(self) -> None:
        self._open.close()

    def _begun(self) -> BlockingProducer | None:
        """A producer with the identity that this delivery needs."""
        options = self._options
        seconds = min(options.timeout_seconds, ATTEMPT_SECONDS_MAX)
        secure = self._service.is_secure
        brokers = Brokers(
            self._service.address(),
            seconds,
            options.security.context() if secure else None,
            options.security.login,
        )
        self._open.callback(brokers.close)
        delivery = options.delivery
        if delivery is Delivery.EXACTLY_ONCE:
            self._who = self._service.begin(self._place)
            alive = given(partial(self._service.renew, self._place), options.transaction_seconds)
            self._open.enter_context(alive)
        elif delivery is Delivery.DEDUP:
            self._who = self._service.number(self._place)
        else:
            patience = Patience(options.timeout_seconds, brokers.close)
            self._who = patience.answer(brokers.new_producer)
        if self._who is None:
            return None
        return BlockingProducer(
            brokers,
            self._who,
            options,
            self._place.task,
            resumes=delivery is Delivery.DEDUP,
        )
