"""Clients of a topic that record all events: sinks for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.non_persistent_topic import NonPersistentSubscription, NonPersistentTopic
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.publishing.producer import AccessMode, Producer, ProducerRequest
from magnetar.core.topic.subscription.consumer import Consumer, ConsumerRequest
from magnetar.core.topic.subscription.subscription import SubscriptionType


class ClientConsumer:
    """The client of a consumer; made by `attached`."""

    def __init__(self) -> None:
        self.got: list[Position] = []
        """Received entries in order."""
        self.payloads: list[bytes] = []
        self.redelivered: dict[Position, int] = {}
        """The number of earlier deliveries, of redelivered entries."""
        self.bits: dict[Position, int] = {}
        self.events: list[str] = []
        self.congested = False
        self.consumer: Consumer

    def deliver(
        self,
        part: Slice,
        redeliveries: Sequence[int] | None,
        partial: Mapping[int, int] | None,
    ) -> None:
        for at, payload in enumerate(part.payloads):
            position = (part.ledger_id, part.first_entry + at)
            self.got.append(position)
            self.payloads.append(payload)
            if redeliveries is not None and redeliveries[at]:
                self.redelivered[position] = redeliveries[at]
            if partial is not None and at in partial:
                self.bits[position] = partial[at]

    def activity(self, active: bool) -> None:
        self.events.append("active" if active else "passive")

    def end_of_topic(self) -> None:
        self.events.append("end")

    def closed_by_broker(self) -> None:
        self.events.append("closed")

    def take(self) -> list[Position]:
        """The entries received since the last call."""
        got, self.got = self.got, []
        self.payloads = []
        return got

    # -- what it says -------------------------------------------------------------------------

    def flow(self, permits: int) -> None:
        assert self.consumer.subscription is not None
        self.consumer.subscription.flow(self.consumer, permits)

    def ack(self, *positions: Position) -> None:
        assert self.consumer.subscription is not None
        ranges = [(ledger_id, entry_id, entry_id) for ledger_id, entry_id in positions]
        self.consumer.subscription.ack(self.consumer, ranges)

    def ack_bits(self, position: Position, unacked: int, size: int) -> None:
        assert self.consumer.subscription is not None
        self.consumer.subscription.ack(self.consumer, [], [(*position, unacked, size)])

    def nack(self, *positions: Position) -> None:
        """Redeliver these entries, or all if none are named."""
        assert self.consumer.subscription is not None
        self.consumer.subscription.redeliver(self.consumer, list(positions) or None)


async def attached(
    topic: PersistentTopic,
    kind: SubscriptionType,
    *,
    name: str = "c",
    subscription: str = "s",
    permits: int = 1000,
    **request: object,
) -> ClientConsumer:
    """Attach a consumer to a durable subscription from the beginning of the topic."""
    found = await topic.subscription(subscription, start=(-1, -1))
    client = ClientConsumer()
    requested = ConsumerRequest(name=name, **request)  # type: ignore[arg-type]  # by name
    client.consumer = topic.attach(found, 1, requested, kind, client)
    if permits:
        client.flow(permits)
    return client


async def attached_unstored(
    topic: NonPersistentTopic, kind: SubscriptionType, *, name: str = "c", permits: int = 1000
) -> ClientConsumer:
    """Attach a consumer to a non-persistent topic."""
    found: NonPersistentSubscription = await topic.subscription("s")
    client = ClientConsumer()
    client.consumer = topic.attach(found, 1, ConsumerRequest(name=name), kind, client)
    if permits:
        client.flow(permits)
    return client


class ClientProducer:
    """The client of a producer."""

    def __init__(self, name: str, mode: AccessMode = AccessMode.SHARED) -> None:
        self.events: list[object] = []
        self.producer = Producer(1, ProducerRequest(name, True, mode=mode), self, 0)

    def granted(self, epoch: int | None) -> None:
        self.events.append(("granted", epoch))

    def refused(self, error: BrokerError) -> None:
        self.events.append(type(error))

    def closed_by_broker(self) -> None:
        self.events.append("closed")
