"""A topic as sessions and tools see it, whether it stores its messages or not.

There are two, by Pulsar's names: `PersistentTopic` and `NonPersistentTopic`. The interface has a
part for each kind of user: producers (`PublishTopic`), consumers (`SubscribeTopic`), and the broker
and its administrators (`AdministeredTopic`). Code that needs what only a stored topic has (its log,
positions, cursors that can be moved) takes `stored` and refuses, in its own protocol's terms, where
that is None. No other code tests which of the two it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from magnetar.core.entry.form import TransactionalForm, TransactionKey
from magnetar.core.kernel.names import TopicName
from magnetar.core.kernel.rates import Inflow, Outflow, Rates
from magnetar.core.ledger.log.appends import Appended
from magnetar.core.ledger.log.chain import Position
from magnetar.core.policy.policies import Effective
from magnetar.core.quotas.resource_group import ResourceGroup
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
from magnetar.core.topic.throttles import TopicThrottles

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic


class TopicListener(Protocol):
    """A protocol's own state beside a topic, which ends with the topic."""

    async def closed(self) -> None:
        """The topic is unloaded; no append is pending."""
        ...

    async def deleted(self) -> None:
        """The topic is being deleted; no other owner can write to it."""
        ...


class AnyTopic(Protocol):
    """What every user of a topic may know."""

    name: TopicName
    env: Environment
    policies: Effective
    fenced: bool
    """The topic is being unloaded; clients have to look it up again."""

    @property
    def stored(self) -> PersistentTopic | None:
        """Itself, if it stores its messages."""
        ...


class PublishTopic(AnyTopic, Protocol):
    """A topic as producers use it."""

    producers: Producers
    throttles: TopicThrottles
    looks_at_messages: bool
    """Each message of a run is checked before the run is published."""

    @property
    def looks_for_transactions(self) -> bool:
        """Whether one of the checks is what a message says of transactions."""
        ...

    @property
    def sequences(self) -> ProducerSequences | None:
        """The producers' sequence ids, if deduplication is on."""
        ...

    def check_producer(self) -> None:
        """Raise unless a producer may attach now."""
        ...

    async def attach_producer(self, producer: Producer) -> bool:
        """Let a producer in; False if it has to wait for the topic."""
        ...

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

    def show_committed(self, key: TransactionKey) -> None: ...

    async def end_transaction(
        self, form: TransactionalForm, key: TransactionKey, epoch: int, *, committed: bool
    ) -> None: ...


class SubscribeTopic(AnyTopic, Protocol):
    """A topic as consumers use it."""

    subscribers: Subscribers

    @property
    def subscriptions(self) -> Mapping[str, Subscription]: ...

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


class AdministeredTopic(AnyTopic, Protocol):
    """A topic as the broker and its administrators use it: its life and its figures."""

    created_ms: int
    last_used_ms: int
    messages_in: int
    bytes_in: int
    rates: Rates[Inflow]
    outflow_before: Outflow
    """Counted for subscriptions that have ended."""

    @property
    def storage_size(self) -> int:
        """Bytes in storage."""
        ...

    @property
    def last_published_ms(self) -> int: ...

    @property
    def in_use(self) -> bool:
        """Whether producers or consumers are connected."""
        ...

    def idle(self, *, caught_up_is_enough: bool) -> bool:
        """Whether it need not stay loaded."""
        ...

    def inflow(self) -> Inflow: ...

    def set_policies(self, policies: Effective) -> None: ...

    def join(self, group: ResourceGroup | None) -> None:
        """Count against the rates of that resource group, as they are now, and of no other."""
        ...

    async def load(self) -> None: ...

    async def close(self) -> None: ...

    async def delete(self, claimed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Delete all of it; `claimed` is called before, once no other owner can write it."""
        ...


class Topic(PublishTopic, SubscribeTopic, AdministeredTopic, Protocol):
    """All of it. See the module's docstring."""
