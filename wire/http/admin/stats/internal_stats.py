"""Internal stats: a topic's ledgers and the positions of its cursors, in Pulsar's JSON names."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from magnetar.core.broker import administration
from magnetar.core.kernel.cooperation import Cooperative
from magnetar.core.kernel.dates import iso_date
from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.wire.http.admin.stats.compaction_stats import compacted_ledger
from magnetar.wire.http.admin.topic_lookup import each_stored, stored
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table, answer

Json = dict[str, Any]

STATES: Final = {
    "IDLE": "LedgerOpened",
    "OPENING": "CreatingLedger",
    "WRITING": "LedgerOpened",
    "ROLLING": "ClosingLedger",
    "TERMINATED": "Terminated",
    "CLOSED": "Closed",
}
"""Our states of a managed ledger in the terms that tools know."""
PARTITIONS_PER_REST: Final = 20
"""Partitions described before yielding to the loop."""


async def internal_stats(request: AdminRequest) -> Json:
    return described(await stored(request))


async def partitioned_internal_stats(request: AdminRequest) -> Response:
    names = await administration.partitions_of(request.broker, request.topic)
    metadata = {"partitions": len(names), "deleted": False}
    topics = await each_stored(request)
    async with request.services.memory.turn(len(names)):
        parts = {}
        async for topic in Cooperative(topics, PARTITIONS_PER_REST):
            parts[topic.name.full] = msgspec.Raw(msgspec.json.encode(described(topic)))
        return answer({"metadata": metadata, "partitions": parts})


async def internal_info(request: AdminRequest) -> Json:
    """The stored metadata of a topic: its ledgers and cursors."""
    if not await request.partitioned():
        return _info(await stored(request))
    topics = await each_stored(request)
    return {"version": 0, "partitions": {topic.name.full: _info(topic) for topic in topics}}


def _info(topic: PersistentTopic) -> Json:
    return {
        "version": 0,
        "creationDate": iso_date(topic.created_ms),
        "modificationDate": iso_date(topic.created_ms),
        "ledgers": [
            {
                "ledgerId": segment.ledger_id,
                "entries": segment.entries if segment.closed_ms else None,
                "size": segment.size if segment.closed_ms else None,
                "timestamp": segment.closed_ms or None,
                "isOffloaded": False,
            }
            for segment in topic.ledger.chain.segments
        ],
        "cursors": {
            name: _cursor_info(subscription)
            for name, subscription in topic.subscriptions.items()
            if subscription.cursor.durable
        },
    }


def _cursor_info(subscription: PersistentSubscription) -> Json:
    now = subscription.cursor.statistics()
    return {
        "version": 0,
        "cursorsLedgerId": now.ledger_id,
        "markDelete": {"ledgerId": now.mark_delete[0], "entryId": now.mark_delete[1]},
        "individualDeletedMessages": [
            {
                "lowerEndpoint": {"ledgerId": after[0], "entryId": after[1]},
                "upperEndpoint": {"ledgerId": last[0], "entryId": last[1]},
            }
            for after, last in now.holes
        ],
    }


def described(topic: PersistentTopic) -> Json:
    """A topic's ledgers and cursors."""
    ledger = topic.ledger
    now = ledger.statistics()
    return {
        "entriesAddedCounter": now.entries_added,
        "numberOfEntries": now.entries,
        "totalSize": now.size,
        "currentLedgerEntries": now.open_entries,
        "currentLedgerSize": now.open_size,
        "lastLedgerCreatedTimestamp": iso_date(now.opened_ms or None),
        "lastLedgerCreationFailureTimestamp": None,
        "waitingCursorsCount": sum(
            not each.cursor.backlog for each in topic.subscriptions.values() if each.consumers
        ),
        "pendingAddEntriesCount": now.pending_appends,
        "lastConfirmedEntry": _text(ledger.chain.confirmed),
        "state": STATES[now.state],
        "ledgers": [
            {
                "ledgerId": segment.ledger_id,
                "entries": segment.entries if segment.closed_ms else 0,
                "size": segment.size if segment.closed_ms else 0,
                "offloaded": False,
                "underReplicated": False,
            }
            for segment in ledger.chain.segments
        ],
        "cursors": {
            name: _cursor(topic, subscription) for name, subscription in topic.subscriptions.items()
        },
        "schemaLedgers": [],
        "compactedLedger": compacted_ledger(topic),
        "properties": dict(ledger.properties),
        "lostRanges": [
            {
                "ledgerId": one.ledger_id,
                "firstEntry": one.first,
                "lastEntry": one.last,
                "firstIndex": one.first_index,
                "nextIndex": one.next_index,
            }
            for one in ledger.losses.ranges
        ],
    }


def _cursor(topic: PersistentTopic, subscription: PersistentSubscription) -> Json:
    cursor = subscription.cursor
    now = cursor.statistics()
    chain = topic.ledger.chain
    switched = iso_date(now.ledger_switched_ms or None)
    holes = ",".join(f"({_text(after)}..{_text(last)}]" for after, last in now.holes)
    return {
        "markDeletePosition": _text(now.mark_delete),
        "readPosition": _text(subscription.statistics().read),
        "waitingReadOp": bool(subscription.consumers) and not now.backlog,
        "pendingReadOps": 0,
        # as in Pulsar: counted from the load on, and so negative while older ones are pending
        "messagesConsumedCounter": topic.ledger.entries_added - now.backlog,
        "cursorLedger": now.ledger_id,
        "cursorLedgerLastEntry": now.ledger_last_entry,
        "individuallyDeletedMessages": f"[{holes}]",
        # both spellings, for old and new tools: the name was misspelt for years
        "lastLedgerSwitchTimestamp": switched,
        "lastLedgerWitchTimestamp": switched,
        "state": "Open" if now.ledger_id >= 0 else "NoLedger",
        "active": bool(subscription.consumers),
        "numberOfEntriesSinceFirstNotAckedMessage": chain.entries_between(
            now.mark_delete, chain.confirmed
        ),
        "totalNonContiguousDeletedMessagesRange": len(cursor.acks),
        "subscriptionHavePendingRead": False,
        "subscriptionHavePendingReplayRead": False,
        "properties": dict(cursor.position_properties),
    }


def _text(position: Position) -> str:
    return f"{position[0]}:{position[1]}"


HERE: Final = "/{tenant}/{namespace}/{topic}"
TABLE: Final[Table] = (
    ("GET", f"{HERE}/internalStats", internal_stats, Needs.TOPIC),
    ("GET", f"{HERE}/partitioned-internalStats", partitioned_internal_stats, Needs.TOPIC),
    ("GET", f"{HERE}/internal-info", internal_info, Needs.TOPIC),
)
