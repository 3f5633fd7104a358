"""Snapshots of a subscription for stats, metrics and tests, however its entries are dealt out."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from magnetar.core.ledger.log.chain import Position
from magnetar.core.topic.subscription.consumer import Consumer
from magnetar.core.topic.subscription.key_shared import KeyedDispatcher
from magnetar.core.topic.subscription.shared import SharedDispatcher
from magnetar.core.topic.subscription.single_active import SingleDispatcher
from magnetar.core.topic.subscription.subscription import Subscription


class SubscriptionStatistics(Struct, frozen=True):
    """What is going on between a cursor and its consumers."""

    read: Position
    """The next entry that was not looked at yet."""
    active: Consumer | None = None
    """Who is served, where only one is."""
    unacked: int = 0
    blocked: bool = False
    """Too much is unacknowledged, all consumers together."""
    delayed: int = 0
    in_replay: int = 0
    sticky: bool = False
    out_of_order: bool = False
    draining: Mapping[int, tuple[Consumer, int]] = {}
    """Hashes that have another owner now: who still holds entries of each, and how many."""
    drained_total: int = 0
    hash_ranges: Mapping[str, list[tuple[int, int]]] = {}
    """Of each consumer's name, where entries are dealt out by key."""


def statistics(subscription: Subscription) -> SubscriptionStatistics:
    """A subscription at this moment."""
    dispatcher = subscription.dispatcher
    if isinstance(dispatcher, SingleDispatcher):
        unacked = sum(consumer.unacked for consumer in dispatcher.consumers)
        return SubscriptionStatistics(dispatcher.read, dispatcher.active, unacked)
    if not isinstance(dispatcher, SharedDispatcher | KeyedDispatcher):
        return SubscriptionStatistics(subscription.cursor.read_from)
    out = dispatcher.out
    keys = dispatcher.keys if isinstance(dispatcher, KeyedDispatcher) else None
    return SubscriptionStatistics(
        read=dispatcher.read,
        unacked=out.unacked,
        blocked=out.blocked,
        delayed=len(out.delayed),
        in_replay=len(out.replay),
        sticky=keys.mode.sticky if keys is not None else False,
        out_of_order=keys.mode.out_of_order if keys is not None else False,
        draining=keys.draining() if keys is not None else {},
        drained_total=keys.drained_total if keys is not None else 0,
        hash_ranges={
            consumer.name: list(keys.ranges_of(consumer)) for consumer in dispatcher.consumers
        }
        if keys is not None
        else {},
    )
