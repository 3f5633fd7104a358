"""The services of the server and of one connection that Produce uses."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, Protocol

from magnetar.core.broker.connection_throttle import ConnectionThrottle
from magnetar.core.security.actions import Action, ResourceType
from magnetar.wire.kafka.partition.inspectors import Account

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker
    from magnetar.core.link.wire import Piece
    from magnetar.core.transactions.coordinator import TransactionCoordinator
    from magnetar.wire.kafka.codec.declare import Response
    from magnetar.wire.kafka.partition.inspectors import Inspectors
    from magnetar.wire.kafka.partition.logs import Logs
    from magnetar.wire.kafka.session.context import Caller
    from magnetar.wire.kafka.wire import KafkaRequest


WRITABLE_MAX: Final = 1_000
"""Topics of one connection that are remembered as writable."""


class Replies(Protocol):
    """The session of one connection, as far as Produce uses it."""

    def answer(
        self, request: KafkaRequest, response: Response | list[bytes] | list[Piece] | None
    ) -> None:
        """Pack the response. None is for acks=0, which has no response."""
        ...

    def answer_packed(self, request: KafkaRequest, packed: bytes) -> None:
        """Send a response that is encoded already."""
        ...

    def hold_for(self, work: Awaitable[None]) -> None:
        """Run work as a task; later requests wait until it is done."""
        ...

    def go_on(self) -> None:
        """The connection is no longer held."""
        ...

    def weigh(self, request: KafkaRequest) -> bool:
        """Count the memory of a request until it is answered; False if there is none."""
        ...


class Gone:
    """Takes the answers to a client that has left. A handler and its session refer to each other,
    which without this only the garbage collector would end.
    """

    def answer(
        self, request: KafkaRequest, response: Response | list[bytes] | list[Piece] | None
    ) -> None: ...

    def answer_packed(self, request: KafkaRequest, packed: bytes) -> None: ...

    def hold_for(self, work: Awaitable[None]) -> None:
        raise RuntimeError("a request of a client that has left is begun")

    def go_on(self) -> None: ...

    def weigh(self, request: KafkaRequest) -> bool:
        return False


GONE: Final = Gone()


class ProduceHandler:
    """See the module's docstring. Its fields are read for each batch, so they are plain."""

    __slots__ = (
        "_judge",
        "_writable",
        "_writer",
        "broker",
        "caller",
        "clock",
        "connection",
        "coordinator",
        "guarded",
        "inspected",
        "inspectors",
        "logs",
        "replies",
        "throttle",
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
        self.caller = caller
        self._judge = caller.access.judge
        self.guarded = self._judge is not None
        """Whether there are rights to check."""
        self._writer = caller.identity
        self._writable: dict[str, int] = {}
        """Topics that the client may write to, with the generation of the rules."""
        self.clock = broker.clock
        self.logs = logs
        self.coordinator = coordinator
        self.inspectors = inspectors
        self.inspected = Account()
        self.connection = caller.connection
        self.throttle = ConnectionThrottle(
            broker.clock, broker.spawn, caller.connection, caller.is_here, replies.go_on
        )
        self.replies = replies

    def closed(self) -> None:
        """The connection is gone; batches may still be on their way to storage."""
        self.replies = GONE
        self.throttle.closed()

    def may_write(self, topic: str) -> bool:
        """Whether the client may write to a topic. Plain call, for each partition of a request; it
        is remembered until a rule or the identity changes.
        """
        judge, caller = self._judge, self.caller
        if judge is None:
            return True
        if self._writer is not caller.identity:
            self._writer = caller.identity
            self._writable.clear()
        if self._writable.get(topic) == judge.generation:
            return True
        if not caller.must(Action.WRITE, ResourceType.TOPIC, topic):
            return False
        if len(self._writable) >= WRITABLE_MAX:
            self._writable.clear()
        self._writable[topic] = judge.generation
        return True

    def may_use(self, transactional_id: str | None) -> bool:
        """Whether the client may use a transactional id; None is none."""
        if transactional_id is None or not self.guarded:
            return True
        return self.caller.must(Action.WRITE, ResourceType.TRANSACTION, transactional_id)
