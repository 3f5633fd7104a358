"""One member of a consumer group (KIP-848). Pure.

    STABLE                  it has its target assignment of its epoch
    UNREVOKED_PARTITIONS    it must revoke partitions, and has not confirmed that yet
    UNRELEASED_PARTITIONS   it lacks partitions that others have not revoked yet

These are the states of Kafka's `MemberState` (4.2, KIP-848). There is no table of transitions, here
as there: each heartbeat derives the state from the member's current and target assignment, so any
may follow any. The state of the group follows from those of its members.
"""

from __future__ import annotations

import enum
from collections.abc import Set
from typing import Final

from magnetar.wire.kafka.groups.classic.group_record import Classic, StoredConsumer
from magnetar.wire.kafka.groups.consumer.assignors import TopicIdPartition
from magnetar.wire.kafka.groups.consumer.heartbeat import LEAVE_FOR_NOW, Heartbeat, Topics

NEVER: Final = float("inf")


class MemberState(enum.Enum):
    """See the module's docstring."""

    STABLE = enum.auto()
    UNREVOKED_PARTITIONS = enum.auto()
    UNRELEASED_PARTITIONS = enum.auto()


class ConsumerMember:
    """See the module's docstring."""

    __slots__ = (
        "answer_by",
        "assigned",
        "assignor",
        "call_by",
        "classic",
        "client_id",
        "epoch",
        "hidden",
        "host",
        "id",
        "instance_id",
        "names",
        "pattern",
        "previous_epoch",
        "rack_id",
        "rebalance_seconds",
        "revoke_by",
        "revoking",
        "state",
    )

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.id = member_id
        self.instance_id = instance_id
        self.rack_id: str | None = None
        self.client_id = self.host = ""
        self.epoch = self.previous_epoch = 0
        self.rebalance_seconds = 0.0
        self.names: frozenset[str] = frozenset()
        self.pattern = ""
        self.hidden: frozenset[str] = frozenset()
        """Matches of its pattern that it may not describe, as of its last heartbeat; not stored."""
        self.assignor: str | None = None
        self.assigned: set[TopicIdPartition] = set()
        """The partitions that it may read."""
        self.revoking: set[TopicIdPartition] = set()
        """The partitions that it has to revoke, and may still be reading."""
        self.state = MemberState.STABLE
        self.call_by = self.revoke_by = NEVER
        self.classic: Classic | None = None
        """Its protocols, if it uses the classic protocol."""
        self.answer_by = NEVER
        """The time by which a classic member has to rejoin, or to send SyncGroup."""

    def lives(self, now: float) -> None:
        """Note a sign of life of a classic member."""
        assert self.classic is not None
        self.call_by = now + self.classic.session_seconds

    @property
    def out_at(self) -> float:
        """The time at which it is removed without another sign of life."""
        return min(self.call_by, self.revoke_by, self.answer_by)

    @property
    def is_away(self) -> bool:
        """Whether it is a static member that has left temporarily."""
        return self.epoch == LEAVE_FOR_NOW

    def wants(self, topics: Topics) -> set[bytes]:
        """Ids of the existing topics to which it subscribes."""
        matches = topics.matches.get(self.pattern, frozenset())
        return topics.ids_of(self.names | (matches - self.hidden))

    def apply(self, beat: Heartbeat, call_by: float) -> bool:
        """Apply the changes of a heartbeat; returns whether its subscription has changed."""
        self.call_by, self.answer_by = call_by, NEVER
        self.client_id, self.host = beat.client_id, beat.host
        if beat.rack_id is not None:
            self.rack_id = beat.rack_id
        if beat.rebalance_seconds is not None:
            self.rebalance_seconds = beat.rebalance_seconds
        before = (self.names, self.pattern, self.hidden, self.assignor, self.classic)
        self.classic, self.hidden = beat.classic, beat.hidden
        if beat.names is not None:
            self.names = beat.names
        if beat.pattern is not None:
            self.pattern = beat.pattern
        if beat.assignor is not None:
            self.assignor = beat.assignor
        return before != (self.names, self.pattern, self.hidden, self.assignor, self.classic)

    def stored(self, target: Set[TopicIdPartition]) -> StoredConsumer:
        """The member in stored form, with its target assignment."""
        return StoredConsumer(
            self.id,
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.host,
            self.rebalance_seconds,
            self.names,
            self.pattern,
            self.assignor,
            self.epoch,
            self.previous_epoch,
            frozenset(self.assigned),
            frozenset(self.revoking),
            frozenset(target),
            self.classic,
        )

    def takes_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.previous_epoch, self.epoch = max(self.epoch, 0), epoch

    def knows(self, beat: Heartbeat) -> bool:
        """Whether its epoch is valid; it may have missed one response."""
        if beat.epoch == self.epoch:
            return True
        if beat.epoch != self.previous_epoch or beat.owned is None:
            return False
        return beat.owned <= self.assigned | self.revoking


def resumed(kept: StoredConsumer, now: float, session_seconds: float) -> ConsumerMember:
    """Restore a member after a restart; its timeouts begin anew."""
    member = ConsumerMember(kept.member_id, kept.instance_id)
    member.rack_id, member.client_id, member.host = kept.rack_id, kept.client_id, kept.host
    member.rebalance_seconds = kept.rebalance_seconds
    member.names, member.pattern, member.assignor = kept.names, kept.pattern, kept.assignor
    member.epoch, member.previous_epoch = kept.epoch, kept.previous_epoch
    member.assigned, member.revoking = set(kept.assigned), set(kept.revoking)
    if kept.classic is not None:
        member.classic, session_seconds = kept.classic, kept.classic.session_seconds
    member.call_by = now + session_seconds
    if member.revoking:
        member.state, member.revoke_by = (
            MemberState.UNREVOKED_PARTITIONS,
            now + kept.rebalance_seconds,
        )
    elif kept.assigned != kept.target or member.is_away:
        member.state = MemberState.UNRELEASED_PARTITIONS
    return member
