"""A run of PUBLISH packets of one connection, until it is acknowledged (`publish.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magnetar.core.kernel.errors import BrokerError
    from magnetar.core.ledger.log.chain import Position
    from magnetar.wire.mqtt.delivery.logs import MqttLog
    from magnetar.wire.mqtt.storage.retained import RetainedWrite


class PendingRun:
    """One run until it is acknowledged."""

    __slots__ = (
        "error",
        "id_bytes",
        "is_logged",
        "log",
        "messages",
        "ones",
        "position",
        "retained",
        "size",
        "twos",
        "waits",
    )

    def __init__(self, log: MqttLog | None, size: int = 0, messages: int = 0) -> None:
        self.log = log
        self.size = size
        self.messages = messages
        """How many wait for storage."""
        self.position: Position | None = None
        """Its entry, when that is stored."""
        self.ones: Sequence[int] = ()
        """Identifiers of QoS 1."""
        self.twos: list[int] = []
        """New identifiers of QoS 2."""
        self.id_bytes = 0
        """What they have taken of the memory for unreleased ones; none if it was refused."""
        self.waits = 1
        """How many writes it waits for: its retained messages, and the entry."""
        self.retained: Sequence[RetainedWrite] = ()
        """Its retained messages, while its entry is not stored."""
        self.is_logged = False
        """Whether its entry is stored, or has failed."""
        self.error: BrokerError | None = None
