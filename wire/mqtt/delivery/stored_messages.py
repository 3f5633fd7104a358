"""The messages of one stored entry, of any protocol, as MQTT's subscribers see them. Pure.

An entry of MQTT's form has PUBLISH packets; messages of other forms are converted. The MQTT topic
of a converted message is its key, if its log is a funnel and the key is a valid topic name; else it
is the MQTT name of the log (`mapping/`). Its QoS is the subscriber's, unless a header names
another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from magnetar.core.entry import conversion
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt.properties import has_retain, properties_of, qos_of
from magnetar.core.entry.mqtt.run import PUBLISH, StoredPublish
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.chain import Position

AS_SUBSCRIBED: Final = 2
"""The QoS of a message that names none, so that the subscriber's counts."""
TopicOf = Callable[[bytes | None], bytes | None]
"""Returns the MQTT topic of a message by its key; None if MQTT cannot address it."""


class Messages(NamedTuple):
    """See the module's docstring."""

    client_id: bytes
    """The client id of the publisher; empty for other protocols."""
    published_ms: int
    packets: Sequence[StoredPublish]
    first_index: int = 0
    """The index of the entry's first message (PIP-70), which is that of place 0."""


class KeyedMessage(NamedTuple):
    """One entry of a compacted topic (`storage/keyed_log.py`), such as a retained message."""

    position: Position
    published_ms: int
    client_id: bytes
    """The publisher of a retained message; empty for other values."""
    packet: StoredPublish
    """Its topic is the key, its payload the value."""


def messages_of(sent: bytes, topic_of: TopicOf, first_index: int = 0) -> Messages:
    """The messages of an entry without the broker's header. Raises `Corrupted`."""
    its_form = form_of(sent)
    published_ms = its_form.publish_time(sent)
    if its_form is form:
        run = form.run_of(sent)
        return Messages(run.client_id, published_ms, list(run), first_index)
    packets = []
    for record in conversion.records_of(sent):
        topic = topic_of(record.key)
        if topic is not None:
            packets.append(_packet(record, topic, published_ms))
    return Messages(b"", published_ms, packets, first_index)


def _packet(record: Record, topic: bytes, now_ms: int) -> StoredPublish:
    headers, payload = record.headers, record.value or b""
    first = PUBLISH | qos_of(headers, AS_SUBSCRIBED) << 1 | has_retain(headers)
    properties = properties_of(headers, now_ms)
    return StoredPublish(record.place, first, topic, properties, payload, 0, 0)
