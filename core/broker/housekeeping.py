"""Periodic work: expiry, trimming, backlog quotas, snapshots, idle topics, compaction.

One task visits the loaded topics, with pauses, so that ten thousand idle topics do not block the
loop. Policies have the limits, and `core/ledger/log/trim.py` selects the ledgers to delete.
Compaction is started here and runs as a task of its own.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from magnetar.core.compaction.compactor import Compactor
from magnetar.core.kernel.errors import BrokerError, QuotaExceeded, QuotaHeld
from magnetar.core.ledger.log.trim import beyond, trimmable
from magnetar.core.policy.values import BacklogQuota, LogLimits
from magnetar.core.topic.backlog import backlog_bytes, needed_from, slowest
from magnetar.core.topic.expiry import evict_backlog, expire_before
from magnetar.core.topic.log_start import pass_over
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.seek import find_by_time
from magnetar.core.topic.shadow_topic import SHADOW, shadows_noted
from magnetar.core.topic.topic import Topic

if TYPE_CHECKING:
    from magnetar.core.broker.broker import Broker

log = logging.getLogger(__name__)

TOPICS_PER_REST = 50
"""Topics visited before other tasks run."""


class Housekeeping:
    """See the module's docstring."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.compactor = Compactor(broker.spawn)

    async def run(self) -> None:
        """Visit all topics periodically, until cancelled."""
        while True:
            await trio.sleep(self._broker.settings.housekeeping_seconds)
            await self.go_round()

    async def go_round(self) -> None:
        """Visit every loaded topic once."""
        for count, topic in enumerate(list(self._broker.topics.values())):
            if count % TOPICS_PER_REST == 0:
                await trio.lowlevel.checkpoint()
            try:
                await self.tend(topic)
            except BrokerError as error:
                log.warning("%s: housekeeping failed: %s", topic.name, error)

    async def tend(self, topic: Topic) -> None:
        """Do the work that is due for one topic."""
        if topic.fenced:
            return
        stored = topic.stored
        if stored is not None:
            await self.expire(stored)
            await self.check_quota(stored)
            stored.forget_readers()
            await self.expire_subscriptions(stored)
            if stored.source is None:
                await stored.ledger.roll_if_old()
                await self.trim(stored)
                if stored.deduplication.on:
                    self._broker.spawn(stored.snapshot_if_due)
                self.compactor.consider(stored)
        await self.delete_if_idle(topic)

    async def expire(self, topic: PersistentTopic) -> None:
        """Acknowledge messages that are older than their time to live."""
        seconds = topic.policies.message_ttl_seconds
        if seconds <= 0:
            return
        now_ms = topic.env.clock.wall_ms()
        await expire_before(topic, now_ms - seconds * 1000)

    async def check_quota(self, topic: PersistentTopic) -> None:
        """Apply the backlog quotas: refuse producers, or acknowledge the oldest messages."""
        quotas = topic.policies.backlog_quotas
        size_quota, age_quota = quotas.get("destination_storage"), quotas.get("message_age")
        exceeded: BacklogQuota | None = None
        if size_quota is not None and 0 <= size_quota.limit_size < backlog_bytes(topic):
            exceeded = size_quota
            if size_quota.policy == "consumer_backlog_eviction":
                await evict_backlog(topic, size_quota.limit_size)
        elif age_quota is not None and age_quota.limit_time >= 0:
            since_ms = topic.env.clock.wall_ms() - age_quota.limit_time * 1000
            if await self._oldest_before(topic, since_ms):
                exceeded = age_quota
                if age_quota.policy == "consumer_backlog_eviction":
                    await expire_before(topic, since_ms)
        topic.hit_quota(_refusal(topic, exceeded))

    async def check_quota_of_newcomer(self, topic: Topic) -> None:
        """As `check_quota`, for a producer that attaches: a topic that was just loaded has not been
        visited yet.
        """
        stored = topic.stored
        if stored is not None and stored.quota_hit is None and topic.policies.backlog_quotas:
            with suppress(BrokerError):  # the next round logs it
                await self.check_quota(stored)

    @staticmethod
    async def _oldest_before(topic: PersistentTopic, since_ms: int) -> bool:
        """Whether the oldest unacknowledged message was published before that."""
        lowest = slowest(topic)
        if lowest is None or lowest >= topic.ledger.chain.confirmed:
            return False
        first_young = await find_by_time(topic.ledger, since_ms)
        return topic.ledger.chain.after(lowest) < first_young

    async def expire_subscriptions(self, topic: PersistentTopic) -> None:
        """Delete durable subscriptions that were unused for the time of the policy; those that a
        front holds have no consumers and are in use.
        """
        minutes = topic.policies.subscription_expiration_minutes
        if minutes <= 0:
            return
        oldest_ms = topic.env.clock.wall_ms() - minutes * 60_000
        for name, subscription in list(topic.subscriptions.items()):
            idle = not subscription.consumers and subscription.cursor.durable
            held = topic.env.held.refusal(name) is not None
            if idle and not held and subscription.cursor.last_active_ms < oldest_ms:
                log.info("%s: subscription %s has expired", topic.name, name)
                await topic.unsubscribe(name, force=False)

    async def trim(self, topic: PersistentTopic) -> None:
        """Delete ledgers that no subscription and no retention needs."""
        chain = topic.ledger.chain
        topic.forget_silent_producers()
        doomed = trimmable(
            chain.segments, needed_from(topic), topic.policies.retention, topic.env.clock.wall_ms()
        )
        if doomed:
            await topic.ledger.trim(doomed)
        if topic.policies.log_limits is not None:
            await self._cut(topic, topic.policies.log_limits)

    async def _cut(self, topic: PersistentTopic, limits: LogLimits) -> None:
        """Delete ledgers beyond the limits of a log; cursors in them move on."""
        now_ms, ledger = topic.env.clock.wall_ms(), topic.ledger
        silent_ms = now_ms - ledger.written_ms if ledger.written_ms else 0
        if 0 <= limits.age_ms < silent_ms:
            await ledger.roll()
            doomed = [one.ledger_id for one in ledger.chain.segments if one.closed_ms]
        else:
            doomed = beyond(ledger.chain.segments, limits, now_ms)
        if not doomed:
            return
        last = next(one for one in ledger.chain.segments if one.ledger_id == doomed[-1])
        pass_over(topic, (last.ledger_id, last.entries - 1))
        await ledger.trim(doomed)

    async def delete_if_idle(self, topic: Topic) -> None:
        """Delete unused topics, so that tests and typos leave nothing behind."""
        rule = topic.policies.inactive_topics
        if not rule.delete_while_inactive:
            return
        idle_ms = topic.env.clock.wall_ms() - topic.last_used_ms
        if idle_ms < rule.max_inactive_duration_seconds * 1000 or topic.name.partitioned:
            return
        stored = topic.stored
        caught_up = rule.inactive_topic_delete_mode == "delete_when_subscriptions_caught_up"

        def still_idle(found: Topic) -> bool:
            # another topic of the same name may be loaded by now
            needed = found is not topic or topic.name.full in self._broker.attaching
            if stored is not None and shadows_noted(stored.ledger.properties):
                return False  # one is being made
            return not needed and topic.idle(caught_up_is_enough=caught_up)

        if stored is not None and await self._has_shadows(stored):
            return
        # checked again while no other task can load or unload it
        if still_idle(topic) and await self._broker.delete(
            topic.name, force=True, only_if=still_idle
        ):
            log.info("%s: deleted, it has been idle for %d s", topic.name, idle_ms // 1000)

    async def _has_shadows(self, topic: PersistentTopic) -> bool:
        """Whether a source has shadows, loaded or not; those that are gone are forgotten."""
        found = False
        for name in shadows_noted(topic.ledger.properties):
            if await self._broker.exists(name) and await self._broker.source_of(name) == topic.name:
                found = True
            else:
                await topic.ledger.set_property(f"{SHADOW}{name.full}", None)
        return found


def _refusal(
    topic: PersistentTopic, exceeded: BacklogQuota | None
) -> QuotaHeld | QuotaExceeded | None:
    if exceeded is None or exceeded.policy == "consumer_backlog_eviction":
        return None
    text = f"Cannot create producer on topic {topic.name}: its backlog quota is exceeded"
    return QuotaExceeded(text) if exceeded.policy == "producer_exception" else QuotaHeld(text)
