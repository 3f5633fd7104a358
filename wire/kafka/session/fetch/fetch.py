"""Fetch: returns whole batches from an offset on, and waits for new ones if there are too few.

The first batch is returned whatever its size (KIP-74). It may begin before the requested offset, if
that lies inside it: consumers drop the earlier records. There are no incremental fetch sessions
(KIP-227): every response has session id 0, so clients send all their partitions each time.

A waiting fetch reads again when enough has been published since its last read, and at its deadline.
A reader close behind the writers finds everything cached, and is answered without a task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.errors import (
    CORRUPT_MESSAGE,
    NONE,
    NOT_LEADER,
    OFFSET_OUT_OF_RANGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    KafkaRefusal,
    code_of,
)
from magnetar.wire.kafka.messages.records import (
    AbortedTransaction,
    FetchedPartition,
    FetchedTopic,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from magnetar.wire.kafka.partition.fetched_batches import FetchedBatches
from magnetar.wire.kafka.partition.logs import EPOCH, PartitionLog
from magnetar.wire.kafka.session.topics import internal

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller, Handler, RequestContext
    from magnetar.wire.kafka.wire import KafkaRequest

BYTES_MAX: Final = 55 * 1024 * 1024
"""Of one response: the broker's default of `fetch.max.bytes` (KIP-541)."""
PIECE_BYTES_MIN: Final = 2048
"""Pieces that are smaller on average are joined. A batch is two pieces, its head and the rest."""
AT_ONCE_PARTITIONS_MAX: Final = 8
"""Partitions of a request that is tried without a task; with more, failed tries cost too much."""
READ_COMMITTED: Final = 1
BY_ID_VERSION: Final = 13
"""From this version on topics are named by their ids (KIP-516)."""


class PartitionFetch:
    """One partition of a request, and the batches that were read for it."""

    __slots__ = (
        "aborted",
        "answer",
        "bytes_seen",
        "committed",
        "end_seen",
        "error",
        "is_view",
        "log",
        "part",
        "size",
    )

    def __init__(
        self, part: FetchPartition, log: PartitionLog | None, error: int, *, committed: bool
    ) -> None:
        self.part = part
        self.log = log
        self.error = error
        self.is_view = False
        """The partition belongs to `__consumer_offsets`, which is always empty here."""
        self.committed = committed
        """Whether to read below the last stable offset only (`read_committed`, KIP-98)."""
        self.aborted: list[AbortedTransaction] | None = None
        """None for `read_uncommitted`. Their records are sent, and dropped by the consumer; those
        of other protocols' transactions are left out instead (`partition/foreign_entries.py`)."""
        self.size = 0
        self.answer: list[bytes | memoryview] = []
        self.end_seen = 0
        """The end of the log at the last read."""
        self.bytes_seen = 0
        """The published bytes at the last read."""

    async def read(self, bytes_max: int, *, one_at_least: bool) -> None:
        """Read batches up to a size."""
        found = self._begin(bytes_max, one_at_least=one_at_least)
        if found is None:
            return
        try:
            await found.gather(self.part.fetch_offset)
        except Corrupted:
            # On 56 (KAFKA_STORAGE_ERROR) Java's consumer and librdkafka refresh their metadata and
            # try again silently. 2 is raised to the application, which can seek past the damage
            # (`FetchCollector.handleInitializeErrors`, `rdkafka_fetcher.c`). franz-go retries on
            # both.
            self.error = CORRUPT_MESSAGE
        except BrokerError as error:
            self.error = code_of(error)
        self._take(found)

    def read_cached(self, bytes_max: int, *, one_at_least: bool) -> bool:
        """Read cached batches; False if storage has to be read. Plain call."""
        found = self._begin(bytes_max, one_at_least=one_at_least)
        if found is None:
            return not self.error
        if not found.gather_cached(self.part.fetch_offset):
            return False
        self._take(found)
        return True

    def forget(self) -> None:
        """Drop the batches; they are read again later."""
        self.answer, self.size = [], 0

    def _begin(self, bytes_max: int, *, one_at_least: bool) -> FetchedBatches | None:
        """None if there is nothing to read."""
        self.forget()
        self.aborted = [] if self.committed else None
        log = self.log
        if log is None:
            return None
        self.end_seen = end = log.stable if self.committed else log.end
        self.bytes_seen = log.topic.bytes_in - log.topic.ledger.pending_bytes
        self._check(log)
        if self.error or self.part.fetch_offset >= end:
            return None
        bytes_max = min(bytes_max, self.part.partition_max_bytes)
        found = FetchedBatches(log, bytes_max, end, one_at_least=one_at_least)
        if self.committed:
            found.leave_out_aborted()
        return found

    def _take(self, found: FetchedBatches) -> None:
        self.answer, self.size = found.pieces, found.size
        if self.committed and self.log is not None:
            self.aborted = _aborted(self.log, self.part.fetch_offset, found.end)

    def _check(self, log: PartitionLog) -> None:
        """Set the error if the offset lies outside the log; its end is valid."""
        if log.topic.fenced:
            self.error = NOT_LEADER
        elif self.part.current_leader_epoch > EPOCH:
            self.error = UNKNOWN_LEADER_EPOCH
        elif not log.start <= self.part.fetch_offset <= log.end:
            self.error = OFFSET_OUT_OF_RANGE

    def comes(self) -> tuple[bool, int]:
        """Whether there is more to read than at the last time, and how much at most."""
        log = self.log
        if log is None:
            return False, 0
        if (log.stable if self.committed else log.end) == self.end_seen:
            return False, 0
        return True, log.topic.bytes_in - self.bytes_seen


def _aborted(log: PartitionLog, first: int, end: int) -> list[AbortedTransaction]:
    """The aborted transactions with records from `first` up to `end`.

    The list has to match the batches sent: without an entry a consumer reads aborted records, and
    with one whose marker never comes it drops good ones (`CompletedFetch.isBatchAborted` of 4.3).
    """
    return [
        AbortedTransaction(producer_id=one.key, first_offset=one.first)
        for one in log.topic.ledger.transactions.aborted_within(first, end)
        if isinstance(one.key, int)  # keys of other forms name no producer
    ]


Everything = list[tuple[FetchTopic, list[PartitionFetch]]]


class FetchHandlers:
    """Fetch."""

    def __init__(self, logs: Logs, records: GroupRecords, clock: Clock) -> None:
        self._logs = logs
        self._records = records
        self._clock = clock

    def handlers(self) -> Mapping[int, Handler]:
        """By API key."""
        return {
            ApiKey.FETCH: self.on_fetch,
        }

    def at_once(self, caller: Caller, frame: KafkaRequest) -> FetchResponse | None:
        """The response if enough is cached, else None. Plain call."""
        request, by_id = frame.request, frame.version >= BY_ID_VERSION
        assert isinstance(request, FetchRequest)
        connection = caller.connection
        if connection.congested or len(request.topics) > AT_ONCE_PARTITIONS_MAX:
            return None
        everything: Everything = []
        logs, now_ms = self._logs, self._clock.wall_ms()
        left, first = min(request.max_bytes, BYTES_MAX, connection.share()), True
        if not left:
            return None
        for topic in request.topics:
            if len(topic.partitions) > AT_ONCE_PARTITIONS_MAX:
                return None
            found = []
            for part in topic.partitions:
                if by_id:
                    log = logs.by_id_at_once(topic.topic_id, part.partition)
                else:
                    log = logs.at_once(topic.topic, part.partition)
                if log is None:
                    return None
                log.topic.last_used_ms = now_ms
                one = PartitionFetch(
                    part, log, NONE, committed=request.isolation_level == READ_COMMITTED
                )
                # the first partition that has any gives a whole batch, however large (KIP-74)
                if (left > 0 or first) and not one.read_cached(left, one_at_least=first):
                    return None
                left -= one.size
                first = first and not one.size
                found.append(one)
            everything.append((topic, found))
        if first or sum(one.size for _, parts in everything for one in parts) < request.min_bytes:
            return None
        return _response(caller, everything)

    async def on_fetch(self, context: RequestContext, request: FetchRequest) -> FetchResponse:
        """Answer when `min_bytes` are there, at an error, or at the deadline (`DelayedFetch`).

        Responses are large, so none is built while the client does not receive. The memory of a
        response is reserved before it is read, and counts until it is sent.

        CORRUPT_MESSAGE waits for the deadline: the damage lasts, and some clients retry at once
        without end (aiokafka 800 times a second).
        """
        caller = context.caller
        everything: Everything = [
            (
                topic,
                [
                    await self._partition(context.version, request.isolation_level, topic, part)
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        every_one = [one for _, parts in everything for one in parts]
        deadline = trio.current_time() + request.max_wait_ms / 1000
        last = False
        while share := await _share(caller, request):
            if caller.guarded and not _may_still_read(caller, every_one):
                break
            with caller.connection.reserved(share):
                await _read_all(every_one, share)
                found = sum(one.size for one in every_one)
                lacks = min(request.min_bytes, share) - found
                urgent = any(one.error not in (NONE, CORRUPT_MESSAGE) for one in every_one)
                if last or lacks <= 0 or urgent or caller.gone:
                    break
            for one in every_one:
                one.forget()  # its memory is not reserved while it waits
            last = not await _more_to_read(caller, every_one, lacks, deadline)
            if last and not found:
                break
        return _response(caller, everything)

    async def _partition(
        self, version: int, isolation_level: int, topic: FetchTopic, part: FetchPartition
    ) -> PartitionFetch:
        logs, log, error = self._logs, None, NONE
        try:
            if internal.is_meant(topic.topic, topic.topic_id):
                await internal.check_is_there(self._records, part.partition)
                error = OFFSET_OUT_OF_RANGE if part.fetch_offset else NONE
                one = PartitionFetch(part, None, error, committed=False)
                one.is_view = True
                return one
            if version >= BY_ID_VERSION:
                log = await logs.by_id(topic.topic_id, part.partition)
            else:
                log = await logs.get(topic.topic, part.partition)
            log.topic.last_used_ms = self._clock.wall_ms()
        except (BrokerError, KafkaRefusal) as refused:
            error = code_of(refused)
        committed = isolation_level == READ_COMMITTED
        return PartitionFetch(part, log, error, committed=committed)


async def _share(caller: Caller, request: FetchRequest) -> int:
    """Wait for memory; return the size that the response may have, or 0 if the client is gone."""
    requested = max(min(request.max_bytes, BYTES_MAX), 1)
    with caller.wakeup() as wakeup:
        while not caller.gone:
            if not caller.connection.congested and (share := caller.connection.share()):
                return min(requested, share)
            await wakeup.wait(math.inf)
    return 0


def _response(caller: Caller, everything: Everything) -> FetchResponse:
    caller.connection.packed(sum(one.size for _, parts in everything for one in parts))
    return FetchResponse(
        responses=[
            FetchedTopic(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[_answer(one) for one in parts],
            )
            for topic, parts in everything
        ]
    )


async def _more_to_read(
    caller: Caller, every_one: list[PartitionFetch], lacks: int, deadline: float
) -> bool:
    """Wait until enough is published to read again, or the client's rights change; False if nothing
    came before the deadline.
    """
    judged = caller.judged
    with ExitStack() as watching:
        wakeup = watching.enter_context(caller.wakeup())
        for log in {one.log for one in every_one if one.log is not None}:
            watching.enter_context(log.watched(wakeup.wake))
        while not caller.gone and caller.judged == judged:
            coming = [one.comes() for one in every_one]
            if sum(size for _, size in coming) >= lacks:
                return True
            if not await wakeup.wait(deadline):
                return any(more for more, _ in coming)
    return True


def _may_still_read(caller: Caller, every_one: list[PartitionFetch]) -> bool:
    """Leave out what the client may read no longer; False if the proof of its identity has expired
    while it waited, which ends the connection.
    """
    if caller.lapsed:
        caller.connection.end("the proof of its identity has expired")
        return False
    for one in every_one:
        if one.log is not None and not caller.must(
            Action.READ, ResourceType.TOPIC, one.log.topic.name.base.full
        ):
            one.forget()
            one.log, one.error = None, TOPIC_AUTHORIZATION_FAILED
    return True


async def _read_all(every_one: list[PartitionFetch], left: int) -> None:
    first = True
    for one in every_one:
        if left <= 0 and not first:
            one.forget()
            continue
        await one.read(left, one_at_least=first)
        left -= one.size
        first = first and not one.size


def _answer(one: PartitionFetch) -> FetchedPartition:
    log = one.log
    end = stable = start = 0 if one.is_view else -1
    if log is not None:
        end, stable, start = log.end, log.stable, log.start
    return FetchedPartition(
        partition_index=one.part.partition,
        error_code=one.error,
        high_watermark=end,
        last_stable_offset=stable,
        log_start_offset=start,
        aborted_transactions=one.aborted,
        records=_worth_sending(one.answer, one.size),
    )


def _worth_sending(pieces: list[bytes | memoryview], size: int) -> list[bytes | memoryview]:
    """Join small pieces: one copy costs less than sending many."""
    if size < len(pieces) * PIECE_BYTES_MIN:
        return [b"".join(pieces)]
    return pieces
