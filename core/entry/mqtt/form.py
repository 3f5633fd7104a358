"""MQTT's form: a run of PUBLISH packets as their client sent them. See `core/entry/form.py`. Pure.

    sent = u32 size | metadata | run

Metadata is that of a Pulsar message: producer `mqtt`, publish time, the number of messages, and the
property `entry.format=mqtt`, like Kafka's form. `run.py` has the run, and `properties.py` the
conversion of its packets for other protocols: the key is the MQTT topic, the value the payload.

A retained message with an empty payload deletes the retained message of its topic (3.3.1.3): for
other protocols it is a null value, for compaction a tombstone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct as Layout
from typing import Final

from magnetar.core.entry.form import SIZE_BYTES, Chunk, TransactionMark
from magnetar.core.entry.mqtt import run as runs
from magnetar.core.entry.mqtt.compaction import UnpackedRun
from magnetar.core.entry.mqtt.properties import (
    NULL_KEY,
    NULL_VALUE,
    TIME,
    has_retain,
    headers_of,
    key_of,
    properties_of,
    qos_of,
    time_of,
    value_of,
)
from magnetar.core.entry.mqtt.run import PublishRun
from magnetar.core.entry.record import NO_TIME, DetailedRecord, Header, Record
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.kernel.varints import VARINT_BYTES_MAX, varint

NAME: Final = "mqtt"
BEGINS: Final[bytes] = b"\x0a\x04mqtt\x10\x00\x18"
"""Producer name, sequence id, and the tag of the publish time: unique to this form."""
_SIZE: Final = Layout(">I")
_TIME_AT: Final = SIZE_BYTES + len(BEGINS)
_QUICK_BITS: Final = 14
"""Of a time, those in the first two bytes of its varint; the others change every 16 s."""
_FORMAT: Final = b"\x22\x14\x0a\x0centry.format\x12\x04mqtt"
_COUNT: Final = b"\x58"


def head(messages: int, now_ms: int) -> bytes:
    """The bytes before a run of that many messages."""
    begin, end = _around_time(now_ms >> _QUICK_BITS, messages)
    return begin + bytes((now_ms & 127 | 128, now_ms >> 7 & 127 | 128)) + end


@lru_cache(maxsize=64)
def _around_time(late: int, messages: int) -> tuple[bytes, bytes]:
    """The bytes of a head around the part of the time that changes within 16 s. A time in the
    first seconds of 1970 has a varint that is longer than it has to be.
    """
    end = b"".join((varint(late), _FORMAT, _COUNT, varint(messages)))
    return _SIZE.pack(len(BEGINS) + 2 + len(end)) + BEGINS, end


def run_of(sent: bytes) -> PublishRun:
    """The run of an entry of this form."""
    if len(sent) < SIZE_BYTES:
        raise Corrupted("an entry ends within its metadata")
    size = sent[0] << 24 | sent[1] << 16 | sent[2] << 8 | sent[3]
    return runs.opened(sent[SIZE_BYTES + size :])


# -- what core asks of a form ---------------------------------------------------------------------


def publish_time(sent: bytes) -> int:
    """The time of the append in ms; 0 if the metadata is damaged."""
    number = shift = 0
    for at in range(_TIME_AT, min(_TIME_AT + VARINT_BYTES_MAX, len(sent))):
        byte = sent[at]
        number |= (byte & 127) << shift
        if byte < 128:
            return number
        shift += 7
    return 0


def latest_time(sent: bytes) -> int:
    """The publish time: MQTT's messages have no time of their own."""
    return publish_time(sent) or -1


def deliver_at(_sent: bytes) -> None:
    """None: MQTT has no delayed delivery."""


def ordering_key(sent: bytes) -> bytes | None:
    """The first message's topic, which decides for the run, as for a batch of Pulsar's."""
    try:
        for packet in run_of(sent):
            return packet.topic
    except Corrupted:
        pass
    return None


def sequence(_sent: bytes) -> None:
    """None: packet identifiers are reused, so they do not identify a message."""


def chunk(_sent: bytes) -> Chunk | None:
    """None: a message is never split."""
    return None


def remaining_places(_sent: bytes) -> Sequence[int]:
    return ()


def transaction_mark(_sent: bytes) -> TransactionMark | None:
    """None: MQTT has no transactions."""
    return None


def records(sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[Record]:
    time_ms = publish_time(sent)
    return [
        Record(
            packet.place,
            time_of(packet, time_ms),
            key_of(packet),
            value_of(packet),
            headers_of(packet.properties, time_ms, packet.qos, retain=packet.retain),
        )
        for packet in run_of(sent)
    ]


def messages(sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[DetailedRecord]:
    publisher = run_of(sent).client_id
    stored_ms = publish_time(sent) or NO_TIME
    return [
        DetailedRecord(
            one.place,
            stored_ms,
            one.timestamp_ms if one.timestamp_ms != stored_ms else NO_TIME,
            one.key,
            None,
            one.value,
            one.headers,
            publisher,
            None,
            None,
        )
        for one in records(sent)
    ]


def entry_of(records: Sequence[Record], _index: int, publish_time_ms: int, producer: str) -> bytes:
    """A run of another protocol's messages, with `producer` as its client id. A key that is too
    long for a topic is left out.
    """
    places = [record.place for record in records]
    holes = places != list(range(len(places)))
    pieces = [
        head(places[-1] + 1 if places else 1, publish_time_ms),
        runs.head(producer.encode(), has_properties=True, places=places if holes else None),
    ]
    pieces += [_packet(record, publish_time_ms) for record in records]
    return b"".join(pieces)


def _packet(record: Record, now_ms: int) -> bytes:
    headers: list[Header] = list(record.headers)
    retain = has_retain(headers)
    key = record.key
    if key is None or len(key) > runs.TOPIC_BYTES_MAX:
        key = b""
        headers.append(NULL_KEY)
    if record.value is None and not retain:
        headers.append(NULL_VALUE)
    if record.timestamp_ms not in (NO_TIME, now_ms):
        headers.append((TIME, b"%d" % record.timestamp_ms))
    first = runs.PUBLISH | qos_of(headers, 0) << 1 | retain
    return runs.packet(first, key, properties_of(headers, now_ms), record.value or b"")


def unpacked(sent: bytes) -> UnpackedRun:
    run = run_of(sent)
    return UnpackedRun(sent[: len(sent) - len(run.data)], run)


keyed = unpacked
