"""What a peer did wrong, with the reason code that says so; and ours in MQTT's terms."""

from __future__ import annotations

from magnetar.core.kernel.errors import WireError
from magnetar.wire.mqtt.reason_codes import ReasonCode


class PacketError(WireError):
    """A packet that ends its connection. 5.0 names the reason in a last packet (4.13)."""

    def __init__(self, reason: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class MalformedPacket(PacketError):
    """It cannot be parsed by the rules of its protocol version."""

    def __init__(self, text: str) -> None:
        super().__init__(ReasonCode.MALFORMED_PACKET, text)


class ProtocolViolation(PacketError):
    """It can be parsed, and may not be sent, or not now."""

    def __init__(self, text: str) -> None:
        super().__init__(ReasonCode.PROTOCOL_ERROR, text)
