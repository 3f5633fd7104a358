"""A message in terms of all protocols, for conversion from one form to another. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Header = tuple[bytes, bytes | None]
"""A name, and a value that may be absent. Names may repeat, as in Kafka (KIP-82)."""

NO_TIME = -1


class Record(NamedTuple):
    """See the module's docstring."""

    place: int
    """Its place in its entry, from 0."""
    timestamp_ms: int
    """The time of its event, else of publishing; -1 if unknown."""
    key: bytes | None
    value: bytes | None
    """None differs from empty: it is a tombstone for the key."""
    headers: Sequence[Header] = ()


class DetailedRecord(NamedTuple):
    """One message with all that its form tells of it, for readers of what is stored.

    What a protocol does not have is None, and a time -1.
    """

    place: int
    publish_ms: int
    """When its producer sent it, or else the broker stored it."""
    event_ms: int
    """The time that its application gave it: Pulsar's event time, the timestamp of Kafka."""
    key: bytes | None
    ordering_key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    producer: bytes | None
    """Pulsar's producer name, Kafka's producer id, the client id of MQTT."""
    sequence_id: int | None
    schema_version: bytes | None
