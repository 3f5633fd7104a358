"""Reads a batch of a stream in the driver if it is small: no task of Python runs for it.

Such a task costs Spark 30 ms before it reads a row. Spark's own simple stream readers do without:
their rows go to Java with the plan, and the partition is read again only where Java has lost them.
So can ours (`rows_with_plan.py`).

The driver has not to wait for bookies that only workers can reach: after a failure the batches of
the next minutes are read by tasks, as is the one that failed, whatever was wrong with it. So what
is wrong is told by tasks in either case.

Invariant: the rows are those that the batch's one task gives, all of them.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from magnetar.core.kernel.errors import BrokerError
from magnetar.spark_connector.errors import ConnectorError
from magnetar.spark_connector.planning.ranges import ANY_OFFSET
from magnetar.spark_connector.reading.range_reader import Task, batches

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

ROWS_MAX: Final = 1_000
"""By the offsets of the plan, which count messages."""
STORED_BYTES_MAX: Final = 256 << 10
ROW_BYTES_MAX: Final = 4 << 20
"""Of the rows, which may have been compressed."""
PATIENCE_SECONDS: Final = 1.0
"""How long bookies that cannot be reached, and the server, are asked again."""
PAUSE_SECONDS: Final = 600.0
"""After a failure, batches are read by tasks for so long."""


class SmallBatches:
    """See the module's docstring."""

    def __init__(self, *, allowed: bool) -> None:
        """`allowed` tells that Spark takes rows of this query without a task."""
        self._not_before = 0.0 if allowed else math.inf

    def rows(self, tasks: Sequence[Task]) -> list[pa.RecordBatch] | None:
        """The rows of a batch that is one small task; None if tasks are to read it."""
        if len(tasks) != 1 or not is_small(tasks[0]) or time.monotonic() < self._not_before:
            return None
        try:
            return _rows(replace(tasks[0], timeout_seconds=PATIENCE_SECONDS))
        except (ConnectorError, BrokerError) as error:
            log.warning("small batches are read by tasks for a while: %s", error)
            self._not_before = time.monotonic() + PAUSE_SECONDS
            return None


def is_small(task: Task) -> bool:
    """Whether the rows of a task are few, and as stored little. It is not if nobody counts them:
    other brokers may store messages without offsets.
    """
    if sum(one.bytes for one in task.ranges) > STORED_BYTES_MAX:
        return False
    if any(one.to_offset == ANY_OFFSET for one in task.ranges):
        return False
    rows = {one.log: one.to_offset - one.from_offset for one in task.ranges}
    return sum(rows.values()) <= ROWS_MAX


def _rows(task: Task) -> list[pa.RecordBatch] | None:
    """The rows of a task; None if they take too much."""
    found: list[pa.RecordBatch] = []
    size = 0
    for batch in batches(task):
        size += batch.nbytes
        if size > ROW_BYTES_MAX:
            return None
        found.append(batch)
    return found
