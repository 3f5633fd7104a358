"""`analyzeBacklog`: what is in the backlog of a subscription, by reading it.

As in Apache's broker (`PersistentSubscription.analyzeBacklog` of 4.2): entries that are
acknowledged are left out, batches count as their messages, also those of which some are
acknowledged, and markers of transactions are counted apart. There are no filters, which accept
everything then. An analysis ends after `ENTRIES_MAX` entries or `SECONDS_MAX`, and says that it is
`aborted`; the next one may begin at its `lastMessageId`.

It reads in small parts, through the caches, and changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

import trio

from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import EntryNotFound, LedgerNotFound
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.subscription.subscription import PersistentSubscription
from magnetar.wire.http.admin.topic_lookup import Target, stored, subscription_of
from magnetar.wire.http.request import AdminRequest

ENTRIES_MAX: Final = 10_000
SECONDS_MAX: Final = 120.0
"""The defaults of `subscriptionBacklogScanMaxEntries` and `subscriptionBacklogScanMaxTimeMs`."""
READ_ENTRIES: Final = 100
READ_BYTES: Final = 1024 * 1024
"""Of one read."""


class BacklogAnalysis:
    """The counts of one analysis."""

    def __init__(self, subscription: PersistentSubscription) -> None:
        self._acks = subscription.cursor.acks
        self.entries = self.messages = self.markers = 0
        self.first: Position | None = None
        self.last: Position | None = None
        self.aborted = False

    def count(self, part: Slice) -> None:
        """Count some entries, up to the limit."""
        for place in range(len(part.payloads)):
            position = (part.ledger_id, part.first_entry + place)
            if self._acks.is_acked(position):
                continue
            if self.entries + self.markers >= ENTRIES_MAX:
                self.aborted = True
                return
            self.first, self.last = self.first or position, position
            sent = part.sent(place)
            if form_of(sent).transaction_mark(sent) is not None:
                self.markers += 1
            else:
                self.entries += 1
                self.messages += 1 if part.counts is None else part.counts[place]

    def shown(self) -> dict[str, Any]:
        return {
            "entries": self.entries,
            "messages": self.messages,
            "markerMessages": self.markers,
            "filterRejectedEntries": 0,
            "filterAcceptedEntries": self.entries,
            "filterRescheduledEntries": 0,
            "filterRejectedMessages": 0,
            "filterAcceptedMessages": self.messages,
            "filterRescheduledMessages": 0,
            "aborted": self.aborted,
            "firstMessageId": _text(self.first),
            "lastMessageId": _text(self.last),
        }


async def analyze(request: AdminRequest) -> dict[str, Any]:
    """Analyse the backlog, from a position on if the body has one."""
    target = await request.json(Target) if await request.body() else None
    topic = await stored(request)
    subscription = subscription_of(topic, request.subscription)
    begin = topic.ledger.chain.after(subscription.cursor.mark_delete)
    if target is not None:
        begin = max(begin, topic.ledger.chain.normal(target.position))
    analysis = BacklogAnalysis(subscription)
    with trio.move_on_after(SECONDS_MAX) as scope:
        await _read(topic, begin, analysis)
    analysis.aborted |= scope.cancelled_caught
    return analysis.shown()


async def _read(topic: PersistentTopic, position: Position, analysis: BacklogAnalysis) -> None:
    chain = topic.ledger.chain
    while chain.has(position) and not analysis.aborted:
        try:
            part = await topic.ledger.read(position, READ_ENTRIES, READ_BYTES)
        except (EntryNotFound, LedgerNotFound):
            if chain.normal(position) == position:
                raise
            position = chain.normal(position)  # it was deleted meanwhile
            continue
        analysis.count(part)
        position = chain.after((part.ledger_id, part.first_entry + len(part.payloads) - 1))
        await trio.lowlevel.checkpoint()  # what is cached is read without waiting


def _text(position: Position | None) -> str | None:
    return None if position is None else f"{position[0]}:{position[1]}"
