"""Subscriptions of a topic, and moving their cursors: skip, expire, reset.

A change is stored before it is answered. On a partitioned topic an operation that makes sense for
each partition applies to all; one that counts messages in order is refused, as in Apache's broker.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from magnetar.core.broker.attachment import attach
from magnetar.core.entry.header import read as read_header
from magnetar.core.entry.pulsar.metadata import message_count
from magnetar.core.kernel.errors import (
    AlreadyExists,
    Corrupted,
    EntryNotFound,
    LedgerNotFound,
    NotAllowed,
    SubscriptionNotFound,
)
from magnetar.core.ledger.compacted.compacted_topic import SUBSCRIPTION, CompactionState
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.restrictions import check_log_changeable
from magnetar.core.topic.seek import find_by_time, mark_before
from magnetar.core.topic.subscription.consumer import PartialAck
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.core.topic.topic import Topic
from magnetar.wire.http.admin.stats.backlog_analysis import analyze
from magnetar.wire.http.admin.stats.compaction_stats import shows_compaction
from magnetar.wire.http.admin.topic_lookup import (
    Target,
    each,
    each_stored,
    having,
    persistent,
    stored,
    subscription_of,
    target_of,
)
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import ReadsOnly, Table

ENTRIES_PER_REST: Final = 1_000
"""Entries skipped before yielding to the loop."""
BATCH_MESSAGES_MAX: Final = 100_000
"""A position inside a batch that claims more messages moves to its first one: its acknowledgement
bits are held in memory."""


def movable(request: AdminRequest) -> str:
    """The name of the subscription; `NotAllowed` if a front holds it, so that only that may move
    it.
    """
    request.broker.env.held.check(request.subscription)
    return request.subscription


async def listed(request: AdminRequest) -> list[str]:
    """The subscriptions of all partitions together."""
    topics = await each(request)
    names = {name for topic in topics for name in topic.subscriptions}
    if any(map(shows_compaction, topics)):
        names.add(SUBSCRIPTION)
    return sorted(names)


async def create(request: AdminRequest) -> None:
    """Create a durable subscription; the body has its start position, by default the end."""
    target = await target_of(request)
    topics = await each_stored(request)
    if any(request.subscription in topic.subscriptions for topic in topics):
        raise AlreadyExists("Subscription already exists for topic")
    for topic in topics:
        await attach(request.broker, topic.name, partial(_create, request, target), create=False)


async def _create(request: AdminRequest, target: Target, found: Topic) -> None:
    topic = persistent(found)
    subscription = await topic.subscription(
        request.subscription, start=_mark(topic, target), properties=target.properties
    )
    subscription.replicated = request.flag("replicated")


async def delete(request: AdminRequest) -> None:
    """Delete it from every partition; unless forced, from none if any has a consumer attached."""
    if request.part("subscription") == SUBSCRIPTION:
        return await _forget_compaction(request)
    name = movable(request)
    topics = await each(request)
    force = request.flag("force")
    present = [topic for topic in topics if name in topic.subscriptions]
    if not present:
        raise SubscriptionNotFound(f"Subscription {name} not found for topic {request.topic}")
    for topic in present:
        if topic.subscriptions[name].consumers and not force:
            raise NotAllowed(f"subscription {name} has active consumers")
    end = partial(_delete, name, force)
    for topic in present:
        await attach(request.broker, topic.name, end, create=False)


async def _forget_compaction(request: AdminRequest) -> None:
    """Delete the compacted ledgers, as deleting that subscription does in Pulsar
    (`PulsarCompactorSubscription.cleanCompactedLedger` of 4.2).
    """
    topics = [
        topic
        for topic in await each_stored(request)
        if shows_compaction(topic) or SUBSCRIPTION in topic.subscriptions
    ]
    if not topics:
        raise SubscriptionNotFound(f"Subscription {SUBSCRIPTION} not found for {request.topic}")
    if any(topic.compacted.progress.state is CompactionState.RUNNING for topic in topics):
        raise NotAllowed("the topic is being compacted")
    for topic in topics:
        check_log_changeable(topic)
    for topic in topics:
        await topic.compacted.forget()
        if SUBSCRIPTION in topic.subscriptions:  # it was another broker's
            await topic.unsubscribe(SUBSCRIPTION, force=True)


async def _delete(name: str, force: bool, topic: Topic) -> None:
    await topic.unsubscribe(name, force=force)


async def properties(request: AdminRequest) -> dict[str, str]:
    _topic, subscription = having(await each_stored(request), request.subscription)[0]
    return subscription.cursor.properties


async def set_properties(request: AdminRequest) -> None:
    given = await request.value(dict[str, str]) or {}
    for _topic, subscription in having(await each_stored(request), movable(request)):
        cursor = subscription.cursor
        cursor.properties.clear()
        cursor.properties.update(given)
        cursor.touched()
        await cursor.saved()


# -- moving on ---------------------------------------------------------------------------------


async def skip(request: AdminRequest) -> None:
    """Acknowledge the next n messages."""
    topic = await stored(request)
    subscription = subscription_of(topic, movable(request))
    left = request.path_count("count")
    while left > 0 and subscription.cursor.backlog:
        subscription.skip(min(left, ENTRIES_PER_REST))
        left -= ENTRIES_PER_REST
        await trio.lowlevel.checkpoint()
    await subscription.cursor.saved()


async def skip_all(request: AdminRequest) -> None:
    for topic, subscription in having(await each_stored(request), movable(request)):
        subscription.skip_to(topic.ledger.chain.confirmed)
        await subscription.cursor.saved()


async def expire(request: AdminRequest) -> None:
    """Acknowledge messages older than n seconds."""
    for topic, subscription in having(await each_stored(request), movable(request)):
        await _expire(request, topic, [subscription])


async def expire_all(request: AdminRequest) -> None:
    """The same for all subscriptions, but for those that a front holds."""
    held = request.broker.env.held
    for topic in await each_stored(request):
        found = topic.subscriptions.items()
        free = [each for name, each in found if held.refusal(name) is None]
        await _expire(request, topic, free)


async def _expire(
    request: AdminRequest, topic: PersistentTopic, subscriptions: list[PersistentSubscription]
) -> None:
    now_ms = request.broker.clock.wall_ms()
    young = await find_by_time(topic.ledger, now_ms - request.path_count("seconds") * 1000)
    for subscription in subscriptions:
        subscription.expire_to((young[0], young[1] - 1))
        await subscription.cursor.saved()


async def expire_to(request: AdminRequest) -> None:
    """Acknowledge everything up to a position, including it unless it is excluded."""
    target = await target_of(request)
    topic = await stored(request)
    ledger_id, entry_id = target.position
    last = (ledger_id, entry_id - 1) if target.is_excluded else target.position
    subscription = subscription_of(topic, movable(request))
    subscription.expire_to(min(last, topic.ledger.chain.confirmed))
    await subscription.cursor.saved()


# -- moving anywhere ---------------------------------------------------------------------------


async def reset_to_time(request: AdminRequest) -> None:
    """Reset to a time: everything published since is delivered again, on every partition."""
    for topic, subscription in having(await each_stored(request), movable(request)):
        first = await find_by_time(topic.ledger, request.path_number("timestamp"))
        await _seek(topic, subscription, mark_before(topic.ledger.chain, first))


async def reset_to_position(request: AdminRequest) -> None:
    """Reset to a message: it is delivered next, or the one after it if it is excluded."""
    target = await target_of(request)
    topic = await stored(request)
    subscription = subscription_of(topic, movable(request))
    part = await _part_of_batch(topic, target) if target.batch_index >= 0 else None
    if part is None:
        await _seek(topic, subscription, _mark(topic, target))
    elif not part[2]:  # the last of its batch is excluded: the next entry is next
        await _seek(topic, subscription, target.position)
    else:
        await _seek(topic, subscription, mark_before(topic.ledger.chain, target.position), part)


async def _seek(
    topic: PersistentTopic,
    subscription: PersistentSubscription,
    mark: Position,
    part: PartialAck | None = None,
) -> None:
    """Like a consumer's own seek: store first, then disconnect all consumers, which come back."""
    topic.keep(subscription)
    await subscription.seek(mark, part)


async def _part_of_batch(topic: PersistentTopic, target: Target) -> PartialAck | None:
    """The messages left of a batch when reading starts inside it; None if there is none."""
    if not topic.ledger.chain.has(target.position):
        return None
    try:
        entry = (await topic.ledger.read(target.position, 1, 1)).payloads[0]
    except (EntryNotFound, LedgerNotFound, Corrupted):
        return None  # it was deleted, or is lost: reading starts after it
    size, is_batch = message_count(entry[read_header(entry).size :])
    if not is_batch or size > BATCH_MESSAGES_MAX:
        return None
    first = min(target.batch_index + target.is_excluded, size)
    return (*target.position, (1 << size) - (1 << first), size)


def _mark(topic: PersistentTopic, target: Target) -> Position:
    chain = topic.ledger.chain
    if target.is_excluded and chain.has(target.position):
        return target.position
    return mark_before(chain, target.position)


HERE: Final = "/{tenant}/{namespace}/{topic}"
ONE: Final = f"{HERE}/subscription/{{subscription}}"
TABLE: Final[Table] = (
    ("GET", f"{HERE}/subscriptions", listed, Needs.CONSUMER),
    ("PUT", ONE, create, Needs.CONSUMER),
    ("DELETE", ONE, delete, Needs.CONSUMER),
    ("GET", f"{ONE}/properties", properties, Needs.CONSUMER),
    ("PUT", f"{ONE}/properties", set_properties, Needs.CONSUMER),
    ("POST", f"{ONE}/skip/{{count}}", skip, Needs.CONSUMER),
    ("POST", f"{ONE}/skip_all", skip_all, Needs.CONSUMER),
    ("POST", f"{ONE}/expireMessages", expire_to, Needs.CONSUMER),
    ("POST", f"{ONE}/expireMessages/{{seconds}}", expire, Needs.CONSUMER),
    ("POST", f"{HERE}/all_subscription/expireMessages/{{seconds}}", expire_all, Needs.CONSUMER),
    ("POST", f"{ONE}/resetcursor", reset_to_position, Needs.CONSUMER),
    ("POST", f"{ONE}/resetcursor/{{timestamp}}", reset_to_time, Needs.CONSUMER),
    ("POST", f"{ONE}/analyzeBacklog", ReadsOnly(analyze), Needs.CONSUMER),
)
