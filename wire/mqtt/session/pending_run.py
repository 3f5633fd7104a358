"""A run of PUBLISH packets of one connection, until it is acknowledged (`publish.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from magnetar.core.kernel.errors import BrokerError
    from magnetar.core.ledger.log.chain import Position
    from magnetar.wire.mqtt.delivery.logs import MqttLog


class PendingRun(Struct, eq=False):
    """One run until it is acknowledged."""

    log: MqttLog | None
    size: int = 0
    messages: int = 0
    """How many wait for storage."""
    position: Position | None = None
    """Its entry, when that is stored."""
    ones: list[int] = []
    """Identifiers of QoS 1."""
    twos: list[int] = []
    """New identifiers of QoS 2."""
    id_bytes: int = 0
    """What they have taken of the memory for unreleased ones; none if it was refused."""
    waits: int = 1
    """How many writes it waits for: its retained messages, and the entry."""
    error: BrokerError | None = None
