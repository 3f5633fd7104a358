"""Encodes a stored PUBLISH for one subscriber. Pure.

The sent packet differs from the stored one in the flags of the fixed header, the packet identifier,
and in 5.0 the remaining expiry interval, the subscription identifiers and a topic alias.

    QoS      the lower one of publisher's and subscriber's [MQTT-3.8.4-8]
    RETAIN   0, unless Retain As Published asks for the publisher's [MQTT-3.3.1-12, -13]
    DUP      1 only for a repeated delivery [MQTT-3.3.1-1]
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final, NamedTuple

from magnetar.core.entry.mqtt import properties
from magnetar.core.entry.mqtt.run import PUBLISH, RETAIN, StoredPublish
from magnetar.wire.mqtt.codec.fields import varint
from magnetar.wire.mqtt.codec.properties import Property
from magnetar.wire.mqtt.codec.publishes import DUP
from magnetar.wire.mqtt.delivery.topic_aliases import NO_ALIAS, Alias

_U16: Final = Layout(">H")
_U32: Final = Layout(">I")
_ALIAS: Final = bytes((Property.TOPIC_ALIAS,))


class Addressee(NamedTuple):
    """The subscriber's part of the encoding."""

    has_properties: bool
    """Whether it speaks 5.0."""
    identifiers: Sequence[int] = ()
    """Identifiers of its matching subscriptions, in 5.0 [MQTT-3.3.4-3, -4]."""
    alias: Alias = NO_ALIAS
    """How the topic is sent, in 5.0."""


def first_byte(qos: int, *, retain: bool, dup: bool = False) -> int:
    return PUBLISH | (DUP if dup else 0) | qos << 1 | (RETAIN if retain else 0)


def packed(
    stored: StoredPublish,
    first: int,
    packet_id: int,
    addressee: Addressee,
    seconds_left: int | None = None,
) -> bytes:
    """Encode the packet for one subscriber. `seconds_left` replaces the expiry interval."""
    topic = b"" if addressee.alias.is_known else stored.topic
    pieces = [_U16.pack(len(topic)), topic]
    if first >> 1 & 3:
        pieces.append(_U16.pack(packet_id))
    if addressee.has_properties:
        pieces += _properties(stored.properties, addressee, seconds_left)
    pieces.append(stored.payload)
    body = b"".join(pieces)
    return bytes((first,)) + varint(len(body)) + body


def _properties(stored: bytes, addressee: Addressee, seconds_left: int | None) -> Sequence[bytes]:
    if seconds_left is not None:
        stored = with_expiry(stored, seconds_left)
    if addressee.alias.number:
        stored += _ALIAS + _U16.pack(addressee.alias.number)
    if addressee.identifiers:
        number = bytes((Property.SUBSCRIPTION_IDENTIFIER,))
        stored += b"".join(number + varint(one) for one in addressee.identifiers)
    return varint(len(stored)), stored


def with_expiry(stored: bytes, seconds_left: int) -> bytes:
    """Replace the expiry interval by its remainder [MQTT-3.3.2-6]."""
    at = 0
    for field in properties.fields(stored):
        if field.number == properties.EXPIRY:
            return stored[: at + 1] + _U32.pack(seconds_left) + stored[at + 5 :]
        at += properties.size_of(field)
    return stored
