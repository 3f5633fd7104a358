"""Commits of offsets, plain ones and pending ones of transactions.

A plain commit may fail with an error for its client. A pending one was acknowledged when it was
added to its transaction, so it is carried out without fail once that is committed. `offsets.py`
stores the offsets.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final

from magnetar.core.kernel.errors import NotReady
from magnetar.core.transactions.transaction import PendingCommit
from magnetar.wire.kafka.errors import INVALID_GROUP_ID, INVALID_TOPIC, NONE, UNKNOWN_TOPIC
from magnetar.wire.kafka.groups.commit import NEVER_MS, CommittedPosition
from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
from magnetar.wire.kafka.groups.group_records import GroupRecord
from magnetar.wire.kafka.groups.offsets import Offsets
from magnetar.wire.kafka.groups.subscriptions import TopicPartition
from magnetar.wire.kafka.groups.task_order import TaskOrder
from magnetar.wire.kafka.groups.transactional_offsets import decode

log = logging.getLogger(__name__)

GONE: Final = (UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_GROUP_ID)
"""The topic, partition or group is deleted, or its name is invalid."""

Turn = AbstractAsyncContextManager[None]
Noted = defaultdict[str, set[TopicPartition]]
"""Partitions by group."""


class OffsetCommits:
    """See the module's docstring."""

    def __init__(self, groups: GroupCoordinator, offsets: Offsets) -> None:
        self.offsets = offsets
        self._groups = groups
        self._turns = TaskOrder()
        self._noted: list[Noted] = []
        """Those of who reads offsets just now."""

    @contextmanager
    def noted(self) -> Iterator[Noted]:
        """Notes what transactions change meanwhile: the partitions by group."""
        changed: Noted = defaultdict(set)
        self._noted.append(changed)
        try:
            yield changed
        finally:
            self._noted = [one for one in self._noted if one is not changed]

    async def store(
        self, group_id: str, commits: Mapping[TopicPartition, CommittedPosition], turn: Turn
    ) -> dict[TopicPartition, int]:
        """Store commits that are allowed; returns an error code for each."""
        record = self._groups.record_of(group_id)
        if any(commit.expires_ms != NEVER_MS for commit in commits.values()):
            record = GroupRecord(record.kind, record.protocol_type, ages_early=True)
        if not commits:
            async with turn:
                return {}
        return await self.offsets.commit(group_id, commits, turn, record)

    async def commit_pending(self, pending: Iterable[PendingCommit]) -> None:
        """Carry out the pending commits of a committed transaction; `NotReady` if any has to wait.

        An offset is dropped only if its topic, partition or group no longer exists. So it waits
        for Pulsar consumers that have attached to the group's subscription meanwhile
        (NON_EMPTY_GROUP), and until this broker coordinates the group again.
        """
        by_group: dict[str, dict[TopicPartition, CommittedPosition]] = {}
        for one in pending:
            commits = by_group.setdefault(one.participant, {})
            commits |= {(topic, index): commit for topic, index, commit in decode(one.data)}
        waiting: dict[str, dict[TopicPartition, int]] = {}
        for group, commits in by_group.items():
            codes = await self.store(group, commits, self._turns.take(group))
            for changed in self._noted:
                changed[group].update(commits)
            gone = [where for where, code in codes.items() if code in GONE]
            if gone:
                log.warning("group %s: offsets of what does not exist are dropped: %s", group, gone)
            left = {where: code for where, code in codes.items() if code not in (NONE, *GONE)}
            if left:
                waiting[group] = left
        if waiting:
            raise NotReady(f"offsets cannot be stored now, by group and partition: {waiting}")
