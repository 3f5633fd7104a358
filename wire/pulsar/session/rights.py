"""The right that each command needs: the table, and the check before a command is carried out.

A producer and a consumer need their right when they attach, and are closed when they lose it
(`session.py`): so nothing is asked on the path of a message. What was read in `ServerCnx.java` of
4.2 are the rights and the words of refusals, which suites of C++ compare.

    produce     WRITE on the topic
    consume     READ on the subscription, which includes READ on its topic
    look up     DESCRIBE on the topic: any permission of it
    list        DESCRIBE on the namespace: any permission of it

A transaction is its owner's. What it may publish to and acknowledge in is checked when it is added,
unlike in 4.2: a marker is written to every topic that was.

Invariant: every event is in `RIGHTS`, and what is not free is checked before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.core.kernel.errors import Unauthorized
from magnetar.core.kernel.names import NamespaceName
from magnetar.core.security.actions import Action, ResourceType
from magnetar.core.transactions.topic_transactions import check_count
from magnetar.wire.pulsar import events
from magnetar.wire.pulsar.session.lookup import topic_name
from magnetar.wire.pulsar.session.needs import Need, to_consume, to_produce

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.consumers.consume import ConnectionConsumers


class Free(Enum):
    """Why a command needs no right of its own."""

    CONNECTION = "it is about the connection"
    ATTACHED = "it is about what is attached, which has its right"
    LEAVING = "it gives something up"
    OWNED = "it is about a transaction, which only its owner may use (`topic_transactions.py`)"
    REFUSED = "it is refused to everybody"


class CommandRight(Struct, frozen=True):
    """The right that a command needs."""

    words: str
    """What was not authorised, in Pulsar's words."""
    needs: Callable[[Any, ConnectionConsumers], Iterable[Need]]


def _producer(event: events.Producer, _consumers: ConnectionConsumers) -> Iterable[Need]:
    name = topic_name(event.topic)
    yield to_produce(name)
    if event.initial_subscription:
        yield to_consume(name, event.initial_subscription)


def _new_schema(event: events.GetOrCreateSchema, _consumers: ConnectionConsumers) -> Iterable[Need]:
    yield to_produce(topic_name(event.topic))


def _consumer(event: events.Subscribe, _consumers: ConnectionConsumers) -> Iterable[Need]:
    yield to_consume(topic_name(event.topic), event.subscription)


def _attached(
    event: events.Unsubscribe | events.Seek | events.GetLastMessageId | events.ConsumerStats,
    consumers: ConnectionConsumers,
) -> Iterable[Need]:
    """That of its consumer; without one the request fails anyway."""
    found = consumers.attached.get(event.consumer_id) or consumers.absent.get(event.consumer_id)
    if found is not None:
        yield to_consume(found.topic.name, found.subscription)


def _looked_up(
    event: events.Lookup | events.PartitionedMetadata | events.GetSchema,
    _consumers: ConnectionConsumers,
) -> Iterable[Need]:
    yield Action.DESCRIBE, ResourceType.TOPIC, topic_name(event.topic).base.full


def _listed(
    event: events.TopicsOfNamespace | events.WatchTopics, _consumers: ConnectionConsumers
) -> Iterable[Need]:
    name = str(NamespaceName.parse(event.namespace))
    yield Action.DESCRIBE, ResourceType.NAMESPACE, name


def _published_in_txn(
    event: events.AddPartitionsToTxn, _consumers: ConnectionConsumers
) -> Iterable[Need]:
    check_count(len(event.topics))  # before each is parsed and asked for
    for topic in event.topics:
        yield to_produce(topic_name(topic))


def _consumed_in_txn(
    event: events.AddSubscriptionsToTxn, _consumers: ConnectionConsumers
) -> Iterable[Need]:
    check_count(len(event.subscriptions))
    for topic, subscription in event.subscriptions:
        yield to_consume(topic_name(topic), subscription)


RIGHTS: Final[Mapping[type, CommandRight | Free]] = {
    events.Connect: Free.CONNECTION,
    events.AuthResponse: Free.CONNECTION,
    events.Ping: Free.CONNECTION,
    events.Pong: Free.CONNECTION,
    events.Lookup: CommandRight("Lookup", _looked_up),
    events.PartitionedMetadata: CommandRight("Get Partition Metadata", _looked_up),
    events.TopicsOfNamespace: CommandRight("GetTopicsOfNamespace", _listed),
    events.WatchTopics: CommandRight("WatchTopicList", _listed),
    events.CloseWatch: Free.LEAVING,
    events.Producer: CommandRight("Produce", _producer),
    events.Sends: Free.ATTACHED,
    events.BadChecksum: Free.ATTACHED,
    events.CloseProducer: Free.LEAVING,
    events.Subscribe: CommandRight("Subscribe", _consumer),
    events.Flow: Free.ATTACHED,
    events.Acks: Free.ATTACHED,
    events.Redeliver: Free.ATTACHED,
    events.CloseConsumer: Free.LEAVING,
    events.Unsubscribe: CommandRight("Unsubscribe", _attached),
    events.Seek: CommandRight("Seek", _attached),
    events.GetLastMessageId: CommandRight("GetLastMessageId", _attached),
    events.ConsumerStats: CommandRight("get consumer stats", _attached),
    events.GetSchema: CommandRight("GetSchema", _looked_up),
    events.GetOrCreateSchema: CommandRight("GetOrCreateSchema", _new_schema),
    events.TcConnect: Free.OWNED,
    events.NewTxn: Free.OWNED,
    events.AddPartitionsToTxn: CommandRight("Produce", _published_in_txn),
    events.AddSubscriptionsToTxn: CommandRight("Subscribe", _consumed_in_txn),
    events.EndTxn: Free.OWNED,
    events.EndTxnOnPartition: Free.REFUSED,
    events.EndTxnOnSubscription: Free.REFUSED,
}
"""What every event needs; a test compares it with the list of events."""


def check(client: PulsarClient, consumers: ConnectionConsumers, event: events.Event) -> None:
    """Raise `Unauthorized` unless the client may have that carried out. Plain call."""
    if client.access.judge is None:
        return
    right = RIGHTS[type(event)]
    if isinstance(right, Free):
        return
    try:
        for action, kind, name in right.needs(event, consumers):
            client.check(action, kind, name)
    except Unauthorized as error:
        client.connection.complain("not authorized", str(error))
        raise Unauthorized(f"Client is not authorized to {right.words}") from error
