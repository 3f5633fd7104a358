"""What Produce needs of the server and of one connection, on the way of its batches to storage."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from magnetar.core.broker.publish_throttle import PublishThrottle
from magnetar.wire.kafka.partition.inspectors import Account

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.codec.declare import Response
    from magnetar.wire.kafka.partition.inspectors import Inspectors
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller
    from magnetar.wire.kafka.wire import KafkaRequest


class Replies(Protocol):
    """The line of one connection's requests: what a produce does to its place in it."""

    def answer(self, request: KafkaRequest, response: Response | list[bytes] | None) -> None:
        """Pack the response, or that there is none."""
        ...

    def answer_packed(self, request: KafkaRequest, packed: bytes) -> None:
        """Answer with a response that is packed already."""
        ...

    def hold_for(self, work: Awaitable[None]) -> None:
        """What comes from now on waits until that is done."""
        ...

    def weigh(self, request: KafkaRequest) -> bool:
        """Count a request that is not done with at once; False if there is no memory for it."""
        ...


class ProduceHandler:
    """See the module's docstring. Its fields are read for each batch, so they are plain."""

    __slots__ = (
        "broker",
        "clock",
        "connection",
        "coordinator",
        "inspected",
        "inspectors",
        "logs",
        "publish_throttle",
        "replies",
    )

    def __init__(
        self,
        broker: Broker,
        logs: Logs,
        coordinator: TransactionCoordinator,
        inspectors: Inspectors,
        caller: Caller,
        replies: Replies,
    ) -> None:
        self.broker = broker
        self.clock = broker.clock
        self.logs = logs
        self.coordinator = coordinator
        self.inspectors = inspectors
        self.inspected = Account()
        self.connection = caller.connection
        self.publish_throttle = PublishThrottle(
            broker.clock, broker.spawn, caller.connection, caller.is_here
        )
        self.replies = replies
