"""Compaction of logs in place, one log at a time per broker.

A reader of a compacted log (Kafka's `cleanup.policy=compact`) sees at least the last message of
each key, in order and at the original offsets. `plan.py` decides when a log is compacted and which
ledgers, `retention_rule.py` what becomes of an entry; `rewrite.py` rewrites the log and documents
what a crash leaves. The definition of a tombstone is a parameter (`rule.py`). Kafka's parts are
`LogCleanerManager`, `Cleaner` and `LogCleaner` of 4.1; Pulsar's compaction writes a second log and
leaves the first (PIP-14), which is rejected here because Kafka's readers have one log.

Housekeeping offers each loaded topic in its rounds. A log that is unloaded meanwhile, or fails,
keeps its old entries and is offered again later.

Invariant: writers and readers use a log without interruption while it is compacted.
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
        """Start a compaction if it is due and no other one runs. Plain call."""
        if self.busy_with is None and self._due(topic) is not None:
            self.busy_with = topic
            self._spawn(self._run, topic)

    def _due(self, topic: PersistentTopic) -> Plan | None:
        policy, ledger = topic.policies.compaction, topic.ledger
        if policy is None or topic.fenced or ledger.losses.ranges:
            # an uncleanable partition, in Kafka's words (`LogCleanerManager`): a copy without the
            # lost entries would hide the loss
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
        """Compact a topic, if it is due."""
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
    """A function that returns the outcomes of the topic's transactions."""

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
    """A function that has subscriptions drop state of removed entries."""

    def settled() -> None:
        for subscription in topic.subscriptions.values():
            subscription.cursor.acks.compacted()
            if subscription.dispatcher is not None:
                subscription.dispatcher.moved()
            subscription.schedule()

    return settled
