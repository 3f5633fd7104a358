"""Compaction of logs, one log at a time per broker.

There are two kinds, which a topic may have both; each has its own idea of what has been compacted.

    in place    (Kafka's `cleanup.policy=compact`) rewrites the log: `rewrite.py`
    beside it   (Pulsar's compaction, PIP-14) writes the last values to a second ledger, which
                consumers may ask for, and leaves the log: `last_values.py`

A reader of a log that was compacted in place sees at least the last message of each key, in order
and at the original offsets. `plan.py` decides when a log is compacted and which ledgers,
`retention_rule.py` what becomes of an entry; `rewrite.py` rewrites the log and documents what a
crash leaves. The definition of a tombstone is a parameter (`rule.py`). Kafka's parts are
`LogCleanerManager`, `Cleaner` and `LogCleaner` of 4.1.

Compaction beside the log runs when a policy says so (`compaction_threshold`), or an administrator
asks for it (`request`). A topic that has to wait for another one waits in a queue, which is as long
as there are loaded topics at most. Pulsar's broker runs those of several topics at once.

Housekeeping offers each loaded topic in its rounds. A log that is unloaded meanwhile, or fails,
keeps its old entries and is offered again later.

Invariant: writers and readers use a log without interruption while it is compacted.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from magnetar.core.compaction.last_values import LastValues
from magnetar.core.compaction.plan import Plan, plan
from magnetar.core.compaction.retention_rule import Outcomes, Terms, TransactionOutcome
from magnetar.core.compaction.rewrite import Rewrite
from magnetar.core.compaction.rule import Rule
from magnetar.core.entry.form import TransactionKey
from magnetar.core.kernel.errors import AlreadyExists, BrokerError, NotAllowed
from magnetar.core.ledger.compacted.compacted_topic import CompactionState
from magnetar.core.ledger.log.ledger_list import CLEAN_TO
from magnetar.core.topic.backlog import holds_for_compaction

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic

log = logging.getLogger(__name__)


class Compactor:
    """See the module's docstring."""

    def __init__(self, spawn: Callable[..., None], rule: Rule | None = None) -> None:
        self._spawn = spawn
        self._rule = rule or Rule()
        self.busy_with: PersistentTopic | None = None
        self._waiting: list[PersistentTopic] = []
        """Topics that are to be compacted beside their logs."""

    def consider(self, topic: PersistentTopic) -> None:
        """Start a compaction if it is due and no other one runs. Plain call."""
        if self._is_over_threshold(topic):
            self._enqueue(topic)
        if self.busy_with is None and self._due(topic) is not None:
            self.busy_with = topic
            self._spawn(self._run, topic)

    def request(self, topic: PersistentTopic) -> None:
        """Compact a topic beside its log as soon as no other compaction runs. Plain call."""
        if topic.compacted.progress.state is CompactionState.RUNNING:
            raise AlreadyExists("Compaction already in progress")
        self._enqueue(topic)

    # -- in place -----------------------------------------------------------------------------

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
            self._start_next()

    async def compact(self, topic: PersistentTopic) -> None:
        """Compact a topic in place, if it is due."""
        due, policy = self._due(topic), topic.policies.compaction
        if due is None or policy is None:
            return
        now_ms = topic.env.clock.wall_ms()
        terms = Terms(
            self._rule, now_ms, policy.delete_retention_ms, _clean_to(topic), _needed_from(topic)
        )
        work = Rewrite(topic.ledger, due, terms, _outcomes(topic), _settled(topic))
        await work.run()
        log.info("%s: compacted %d bytes to %d", topic.name, work.bytes_before, work.bytes_after)

    # -- beside the log -----------------------------------------------------------------------

    def _is_over_threshold(self, topic: PersistentTopic) -> bool:
        threshold, compacted = topic.policies.compaction_threshold, topic.compacted
        ledger = topic.ledger
        if threshold <= 0 or topic.name.internal or topic.fenced or ledger.losses.ranges:
            return False
        if not compacted.progress.may_begin(topic.env.clock.wall_ms()):
            return False
        new_bytes = ledger.bytes_after(compacted.horizon)
        if new_bytes <= threshold:
            return False
        # What waits for an open transaction does not count: each of its rounds would write the
        # former compacted ledger again, for the few entries before the transaction.
        end = ledger.transactions.stable_position(ledger.chain.confirmed)
        return new_bytes - ledger.bytes_after(end) > threshold

    def _enqueue(self, topic: PersistentTopic) -> None:
        topic.compacted.progress.begin()
        self._waiting.append(topic)
        if self.busy_with is None:
            self._start_next()

    def _start_next(self) -> None:
        if self._waiting:
            topic = self.busy_with = self._waiting.pop(0)
            self._spawn(self._run_beside, topic)

    async def _run_beside(self, topic: PersistentTopic) -> None:
        clock, progress = topic.env.clock, topic.compacted.progress
        began_ms = clock.wall_ms()
        failure, removed = "the server is shutting down", 0
        try:
            removed = await self.compact_beside(topic)
            failure = ""
        except BrokerError as error:
            log.warning("%s: not compacted: %s", topic.name, error)
            failure = str(error)
        finally:
            progress.end(failure, removed, began_ms, clock.wall_ms())
            self.busy_with = None
            self._start_next()

    async def compact_beside(self, topic: PersistentTopic) -> int:
        """Compact a topic beside its log; returns how many messages were left out."""
        if topic.ledger.losses.ranges:
            raise NotAllowed("the topic has lost entries, and is not compacted")
        work = LastValues(
            topic.ledger,
            topic.compacted,
            _outcomes(topic),
            retains_keyless=topic.policies.compaction_retains_keyless,
            now_ms=topic.env.clock.wall_ms(),
        )
        await work.run()
        log.info("%s: compacted beside its log, without %d messages", topic.name, work.removed)
        return work.removed


def _clean_to(topic: PersistentTopic) -> int:
    return int(topic.ledger.properties.get(CLEAN_TO, 0))


def _needed_from(topic: PersistentTopic) -> int:
    """Tombstones from that index on still have to be compacted beside the log."""
    current = topic.compacted.current
    if current is not None:
        return current.next_index
    return 0 if holds_for_compaction(topic) else sys.maxsize


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
    """A function that has subscriptions drop state of removed entries, of shadows, too."""

    def settled() -> None:
        for reader in (topic, *topic.shadows):
            for subscription in reader.subscriptions.values():
                subscription.cursor.acks.compacted()
                if subscription.dispatcher is not None:
                    subscription.dispatcher.moved()
                subscription.schedule()

    return settled
