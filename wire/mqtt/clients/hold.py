"""Keeps in the logs what sessions still need: one subscription per log, for all sessions together.

A session has a place in each log that it reads, in its record. So that no ledger is deleted before
every session has read it, each of these logs has a durable subscription, `mqtt-sessions`, whose
cursor stays behind the lowest place. Pulsar's and Kafka's tools show it with its backlog, that of
the slowest session; quotas and TTL apply to it as to all subscriptions.

    kept       created before the first subscription of a session is granted
    advanced   in rounds: the cursor moves up to the lowest place of all sessions
    released   deleted, when a round finds no session with a place in the log

A round reads all records, in steps. Sessions that begin meanwhile begin at the end of their logs,
so no cursor moves beyond the ends at the beginning of the round.

Invariant: the cursor is never beyond a message that a session needs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.broker.broker import Broker
from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.chain import START, Position
from magnetar.wire.mqtt.clients.record import SessionRecord
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


class Hold:
    """See the module's docstring."""

    def __init__(self, broker: Broker, sessions: Sessions, groups: SharedGroups) -> None:
        self._broker = broker
        self._sessions = sessions
        self._groups = groups
        self._fresh: set[str] = set()
        """Logs that were kept since the last round began."""
        self._counts: Counter[str] | None = None
        """The sessions that needed each log in the last round."""

    def sessions_in(self, log: str) -> int | None:
        """How many sessions needed a log in the last round; None before the first one."""
        return None if self._counts is None else self._counts[log]

    async def keep(self, kept: MqttLog, *, whole: bool = False) -> None:
        """Have the log keep what comes from now on, or all that it has."""
        topic = kept.topic
        self._fresh.add(kept.name.full)
        if topic is not None and SUBSCRIPTION not in topic.subscriptions:
            await topic.hold(SUBSCRIPTION, START if whole else None)

    async def run(self) -> None:
        """Advance the cursors, until cancelled."""
        while True:
            await trio.sleep(ROUND_SECONDS)
            await self.advance()

    async def advance(self) -> None:
        """One round over all sessions."""
        held = dict(self._held())
        if not held:
            return
        fresh, self._fresh = self._fresh, set()
        ends = {name: topic.ledger.chain.confirmed for name, topic in held.items()}
        for client in list(self._sessions.connected.values()):
            client.changed()  # so that its record is not older than a round
        needed = await self._needed()
        for name, topic in held.items():
            try:
                if name in needed:
                    self._move(topic, needed[name], ends[name])
                elif name not in fresh and name not in self._fresh:
                    await topic.release(SUBSCRIPTION)
            except BrokerError as error:
                log.warning("%s: keeps more than sessions need: %s", name, error)

    def _held(self) -> Iterator[tuple[str, PersistentTopic]]:
        for name, topic in list(self._broker.topics.items()):
            stored = topic.stored
            if stored is not None and not stored.fenced and SUBSCRIPTION in stored.subscriptions:
                yield name, stored

    @staticmethod
    def _move(topic: PersistentTopic, lowest: Position, end: Position) -> None:
        ledger_id, entry_id = lowest
        mark_delete = min((ledger_id, entry_id - 1), end)
        cursor = topic.subscriptions[SUBSCRIPTION].cursor
        if mark_delete > cursor.mark_delete:
            cursor.ack_to(mark_delete)

    async def _needed(self) -> dict[str, Position]:
        """The lowest position that any session needs, by log."""
        lowest: dict[str, Position] = {}
        counts: Counter[str] = Counter()
        for count, client_id in enumerate(self._sessions.names()):
            if count % RECORDS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
            record = self._sessions.record_of(client_id)
            if record is not None:
                positions = list(_positions(record))
                _lower(lowest, positions)
                if client_id not in self._sessions.connected:
                    counts.update({name for name, _ in positions})
        for client in list(self._sessions.connected.values()):
            positions = list(client.positions())
            _lower(lowest, positions)
            counts.update({name for name, _ in positions})
        self._counts = counts
        _lower(lowest, self._groups.positions())
        return lowest


def _positions(record: SessionRecord) -> Iterator[tuple[str, Position]]:
    """The positions that a session needs, by log."""
    for place in record.places:
        if place.entry_id >= 0:  # the beginning of an empty log is (-1, 0)
            yield place.log, (place.ledger_id, place.entry_id)
    for one in record.in_flight:
        yield record.places[one.log].log, (one.ledger_id, one.entry_id)
    for mark in record.marks:
        yield mark.log, (mark.ledger_id, mark.entry_id)


def _lower(lowest: dict[str, Position], positions: Iterable[tuple[str, Position]]) -> None:
    for name, position in positions:
        found = lowest.get(name)
        if found is None or position < found:
            lowest[name] = position
