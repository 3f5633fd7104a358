"""Offset expiry: offsets are deleted long after the last member of their group has left.

An offset ages from the moment when its group became empty, or from its own commit if that is later
or the group never had members. Old clients may state the retention themselves. While a group has
members, offsets of partitions to which they subscribe do not age; others do.

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
    from magnetar.wire.kafka.front import KafkaFront
    from magnetar.wire.kafka.groups.subscriptions import TopicPartition

log = logging.getLogger(__name__)

KEPT: Final = 2**63


def expires_ms(commit: CommittedPosition, record: GroupRecord, retention_ms: int) -> int:
    """When an offset of a group without members expires."""
    if commit.expires_ms != NEVER_MS:
        return commit.expires_ms
    since_ms = max(commit.committed_ms, record.empty_since_ms)
    return since_ms + retention_ms


async def forget_if_unused(front: KafkaFront, group: str) -> None:
    """Delete the record of a group that has committed nothing that is still there."""
    if await front.subscriptions.partitions(group):
        return
    if not front.groups.in_use(group) and not front.offsets.is_committing(group):
        await front.records.delete(group)


class Expiry:
    """See the module's docstring."""

    def __init__(self, front: KafkaFront) -> None:
        self._front = front
        self._due_ms: dict[str, int] = {}
        """By group: nothing of it can be forgotten before."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await trio.sleep(self._front.options.groups.retention_check_ms / 1000)
            await self.go_round()

    async def go_round(self) -> None:
        """Look once at every group that is coordinated here."""
        ownership = self._front.broker.ownership
        for group in await self._front.records.names():
            await trio.lowlevel.checkpoint()
            try:
                if await ownership.group(group) is None:
                    await self._look(group)
            except BrokerError as error:
                log.warning("group %s: what has expired stays for now: %s", group, error)

    async def _look(self, group: str) -> None:
        front, now_ms = self._front, self._front.broker.clock.wall_ms()
        record = await front.records.find(group)
        if record is None:
            return
        retention_ms = front.options.groups.retention_ms
        if front.groups.in_use(group):
            await self._look_at_unwanted(group, retention_ms)
            return
        if record.protocol_type and not record.empty_since_ms:  # since this server started, at most
            await front.records.note(group, record.kind, record.protocol_type, now_ms)
            return
        early = record.empty_since_ms + retention_ms > now_ms and not record.ages_early
        if early or (self._due_ms.get(group, 0) > now_ms and not record.ages_early):
            return
        await self._expire(group, record)

    async def _expire(self, group: str, record: GroupRecord) -> None:
        """Delete expired offsets of a group without members, and the group with its last one."""
        front, now_ms = self._front, self._front.broker.clock.wall_ms()
        due_ms = KEPT
        for where in await front.subscriptions.partitions(group):
            commit = await front.offsets.fetch(group, where)
            if commit is None or commit.committed_ms == NEVER_MS:
                continue  # where a subscription of Pulsar's stands: Pulsar's policies have it
            when_ms = expires_ms(commit, record, front.options.groups.retention_ms)
            if when_ms <= now_ms and not front.groups.in_use(group):
                when_ms = KEPT if await self._forgotten(group, where) else now_ms
            due_ms = min(due_ms, when_ms)
        self._due_ms[group] = due_ms
        if due_ms == KEPT:
            del self._due_ms[group]
            await forget_if_unused(front, group)

    async def _look_at_unwanted(self, group: str, retention_ms: int) -> None:
        """It has members: offsets to which none subscribes age from their commits on."""
        front, now_ms = self._front, self._front.broker.clock.wall_ms()
        requested = front.groups.subscribed_topics(group)
        if requested is None:
            return
        for where in await front.subscriptions.partitions(group):
            if where[0] in requested or front.logs.at_once(*where) is None:
                continue
            commit = await front.offsets.fetch(group, where)
            if commit is None or commit.committed_ms == NEVER_MS:
                continue
            if expires_ms(commit, GroupRecord(), retention_ms) <= now_ms:
                await self._forgotten(group, where)

    async def _forgotten(self, group: str, where: TopicPartition) -> bool:
        code = await self._front.offsets.forget(group, where)
        if code == NONE:
            log.info("group %s: the offset of %s-%d has expired", group, *where)
        return code == NONE
