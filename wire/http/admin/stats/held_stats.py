"""Stats of subscriptions that a front holds for clients of its own (`core/topic/.../held.py`).

Such clients are listed as consumers of the held subscription, the first hundred of them, and its
properties say how many sessions there are. A shared subscription of theirs is listed as one of
type Shared: it has a place of its own and no cursor, so tools can see it and not move it.

Pure, but for what it asks of the holder.
"""

from __future__ import annotations

from typing import Any, Final

from magnetar.core.kernel.dates import iso_date
from magnetar.core.topic.subscription.held import HeldClient, HeldGroup
from magnetar.core.topic.topic import Topic

Json = dict[str, Any]

CLIENTS_MAX: Final = 100
GROUPS_MAX: Final = 100
SESSIONS: Final = "sessions"
"""The property with their number."""


def add_held(topic: Topic, subscriptions: dict[str, Json], *, consumers: bool) -> None:
    """Add what holders know to the stats of a topic's subscriptions, by name."""
    held, full = topic.env.held, topic.name.full
    names = [name for name in subscriptions if held.refusal(name) is not None]
    for name in names:
        shown = subscriptions[name]
        count = held.sessions(full)
        if count is not None:
            shown["subscriptionProperties"] = {SESSIONS: str(count)}
        clients = held.clients(full, CLIENTS_MAX)
        shown["unackedMessages"] = sum(client.unacked for client in clients)
        if consumers:
            shown["consumers"] = list(map(_consumer, clients))
        for group in held.groups(full, GROUPS_MAX):
            subscriptions[group.name] = _group(shown, group, consumers=consumers)


def _group(held: Json, group: HeldGroup, *, consumers: bool) -> Json:
    """A shared subscription, in the fields of the subscription that keeps its messages."""
    return {
        **held,
        "type": "Shared",
        "msgBacklog": group.backlog,
        "msgBacklogNoDelayed": group.backlog,
        "backlogSize": 0,
        "earliestMsgPublishTimeInBacklog": 0,
        "unackedMessages": group.unacked,
        "subscriptionProperties": {SESSIONS: str(group.sessions)},
        "consumers": list(map(_consumer, group.clients)) if consumers else [],
    }


def _consumer(client: HeldClient) -> Json:
    """A client in the fields of a consumer; what its protocol does not have is 0 or empty."""
    rates = ("msgRateOut", "msgThroughputOut", "msgRateRedeliver", "messageAckRate",
             "chunkedMessageRate")  # fmt: skip
    counts = ("availablePermits", "avgMessagesPerEntry", "bytesOutCounter",
              "lastAckedTimestamp", "lastConsumedTimestamp", "firstMessagesSentTimestamp",
              "lastConsumedFlowTimestamp", "firstConsumedFlowTimestamp",
              "drainingHashesCount", "drainingHashesUnackedMessages")  # fmt: skip
    return {
        "consumerName": client.name,
        "address": f"/{client.address}",
        "connectedSince": iso_date(client.connected_ms),
        "clientVersion": client.version,
        "msgOutCounter": client.messages_out,
        "unackedMessages": client.unacked,
        "blockedConsumerOnUnackedMsgs": False,
        **dict.fromkeys(rates, 0.0),
        **dict.fromkeys(counts, 0),
        "drainingHashes": [],
        "keyHashRanges": [],
        "keyHashRangeArrays": None,
        "metadata": {},
    }
