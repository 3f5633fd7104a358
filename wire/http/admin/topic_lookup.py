"""The loaded topics of a path, or the error status if there are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.exceptions import HTTPException

from magnetar.core.broker import administration
from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import Invalid, InvalidName, SubscriptionNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.core.topic.topic import Topic
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.routes import not_here

COORDINATORS: Final = (
    "persistent://pulsar/system/transaction_coordinator_assign",
    "persistent://pulsar/system/__transaction_log_",
)
_NUMBER: Final = re.compile(r"-?\d{1,19}", re.ASCII)
PENDING_ACKS: Final = "__transaction_pending_ack"
PARTITION: Final = "-partition-"
LONG_MAX: Final = (1 << 63) - 1
"""The highest number of Java."""
NAMES_PER_REST: Final = 200
"""Owners looked up before yielding to the loop."""


class AdminMessageId(Struct, frozen=True, rename="camel"):
    """A position as admin tools write and read it."""

    ledger_id: int
    entry_id: int
    partition_index: int = -1


class Target(Struct, frozen=True, rename="camel"):
    """A position for a cursor, as tools send it."""

    ledger_id: int = 2**63 - 1
    entry_id: int = 2**63 - 1
    partition_index: int = -1
    batch_index: int = -1
    is_excluded: bool = False
    properties: dict[str, str] = {}

    @property
    def position(self) -> Position:
        return (self.ledger_id, self.entry_id)


WORDS: Final = {b'"latest"': Target(), b'"earliest"': Target(-1, -1)}
"""Positions that have a name (`ResetCursorData.java` of 4.2)."""


async def target_of(request: AdminRequest) -> Target:
    """The position in the body: the end, if it is empty."""
    named = WORDS.get((await request.body()).strip())
    return await request.json(Target) if named is None else named


def check_creatable(name: TopicName) -> None:
    """Raise 400 for the names of topics that Apache's brokers make for transactions
    (`PersistentTopicsBase.validateCreateTopic` of 4.2).
    """
    if name.full.startswith(COORDINATORS) or name.full.endswith(PENDING_ACKS):
        raise Invalid("Cannot create topic in system topic format!")


async def check_no_stray(broker: Broker, name: TopicName) -> None:
    """Raise 412 for the name of a new topic that ends like that of a partition, unless its topic
    has that partition. Clients number partitions without leading zeros, so some of these names are
    of no partition; Apache's broker refuses them here, and creates them for clients
    (`PersistentTopicsBase.validateNonPartitionTopicName` of 4.2).
    """
    base, _, number = name.local.partition(PARTITION)
    if not base or not _NUMBER.fullmatch(number) or abs(int(number)) > LONG_MAX:
        return
    full = name.full.removesuffix(f"{PARTITION}{number}")
    partitions = await broker.catalog.partitions(TopicName.parse(full))
    if not partitions:
        raise InvalidName(
            f'Can\'t create topic {name.local} with "{PARTITION}" followed by numeric value if '
            f"there isn't a partitioned topic {base} created."
        )
    if int(number) >= partitions:
        raise InvalidName(f"partitioned topic {base} has only {partitions} partitions")


def check_no_partition(name: TopicName) -> None:
    """Raise 412 for the name of a partition where that of a partitioned topic is asked for."""
    if name.partitioned:
        raise InvalidName(f"Partitioned Topic Name should not contain '{PARTITION}'")


def message_id(topic: Topic, position: Position) -> AdminMessageId:
    return AdminMessageId(position[0], position[1], topic.name.partition_index)


async def topic_of(request: AdminRequest) -> Topic:
    """The topic of that name; 405 for a partitioned one."""
    if await request.partitioned():
        raise not_here(f"{request.topic} is partitioned: ask for one of its partitions")
    return await request.broker.topic(request.topic, create=False)


async def stored(request: AdminRequest) -> PersistentTopic:
    """The persistent topic of that name; 405 for any other."""
    return persistent(await topic_of(request))


async def each(request: AdminRequest) -> list[Topic]:
    """All partitions, or the one topic."""
    if await request.partitioned():
        names = await administration.partitions_of(request.broker, request.topic)
        await check_one_owner(request, names)
    return await administration.loaded(request.broker, request.topic)


async def check_one_owner(request: AdminRequest, names: Sequence[TopicName]) -> None:
    """Raise 405 if topics have several owners, `NotOwned` if all have the same peer as owner.

    Pulsar's broker calls each owner with an admin client of its own (`PersistentTopicsBase` of
    4.x). This one has no such client, and a redirect to the owner of one topic comes back for the
    next.
    """
    ownership = request.broker.ownership
    if not ownership.peers():
        return
    owners: dict[int | None, TopicName] = {}
    async for name in Cooperative(names, NAMES_PER_REST):
        peer = await ownership.topic(name)
        owners.setdefault(peer.node_id if peer is not None else None, name)
    if len(owners) > 1:
        raise not_here("these topics have several owners: name one topic or partition at a time")
    for name in owners.values():
        await request.broker.check_owned(name)


async def check_unlisted(request: AdminRequest) -> None:
    """Raise 422 for a topic that lists shadows, unless it is to be deleted by force."""
    listed = (await request.broker.catalog.topic_policies(request.topic)).shadow_topics
    if listed and not request.flag("force"):
        raise HTTPException(
            422, f"Delete forbidden. Topic {request.topic} is replicated to shadow topics."
        )


async def each_stored(request: AdminRequest) -> list[PersistentTopic]:
    """All partitions, or the one topic; 405 for non-persistent ones."""
    return [persistent(topic) for topic in await each(request)]


def persistent(topic: Topic) -> PersistentTopic:
    """Raise 405 for a non-persistent topic."""
    if topic.stored is None:
        raise not_here(f"{topic.name} is not persistent: it stores nothing")
    return topic.stored


def subscription_of(topic: PersistentTopic, name: str) -> PersistentSubscription:
    """The subscription of that name, or `SubscriptionNotFound`."""
    found = topic.subscriptions.get(name)
    if found is None:
        raise SubscriptionNotFound(f"Subscription {name} not found for topic {topic.name}")
    return found


def having(
    topics: Sequence[PersistentTopic], name: str
) -> list[tuple[PersistentTopic, PersistentSubscription]]:
    """The topics with a subscription of that name: at least one, or `SubscriptionNotFound`."""
    found = [(topic, topic.subscriptions[name]) for topic in topics if name in topic.subscriptions]
    return found or [(topics[0], subscription_of(topics[0], name))]
