"""Errors of peers, with MQTT's reason codes, and the reason codes of broker errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from magnetar.core.kernel import errors
from magnetar.core.kernel.errors import WireError
from magnetar.wire.mqtt.reason_codes import ReasonCode


class PacketError(WireError):
    """A packet for which the connection is closed; in 5.0 with a reason code (4.13)."""

    def __init__(self, reason: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class MalformedPacket(PacketError):
    """The packet cannot be parsed by the rules of its protocol version."""

    def __init__(self, text: str) -> None:
        super().__init__(ReasonCode.MALFORMED_PACKET, text)


class ProtocolViolation(PacketError):
    """The packet can be parsed, but is not permitted, or not in this state."""

    def __init__(self, text: str) -> None:
        super().__init__(ReasonCode.PROTOCOL_ERROR, text)


REASONS: Final[Mapping[type[errors.BrokerError], ReasonCode]] = {
    errors.NotFound: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    errors.TopicNotFound: ReasonCode.NOT_AUTHORIZED,  # it may not be created
    errors.NamespaceNotFound: ReasonCode.TOPIC_NAME_INVALID,
    errors.Conflict: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    errors.Refused: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    errors.NotAllowed: ReasonCode.NOT_AUTHORIZED,
    errors.Invalid: ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR,
    errors.InvalidName: ReasonCode.TOPIC_NAME_INVALID,
    errors.Terminated: ReasonCode.NOT_AUTHORIZED,
    errors.Unauthenticated: ReasonCode.NOT_AUTHORIZED,
    errors.Unauthorized: ReasonCode.NOT_AUTHORIZED,
    errors.Unavailable: ReasonCode.UNSPECIFIED_ERROR,
    errors.QuotaHeld: ReasonCode.QUOTA_EXCEEDED,
    errors.QuotaExceeded: ReasonCode.QUOTA_EXCEEDED,
    errors.StorageFailed: ReasonCode.UNSPECIFIED_ERROR,
    errors.StorageFull: ReasonCode.QUOTA_EXCEEDED,
}
"""The reason codes of acknowledgements for errors of the broker: the codes that PUBACK, PUBREC,
SUBACK and UNSUBACK have in common (3.4.2.1, 3.9.3), and TOPIC_NAME_INVALID for topics."""

FORBIDDEN: Final = (ReasonCode.NOT_AUTHORIZED, ReasonCode.TOPIC_NAME_INVALID)
"""The reasons not to accept a PUBLISH that will be the same when it is sent again."""

AWAY: Final = (errors.NotReady, errors.NotOwned, errors.Fenced)
"""Errors of a topic that is being unloaded or moved, or whose server stops. A PUBLISH that gets one
is not acknowledged, since a client of 5.0 takes a message with a failed PUBACK for done: it sends
messages again only after its connection has ended (4.4)."""


def reason_of(error: errors.BrokerError) -> ReasonCode:
    """The reason code for an error of the broker."""
    for kind in type(error).__mro__:
        if kind in REASONS:
            return REASONS[kind]
    return ReasonCode.UNSPECIFIED_ERROR


class ConnectRefused(Exception):
    """CONNECT is refused with this reason."""

    def __init__(self, reason: ReasonCode, text: str, reference: str = "") -> None:
        """`reference` is the address of another server (3.2.2.3.16)."""
        super().__init__(text)
        self.reason = reason
        self.reference = reference
