"""Keeps in the logs what sessions still need: one subscription per log, for all sessions together.

A session has a place in each log that it reads, in its record. So that no ledger is deleted before
every session has read it, each of these logs has a durable subscription, `mqtt-sessions`, whose
cursor stays behind the lowest place. Pulsar's and Kafka's tools show it with its backlog, that of
the slowest session; quotas and TTL apply to it as to all subscriptions.

    kept       created before the first subscription of a session is granted
    advanced   in rounds: the cursor moves up to the lowest place of all sessions
    released   deleted, when a round finds no session with a place in the log

A round looks at all connected clients, in steps, and at what sleeping sessions need together
(`session_records.py`). Sessions that begin meanwhile begin at the end of their logs, so no cursor
moves beyond the ends at the beginning of the round.

Invariant: the cursor is never beyond a message that a session needs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import START, Position
from magnetar.wire.mqtt.clients.record import decode
from magnetar.wire.mqtt.clients.session_records import lower, positions
from magnetar.wire.mqtt.clients.sessions import Sessions
from magnetar.wire.mqtt.clients.shared_groups import SharedGroups

if TYPE_CHECKING:
    from magnetar.core.topic.persistent_topic import PersistentTopic
    from magnetar.wire.mqtt.delivery.logs import MqttLog

log = logging.getLogger(__name__)

SUBSCRIPTION: Final = "mqtt-sessions"
ROUND_SECONDS: Final = 30.0
RECORDS_PER_TURN: Final = 200
"""Records that are read before other tasks run."""


class Waiting(NamedTuple):
    """What sessions have not read yet."""

    messages: int
    bytes: int


class Hold:
    """See the module's docstring."""

    def __init__(
        self,
        broker: Broker,
        sessions: Sessions,
        groups: SharedGroups,
        subscription: str = SUBSCRIPTION,
    ) -> None:
        self.subscription = subscription
        """Its name: that of a mount point is its own."""
        self._broker = broker
        self._sessions = sessions
        self._groups = groups
        self._fresh: set[str] = set()
        """Logs that were kept since the last round began."""
        self._releasing: set[str] = set()
        """Logs whose subscription is being deleted."""
        self._advancing = trio.Lock()
        self._counts: Counter[str] | None = None
        """The sessions that needed each log in the last round."""
        self.waiting = Waiting(0, 0)
        """That of the slowest session of each log, estimated in the last round."""

    def sessions_in(self, log: str) -> int | None:
        """How many sessions needed a log in the last round; None before the first one."""
        return None if self._counts is None else self._counts[log]

    async def keep(self, kept: MqttLog, *, whole: bool = False) -> None:
        """Have the log keep what comes from now on, or all that it has."""
        topic = kept.topic
        self._fresh.add(kept.name.full)
        if topic is not None and not self.holds(kept):
            await topic.hold(self.subscription, START if whole else None)

    def holds(self, kept: MqttLog) -> bool:
        """Whether the log keeps something, and is not about to stop."""
        topic = kept.topic
        return (
            topic is not None
            and self.subscription in topic.subscriptions
            and kept.name.full not in self._releasing
        )

    async def run(self) -> None:
        """Advance the cursors, until cancelled."""
        while True:
            await trio.sleep(ROUND_SECONDS)
            await self.advance()

    async def advance(self) -> None:
        """One round over all sessions, after those that have begun."""
        async with self._advancing:
            await self._advance()

    async def _advance(self) -> None:
        held = dict(self._held())
        if not held:
            self.waiting = Waiting(0, 0)
            return
        fresh, self._fresh = self._fresh, set()
        ends = {name: topic.ledger.chain.confirmed for name, topic in held.items()}
        for client in list(self._sessions.connected.values()):
            client.changed()  # so that its record is not older than a round
        try:
            needed = await self._needed()
        except BrokerError as error:
            log.warning("logs keep what they have, as sessions cannot be read: %s", error)
            return
        for name, topic in held.items():
            try:
                if name in needed:
                    self._move(topic, needed[name], ends[name])
                elif name not in fresh and name not in self._fresh:
                    await self._release(name, topic)
            except BrokerError as error:
                log.warning("%s: keeps more than sessions need: %s", name, error)
        found = [self._waiting_in(topic) for topic in held.values()]
        self.waiting = Waiting(sum(one.messages for one in found), sum(one.bytes for one in found))

    def _waiting_in(self, topic: PersistentTopic) -> Waiting:
        """As if all entries of a log had as many messages."""
        subscription, ledger = topic.subscriptions.get(self.subscription), topic.ledger
        if subscription is None or not ledger.chain.entries:
            return Waiting(0, 0)
        cursor, messages = subscription.cursor, ledger.confirmed_index - ledger.first_index
        behind = messages * cursor.backlog // ledger.chain.entries
        return Waiting(behind, ledger.bytes_after(cursor.mark_delete))

    async def _release(self, name: str, topic: PersistentTopic) -> None:
        self._releasing.add(name)
        try:
            await topic.release(self.subscription)
        finally:
            self._releasing.discard(name)

    def _held(self) -> Iterator[tuple[str, PersistentTopic]]:
        for name, topic in list(self._broker.topics.items()):
            stored = topic.stored
            if (
                stored is not None
                and not stored.fenced
                and self.subscription in stored.subscriptions
            ):
                yield name, stored

    def _move(self, topic: PersistentTopic, lowest: Position, end: Position) -> None:
        ledger_id, entry_id = lowest
        mark_delete = min((ledger_id, entry_id - 1), end)
        cursor = topic.subscriptions[self.subscription].cursor
        if mark_delete > cursor.mark_delete:
            cursor.ack_to(mark_delete)

    async def _needed(self) -> dict[str, Position]:
        """The lowest position that any session needs, by log."""
        records = self._sessions.records
        await records.scan_if_due()
        lowest, awake = records.lowest, records.awake()  # no session changes from one to the other
        counts = Counter(records.readers)
        for count, encoded in enumerate(awake):
            if count % RECORDS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            lower(lowest, positions(decode(*encoded)))
        for client in list(self._sessions.connected.values()):
            needs = list(client.positions())
            lower(lowest, needs)
            counts.update({name for name, _ in needs})
        self._counts = counts
        lower(lowest, self._groups.positions())
        return lowest
