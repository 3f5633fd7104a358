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
from magnetar.core.entry.mqtt.run import PUBLISH, PublishRun, StoredPublish
from magnetar.core.entry.mqtt.segments import PublishSegment, segments
from magnetar.core.entry.record import Record
from magnetar.core.ledger.log.chain import Position

AS_SUBSCRIBED: Final = 2
"""The QoS of a message that names none, so that the subscriber's counts."""
TopicOf = Callable[[bytes | None], bytes | None]
"""Returns the MQTT topic of a message by its key; None if MQTT cannot address it."""


class Messages:
    """The messages of one entry. See the module's docstring."""

    __slots__ = ("_packets", "client_id", "first_index", "published_ms", "run", "segments")

    def __init__(
        self,
        client_id: bytes,
        published_ms: int,
        packets: Sequence[StoredPublish] | None,
        first_index: int = 0,
        run: PublishRun | None = None,
    ) -> None:
        """`packets` is None if they are those of the run. Raises `Corrupted`."""
        self.client_id = client_id
        """The client id of the publisher; empty for other protocols, and for clients of listeners
        with other client ids.
        """
        self.published_ms = published_ms
        self.first_index = first_index
        """The index of the entry's first message (PIP-70), which is that of place 0."""
        self.run = run
        """None for messages of other protocols."""
        self._packets = packets
        self.segments = self._divided()
        """Parts of the messages that are handled as one."""

    @property
    def packets(self) -> Sequence[StoredPublish]:
        if self._packets is None:
            assert self.run is not None
            self._packets = list(self.run)
        return self._packets

    def _divided(self) -> Sequence[PublishSegment]:
        run = self.run
        if run is not None and run.places is None:
            return segments(run.data, run.packets_at, run.has_properties)
        return [
            PublishSegment(number, 1, 0, 0, packet.first, packet.topic, False)
            for number, packet in enumerate(self.packets)
        ]

    def packets_of(self, segment: PublishSegment, start: int = 0) -> Sequence[StoredPublish]:
        """The packets of a segment, from its packet `start` on."""
        return self.packets[segment.number + start : segment.number + segment.packets]

    def places_of(self, segment: PublishSegment) -> range:
        """The places of a segment's packets in the entry."""
        if segment.packets == 1:
            place = segment.number if self._packets is None else self.packets[segment.number].place
            return range(place, place + 1)
        return range(segment.number, segment.number + segment.packets)


class KeyedMessage(NamedTuple):
    """One entry of a compacted topic (`storage/keyed_log.py`), such as a retained message."""

    position: Position
    published_ms: int
    client_id: bytes
    """The publisher of a retained message; empty for other values."""
    packet: StoredPublish
    """Its topic is the key, its payload the value."""


def messages_of(
    sent: bytes, topic_of: TopicOf, first_index: int = 0, publisher_prefix: bytes = b""
) -> Messages:
    """The messages of an entry without the broker's header. `publisher_prefix` comes before the
    client ids of these listeners in its log (`mapping/names.py`). Raises `Corrupted`.
    """
    its_form = form_of(sent)
    if its_form is form:
        run = form.run_of(sent)
        client_id = run.client_id
        if publisher_prefix:
            is_ours = client_id.startswith(publisher_prefix)
            client_id = client_id[len(publisher_prefix) :] if is_ours else b""
        return Messages(client_id, form.publish_time(sent), None, first_index, run)
    published_ms, packets = its_form.publish_time(sent), []
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
