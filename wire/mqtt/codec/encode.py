"""Encodes the control packets of a server. Pure.

`delivery/outgoing_publish.py` encodes PUBLISH, from stored messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.wire.mqtt.codec.fields import u16, varint
from magnetar.wire.mqtt.codec.packets import PacketType, Version
from magnetar.wire.mqtt.codec.properties import NO_PROPERTIES, Properties, packed
from magnetar.wire.mqtt.reason_codes import SUBACK_FAILURE, ReasonCode, return_code

PINGRESP: Final = b"\xd0\0"
_SECOND_BIT: Final = 2


def _packet(kind: PacketType, body: bytes, flags: int = 0) -> bytes:
    return bytes((kind << 4 | flags,)) + varint(len(body)) + body


def connack(
    version: Version,
    reason: ReasonCode,
    *,
    session_present: bool = False,
    properties: Properties = NO_PROPERTIES,
) -> bytes:
    """Encode CONNACK; for a failure, session present is 0 [MQTT-3.2.2-6]."""
    present = session_present and not reason.fails
    if version == Version.V5:
        return _packet(PacketType.CONNACK, bytes((present, reason)) + packed(properties))
    if version == Version.V3_1:
        present = False  # 3.1 has no such flag: the byte is reserved
    return _packet(PacketType.CONNACK, bytes((present, return_code(reason))))


def acknowledgement(
    version: Version,
    kind: PacketType,
    packet_id: int,
    reason: ReasonCode = ReasonCode.SUCCESS,
    properties: Properties = NO_PROPERTIES,
) -> bytes:
    """Encode PUBACK, PUBREC, PUBREL or PUBCOMP, which before 5.0 have only the identifier."""
    flags = _SECOND_BIT if kind is PacketType.PUBREL else 0
    body = u16(packet_id)
    if version == Version.V5 and (reason or properties):
        body += bytes((reason,))
        if properties:
            body += packed(properties)
    return _packet(kind, body, flags)


def suback(
    version: Version,
    packet_id: int,
    reasons: Sequence[ReasonCode],
    properties: Properties = NO_PROPERTIES,
) -> bytes:
    """Encode SUBACK, with a code for each filter in order [MQTT-3.8.4-6]."""
    body = u16(packet_id)
    if version == Version.V5:
        body += packed(properties) + bytes(reasons)
    else:
        body += bytes(SUBACK_FAILURE if reason.fails else reason for reason in reasons)
    return _packet(PacketType.SUBACK, body)


def unsuback(
    version: Version,
    packet_id: int,
    reasons: Sequence[ReasonCode],
    properties: Properties = NO_PROPERTIES,
) -> bytes:
    """Encode UNSUBACK, which before 5.0 has only the identifier (3.11)."""
    body = u16(packet_id)
    if version == Version.V5:
        body += packed(properties) + bytes(reasons)
    return _packet(PacketType.UNSUBACK, body)


def disconnect(reason: ReasonCode, properties: Properties = NO_PROPERTIES) -> bytes:
    """Encode DISCONNECT, which a server sends in 5.0 only."""
    if not reason and not properties:
        return _packet(PacketType.DISCONNECT, b"")
    body = bytes((reason,))
    if properties:
        body += packed(properties)
    return _packet(PacketType.DISCONNECT, body)


def auth(reason: ReasonCode, properties: Properties) -> bytes:
    return _packet(PacketType.AUTH, bytes((reason,)) + packed(properties))
