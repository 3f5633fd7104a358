"""The end of a CONNECT that cannot be carried out."""

from magnetar.wire.mqtt.reason_codes import ReasonCode


class ConnectRefused(Exception):
    """CONNECT is refused with this reason."""

    def __init__(self, reason: ReasonCode, text: str, reference: str = "") -> None:
        """`reference` is the address of another server (3.2.2.3.16)."""
        super().__init__(text)
        self.reason = reason
        self.reference = reference
