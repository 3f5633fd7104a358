"""Offset expiry: offsets are deleted long after the last member of their group has left.

An offset ages from the moment when its group became empty, or from its own commit if that is later
or the group never had members. Old clients may state the retention themselves. While a group has
members, offsets of partitions to which they subscribe do not age; others do.

Each coordinator expires offsets of its own groups. It claims the group's record before the first
deletion, and verifies it before each one: members at a new coordinator may have committed since.

Invariant: an offset of a partition to which a member of the group subscribes never expires.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import BrokerError
from magnetar.wire.kafka.errors import NONE
from magnetar.wire.kafka.groups.commit import NEVER_MS, CommittedPosition
from magnetar.wire.kafka.groups.group_records import GroupRecord

if TYPE_CHECKING:
    from magnetar.core.kernel.clock import Clock
    from magnetar.wire.kafka.groups.coordinator import GroupCoordinator
    from magnetar.wire.kafka.groups.group_records import GroupRecords
    from magnetar.wire.kafka.groups.offsets import Offsets
    from magnetar.wire.kafka.groups.options import GroupOptions
    from magnetar.wire.kafka.groups.subscriptions import Subscriptions, TopicPartition

log = logging.getLogger(__name__)

NEVER: Final = 2**63
"""A time by which no offset of a group expires."""


def expires_ms(commit: CommittedPosition, record: GroupRecord, retention_ms: int) -> int:
    """The time at which an offset of a group without members expires."""
    if commit.expires_ms != NEVER_MS:
        return commit.expires_ms
    since_ms = max(commit.committed_ms, record.empty_since_ms)
    return since_ms + retention_ms


class Expiry:
    """See the module's docstring."""

    def __init__(
        self,
        groups: GroupCoordinator,
        records: GroupRecords,
        offsets: Offsets,
        subscriptions: Subscriptions,
        clock: Clock,
        options: GroupOptions,
    ) -> None:
        self._groups = groups
        self._records = records
        self._offsets = offsets
        self._subscriptions = subscriptions
        self._clock = clock
        self._options = options
        self._due_ms: dict[str, int] = {}
        """The earliest expiry of each group."""

    async def run(self) -> None:
        """Expire offsets periodically, until cancelled."""
        while True:
            await trio.sleep(self._options.retention_check_ms / 1000)
            await self.expire_all()

    async def expire_all(self) -> None:
        """Expire offsets of every group that is coordinated here, once."""
        for group in await self._records.names():
            await trio.lowlevel.checkpoint()
            try:
                if await self._records.is_ours(group):
                    await self._look(group)
            except BrokerError as error:
                log.warning("group %s: expired offsets stay for now: %s", group, error)

    async def forget_if_unused(self, group: str) -> None:
        """Delete the record of a group without members whose last offset is gone."""
        if await self._subscriptions.partitions(group):
            return
        if not self._groups.in_use(group) and not self._offsets.is_committing(group):
            await self._records.delete(group)

    async def _look(self, group: str) -> None:
        record, now_ms = await self._records.find(group), self._clock.wall_ms()
        if record is None:
            return
        if self._groups.in_use(group):
            await self._expire_unsubscribed(group)
            return
        if record.protocol_type and not record.empty_since_ms:
            # its members were not stored, and have not come back since this server started
            await self._records.note(group, record.kind, record.protocol_type, now_ms)
            return
        retention_ms = self._options.retention_ms
        early = record.empty_since_ms + retention_ms > now_ms and not record.ages_early
        if early or (self._due_ms.get(group, 0) > now_ms and not record.ages_early):
            return
        claimed = await self._records.claim(group)
        if claimed == record:  # else the next round checks it again
            await self._expire(group, record)

    async def _expire(self, group: str, record: GroupRecord) -> None:
        """Delete expired offsets of a group without members, and the group with its last one."""
        due_ms, now_ms = NEVER, self._clock.wall_ms()
        for where in await self._subscriptions.partitions(group):
            commit = await self._offsets.fetch(group, where)
            if commit is None or commit.committed_ms == NEVER_MS:
                continue  # the position of a Pulsar subscription, to which Pulsar's policies apply
            when_ms = expires_ms(commit, record, self._options.retention_ms)
            if when_ms <= now_ms and not self._groups.in_use(group):
                when_ms = NEVER if await self._forget(group, where) else now_ms
            due_ms = min(due_ms, when_ms)
        self._due_ms[group] = due_ms
        if due_ms == NEVER:
            del self._due_ms[group]
            await self.forget_if_unused(group)

    async def _expire_unsubscribed(self, group: str) -> None:
        """In a group with members, delete expired offsets of topics to which none subscribes."""
        subscribed, now_ms = self._groups.subscribed_topics(group), self._clock.wall_ms()
        if subscribed is None:
            return
        for where in await self._subscriptions.partitions(group):
            if where[0] in subscribed or not self._offsets.is_loaded(where):
                continue
            commit = await self._offsets.fetch(group, where)
            if commit is None or commit.committed_ms == NEVER_MS:
                continue
            if expires_ms(commit, GroupRecord(), self._options.retention_ms) <= now_ms:
                await self._records.claim(group)
                await self._forget(group, where)

    async def _forget(self, group: str, where: TopicPartition) -> bool:
        await self._records.verify(group)
        code = await self._offsets.forget(group, where)
        if code == NONE:
            log.info("group %s: the offset of %s-%d has expired", group, *where)
        return code == NONE
