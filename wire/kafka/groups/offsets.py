"""Offsets of groups: durable cursors of the topics, one for each group and partition.

A commit moves the cursor, which protects unread messages from deletion and appears in Pulsar's
stats as a subscription with the group's name. A subscription that a commit has created belongs to
the group, and is deleted with its offset. One that existed before is Pulsar's: a group may commit
to it while none of Pulsar's consumers is attached.

If anything else moves the cursor, its position is the group's offset; the commit itself is returned
only while the cursor stands where the commit has put it.

A pending commit of a transaction is carried out some time after its request, perhaps more than
once. It is skipped if a later commit, or the commit itself, is stored already. The order is that of
the requests, as in Kafka, where a pending offset applies only if its record is newer
(`OffsetMetadataManager.replayEndTransactionMarker` of 4.2).

Invariants: a commit is answered after it is stored; of several commits the one with the last turn
wins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

import trio
from msgspec import Struct

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import (
    BrokerError,
    Fenced,
    InvalidName,
    NotOwned,
    NotReady,
    Overloaded,
    StorageFailed,
    SubscriptionNotFound,
    TopicNotFound,
)
from magnetar.core.kernel.names import check_subscription
from magnetar.core.ledger.cursor.cursor import Cursor
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.ledger.read.index_lookup import first_index_at
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.wire.kafka.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_GROUP_ID,
    NON_EMPTY_GROUP,
    NONE,
    KafkaRefusal,
    code_of,
)
from magnetar.wire.kafka.groups.commit import (
    CommittedPosition,
    committed,
    is_committed,
    order_of,
    stored,
)
from magnetar.wire.kafka.groups.group_records import GroupRecord, GroupRecords
from magnetar.wire.kafka.groups.subscriptions import TopicPartition
from magnetar.wire.kafka.partition.logs import Logs, PartitionLog

OWN: Final = "kafka.group"
"""A property of subscriptions that a commit has created."""
AT_ONCE: Final = 100
"""Partitions that are loaded concurrently."""


class CommitTarget(Struct, frozen=True):
    """The target of one commit."""

    log: PartitionLog
    subscription: PersistentSubscription
    mark: Position
    """The position before the first unread entry."""


class Offsets:
    """See the module's docstring."""

    def __init__(self, broker: Broker, logs: Logs, records: GroupRecords) -> None:
        self._broker = broker
        self._logs = logs
        self._records = records
        self._committing: Counter[str] = Counter()
        self._last_order = 0

    def next_order(self) -> int:
        """A number above those of all earlier commits, also before a restart: a time in ns."""
        self._last_order = max(self._last_order + 1, self._broker.clock.wall_ms() * 1_000_000)
        return self._last_order

    def check_group(self, group: str) -> None:
        """Raise `InvalidName` for a group whose subscriptions cannot be committed to."""
        check_subscription(group)
        reason = self._broker.env.held.refusal(group)
        if reason is not None:
            raise InvalidName(reason)

    # -- committing ---------------------------------------------------------------------------

    async def commit(
        self,
        group: str,
        commits: Mapping[TopicPartition, CommittedPosition],
        turn: AbstractAsyncContextManager[None],
        first: GroupRecord,
    ) -> dict[TopicPartition, int]:
        """Store commits; returns an error code for each. `first` is the record of a group that has
        none yet.
        """
        self._committing[group] += 1
        try:
            return await self._commit(group, commits, turn, first)
        finally:
            self._committing[group] -= 1
            if not self._committing[group]:
                del self._committing[group]

    def is_held(self, group: str, where: TopicPartition) -> bool:
        """Whether Pulsar consumers are attached to the group's subscription of a partition.

        Plain call: a topic that is not loaded has none.
        """
        log = self._logs.at_once(*where)
        subscription = log.topic.subscriptions.get(group) if log is not None else None
        return subscription is not None and bool(subscription.consumers)

    def is_loaded(self, where: TopicPartition) -> bool:
        """Whether a partition's log is in memory. Plain call."""
        return self._logs.at_once(*where) is not None

    def is_committing(self, group: str) -> bool:
        """Whether a commit of the group is under way."""
        return group in self._committing

    async def _commit(
        self,
        group: str,
        commits: Mapping[TopicPartition, CommittedPosition],
        turn: AbstractAsyncContextManager[None],
        first: GroupRecord,
    ) -> dict[TopicPartition, int]:
        async with turn:
            try:
                self.check_group(group)
                await self._records.ensure(group, first)
            except InvalidName:
                return dict.fromkeys(commits, INVALID_GROUP_ID)
            except BrokerError as error:
                return dict.fromkeys(commits, commit_code(error))
            targets, codes = await self._targets(group, commits)
            cursors = self._moved(commits, targets, codes)
        return codes | await _saved(cursors)

    def _moved(
        self,
        commits: Mapping[TopicPartition, CommittedPosition],
        targets: Mapping[TopicPartition, CommitTarget],
        codes: dict[TopicPartition, int],
    ) -> dict[TopicPartition, Cursor]:
        """Move the cursors, and add error codes for those that may not be moved. Plain call;
        nothing is stored yet.
        """
        cursors: dict[TopicPartition, Cursor] = {}
        now_ms = self._broker.clock.wall_ms()
        for where, target in targets.items():
            cursor = target.subscription.cursor
            if target.subscription.consumers or not cursor.durable:
                codes[where] = NON_EMPTY_GROUP
                continue
            cursors[where] = cursor
            commit = commits[where]
            if commit.order and order_of(cursor.position_properties) >= commit.order:
                continue  # superseded, or moved by an earlier attempt that was not stored
            order = commit.order or self.next_order()
            cursor.set_position_properties(stored(commit, target.mark, order))
            cursor.used(now_ms)
            cursor.reset(target.mark)
        return cursors

    async def _targets(
        self, group: str, commits: Mapping[TopicPartition, CommittedPosition]
    ) -> tuple[dict[TopicPartition, CommitTarget], dict[TopicPartition, int]]:
        """The target of each commit, or its error code. Logs are loaded concurrently."""
        targets: dict[TopicPartition, CommitTarget] = {}
        codes: dict[TopicPartition, int] = {}
        waiting: list[TopicPartition] = []

        async def find(where: TopicPartition) -> None:
            try:
                targets[where] = await self._target(group, where, commits[where].offset)
            except (BrokerError, KafkaRefusal) as error:
                codes[where] = commit_code(error)

        for where in commits:
            log = self._logs.at_once(*where)
            if log is not None and group in log.topic.subscriptions:
                await find(where)
            else:
                waiting.append(where)

        async def work() -> None:
            while waiting:
                await find(waiting.pop())

        async with trio.open_nursery() as nursery:
            for _ in range(min(AT_ONCE, len(waiting))):
                nursery.start_soon(work)
        return targets, codes

    async def _target(self, group: str, where: TopicPartition, offset: int) -> CommitTarget:
        log = await self._logs.get(*where)
        mark = await _mark_before(log, offset)
        subscription = await log.topic.subscription(group, start=mark, properties={OWN: "true"})
        return CommitTarget(log, subscription, mark)

    # -- asking -------------------------------------------------------------------------------

    async def fetch(self, group: str, where: TopicPartition) -> CommittedPosition | None:
        """The committed offset, or the position of the subscription; None if there is neither."""
        try:
            log = await self._logs.get(*where)
        except (TopicNotFound, InvalidName):
            return None
        subscription = log.topic.subscriptions.get(group)
        if subscription is None or not subscription.cursor.durable:
            return None
        cursor = subscription.cursor
        return committed_to(cursor) or CommittedPosition(
            await _offset_behind(log, cursor.mark_delete)
        )

    # -- forgetting ---------------------------------------------------------------------------

    async def forget(self, group: str, where: TopicPartition) -> int:
        """Delete a committed offset, and its subscription if a commit has created it."""
        try:
            log = await self._logs.get(*where)
            subscription = log.topic.subscriptions.get(group)
            if subscription is None:
                return NONE
            if subscription.consumers:
                return NON_EMPTY_GROUP
            if OWN in subscription.cursor.properties:
                await log.topic.unsubscribe(group, force=False)
            elif subscription.cursor.position_properties:
                subscription.cursor.set_position_properties({})
                await subscription.cursor.saved()
        except (TopicNotFound, SubscriptionNotFound):  # deleted already
            return NONE
        except BrokerError as error:
            return commit_code(error)
        return NONE


def committed_to(cursor: Cursor) -> CommittedPosition | None:
    """The last commit to a cursor; None if there is none, or the cursor was moved since."""
    return None if cursor.holed else committed(cursor.position_properties, cursor.mark_delete)


def committed_offset(ledger: ManagedLedger, cursor: Cursor) -> int | None:
    """The offset of a group for lag figures; None if it has not committed one.

    Plain call. If another client has moved the cursor, and its entry is not in memory, this is the
    first offset of the ledger: too low rather than too high, so that lag is not hidden.
    """
    commit = committed_to(cursor)
    if commit is not None:
        return commit.offset if commit.offset >= 0 else None
    if not is_committed(cursor.position_properties):
        return None
    position = ledger.chain.after(cursor.mark_delete)
    if not ledger.chain.has(position):
        return ledger.confirmed_index
    cached = ledger.cached(position)
    if cached is not None:
        part, at = cached
        return part.header(at).first_index
    segment = ledger.chain.segment_of(position[0])
    return max(ledger.first_index, segment.first_index if segment is not None else 0)


async def _saved(cursors: Mapping[TopicPartition, Cursor]) -> dict[TopicPartition, int]:
    """Wait until all cursors are stored, in one group; returns an error code for each."""
    codes: dict[TopicPartition, int] = {}
    response = trio.Event()

    def done(where: TopicPartition, error: BrokerError | None) -> None:
        codes[where] = NONE if error is None else commit_code(error)
        if len(codes) == len(cursors):
            response.set()

    for where, cursor in cursors.items():
        cursor.when_saved(partial(done, where))
    if cursors:
        await response.wait()
    return codes


async def _mark_before(log: PartitionLog, offset: int) -> Position:
    """The last entry before those that a reader from `offset` needs."""
    if offset <= log.start:
        return START
    if offset >= log.end:
        return log.topic.ledger.chain.confirmed
    ledger_id, entry_id = await log.places.find(offset)
    return (ledger_id, entry_id - 1)


async def _offset_behind(log: PartitionLog, mark: Position) -> int:
    """The offset of the first message after a position."""
    ledger = log.topic.ledger
    position = ledger.chain.after(mark)
    if not ledger.chain.has(position):
        return log.end
    return await first_index_at(ledger, position)


def commit_code(error: BrokerError | KafkaRefusal) -> int:
    """The error code of a commit, retriable for the client where a retry makes sense."""
    if isinstance(error, NotReady | Fenced | Overloaded):
        return COORDINATOR_LOAD_IN_PROGRESS
    if isinstance(error, NotOwned):  # the owner of the partition, not of the group
        return COORDINATOR_NOT_AVAILABLE
    if isinstance(error, StorageFailed):
        return COORDINATOR_NOT_AVAILABLE
    return code_of(error)
