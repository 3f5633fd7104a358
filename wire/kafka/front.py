"""The Kafka front: what all its connections share, and what an operator may turn.

The declarations of a protocol with seventy kinds of messages take 40 ms to import, a tenth of a
start. So they are imported when everybody else is served (`warm_up`), or when the first client
comes, whichever is sooner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

import trio
from msgspec import Struct

from core.broker import Broker
from core.link.connection import Connection
from wire.kafka.groups.coordinator import Groups
from wire.kafka.groups.registry import Registry
from wire.kafka.session.logs import Logs

if TYPE_CHECKING:
    from wire.kafka.session.session import KafkaSession
    from wire.kafka.wire import KafkaWire

PARTS: Final = (
    "wire.kafka.codec.declare",
    "wire.kafka.codec.decoding",
    "wire.kafka.codec.encoding",
    *(
        f"wire.kafka.messages.{name}"
        for name in (
            "parts",
            "basics",
            "records",
            "topics",
            "groups",
            "offsets",
            "transactions",
            "configs",
            "sasl",
            "consumer_groups",
        )
    ),
    "wire.kafka.apis",
    "wire.kafka.wire",
    "wire.kafka.session.session",
)
"""In an order in which none of them brings much along."""


class KafkaOptions(Struct, frozen=True):
    """What an operator may turn, for all Kafka connections."""

    host: str = "127.0.0.1"
    port: int = 9092
    """Where clients are told to connect."""
    node_id: int = 0
    cluster_id: str = "magnetar"
    partitions: int = 1
    """Of a topic that is created because somebody asks for it."""
    batch_bytes_max: int = 1_048_588
    first_rebalance_seconds: float = 0.0
    """How long the first member of a group waits for others."""
    frame_bytes_max: int = 100 * 1024 * 1024


class KafkaFront:
    """Makes wire and session of each fresh connection."""

    def __init__(self, broker: Broker, options: KafkaOptions) -> None:
        self.broker = broker
        self.options = options
        self.logs = Logs(broker)
        self.registry = Registry(broker.metadata)
        self.groups = Groups(broker.clock, options.first_rebalance_seconds)

    def __call__(self, connection: Connection) -> tuple[KafkaWire, KafkaSession]:
        from wire.kafka.session.session import KafkaSession
        from wire.kafka.wire import KafkaWire

        wire = KafkaWire(self.options.frame_bytes_max)
        return wire, KafkaSession(self, connection, wire)

    async def run(self) -> None:
        """Until cancelled: what goes on without connections."""
        await warm_up()
        await self.groups.run()


async def warm_up() -> None:
    """Import what the first client would have to wait for, a little at a time."""
    for part in PARTS:
        import_module(part)
        await trio.lowlevel.checkpoint()
