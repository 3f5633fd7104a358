"""The options of the Kafka front."""

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
    """The advertised host; empty for the one to which a client has connected."""
    advertised: Mapping[str, str] = {}
    """Advertised `host:port` by listener, which take precedence over `host`."""
    node_id: int = 0
    partitions: int = 1
    """Partitions of a topic that is created automatically."""
    batch_bytes_max: int = 1_048_588
    """The default of `max.message.bytes`."""
    message_bytes_max: int = BATCH_BYTES_MAX
    """The largest entry: Pulsar's clients get this limit, and drop larger messages."""
    retention_ms: int = 604_800_000
    """The default of `retention.ms`, for topics that Kafka's clients create; -1 for ever."""
    transaction_ms_max: int = 900_000
    """The longest timeout that a producer may choose (`transaction.max.timeout.ms`)."""
    transactional_id_ms_max: int = 604_800_000
    """An unused transactional id is forgotten after it (`transactional.id.expiration.ms`)."""
    groups: GroupOptions = GroupOptions()
    data_dir: str = ""
    """The directory in DescribeLogDirs."""
    room: Callable[[], tuple[int, int]] = lambda: UNKNOWN
    """Returns the total and the free bytes of its disk; -1 for unknown (KIP-827)."""
