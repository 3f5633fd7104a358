"""Compaction within logs, one log at a time for the whole broker.

A reader of a compacted log (Kafka's `cleanup.policy=compact`) sees at least the last message of
each key, in the order and at the offsets at which all were written. `plan.py` decides when it is
due and for which ledgers, `retention_rule.py` what becomes of an entry; `rewrite.py` rewrites the
log and documents what a crash leaves. The definition of a tombstone is a parameter (`rule.py`).

Housekeeping offers each loaded topic in its rounds. A log that is unloaded meanwhile, or fails,
stays unchanged and is offered again later.

Invariant: writers and readers use a log as always while it is compacted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from magnetar.core.compaction.plan import Plan, plan
from magnetar.core.compaction.retention_rule import Outcomes, Terms, TransactionOutcome
from magnetar.core.compaction.rewrite import Rewrite
from magnetar.core.compaction.rule import Rule
from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.ledger_list import CLEAN_TO

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic

log = logging.getLogger(__name__)


class Compactor:
    """See the module's docstring."""

    def __init__(self, spawn: Callable[..., None], rule: Rule | None = None) -> None:
        self._spawn = spawn
        self._rule = rule or Rule()
        self.busy_with: PersistentTopic | None = None

    def consider(self, topic: PersistentTopic) -> None:
        """Compact it if that is due, and nothing else is compacted just now. Plain call."""
        if self.busy_with is None and self._due(topic) is not None:
            self.busy_with = topic
            self._spawn(self._run, topic)

    def _due(self, topic: PersistentTopic) -> Plan | None:
        policy, ledger = topic.policies.compaction, topic.ledger
        if policy is None or topic.fenced or ledger.losses.ranges:
            # Kafka calls such a partition uncleanable (`LogCleanerManager`): a copy without what is
            # lost would have nobody hear of the loss
            return None
        now_ms = topic.env.clock.wall_ms()
        return plan(ledger.chain, _clean_to(topic), policy, now_ms)

    async def _run(self, topic: PersistentTopic) -> None:
        try:
            await self.compact(topic)
        except BrokerError as error:
            log.warning("%s: not compacted: %s", topic.name, error)
        finally:
            self.busy_with = None

    async def compact(self, topic: PersistentTopic) -> None:
        """What is due now."""
        due, policy = self._due(topic), topic.policies.compaction
        if due is None or policy is None:
            return
        now_ms = topic.env.clock.wall_ms()
        terms = Terms(self._rule, now_ms, policy.delete_retention_ms, _clean_to(topic))
        work = Rewrite(topic.ledger, due, terms, _outcomes(topic), _settled(topic))
        await work.run()
        log.info("%s: compacted %d bytes to %d", topic.name, work.bytes_before, work.bytes_after)


def _clean_to(topic: PersistentTopic) -> int:
    return int(topic.ledger.properties.get(CLEAN_TO, 0))


def _outcomes(topic: PersistentTopic) -> Outcomes:
    """What becomes of the topic's transactions."""

    def outcome(key: TransactionKey, index: int) -> TransactionOutcome:
        transactions = topic.ledger.transactions
        if not topic.transactions.present:
            return TransactionOutcome.OPEN
        if index >= transactions.stable_index(topic.ledger.confirmed_index):
            return TransactionOutcome.OPEN
        return (
            TransactionOutcome.VOID if transactions.hides(key, index) else TransactionOutcome.HOLDS
        )

    return outcome


def _settled(topic: PersistentTopic) -> Callable[[], None]:
    """Have subscriptions forget what they knew of entries that have gone."""

    def settled() -> None:
        for subscription in topic.subscriptions.values():
            subscription.cursor.acks.compacted()
            if subscription.dispatcher is not None:
                subscription.dispatcher.moved()
            subscription.look()

    return settled
