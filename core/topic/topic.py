"""What sessions and tools ask of a topic, whether it stores its messages or not.

There are two, by Pulsar's names: `PersistentTopic` and `NonPersistentTopic`. Code that needs what
only a stored topic has (its log, positions, cursors that can be moved) takes `stored` and refuses,
in its own protocol's terms, where that is None. No other code asks which of the two it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from magnetar.core.entry.form import TransactionalForm
from magnetar.core.kernel.names import TopicName
from magnetar.core.kernel.rates import Inflow, Outflow, Rates
from magnetar.core.kernel.throttle import Throttle
from magnetar.core.ledger.log.appends import Appended
from magnetar.core.ledger.log.chain import Position
from magnetar.core.policy.policies import Effective
from magnetar.core.topic.environment import Environment
from magnetar.core.topic.publishing.producer import Producer
from magnetar.core.topic.publishing.producers import Producers
from magnetar.core.topic.publishing.sequences import ProducerSequences
from magnetar.core.topic.subscription.consumer import (
    Consumer,
    ConsumerRequest,
    Sink,
    Subscription,
)
from magnetar.core.topic.subscription.subscribe_rate import Subscribers
from magnetar.core.topic.subscription.subscription import SubscriptionType

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


class Topic(Protocol):
    """See the module's docstring."""

    name: TopicName
    env: Environment
    policies: Effective
    fenced: bool
    """It is being put away: clients are to look it up again."""
    producers: Producers
    subscribers: Subscribers
    created_ms: int
    last_used_ms: int
    messages_in: int
    bytes_in: int
    rates: Rates[Inflow]
    outflow_before: Outflow
    """Of subscriptions that have ended."""
    publish_throttle: Throttle | None
    looks_at_messages: bool
    """A run is to be looked at message by message before it is published."""

    @property
    def stored(self) -> PersistentTopic | None:
        """Itself, if it stores its messages."""
        ...

    @property
    def subscriptions(self) -> Mapping[str, Subscription]: ...

    @property
    def sequences(self) -> ProducerSequences | None:
        """The producers' sequence ids, where duplicates are looked for."""
        ...

    @property
    def storage_size(self) -> int:
        """Bytes in storage."""
        ...

    @property
    def last_published_ms(self) -> int: ...

    @property
    def in_use(self) -> bool: ...

    def idle(self, *, caught_up_is_enough: bool) -> bool:
        """Whether it need not stay loaded."""
        ...

    def inflow(self) -> Inflow: ...

    def set_policies(self, policies: Effective) -> None: ...

    async def load(self) -> None: ...

    async def close(self) -> None: ...

    async def delete(self, claimed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Delete all of it; `claimed` is called before, once no other owner can write it."""
        ...

    # -- publishing -----------------------------------------------------------------------------

    def check_producer(self) -> None:
        """Raise unless a producer may attach now."""
        ...

    async def attach_producer(self, producer: Producer) -> bool: ...

    def detach_producer(self, producer: Producer) -> None: ...

    def last_sequence_of(self, name: str) -> int: ...

    def publish(self, payloads: list[bytes], counts: list[int] | None, done: Appended) -> None: ...

    def publish_once(
        self,
        name: str,
        highest: int,
        payloads: list[bytes],
        counts: list[int] | None,
        done: Appended,
    ) -> None: ...

    async def end_transaction(
        self, form: TransactionalForm, writer: int, epoch: int, *, committed: bool
    ) -> None: ...

    # -- subscriptions --------------------------------------------------------------------------

    async def subscription(
        self,
        name: str,
        *,
        create: bool = True,
        start: Position | None = None,
        properties: dict[str, str] | None = None,
    ) -> Subscription:
        """The subscription of that name, durable where the topic stores anything."""
        ...

    def attach(
        self,
        subscription: Subscription,
        consumer_id: int,
        request: ConsumerRequest,
        kind: SubscriptionType,
        sink: Sink,
    ) -> Consumer: ...

    def detach(self, consumer: Consumer) -> None: ...

    def forget_if_unused(self, subscription: Subscription) -> None: ...

    async def unsubscribe(self, name: str, *, force: bool) -> None: ...
