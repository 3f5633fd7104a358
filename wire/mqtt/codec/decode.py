"""Decodes control packets, as strictly as the specifications require. Pure.

`decode` gets the first byte and the body of a complete packet, and the protocol version of its
connection. `publishes.py` decodes PUBLISH.

Invariant: the result for any bytes is a packet or a `PacketError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from magnetar.wire.mqtt import topics
from magnetar.wire.mqtt.codec import properties
from magnetar.wire.mqtt.codec.fields import FieldReader
from magnetar.wire.mqtt.codec.packets import (
    Acknowledgement,
    Auth,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    Pingreq,
    RetainHandling,
    Subscribe,
    SubscriptionOptions,
    Unsubscribe,
    Version,
    Will,
)
from magnetar.wire.mqtt.codec.properties import NO_PROPERTIES, Properties, Property, read_properties
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode

PROTOCOL_NAMES: Final[Mapping[str, tuple[Version, ...]]] = {
    "MQIsdp": (Version.V3_1,),
    "MQTT": (Version.V3_1_1, Version.V5),
}
_CACHED_BYTES_MAX: Final = 6

_PUBLISH_REASONS: Final = frozenset(
    {
        *(ReasonCode.SUCCESS, ReasonCode.NO_MATCHING_SUBSCRIBERS, ReasonCode.UNSPECIFIED_ERROR),
        *(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, ReasonCode.NOT_AUTHORIZED),
        *(ReasonCode.TOPIC_NAME_INVALID, ReasonCode.PACKET_IDENTIFIER_IN_USE),
        *(ReasonCode.QUOTA_EXCEEDED, ReasonCode.PAYLOAD_FORMAT_INVALID),
    }
)
_RELEASE_REASONS: Final = frozenset({ReasonCode.SUCCESS, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND})
ACKNOWLEDGEMENT_REASONS: Final[Mapping[PacketType, frozenset[ReasonCode]]] = {
    PacketType.PUBACK: _PUBLISH_REASONS,
    PacketType.PUBREC: _PUBLISH_REASONS,
    PacketType.PUBREL: _RELEASE_REASONS,
    PacketType.PUBCOMP: _RELEASE_REASONS,
}
DISCONNECT_REASONS: Final = frozenset(
    {
        *(ReasonCode.SUCCESS, ReasonCode.DISCONNECT_WITH_WILL, ReasonCode.UNSPECIFIED_ERROR),
        *(ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR),
        *(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, ReasonCode.TOPIC_NAME_INVALID),
        *(ReasonCode.RECEIVE_MAXIMUM_EXCEEDED, ReasonCode.TOPIC_ALIAS_INVALID),
        *(ReasonCode.PACKET_TOO_LARGE, ReasonCode.MESSAGE_RATE_TOO_HIGH),
        *(ReasonCode.QUOTA_EXCEEDED, ReasonCode.ADMINISTRATIVE_ACTION),
        ReasonCode.PAYLOAD_FORMAT_INVALID,
    }
)
"""The reason codes that a client may send in DISCONNECT (3.14.2.1)."""
AUTH_REASONS: Final = frozenset({ReasonCode.CONTINUE_AUTHENTICATION, ReasonCode.REAUTHENTICATE})
"""The reason codes that a client may send in AUTH: only a server sends success (3.15.2.1)."""


def decode(first: int, body: bytes, version: Version) -> Packet:
    """Decode a packet from its first byte and its body, which follows the fixed header."""
    kind = first >> 4
    read = _READERS.get(kind)
    if read is None:
        raise ProtocolViolation(f"a client sends no packets of type {kind}")
    _check_flags(kind, first & 15, version)
    fields = FieldReader(body, 0, len(body))
    packet = read(kind, fields, version)
    fields.end()
    return packet


def decode_connect(first: int, body: bytes) -> Connect:
    """Decode the first packet of a connection, which names the version of all packets."""
    if first != PacketType.CONNECT << 4:
        raise MalformedPacket("the flags of CONNECT are reserved")
    fields = FieldReader(body, 0, len(body))
    packet = _connect(fields)
    fields.end()
    return packet


def _check_flags(kind: int, flags: int, version: Version) -> None:
    """Check the reserved flags [MQTT-2.1.3-1]; in 3.1, some packets may have DUP set."""
    expected = 2 if kind in _SECOND_BIT else 0
    if version == Version.V3_1 and expected:
        flags &= ~8
    if flags != expected:
        raise MalformedPacket(f"flags {flags:#x} of a packet of type {kind} are reserved")


_SECOND_BIT: Final = frozenset({PacketType.PUBREL, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE})


# -- CONNECT ------------------------------------------------------------------------------------


def _connect(fields: FieldReader) -> Connect:
    version = _version(fields)
    flags = fields.byte()
    if flags & 1 and version != Version.V3_1:
        raise MalformedPacket("the reserved connect flag is set")  # [MQTT-3.1.2-3]
    _check_will_flags(flags)
    has_username, has_password = bool(flags & 0x80), bool(flags & 0x40)
    if has_password and not has_username and version != Version.V5:
        raise MalformedPacket("a password without a user name")  # [MQTT-3.1.2-22] of 3.1.1
    keep_alive = fields.u16()
    found = _properties(fields, properties.IN_CONNECT, version)
    if Property.AUTHENTICATION_DATA in found and Property.AUTHENTICATION_METHOD not in found:
        raise ProtocolViolation("authentication data without a method")
    client_id = fields.string()
    return Connect(
        version=version,
        client_id=client_id,
        clean_start=bool(flags & 2),
        keep_alive=keep_alive,
        will=_will(fields, flags, version) if flags & 4 else None,
        username=fields.string() if has_username and _is_there(fields, version) else None,
        password=fields.binary() if has_password and _is_there(fields, version) else None,
        properties=found,
    )


def _is_there(fields: FieldReader, version: Version) -> bool:
    """Whether a user name or password that the flags announce is present. In 3.1 it may be missing
    (3.1, "User name and password flags"), as early clients send it.
    """
    return bool(fields.left) or version != Version.V3_1


def _version(fields: FieldReader) -> Version:
    size = fields.u16()
    if size > _CACHED_BYTES_MAX:
        raise MalformedPacket("the protocol name is none that is known")
    versions = PROTOCOL_NAMES.get(fields.take(size).decode("latin-1"))
    if versions is None:
        raise MalformedPacket("the protocol name is none that is known")
    level = fields.byte()
    if level not in versions:
        raise PacketError(
            ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, f"protocol level {level} is not supported"
        )
    return Version(level)


def _check_will_flags(flags: int) -> None:
    """[MQTT-3.1.2-11] to [MQTT-3.1.2-15]."""
    qos, retain = flags >> 3 & 3, flags & 0x20
    if qos == 3:
        raise MalformedPacket("the will has a quality of service of 3")
    if not flags & 4 and (qos or retain):
        raise MalformedPacket("flags of a will without the will flag")


def _will(fields: FieldReader, flags: int, version: Version) -> Will:
    found = _properties(fields, properties.IN_WILL, version)
    topic = fields.string()
    if not topics.is_name(topic):
        raise PacketError(ReasonCode.TOPIC_NAME_INVALID, "the will's topic is no topic name")
    return Will(topic, fields.binary(), flags >> 3 & 3, bool(flags & 0x20), found)


def _properties(fields: FieldReader, allowed: frozenset[Property], version: Version) -> Properties:
    return read_properties(fields, allowed) if version == Version.V5 else NO_PROPERTIES


# -- all others -----------------------------------------------------------------------------------


def _acknowledgement(kind: int, fields: FieldReader, version: Version) -> Acknowledgement:
    """Decode an acknowledgement, whose reason and properties may be omitted (3.4.2.1)."""
    name = PacketType(kind)
    packet_id = fields.packet_id()
    if version != Version.V5 or not fields.left:
        return Acknowledgement(name, packet_id)
    reason = _reason(fields, ACKNOWLEDGEMENT_REASONS[name])
    found = _rest(fields, properties.IN_ACKNOWLEDGEMENT)
    return Acknowledgement(name, packet_id, reason, found)


def _reason(fields: FieldReader, allowed: frozenset[ReasonCode]) -> ReasonCode:
    number = fields.byte()
    for reason in allowed:
        if reason == number:
            return reason
    raise ProtocolViolation(f"reason code 0x{number:02x} does not belong to its packet")


def _rest(fields: FieldReader, allowed: frozenset[Property]) -> Properties:
    """Read properties at the end of a packet, which may be omitted with their length."""
    return read_properties(fields, allowed) if fields.left else NO_PROPERTIES


def _connect_again(_kind: int, _fields: FieldReader, _version: Version) -> Packet:
    raise ProtocolViolation("a second CONNECT")  # [MQTT-3.1.0-2]


def _subscribe(_kind: int, fields: FieldReader, version: Version) -> Subscribe:
    packet_id = fields.packet_id()
    found = _properties(fields, properties.IN_SUBSCRIBE, version)
    filters = []
    while fields.left:
        text = fields.string()
        filters.append((text, _options(fields.byte(), text, version)))
    if not filters:
        raise ProtocolViolation("SUBSCRIBE without a topic filter")  # [MQTT-3.8.3-2]
    return Subscribe(packet_id, tuple(filters), found)


def _options(byte: int, text: str, version: Version) -> SubscriptionOptions:
    qos = byte & 3
    if version != Version.V5:
        if byte > 2:
            raise MalformedPacket(f"requested QoS {byte:#x}")  # [MQTT-3.8.3-4] of 3.1.1
        return SubscriptionOptions(qos)
    if byte & 0xC0:
        raise MalformedPacket(f"subscription options {byte:#x}")  # [MQTT-3.8.3-5]
    if qos == 3:
        raise ProtocolViolation("a maximum QoS of 3")
    handling = byte >> 4 & 3
    if handling > RetainHandling.NEVER:
        raise ProtocolViolation("retain handling 3")
    no_local = bool(byte & 4)
    if no_local and text.startswith(topics.SHARE):
        raise ProtocolViolation("No Local on a shared subscription")  # [MQTT-3.8.3-4]
    return SubscriptionOptions(qos, no_local, bool(byte & 8), RetainHandling(handling))


def _unsubscribe(_kind: int, fields: FieldReader, version: Version) -> Unsubscribe:
    packet_id = fields.packet_id()
    found = _properties(fields, properties.IN_UNSUBSCRIBE, version)
    filters = []
    while fields.left:
        filters.append(fields.string())
    if not filters:
        raise ProtocolViolation("UNSUBSCRIBE without a topic filter")  # [MQTT-3.10.3-2]
    return Unsubscribe(packet_id, tuple(filters), found)


def _pingreq(_kind: int, _fields: FieldReader, _version: Version) -> Pingreq:
    return Pingreq()


def _disconnect(_kind: int, fields: FieldReader, version: Version) -> Disconnect:
    if version != Version.V5 or not fields.left:
        return Disconnect()
    reason = _reason(fields, DISCONNECT_REASONS)
    return Disconnect(reason, _rest(fields, properties.IN_DISCONNECT))


def _auth(kind: int, fields: FieldReader, version: Version) -> Auth:
    if version != Version.V5:
        raise ProtocolViolation(f"there is no packet of type {kind} before 5.0")
    if not fields.left:
        raise ProtocolViolation("AUTH of a client cannot mean success")
    reason = _reason(fields, AUTH_REASONS)
    found = _rest(fields, properties.IN_AUTH)
    if Property.AUTHENTICATION_METHOD not in found:
        raise ProtocolViolation("AUTH without an authentication method")
    return Auth(reason, found)


_READERS: Final[Mapping[int, Callable[[int, FieldReader, Version], Packet]]] = {
    PacketType.CONNECT: _connect_again,
    PacketType.PUBACK: _acknowledgement,
    PacketType.PUBREC: _acknowledgement,
    PacketType.PUBREL: _acknowledgement,
    PacketType.PUBCOMP: _acknowledgement,
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.PINGREQ: _pingreq,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _auth,
}
