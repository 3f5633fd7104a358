"""Reads and writes the consumer protocol inside JoinGroup and SyncGroup. Pure.

Invalid bytes are None: the group protocol treats them as opaque.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from magnetar.wire.kafka.messages.parts import TopicPartitions

CONSUMER: Final = "consumer"
"""The protocol type of consumers."""
BYTES_MAX: Final = 256 * 1024
"""Larger bytes are not parsed, because objects take many times their size."""
_VERSION = struct.Struct(">h")

Words = TypeVar("Words", ConsumerSubscription, ConsumerAssignment)


def subscription_in(data: bytes) -> ConsumerSubscription | None:
    """The subscription of a member."""
    return _decoded(ConsumerSubscription, data)


def assignment_in(data: bytes) -> ConsumerAssignment | None:
    """The assignment of a member."""
    return _decoded(ConsumerAssignment, data)


def version_of(data: bytes) -> int:
    """The version to use for a client that names this one: at most our latest."""
    low, high = ConsumerAssignment.VERSIONS
    version: int = _VERSION.unpack_from(data)[0]
    return min(max(low, version), high)


def subscription(names: Iterable[str], version: int) -> bytes:
    return _encoded(ConsumerSubscription(topics=sorted(names)), version)


def assignment(partitions: Mapping[str, list[int]], version: int) -> bytes:
    """Encode an assignment for a member that uses this version."""
    assigned = [TopicPartitions(topic=name, partitions=partitions[name]) for name in partitions]
    return _encoded(ConsumerAssignment(assigned_partitions=assigned), version)


def _decoded(kind: type[Words], data: bytes) -> Words | None:
    if not _VERSION.size <= len(data) <= BYTES_MAX:
        return None
    low, high = kind.VERSIONS
    (version,) = _VERSION.unpack_from(data)
    if version < low:
        return None
    decode = decoder(kind, min(version, high), False)
    try:  # a newer version begins with the known fields
        found, _ = decode(data, _VERSION.size)
    except WireError:
        return None
    assert isinstance(found, kind)
    return found


def _encoded(words: ConsumerSubscription | ConsumerAssignment, version: int) -> bytes:
    return _VERSION.pack(version) + b"".join(encoder(type(words), version, False)(words))
