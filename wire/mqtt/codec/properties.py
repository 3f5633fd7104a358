"""Properties of MQTT 5.0 (2.2.2): their identifiers, types and packets. Pure.

Properties are a mapping. User properties are a list of pairs in order, with repetitions
[MQTT-3.3.2-18]; any other property occurs at most once in a packet of a client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from magnetar.wire.mqtt.codec.fields import (
    FieldReader,
    binary,
    string,
    u16,
    u32,
    varint,
)
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode


class Property(IntEnum):
    """The identifiers, by the specification's names."""

    PAYLOAD_FORMAT_INDICATOR = 0x01
    MESSAGE_EXPIRY_INTERVAL = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_IDENTIFIER = 0x0B
    SESSION_EXPIRY_INTERVAL = 0x11
    ASSIGNED_CLIENT_IDENTIFIER = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTHENTICATION_METHOD = 0x15
    AUTHENTICATION_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY_INTERVAL = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_SUBSCRIPTION_AVAILABLE = 0x28
    SUBSCRIPTION_IDENTIFIER_AVAILABLE = 0x29
    SHARED_SUBSCRIPTION_AVAILABLE = 0x2A


P = Property
Properties = Mapping[Property, Any]
"""Values by property; `USER_PROPERTY` has a list of pairs of strings."""
NO_PROPERTIES: Final[Properties] = {}


class Type(NamedTuple):
    """The encoding of a property's values."""

    read: Callable[[FieldReader], Any]
    write: Callable[[Any], bytes]


def _read_flag(fields: FieldReader) -> int:
    value = fields.byte()
    if value > 1:
        raise ProtocolViolation(f"a property that is 0 or 1 has the value {value}")
    return value


def _read_positive_u16(fields: FieldReader) -> int:
    value = fields.u16()
    if not value:
        raise ProtocolViolation("Receive Maximum is zero")
    return value


def _read_positive_u32(fields: FieldReader) -> int:
    value = fields.u32()
    if not value:
        raise ProtocolViolation("Maximum Packet Size is zero")
    return value


def _read_identifier(fields: FieldReader) -> int:
    value = fields.varint()
    if not value:
        raise ProtocolViolation("the subscription identifier is zero")
    return value


def _read_alias(fields: FieldReader) -> int:
    """The topic alias 0 is not permitted and has a reason code of its own (3.3.2.3.4)."""
    value = fields.u16()
    if not value:
        raise PacketError(ReasonCode.TOPIC_ALIAS_INVALID, "the topic alias is zero")
    return value


def _read_topic(fields: FieldReader) -> str:
    topic = fields.string()
    if "#" in topic or "+" in topic:
        raise ProtocolViolation("the response topic holds a wildcard")
    return topic


def _read_pair(fields: FieldReader) -> tuple[str, str]:
    return fields.string(), fields.string()


def _write_byte(value: int) -> bytes:
    return bytes((value,))


def _write_pair(pair: tuple[str, str]) -> bytes:
    return string(pair[0]) + string(pair[1])


_FLAG: Final = Type(_read_flag, _write_byte)
_BYTE: Final = Type(FieldReader.byte, _write_byte)
_U16: Final = Type(FieldReader.u16, u16)
_U32: Final = Type(FieldReader.u32, u32)
_STRING: Final = Type(FieldReader.string, string)
_BINARY: Final = Type(FieldReader.binary, binary)

TYPES: Final[Mapping[Property, Type]] = {
    P.PAYLOAD_FORMAT_INDICATOR: _FLAG,
    P.MESSAGE_EXPIRY_INTERVAL: _U32,
    P.CONTENT_TYPE: _STRING,
    P.RESPONSE_TOPIC: Type(_read_topic, string),
    P.CORRELATION_DATA: _BINARY,
    P.SUBSCRIPTION_IDENTIFIER: Type(_read_identifier, varint),
    P.SESSION_EXPIRY_INTERVAL: _U32,
    P.ASSIGNED_CLIENT_IDENTIFIER: _STRING,
    P.SERVER_KEEP_ALIVE: _U16,
    P.AUTHENTICATION_METHOD: _STRING,
    P.AUTHENTICATION_DATA: _BINARY,
    P.REQUEST_PROBLEM_INFORMATION: _FLAG,
    P.WILL_DELAY_INTERVAL: _U32,
    P.REQUEST_RESPONSE_INFORMATION: _FLAG,
    P.RESPONSE_INFORMATION: _STRING,
    P.SERVER_REFERENCE: _STRING,
    P.REASON_STRING: _STRING,
    P.RECEIVE_MAXIMUM: Type(_read_positive_u16, u16),
    P.TOPIC_ALIAS_MAXIMUM: _U16,
    P.TOPIC_ALIAS: Type(_read_alias, u16),
    P.MAXIMUM_QOS: _BYTE,
    P.RETAIN_AVAILABLE: _FLAG,
    P.USER_PROPERTY: Type(_read_pair, _write_pair),
    P.MAXIMUM_PACKET_SIZE: Type(_read_positive_u32, u32),
    P.WILDCARD_SUBSCRIPTION_AVAILABLE: _FLAG,
    P.SUBSCRIPTION_IDENTIFIER_AVAILABLE: _FLAG,
    P.SHARED_SUBSCRIPTION_AVAILABLE: _FLAG,
}

_MESSAGE: Final = frozenset(
    {
        *(P.PAYLOAD_FORMAT_INDICATOR, P.MESSAGE_EXPIRY_INTERVAL, P.CONTENT_TYPE),
        *(P.RESPONSE_TOPIC, P.CORRELATION_DATA, P.USER_PROPERTY),
    }
)
IN_CONNECT: Final = frozenset(
    {
        *(P.SESSION_EXPIRY_INTERVAL, P.RECEIVE_MAXIMUM, P.MAXIMUM_PACKET_SIZE),
        *(P.TOPIC_ALIAS_MAXIMUM, P.REQUEST_RESPONSE_INFORMATION, P.REQUEST_PROBLEM_INFORMATION),
        *(P.USER_PROPERTY, P.AUTHENTICATION_METHOD, P.AUTHENTICATION_DATA),
    }
)
IN_WILL: Final = _MESSAGE | {P.WILL_DELAY_INTERVAL}
IN_PUBLISH: Final = _MESSAGE | {P.TOPIC_ALIAS}
"""Without the subscription identifier, which only a server sends [MQTT-3.3.4-6]."""
IN_ACKNOWLEDGEMENT: Final = frozenset({P.REASON_STRING, P.USER_PROPERTY})
IN_SUBSCRIBE: Final = frozenset({P.SUBSCRIPTION_IDENTIFIER, P.USER_PROPERTY})
IN_UNSUBSCRIBE: Final = frozenset({P.USER_PROPERTY})
IN_DISCONNECT: Final = frozenset({P.SESSION_EXPIRY_INTERVAL, P.REASON_STRING, P.USER_PROPERTY})
"""Without the server reference, which only a server sends (3.14.2.2.5)."""
IN_AUTH: Final = frozenset(
    {P.AUTHENTICATION_METHOD, P.AUTHENTICATION_DATA, P.REASON_STRING, P.USER_PROPERTY}
)
USER_PROPERTIES_MAX: Final = 4_000
"""User properties of one packet: ten milliseconds."""
_KNOWN: Final[Mapping[int, Property]] = {int(one): one for one in Property}


def read_properties(fields: FieldReader, allowed: frozenset[Property]) -> Properties:
    """Read the length of the properties, and the properties. Only user properties may be many: a
    packet of 16 MB has room for two millions, which would hold up the loop for seconds.
    """
    size = fields.varint()
    if not size:
        return NO_PROPERTIES
    part = fields.part(size)
    found: dict[Property, Any] = {}
    while part.left:
        number = part.varint()
        name = _KNOWN.get(number)
        if name is None or name not in allowed:
            raise MalformedPacket(f"property 0x{number:02x} does not belong to its packet")
        value = TYPES[name].read(part)
        if name is P.USER_PROPERTY:
            pairs = found.setdefault(name, [])
            pairs.append(value)
            if len(pairs) > USER_PROPERTIES_MAX:
                text = f"more than {USER_PROPERTIES_MAX} user properties"
                raise PacketError(ReasonCode.QUOTA_EXCEEDED, text)
        elif name in found:
            raise ProtocolViolation(f"property {name.name} stands twice")
        else:
            found[name] = value
    return found


def packed(properties: Properties) -> bytes:
    """Encode the length of the properties, and the properties in order."""
    if not properties:
        return b"\0"
    pieces = []
    for name, value in properties.items():
        write, number = TYPES[name].write, bytes((name,))
        values = value if isinstance(value, list) else (value,)
        for one in values:
            pieces.append(number)
            pieces.append(write(one))
    body = b"".join(pieces)
    return varint(len(body)) + body
