"""What stats say of compaction beside the log: its last run, and `__compaction`.

Pulsar's compaction has a subscription, whose mark-delete position is the horizon. Here it is none
(`core/ledger/compacted/compacted_topic.py`), but tools see it among the subscriptions.
"""

from __future__ import annotations

from typing import Any, Final

from magnetar.core.ledger.compacted.compacted_topic import SUBSCRIPTION
from magnetar.core.topic.backlog import holds_for_compaction
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic

Json = dict[str, Any]

_RATES: Final = (
    "msgRateOut", "msgThroughputOut", "messageAckRate", "msgRateRedeliver", "msgRateExpired",
    "chunkedMessageRate",
)  # fmt: skip
_COUNTS: Final = (
    "msgOutCounter", "bytesOutCounter", "lastConsumedFlowTimestamp", "lastConsumedTimestamp",
    "lastAckedTimestamp", "earliestMsgPublishTimeInBacklog", "msgDelayed", "msgInReplay",
    "unackedMessages", "totalMsgExpired", "lastExpireTimestamp", "drainingHashesCount",
    "drainingHashesClearedTotal", "drainingHashesUnackedMessages",
    "nonContiguousDeletedMessagesRanges", "nonContiguousDeletedMessagesRangesSerializedSize",
    "delayedMessageIndexSizeInBytes", "filterProcessedMsgCount", "filterAcceptedMsgCount",
    "filterRejectedMsgCount", "filterRescheduledMsgCount",
)  # fmt: skip


def shows_compaction(topic: Topic) -> bool:
    """Whether the topic has `__compaction`."""
    return topic.stored is not None and holds_for_compaction(topic.stored)


def add_compaction(topic: Topic, subscriptions: dict[str, Json]) -> None:
    """Add `__compaction` to the stats of a topic's subscriptions, if the topic has it."""
    stored = topic.stored
    if stored is None or not holds_for_compaction(stored):
        return
    compacted, chain = stored.compacted, stored.ledger.chain
    backlog = chain.entries_between(compacted.horizon, chain.confirmed)
    current = compacted.current
    subscriptions[SUBSCRIPTION] = {
        **dict.fromkeys(_RATES, 0.0),
        **dict.fromkeys(_COUNTS, 0),
        "type": "Exclusive",
        "isReplicated": False,
        "isDurable": True,
        "msgBacklog": backlog,
        "msgBacklogNoDelayed": backlog,
        "backlogSize": stored.ledger.bytes_after(compacted.horizon) if backlog else 0,
        "blockedSubscriptionOnUnackedMsgs": False,
        "activeConsumerName": None,
        "lastMarkDeleteAdvancedTimestamp": current.compacted_ms if current is not None else 0,
        "keySharedMode": None,
        "allowOutOfOrderDelivery": False,
        "consumersAfterMarkDeletePosition": {},
        "subscriptionProperties": {},
        "consumers": [],
    }


def compaction(topic: Topic) -> Json:
    """The last compaction (`CompactionStatsImpl` of 4.2)."""
    if topic.stored is None:
        return {}
    last = topic.stored.compacted.progress
    return {
        "lastCompactionRemovedEventCount": last.removed,
        "lastCompactionSucceedTimestamp": last.succeeded_ms,
        "lastCompactionFailedTimestamp": last.failed_ms,
        "lastCompactionDurationTimeInMills": last.duration_ms,
    }


def compacted_ledger(topic: PersistentTopic) -> Json:
    """The compacted ledger, for internal stats."""
    current = topic.compacted.current
    ledger_id, entries, size = -1, -1, -1
    if current is not None:
        ledger_id, entries, size = current.ledger_id, current.entries, current.size
    return {
        "ledgerId": ledger_id,
        "entries": entries,
        "size": size,
        "offloaded": False,
        "underReplicated": False,
    }
