"""The requests and results of consumer groups (KIP-848). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from msgspec import Struct

from magnetar.wire.kafka.errors import NONE
from magnetar.wire.kafka.groups.classic.group_record import Classic
from magnetar.wire.kafka.groups.consumer.assignors import TopicIdPartition

JOIN: Final = 0
LEAVE: Final = -1
LEAVE_FOR_NOW: Final = -2
"""Special epochs of heartbeats."""


class Heartbeat(Struct, frozen=True):
    """A heartbeat. Fields that have not changed since the last one are None."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_seconds: float | None = None
    names: frozenset[str] | None = None
    """Subscribed topic names."""
    pattern: str | None = None
    """The subscribed pattern; empty for none."""
    assignor: str | None = None
    owned: frozenset[TopicIdPartition] | None = None
    """The partitions that it owns now."""
    client_id: str = ""
    host: str = ""
    classic: Classic | None = None
    """The protocols of a member of the classic protocol."""
    hidden: frozenset[str] = frozenset()
    """Matches of its pattern that it may not describe."""

    @property
    def is_full(self) -> bool:
        """Whether it has all fields, so that the response has to have all, too."""
        wants = self.names is not None or self.pattern is not None
        said = self.rebalance_seconds is not None and self.owned is not None
        return self.epoch == JOIN or (wants and said)


class HeartbeatResult(Struct, frozen=True):
    """The response to a heartbeat."""

    error_code: int = NONE
    message: str = ""
    member_id: str = ""
    epoch: int = 0
    assigned: Set[TopicIdPartition] | None = None
    """Its whole assignment; None if that is unchanged."""
    again_seconds: float = 0.0
    """The heartbeat interval."""


class Topics(Struct, frozen=True):
    """The existing topics of a subscription, with their partitions."""

    ids: Mapping[str, bytes] = {}
    """Topic ids by name."""
    sizes: Mapping[bytes, int] = {}
    """Partition counts by id."""
    matches: Mapping[str, frozenset[str]] = {}
    """Matching names by pattern."""

    def ids_of(self, names: Iterable[str]) -> set[bytes]:
        """The ids of those topics that exist."""
        return {self.ids[name] for name in names if name in self.ids}

    @property
    def names(self) -> dict[bytes, str]:
        """Topic names by id."""
        return {topic: name for name, topic in self.ids.items()}


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[bytes, list[int]]:
    """Partitions by topic id, both in order."""
    found: dict[bytes, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


class Timing(Struct, frozen=True):
    """The timing of a group's members."""

    heartbeat_seconds: float
    session_seconds: float
