"""The words that groups of the newer protocol and their sessions exchange. Pure."""

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
"""Epochs of heartbeats that are not just signs of life."""


class Heartbeat(Struct, frozen=True):
    """A heartbeat. None for what has not changed since the last one."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_seconds: float | None = None
    names: frozenset[str] | None = None
    """Topics it wants, by name."""
    pattern: str | None = None
    """And by pattern; empty for none."""
    assignor: str | None = None
    owned: frozenset[TopicIdPartition] | None = None
    """What it reads now."""
    client_id: str = ""
    host: str = ""
    classic: Classic | None = None
    """It came by the classic protocol."""

    @property
    def is_full(self) -> bool:
        """It says everything, so it wants to hear everything."""
        wants = self.names is not None or self.pattern is not None
        said = self.rebalance_seconds is not None and self.owned is not None
        return self.epoch == JOIN or (wants and said)


class HeartbeatResult(Struct, frozen=True):
    """What a heartbeat is answered."""

    error_code: int = NONE
    message: str = ""
    member_id: str = ""
    epoch: int = 0
    assigned: Set[TopicIdPartition] | None = None
    """All that it may read; None if that is what it was."""
    again_seconds: float = 0.0
    """When it is to call again."""


class Topics(Struct, frozen=True):
    """The existing topics of a subscription, with their partitions."""

    ids: Mapping[str, bytes] = {}
    """By name."""
    sizes: Mapping[bytes, int] = {}
    """Partitions, by id."""
    matches: Mapping[str, frozenset[str]] = {}
    """Names, by pattern."""

    def ids_of(self, names: Iterable[str]) -> set[bytes]:
        """Ids of the existing ones."""
        return {self.ids[name] for name in names if name in self.ids}

    @property
    def names(self) -> dict[bytes, str]:
        """By id."""
        return {topic: name for name, topic in self.ids.items()}


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[bytes, list[int]]:
    """Numbers by the id of their topic, both in order."""
    found: dict[bytes, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


class Timing(Struct, frozen=True):
    """The limits that members learn, and that hold for them."""

    heartbeat_seconds: float
    session_seconds: float
