"""Where a subscription stands in its topic: seek, and the last message's id."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.entry.pulsar.metadata import message_count
from magnetar.core.kernel.errors import Corrupted, Invalid, NotAllowed, NotReady
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.seek import find_by_time, mark_before
from magnetar.core.topic.subscription.consumer import PartialAck
from magnetar.wire.pulsar import events, replies
from magnetar.wire.pulsar.session.absent_consumers import ask
from magnetar.wire.pulsar.session.consume import AttachedConsumer

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.session import PulsarSession


async def on_seek(session: PulsarSession, event: events.Seek) -> None:
    """The cursor moves, everybody is sent away, then the answer: the last two in one breath."""
    await ask(session, event.consumer_id, partial(_seek, session, event))


async def _seek(session: PulsarSession, event: events.Seek, attached: AttachedConsumer) -> None:
    topic = attached.topic.stored
    if topic is None:
        raise NotAllowed("seek needs a persistent topic")
    target, part = await _target(topic, event)
    subscription = topic.subscriptions.get(attached.subscription)
    if subscription is None or attached.consumer.subscription is not subscription:
        raise NotReady("the consumer was detached")
    topic.keep(subscription)
    await subscription.seek(target, part)
    session.reply(replies.success(event.request_id))


async def _target(topic: PersistentTopic, event: events.Seek) -> tuple[Position, PartialAck | None]:
    """The mark-delete position behind which reading begins, and what of the next is done with."""
    chain, requested = topic.ledger.chain, event.position
    if requested is None:
        if event.publish_time is None:
            raise Invalid("seek names neither a message id nor a time")
        return mark_before(chain, await find_by_time(topic.ledger, event.publish_time)), None
    position = (requested.ledger_id, requested.entry_id)
    mark_delete = mark_before(chain, position)
    if requested.ack_mask is None or mark_delete != (position[0], position[1] - 1):
        return mark_delete, None
    return mark_delete, (*position, requested.ack_mask, requested.batch_size)


async def on_get_last_message_id(session: PulsarSession, event: events.GetLastMessageId) -> None:
    """Where the topic ends; -1:-1 if there is nothing to be read, or no more."""
    await ask(session, event.consumer_id, partial(_tell_last, session, event))


async def _tell_last(
    session: PulsarSession, event: events.GetLastMessageId, attached: AttachedConsumer
) -> None:
    topic = attached.topic.stored
    if topic is None:
        raise NotAllowed("a topic that stores nothing has no last message")
    last, partition = topic.ledger.chain.confirmed, topic.name.partition_index
    batch_index = -1
    if last < topic.ledger.chain.first:
        last = START
    else:
        with suppress(Corrupted):  # lost, and the last one all the same
            entry = (await topic.ledger.read(last, 1, 1)).payloads[0]
            count, is_batch = message_count(entry)
            if is_batch:
                batch_index = count - 1
    subscription = attached.consumer.subscription
    mark = subscription.cursor.mark_delete if subscription is not None else START
    session.reply(
        replies.last_message_id(
            event.request_id,
            events.MessageId(*last, partition, batch_index),
            events.MessageId(*mark, partition),
        )
    )


HANDLERS: Final[Mapping[type, Any]] = {
    events.Seek: on_seek,
    events.GetLastMessageId: on_get_last_message_id,
}
