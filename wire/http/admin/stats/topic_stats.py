"""Stats of topics, in Pulsar's JSON names: traffic in and out, attached clients, backlogs.

Counters start when the topic is loaded; rates are between the last two samples
(`core/broker/rate_sampler.py`). A partitioned topic's figures are the sums of its partitions', with
subscriptions merged by name.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from magnetar.core.broker import administration
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.header import read as read_header
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.dates import iso_date
from magnetar.core.kernel.rates import Outflow
from magnetar.core.ledger.cursor.acks import AckState
from magnetar.core.ledger.formats import CursorSnapshot, encode_snapshot
from magnetar.core.topic.backlog import backlog_bytes
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.publishing.producer import Producer
from magnetar.core.topic.subscription.consumer import Consumer, Subscription
from magnetar.core.topic.subscription.statistics import SubscriptionStatistics
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.core.topic.topic import Topic
from magnetar.core.transactions.transaction_id import shown
from magnetar.wire.http.admin.stats.compaction_stats import add_compaction, compaction
from magnetar.wire.http.admin.stats.held_stats import add_held
from magnetar.wire.http.admin.stats.partitioned_stats import Sum
from magnetar.wire.http.admin.topic_lookup import check_no_partition, check_one_owner, topic_of
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, answer, not_here

Json = dict[str, Any]

RANGES_SIZE: Final = "nonContiguousDeletedMessagesRangesSerializedSize"
PARTITIONS_PER_REST: Final = 20
"""Partitions described before yielding to the loop."""
RANGES_MEASURED_MAX: Final = 1_000
"""The size of a cursor with more ranges is estimated from this many."""
DRAINING_SHOWN_MAX: Final = 1_000
"""Maximum number of draining hashes listed per consumer."""
DELAYED_BYTES: Final = 50
"""Memory of a delayed entry."""


async def stats(request: AdminRequest) -> Json:
    topic = await topic_of(request)
    return await described(request, topic)


async def partitioned_stats(request: AdminRequest) -> Response:
    """The sums, and with `perPartition` (the default) each partition by its full name."""
    name = request.topic
    check_no_partition(name)
    if not await request.broker.catalog.partitions(name):
        await request.broker.topic(name, create=False)  # a missing one is 404 first
        raise not_here(f"{name} is not partitioned")
    names = await administration.partitions_of(request.broker, name)
    await check_one_owner(request, names)
    each_shown = request.text("perPartition", "true") == "true"
    whole, parts = Sum(), {}
    topics = [await request.broker.topic(each, by_order=True) async for each in Cooperative(names)]
    async with request.services.memory.turn(len(names)):
        async for topic in Cooperative(topics, PARTITIONS_PER_REST):
            part = await described(request, topic)
            whole.add(part)
            if each_shown:
                # encoded here, one at a time, so that no long step for all of them is left
                parts[topic.name.full] = msgspec.Raw(msgspec.json.encode(part))
        metadata = {"partitions": len(names), "deleted": False}
        return answer({**whole.total, "metadata": metadata, "partitions": parts})


# -- one topic ---------------------------------------------------------------------------------


async def described(request: AdminRequest, topic: Topic) -> Json:
    """All figures of one topic."""
    want = not request.flag("excludePublishers")
    publishers = [_publisher(producer) for producer in topic.producers.all()] if want else []
    subscriptions = {}
    for name, subscription in topic.subscriptions.items():
        shown = _subscription(topic, subscription, consumers=not request.flag("excludeConsumers"))
        subscriptions[name] = shown
        if request.flag("getEarliestTimeInBacklog"):
            shown["earliestMsgPublishTimeInBacklog"] = await _oldest_time(topic.stored, name)
    add_compaction(topic, subscriptions)
    add_held(topic, subscriptions, consumers=not request.flag("excludeConsumers"))
    stored = topic.stored
    storage = _nothing_stored(topic) if stored is None else _storage(stored)
    storage |= _oldest(subscriptions, topic.env.clock.wall_ms())
    for key in ("delayedMessageIndexSizeInBytes", RANGES_SIZE):
        storage[key] = sum(each.get(key, 0) for each in subscriptions.values())
    return {
        **_flow(topic),
        **storage,
        "publishers": publishers,
        "waitingPublishers": len(topic.producers.waiting),
        "subscriptions": subscriptions,
        "replication": {},
        "deduplicationStatus": _deduplication(topic),
        "topicEpoch": topic.producers.epoch if topic.producers.epoch >= 0 else None,
        "ownerBroker": request.options.broker_id,
        "topicCreationTimeStamp": topic.created_ms,
        "lastPublishTimeStamp": topic.last_published_ms,
        "compaction": compaction(topic),
        **await _transactions(request, topic),
    }


async def _transactions(request: AdminRequest, topic: Topic) -> Json:
    """Of all protocols; the aborted ones are those that the topic still has messages of, and those
    that hang are Pulsar's.
    """
    stored, transactions = topic.stored, request.services.options.transactions
    index = None if stored is None else stored.ledger.transactions
    hanging = list[str]()
    if stored is not None and transactions is not None:
        hanging += map(shown, await transactions.hanging.of(stored))
    return {
        "hangingTransactions": hanging,
        "ongoingTxnCount": 0 if index is None else len(index.open),
        "abortedTxnCount": 0 if index is None else len(index.aborted),
        "committedTxnCount": 0 if index is None else index.committed,
    }


def _flow(topic: Topic) -> Json:
    rates = topic.rates.per_second
    out_rates, out = Outflow(), topic.outflow_before
    for subscription in topic.subscriptions.values():
        out_rates = out_rates.plus(subscription.rates.per_second)
        out = out.plus(subscription.outflow())
    chunked = any(producer.chunks_in for producer in topic.producers.all())
    return {
        "msgRateIn": float(rates.messages),
        "msgThroughputIn": float(rates.bytes),
        "msgRateOut": float(out_rates.messages),
        "msgThroughputOut": float(out_rates.bytes),
        "msgInCounter": topic.messages_in,
        "bytesInCounter": topic.bytes_in,
        "msgOutCounter": int(out.messages),
        "bytesOutCounter": int(out.bytes),
        "averageMsgSize": rates.bytes / rates.messages if rates.messages else 0.0,
        "msgChunkPublished": chunked,
    }


def _storage(topic: PersistentTopic) -> Json:
    durable = [each.cursor for each in topic.subscriptions.values() if each.cursor.durable]
    quotas = topic.policies.backlog_quotas
    by_size, by_age = quotas.get("destination_storage"), quotas.get("message_age")
    return {
        "storageSize": topic.ledger.size,
        "backlogSize": backlog_bytes(topic),
        "backlogQuotaLimitSize": by_size.limit_size if by_size is not None else -1,
        "backlogQuotaLimitTime": by_age.limit_time if by_age is not None else -1,
        "lostRanges": len(topic.ledger.losses.ranges),
        "lostEntries": topic.ledger.losses.entries,
        "offloadedStorageSize": 0,
        "lastOffloadLedgerId": 0,
        "lastOffloadSuccessTimeStamp": 0,
        "lastOffloadFailureTimeStamp": 0,
        "nonContiguousDeletedMessagesRanges": sum(len(cursor.acks) for cursor in durable),
    }


def _nothing_stored(topic: Topic) -> Json:
    dropped = sum(each.outflow().dropped for each in topic.subscriptions.values())
    rate = sum(each.rates.per_second.dropped for each in topic.subscriptions.values())
    return {
        "storageSize": 0,
        "backlogSize": 0,
        "msgDropCounter": int(dropped),
        "msgDropRate": float(rate),
    }


def _deduplication(topic: Topic) -> str:
    """The deduplication status; a non-persistent topic has none."""
    requested = topic.stored is not None and topic.policies.deduplication
    return "Enabled" if requested else "Disabled"


def _oldest(subscriptions: dict[str, Json], now_ms: int) -> Json:
    """The oldest message of all backlogs, if that was requested; otherwise unknown."""
    times = {name: each["earliestMsgPublishTimeInBacklog"] for name, each in subscriptions.items()}
    known = {name: time for name, time in times.items() if time > 0}
    if not known:
        return {"earliestMsgPublishTimeInBacklogs": 0, "oldestBacklogMessageAgeSeconds": -1}
    name = min(known, key=known.__getitem__)
    return {
        "earliestMsgPublishTimeInBacklogs": known[name],
        "oldestBacklogMessageAgeSeconds": max(now_ms - known[name], 0) // 1000,
        "oldestBacklogMessageSubscriptionName": name,
    }


def _ranges_size(acks: AckState) -> int:
    """Stored size of the individual acknowledgements, in bytes."""
    count = len(acks)
    if not count:
        return 0
    ranges = tuple(acks.ranges(RANGES_MEASURED_MAX))
    stored = encode_snapshot(CursorSnapshot(mark_delete=(0, 0), ranges=ranges))
    empty = encode_snapshot(CursorSnapshot(mark_delete=(0, 0)))
    return (len(stored) - len(empty)) * count // len(ranges)


def _publisher(producer: Producer) -> Json:
    rates = producer.rates.per_second
    request = producer.request
    return {
        "accessMode": request.mode.value,
        "producerId": producer.id,
        "producerName": producer.name,
        "msgRateIn": float(rates.messages),
        "msgThroughputIn": float(rates.bytes),
        "averageMsgSize": rates.bytes / rates.messages if rates.messages else 0.0,
        "chunkedMessageRate": float(rates.chunks),
        "supportsPartialProducer": request.partial,
        "address": f"/{request.address}",
        "connectedSince": iso_date(producer.connected_ms),
        "clientVersion": request.client_version,
        "metadata": dict(request.metadata),
    }


# -- subscriptions -----------------------------------------------------------------------------


def _subscription(topic: Topic, subscription: Subscription, *, consumers: bool) -> Json:
    rates, total = subscription.rates.per_second, subscription.outflow()
    attached = list(subscription.consumers)
    last = subscription.last_times()
    shown: Json = {
        "type": subscription.kind or None,
        "msgRateOut": float(rates.messages),
        "msgThroughputOut": float(rates.bytes),
        "msgOutCounter": int(total.messages),
        "bytesOutCounter": int(total.bytes),
        "messageAckRate": float(rates.acked),
        "msgRateRedeliver": float(rates.redelivered),
        "msgRateExpired": float(rates.expired),
        "chunkedMessageRate": float(rates.chunks),
        "isReplicated": subscription.replicated,
        "isDurable": subscription.cursor.durable,
        "lastConsumedFlowTimestamp": last.flow_ms,
        "lastConsumedTimestamp": last.consumed_ms,
        "lastAckedTimestamp": last.acked_ms,
        "msgBacklog": subscription.cursor.backlog,
        "earliestMsgPublishTimeInBacklog": 0,
        "consumers": [],
    }
    now = subscription.statistics()
    if topic.stored is None:
        shown["msgDropCounter"] = int(total.dropped)
        shown["msgDropRate"] = float(rates.dropped)
    else:
        shown |= _of_cursor(topic.stored, topic.stored.subscriptions[subscription.name], now)
    if consumers:
        shown["consumers"] = [_consumer(consumer, now) for consumer in attached]
    return shown


def _of_cursor(
    topic: PersistentTopic, subscription: PersistentSubscription, now: SubscriptionStatistics
) -> Json:
    cursor = subscription.cursor
    keyed = subscription.kind == "Key_Shared"
    mode = ("STICKY" if now.sticky else "AUTO_SPLIT") if keyed else None
    return {
        "msgBacklogNoDelayed": cursor.backlog - now.delayed,
        "backlogSize": topic.ledger.bytes_after(cursor.mark_delete) if cursor.backlog else 0,
        "msgDelayed": now.delayed,
        "msgInReplay": now.in_replay,
        "unackedMessages": now.unacked,
        "blockedSubscriptionOnUnackedMsgs": now.blocked,
        "activeConsumerName": now.active.name if now.active is not None else None,
        "totalMsgExpired": subscription.messages_expired,
        "lastExpireTimestamp": subscription.last_expired_ms,
        "lastMarkDeleteAdvancedTimestamp": subscription.last_mark_delete_ms,
        "keySharedMode": mode,
        "allowOutOfOrderDelivery": now.out_of_order,
        "drainingHashesCount": len(now.draining),
        "drainingHashesClearedTotal": now.drained_total,
        "drainingHashesUnackedMessages": sum(entries for _, entries in now.draining.values()),
        "consumersAfterMarkDeletePosition": {},
        "nonContiguousDeletedMessagesRanges": len(cursor.acks),
        RANGES_SIZE: _ranges_size(cursor.acks),
        "delayedMessageIndexSizeInBytes": now.delayed * DELAYED_BYTES,
        "subscriptionProperties": dict(cursor.properties),
        "filterProcessedMsgCount": 0,
        "filterAcceptedMsgCount": 0,
        "filterRejectedMsgCount": 0,
        "filterRescheduledMsgCount": 0,
    }


def _consumer(consumer: Consumer, now: SubscriptionStatistics) -> Json:
    rates = consumer.rates.per_second
    ranges = [list(each) for each in now.hash_ranges.get(consumer.name, ())]
    held = {hash_: entries for hash_, (who, entries) in now.draining.items() if who is consumer}
    return {
        "consumerName": consumer.name,
        "availablePermits": consumer.permits,
        "unackedMessages": consumer.unacked,
        "avgMessagesPerEntry": round(consumer.messages_out / max(consumer.entries_out, 1)),
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "msgRateOut": float(rates.messages),
        "msgThroughputOut": float(rates.bytes),
        "msgRateRedeliver": float(rates.redelivered),
        "messageAckRate": float(rates.acked),
        "chunkedMessageRate": float(rates.chunks),
        "msgOutCounter": consumer.messages_out,
        "bytesOutCounter": consumer.bytes_out,
        "address": f"/{consumer.request.address}",
        "connectedSince": iso_date(consumer.connected_ms),
        "clientVersion": consumer.request.client_version,
        "lastAckedTimestamp": consumer.last_acked_ms,
        "lastConsumedTimestamp": consumer.last_consumed_ms,
        "firstMessagesSentTimestamp": consumer.first_sent_ms,
        "lastConsumedFlowTimestamp": consumer.last_flow_ms,
        "firstConsumedFlowTimestamp": consumer.first_flow_ms,
        "drainingHashesCount": len(held),
        "drainingHashesUnackedMessages": sum(held.values()),
        "drainingHashes": [
            {"hash": hash_, "unackMsgs": entries, "blockedAttempts": 0}
            for hash_, entries in list(held.items())[:DRAINING_SHOWN_MAX]
        ],
        "keyHashRanges": [str(each) for each in ranges],
        "keyHashRangeArrays": ranges or None,
        "metadata": dict(consumer.request.metadata),
    }


async def _oldest_time(topic: PersistentTopic | None, name: str) -> int:
    """When the first message of a subscription's backlog was published; -1 if it is empty."""
    subscription = topic.subscriptions.get(name) if topic is not None else None
    if topic is None or subscription is None:
        return -1
    first = subscription.cursor.read_from
    if not topic.ledger.chain.has(first):
        return -1
    near = await topic.ledger.losses.readable_near(first)
    if near is None:
        return -1
    entry = near.payloads[0]
    sent = entry[read_header(entry).size :]
    return form_of(sent).publish_time(sent)


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("GET", f"{HERE}/stats", stats, Needs.TOPIC),
    ("GET", f"{HERE}/partitioned-stats", partitioned_stats, Needs.TOPIC),
)
