"""Errors of peers, with MQTT's reason codes, and the reason codes of broker errors."""

from __future__ import annotations

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
