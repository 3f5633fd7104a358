"""A compacted topic of core as a durable mapping: the last value of each key counts.

An entry is one retained PUBLISH in MQTT's form, with the key as its topic and the value as its
payload; without a payload it deletes the key. So compaction, conversion and the tools of other
protocols treat it like any other keyed message.

    not there   the topic does not exist; the mapping is empty, and `open` creates it
    open        values are appended; `done` is called in the order of the appends
    unloaded    an administrator has unloaded the topic: the next append loads it again

Who reads the mapping keeps it in memory, or keeps the positions: `replay` gives all entries once.

Invariants: a value is stored when `done` is called without an error; after a crash, `replay` gives
each key's last stored value, and perhaps one whose `done` was not called yet.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Final

import trio
from msgspec.structs import replace

from magnetar.core.broker.attachment import attach
from magnetar.core.broker.broker import Broker
from magnetar.core.entry.forms import form_of
from magnetar.core.entry.mqtt import form
from magnetar.core.entry.mqtt import run as runs
from magnetar.core.kernel.completion import Completion
from magnetar.core.kernel.errors import BrokerError, Corrupted, NotAllowed, NotReady
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.log.managed_ledger import MIXED
from magnetar.core.policy.policies import TopicPolicies
from magnetar.core.policy.values import (
    Compaction,
    InactiveTopics,
    LedgerLimits,
    LogLimits,
    Retention,
)
from magnetar.core.topic.persistent_topic import PersistentTopic
from magnetar.core.topic.topic import Topic
from magnetar.wire.mqtt.delivery.stored_messages import KeyedMessage

log = logging.getLogger(__name__)

LEDGER_BYTES_MAX: Final = 16 * 1024 * 1024
"""Ledgers are small, because compaction rewrites whole ones and leaves the last."""
TOMBSTONE_MS: Final = 3_600_000
POLICIES: Final = TopicPolicies(
    retention=Retention(-1, -1),
    log_limits=LogLimits(),
    ledger_limits=LedgerLimits(size_bytes=LEDGER_BYTES_MAX),
    compaction=Compaction(delete_retention_ms=TOMBSTONE_MS),
    inactive_topics=InactiveTopics(delete_while_inactive=False),
)
READ_ENTRIES: Final = 1_000
READ_BYTES: Final = 1024 * 1024
_FIRST: Final = runs.PUBLISH | runs.RETAIN
_RUN: Final = runs.head(b"", has_properties=False)

Stored = Callable[[Position | BrokerError], None]


Apply = Callable[[KeyedMessage], None]


class KeyedLog:
    """See the module's docstring."""

    def __init__(self, broker: Broker, name: TopicName) -> None:
        self.name = name
        self._broker = broker
        self._topic: PersistentTopic | None = None
        self._opening = trio.Lock()
        self._waiting: list[tuple[bytes, Stored]] = []
        """Entries that are appended once the topic is loaded again."""

    # -- opening ----------------------------------------------------------------------------------

    async def exists(self) -> bool:
        return await self._broker.exists(self.name)

    async def open(self) -> PersistentTopic:
        """Load the topic, or create it."""
        async with self._opening:
            if self._topic is None or self._topic.fenced:
                await self._store_policies()
                await attach(self._broker, self.name, self._take, by_order=True)
            assert self._topic is not None
            return self._topic

    async def _store_policies(self) -> None:
        """Store the policies that make it a mapping; an administrator may have changed others."""
        catalog = self._broker.catalog
        async with catalog.changing(self.name.namespace):
            await catalog.policies(self.name.namespace)
            found = await catalog.topic_policies(self.name)
            kept = replace(
                found,
                retention=POLICIES.retention,
                log_limits=POLICIES.log_limits,
                ledger_limits=found.ledger_limits or POLICIES.ledger_limits,
                compaction=found.compaction or POLICIES.compaction,
                inactive_topics=POLICIES.inactive_topics,
            )
            if kept != found:
                await catalog.set_topic_policies(self.name, kept)

    async def _take(self, topic: Topic) -> None:
        stored = topic.stored
        if stored is None:
            raise NotAllowed(f"{self.name} keeps nothing")
        if not stored.ledger.mixed:
            await stored.ledger.set_property(MIXED, "")
        if stored.fenced:
            raise NotReady(f"{self.name} is being unloaded")
        self._topic = stored

    @property
    def is_open(self) -> bool:
        return self._topic is not None and not self._topic.fenced

    # -- reading ----------------------------------------------------------------------------------

    async def replay(self, apply: Apply) -> None:
        """Read all entries in order. Damaged ones are logged, and skipped, also those that `apply`
        finds to be damaged.
        """
        async with aclosing(self.messages()) as messages:
            async for message in messages:
                try:
                    apply(message)
                except (Corrupted, UnicodeDecodeError) as error:
                    self._skipped(message.packet.topic, message.position, error)

    def _skipped(self, key: bytes | None, position: Position, error: Exception) -> None:
        named = "an unknown key" if key is None else repr(key)
        log.error("%s: entry %d:%d of %s is skipped: %s", self.name, *position, named, error)

    async def messages(self) -> AsyncGenerator[KeyedMessage, None]:
        """The entries that there are now, one by one; other tasks run after each part."""
        ledger = (await self.open()).ledger
        position, last = ledger.chain.first, ledger.chain.confirmed
        while ledger.chain.has(position) and position <= last:
            part = await ledger.losses.read_round(position, READ_ENTRIES, READ_BYTES)
            for place in range(len(part.payloads)):
                at = (part.ledger_id, part.first_entry + place)
                sent = part.sent(place)
                if form_of(sent) is form:  # a lost entry is of no form
                    for message in self._read(sent, at):
                        yield message
            position = ledger.chain.normal((part.ledger_id, part.first_entry + len(part.payloads)))
            await trio.lowlevel.checkpoint()

    def _read(self, sent: bytes, position: Position) -> Sequence[KeyedMessage]:
        try:
            return list(_messages(sent, position))
        except Corrupted as error:
            self._skipped(_key_in(sent), position, error)
            return ()

    async def message_at(self, position: Position) -> KeyedMessage:
        """The entry at a position that `append` has returned; `Corrupted` if it is not there."""
        ledger = (await self.open()).ledger
        part = await ledger.read(position, 1, READ_BYTES)
        if (part.ledger_id, part.first_entry) == position:
            for message in _messages(part.sent(0), position):
                return message
        raise Corrupted(f"{self.name} has no entry at {position[0]}:{position[1]}")

    # -- writing ----------------------------------------------------------------------------------

    def append(self, run: bytes, now_ms: int, done: Stored) -> None:
        """Append a run of one packet. Plain call; the log has to have been opened."""
        entry = form.head(1, now_ms) + run
        if self._topic is None:
            done(NotReady(f"{self.name} is not loaded"))
        elif self._topic.fenced or self._waiting:
            if not self._waiting:
                self._broker.spawn(self._append_waiting)
            self._waiting.append((entry, done))
        else:
            self._topic.publish([entry], [1], done)

    async def _append_waiting(self) -> None:
        try:
            await self.open()
        except BrokerError as error:
            waiting, self._waiting = self._waiting, []
            for _, done in waiting:
                done(error)
            return
        assert self._topic is not None
        waiting, self._waiting = self._waiting, []
        for entry, done in waiting:
            self._topic.publish([entry], [1], done)

    def put(self, key: bytes, value: bytes, done: Stored) -> None:
        """Append a value; an empty one deletes the key. Plain call; the log has to be open."""
        packet = runs.packet(_FIRST, key, None, value)
        self.append(_RUN + packet, self._broker.clock.wall_ms(), done)

    async def store(self, key: bytes, value: bytes) -> Position:
        """Append a value, and wait until it is stored; returns the entry's position."""
        await self.open()
        waiting = Completion[Position]()
        self.put(key, value, waiting.done)
        return await waiting.result()


def _messages(sent: bytes, position: Position) -> Iterator[KeyedMessage]:
    run = form.run_of(sent)
    published_ms = form.publish_time(sent)
    for packet in run:
        yield KeyedMessage(position, published_ms, run.client_id, packet)


def _key_in(sent: bytes) -> bytes | None:
    """The key of a damaged entry, if that can be read."""
    try:
        run = form.run_of(sent)
        _, at = runs.length_at(run.data, run.packets_at + 1, len(run.data))
        size = runs.u16_at(run.data, at)
    except Corrupted:
        return None
    key = run.data[at + 2 : at + 2 + size]
    return key if size and len(key) == size else None
