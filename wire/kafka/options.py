"""What an operator can set for Kafka's clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from magnetar.wire.kafka.configs import BATCH_BYTES_MAX
from magnetar.wire.kafka.groups.options import GroupOptions

UNKNOWN: Final = (-1, -1)


class KafkaOptions(Struct, frozen=True):
    """See the module's docstring."""

    host: str = ""
    """The host that clients connect to; empty for the one by which they came."""
    advertised: Mapping[str, str] = {}
    """Host and port by listener, which take precedence over `host`."""
    node_id: int = 0
    partitions: int = 1
    """Partitions of a topic that is created automatically."""
    batch_bytes_max: int = 1_048_588
    """The default of `max.message.bytes`."""
    message_bytes_max: int = BATCH_BYTES_MAX
    """The largest entry: Pulsar's clients learn this limit, and drop what is larger."""
    retention_ms: int = 604_800_000
    """The default of `retention.ms`, for topics that Kafka's clients create; -1 for ever."""
    transaction_ms_max: int = 900_000
    """The longest timeout that a producer may choose (`transaction.max.timeout.ms`)."""
    transactional_id_ms_max: int = 604_800_000
    """An unused transactional id is forgotten after it (`transactional.id.expiration.ms`)."""
    groups: GroupOptions = GroupOptions()
    data_dir: str = ""
    """The folder that DescribeLogDirs names."""
    room: Callable[[], tuple[int, int]] = lambda: UNKNOWN
    """The size of its disk and how much of it is free, in bytes; -1 for unknown."""
