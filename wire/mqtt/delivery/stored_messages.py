"""The messages of one stored entry, of any protocol, as MQTT's subscribers see them. Pure.

An entry of our own form has PUBLISH packets. One that another protocol has stored is made into
some: its topic on the wire is its key, where the topic of core that it stands in is one that holds
many of MQTT's topics and the key is one of those; else it is the name of the topic that it stands
in (`mapping/`). Its quality of service is the subscriber's, unless it says another.
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

AS_SUBSCRIBED: Final = 2
"""The quality of service of a message that names none: its subscribers' is the lower one."""
TopicOf = Callable[[bytes | None], bytes | None]
"""The MQTT topic of a message with that key; None for one that MQTT cannot address."""


class Messages(NamedTuple):
    """See the module's docstring."""

    client_id: bytes
    """Of the publisher; empty if it was none of MQTT's."""
    published_ms: int
    packets: Sequence[StoredPublish]


def messages_of(sent: bytes, topic_of: TopicOf) -> Messages:
    """What stands in an entry, behind the broker's header. Raises `Corrupted`."""
    its_form = form_of(sent)
    published_ms = its_form.publish_time(sent)
    if its_form is form:
        run = form.run_of(sent)
        return Messages(run.client_id, published_ms, list(run))
    packets = []
    for record in conversion.records_of(sent):
        topic = topic_of(record.key)
        if topic is not None:
            packets.append(_packet(record, topic, published_ms))
    return Messages(b"", published_ms, packets)


def _packet(record: Record, topic: bytes, now_ms: int) -> StoredPublish:
    headers, payload = record.headers, record.value or b""
    first = PUBLISH | qos_of(headers, AS_SUBSCRIBED) << 1 | has_retain(headers)
    properties = properties_of(headers, now_ms)
    return StoredPublish(record.place, first, topic, properties, payload, 0, 0)
