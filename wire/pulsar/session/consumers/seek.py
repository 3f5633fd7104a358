"""SEEK, and the id of the last message."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from magnetar.core.entry.pulsar.messages import remaining_places
from magnetar.core.entry.pulsar.metadata import message_count
from magnetar.core.kernel.errors import Corrupted, Invalid, NotAllowed, NotReady
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.topic.compacted.compacted_reads import last_compacted, mark_by_time
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.seek import mark_before
from magnetar.core.topic.subscription.consumer import PartialAck
from magnetar.wire.pulsar import events, replies

if TYPE_CHECKING:
    from magnetar.wire.pulsar.session.client import PulsarClient
    from magnetar.wire.pulsar.session.consumers.consume import AttachedConsumer, ConnectionConsumers


class SeekHandlers:
    """SEEK and GET_LAST_MESSAGE_ID."""

    __slots__ = ("_client", "_consumers")

    def __init__(self, client: PulsarClient, consumers: ConnectionConsumers) -> None:
        self._client = client
        self._consumers = consumers

    async def on_seek(self, event: events.Seek) -> None:
        """Move the cursor, then detach all consumers and answer without an await in between."""
        await self._consumers.ask(event.consumer_id, partial(self._seek, event))

    async def _seek(self, event: events.Seek, attached: AttachedConsumer) -> None:
        topic = attached.topic.stored
        if topic is None:
            raise NotAllowed("seek needs a persistent topic")
        compacted = attached.consumer.request.read_compacted
        target, part = await _target(topic, event, compacted=compacted)
        subscription = topic.subscriptions.get(attached.subscription)
        if subscription is None or attached.consumer.subscription is not subscription:
            raise NotReady("the consumer was detached")
        topic.keep(subscription)
        await subscription.seek(target, part)
        self._client.reply(replies.success(event.request_id))

    async def on_get_last_message_id(self, event: events.GetLastMessageId) -> None:
        """Answer with the id of the last message; -1:-1 if there is none to read."""
        await self._consumers.ask(event.consumer_id, partial(self._reply_last, event))

    async def _reply_last(self, event: events.GetLastMessageId, attached: AttachedConsumer) -> None:
        topic = attached.topic.stored
        if topic is None:
            raise NotAllowed("a topic that stores nothing has no last message")
        last, partition = await topic.transactions.last.find(), topic.name.partition_index
        batch_index = -1
        if attached.consumer.request.read_compacted and last <= topic.compacted.horizon:
            found = await last_compacted(topic)
            last = START
            if found is not None:
                last, batch_index = found[0], _last_index(found[1])
        elif last < topic.ledger.chain.first:
            last = START
        else:
            with suppress(Corrupted):  # a damaged entry is still the last one
                batch_index = _last_index((await topic.ledger.read(last, 1, 1)).payloads[0])
        subscription = attached.consumer.subscription
        mark = subscription.cursor.mark_delete if subscription is not None else START
        self._client.reply(
            replies.last_message_id(
                event.request_id,
                events.MessageId(*last, partition, batch_index),
                events.MessageId(*mark, partition),
            )
        )


def _last_index(entry: bytes) -> int:
    """The batch index of an entry's last message that compaction has left; -1 of no batch."""
    count, is_batch = message_count(entry)
    places = remaining_places(entry) if is_batch else ()
    return places[-1] if places else count - 1 if is_batch else -1


async def _target(
    topic: PersistentTopic, event: events.Seek, *, compacted: bool
) -> tuple[Position, PartialAck | None]:
    """The mark-delete position to seek to, and the acknowledged part of the next batch."""
    chain, requested = topic.ledger.chain, event.position
    if requested is None:
        if event.publish_time is None:
            raise Invalid("seek names neither a message id nor a time")
        return await mark_by_time(topic, event.publish_time, compacted=compacted), None
    position = (requested.ledger_id, requested.entry_id)
    horizon = topic.compacted.horizon if compacted else START
    mark_delete = mark_before(chain, position, horizon)
    if requested.ack_mask is None or mark_delete != (position[0], position[1] - 1):
        return mark_delete, None
    return mark_delete, (*position, requested.ack_mask, requested.batch_size)


HANDLERS: Final[Mapping[type, Any]] = {
    events.Seek: SeekHandlers.on_seek,
    events.GetLastMessageId: SeekHandlers.on_get_last_message_id,
}
