"""`/admin/v2/reading/cursors`: durable cursors of programs that read ledgers themselves.

Such a reader keeps its own positions (Spark in its checkpoint). A subscription that follows them
holds what it has not read back from retention, and shows its lag in the statistics of Pulsar. It is
made when it is first moved, and has a property, so that no reader moves an application's.

Invariant: a move is stored before it is answered. Of two readers of one name the later one decides.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from msgspec import Struct

from magnetar.core.broker.attachment import attach
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.errors import Invalid, NotAllowed, TopicNotFound
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.seek import mark_before
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.core.topic.topic import Topic
from magnetar.wire.http.admin.programs.stored_topics import stored
from magnetar.wire.http.audited import note_made
from magnetar.wire.http.request import AdminRequest

PROPERTY: Final = "magnetar.cursor"
READER: Final = "reader"
CURSORS_MAX: Final = 10_000
CURSORS_PER_REST: Final = 20


class CursorsBody(Struct, frozen=True, forbid_unknown_fields=True):
    subscription: str
    positions: dict[str, tuple[int, int]]
    """By topic or partition, the ledger and the entry that are read next."""


async def cursors(request: AdminRequest) -> dict[str, Any]:
    """Move the cursors of a reader, on each topic; those that do not exist are named."""
    body = await request.value(CursorsBody)
    if body is None or not body.subscription:
        raise Invalid("a subscription, and positions by topic, are expected")
    if len(body.positions) > CURSORS_MAX:
        raise Invalid(f"more than {CURSORS_MAX} topics")
    request.broker.env.held.check(body.subscription)
    missing = []
    async for text, position in Cooperative(body.positions.items(), CURSORS_PER_REST):
        name = TopicName.parse(text)
        request.check_readable(name, body.subscription)
        move = partial(_move, request, body.subscription, position)
        try:
            await attach(request.broker, name, move, create=False)
        except TopicNotFound:
            missing.append(name.full)
    return {"missing": missing}


async def _move(request: AdminRequest, name: str, position: Position, found: Topic) -> None:
    topic = stored(found)
    is_new = name not in topic.subscriptions
    mark = mark_before(topic.ledger.chain, position)
    made = {PROPERTY: READER}
    subscription = await topic.subscription(name, start=mark, properties=made)
    _check_own(topic, subscription)
    if is_new:
        note_made(request, f"subscription {name} of {topic.name}")
    if mark < subscription.cursor.mark_delete:
        await subscription.seek(mark)  # a checkpoint of before: what it reads again is needed
    elif mark > subscription.cursor.mark_delete:
        subscription.skip_to(mark)
        await subscription.cursor.saved()


def _check_own(topic: PersistentTopic, subscription: PersistentSubscription) -> None:
    if subscription.cursor.properties.get(PROPERTY) != READER:
        raise NotAllowed(
            f"subscription {subscription.name} of {topic.name} belongs to an application: "
            "a reader of ledgers has one of its own"
        )
    if subscription.consumers:
        raise NotAllowed(f"subscription {subscription.name} of {topic.name} has consumers")
