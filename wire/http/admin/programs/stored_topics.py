"""Topics as programs read them: those that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import Invalid, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic

NAMED_MAX: Final = 10_000
"""Topics or ledgers of one request, partitions counted."""
TOPICS_PER_REST: Final = 250
"""Topics that are looked up before other tasks run, at the most."""
PIECE_SECONDS: Final = 0.003
"""How long rows of partitions are made before other tasks run: a page takes a millisecond more."""


def stored(topic: Topic) -> PersistentTopic:
    """The topic, if there are ledgers of it."""
    if (found := topic.stored) is None:
        raise Invalid(f"{topic.name} is not persistent: nothing of it is stored")
    return found


async def _topic_of(broker: Broker, name: TopicName) -> PersistentTopic:
    return stored(await broker.topic(name, create=False))


async def log_of(broker: Broker, name: TopicName) -> ManagedLedger:
    """The log of a topic that exists."""
    return (await _topic_of(broker, name)).ledger


def check_number(number: int, what: str) -> None:
    if number > NAMED_MAX:
        raise Invalid(f"more than {NAMED_MAX} {what}")


async def named_topics(
    broker: Broker, missing: list[str], names: Sequence[str]
) -> list[PersistentTopic | None]:
    """The topics; None for one that does not exist, whose name is added to `missing`. Most are
    loaded, and nothing waits.
    """
    found: list[PersistentTopic | None] = []
    loaded = broker.topics
    for name in names:
        topic = loaded.get(name)
        if topic is not None and not topic.fenced:
            found.append(stored(topic))
            continue
        try:
            found.append(await _topic_of(broker, TopicName.parse(name)))
        except TopicNotFound:
            missing.append(name)
            found.append(None)
    return found
