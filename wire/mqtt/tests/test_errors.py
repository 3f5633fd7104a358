"""Each error of a packet carries the reason code that the last packet states (5.0, 4.13)."""

import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MalformedPacket("the flags of PINGREQ are 1"), ReasonCode.MALFORMED_PACKET),
        (ProtocolViolation("a second CONNECT"), ReasonCode.PROTOCOL_ERROR),
        (PacketError(ReasonCode.PACKET_TOO_LARGE, "300 bytes"), ReasonCode.PACKET_TOO_LARGE),
    ],
)
def test_an_error_has_a_sentence_and_a_reason(error: PacketError, reason: ReasonCode) -> None:
    assert isinstance(error, WireError)
    assert error.reason is reason
    assert reason.fails
    assert str(error)
