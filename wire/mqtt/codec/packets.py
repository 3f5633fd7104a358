"""The control packets of clients as values, except PUBLISH (see `publishes.py`). Pure."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct

from magnetar.wire.mqtt.codec.properties import NO_PROPERTIES, Properties
from magnetar.wire.mqtt.reason_codes import ReasonCode


class PacketType(IntEnum):
    """The upper four bits of a packet's first byte (2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


class Version(IntEnum):
    """The protocol level that CONNECT names (3.1.2.2)."""

    V3_1 = 3
    V3_1_1 = 4
    V5 = 5


NEVER_EXPIRES: Final = 0xFFFFFFFF
"""The session expiry interval of a session that does not expire (3.1.2.11.2)."""


class Will(Struct, frozen=True):
    """The message to publish unless the connection ends with a normal DISCONNECT (3.1.2.5)."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: Properties = NO_PROPERTIES


class Connect(Struct, frozen=True):
    version: Version
    client_id: str
    """Empty if the server has to assign one."""
    clean_start: bool
    keep_alive: int
    """In seconds; 0 for none."""
    username: str | None = None
    password: bytes | None = None
    will: Will | None = None
    properties: Properties = NO_PROPERTIES


class Acknowledgement(Struct, frozen=True):
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    kind: PacketType
    packet_id: int
    reason: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


class RetainHandling(IntEnum):
    """When retained messages are sent (3.8.3.1)."""

    ALWAYS = 0
    """With each SUBSCRIBE."""
    IF_NEW = 1
    """If the subscription is new."""
    NEVER = 2


class SubscriptionOptions(Struct, frozen=True):
    """The options of a subscription (3.8.3.1), of which 3.1.1 has only the QoS."""

    qos: int
    no_local: bool = False
    """Whether the client's own messages are not delivered to it."""
    retain_as_published: bool = False
    retain_handling: RetainHandling = RetainHandling.ALWAYS


class Subscribe(Struct, frozen=True):
    packet_id: int
    filters: tuple[tuple[str, SubscriptionOptions], ...]
    properties: Properties = NO_PROPERTIES


class Unsubscribe(Struct, frozen=True):
    packet_id: int
    filters: tuple[str, ...]
    properties: Properties = NO_PROPERTIES


class Pingreq(Struct, frozen=True):
    pass


class Disconnect(Struct, frozen=True):
    reason: ReasonCode = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


class Auth(Struct, frozen=True):
    reason: ReasonCode
    properties: Properties = NO_PROPERTIES


Packet = Connect | Acknowledgement | Subscribe | Unsubscribe | Pingreq | Disconnect | Auth
