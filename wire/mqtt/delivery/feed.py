"""The messages of one topic, read once for all its live subscribers.

    entry stored -> `look`: messages are read, matched, and offered to each subscriber
                                                   takes it, or remembers where it stopped: it lags
    subscriber has room -> `catch_up`: reads on from there by itself, until it is where the feed is

The log is the queue: nothing is copied for a subscriber that cannot take it now, and one that is
slow holds no memory but the place where it stopped. Catching up is for quality of service 1 and 2;
messages of QoS 0 are offered once, as they come, and are gone for who cannot take them (4.3.1).

Both ways run on the loop as plain calls as long as the entries are in the tail cache; otherwise a
task loads them, one at a time for the feed and for each subscriber.

Invariants: a subscriber is offered the messages of a topic in their order; `at` is behind all that
was offered; who does not lag has been offered all before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import BrokerError, Corrupted
from magnetar.core.ledger.log.chain import Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.wire.mqtt.delivery.stored_messages import Messages, TopicOf, messages_of

if TYPE_CHECKING:
    from magnetar.core.entry.mqtt.run import StoredPublish
    from magnetar.core.topic.persistent_topic import PersistentTopic
    from magnetar.wire.mqtt.delivery.matcher import Grant, Matcher

log = logging.getLogger(__name__)

LOAD_BYTES_MAX: Final = 512 * 1024
LOAD_ENTRIES_MAX: Final = 1_000
RETRY_SECONDS: Final = 1.0
ENTRIES_PER_TURN: Final = 64
"""Offered or looked through in one call; others have their turn in between."""
NO_MESSAGES: Final = Messages(b"", 0, ())


class MessagePlace(NamedTuple):
    """One message: an entry, and where in it."""

    position: Position
    place: int


class FeedReader(Protocol):
    """A session, as a feed sees it."""

    @property
    def client_id(self) -> bytes: ...

    def offer(
        self,
        feed: Feed,
        position: Position,
        published_ms: int,
        packet: StoredPublish,
        grant: Grant,
        /,
    ) -> None:
        """A message that is for it. What it cannot take it remembers, or lets go."""
        ...

    def flush(self) -> None:
        """All messages of an entry have been offered."""
        ...


class Feed:
    """See the module's docstring."""

    def __init__(
        self,
        topic: PersistentTopic,
        matcher: Matcher[FeedReader],
        topic_of: TopicOf,
        spawn: Callable[..., None],
    ) -> None:
        self.topic = topic
        self._ledger = topic.ledger
        self._matcher = matcher
        self._topic_of = topic_of
        self._spawn = spawn
        self.at: Position = self._ledger.chain.after(self._ledger.chain.confirmed)
        """The entry that is offered next."""
        self._loading = False
        self._subscribers: dict[FeedReader, None] = {}

    # -- who reads ------------------------------------------------------------------------------

    def join(self, subscriber: FeedReader) -> None:
        """Offer it what comes from now on."""
        if not self._subscribers:
            self.at = self._ledger.chain.after(self._ledger.chain.confirmed)
            self.topic.watch(self.look)
        self._subscribers[subscriber] = None

    def leave(self, subscriber: FeedReader) -> None:
        if self._subscribers.pop(subscriber, self) is None and not self._subscribers:
            self.topic.unwatch(self.look)

    @property
    def is_read(self) -> bool:
        return bool(self._subscribers)

    # -- what comes -------------------------------------------------------------------------------

    def look(self) -> None:
        """More may have been stored."""
        if self._loading:
            return
        for _ in range(ENTRIES_PER_TURN):
            self.at = self._ledger.chain.normal(self.at)
            if not self._is_readable(self.at):
                return
            cached = self._ledger.cached(self.at)
            if cached is None:
                break
            part, place = cached
            self._offer(self.at, self.messages(part, place))
            self.at = self._ledger.chain.after(self.at)
        self._loading = True
        self._spawn(self._load)

    def _is_readable(self, position: Position) -> bool:
        """Whether it is there, and decided as far as it belongs to a transaction."""
        if not self._ledger.chain.has(position):
            return False
        transactions = self._ledger.transactions
        return not transactions.open or transactions.stable_entries(*position, 1) > 0

    async def _load(self) -> None:
        """Go on with what is not in memory, or after others have had their turn."""
        try:
            await trio.lowlevel.checkpoint()
            self.at = self._ledger.chain.normal(self.at)
            if self._is_readable(self.at) and self._ledger.cached(self.at) is None:
                part = await self.read(self.at)
                for place in range(len(part.payloads)):
                    if not self.is_read or not self._is_readable(self.at):
                        break
                    self._offer(self.at, self.messages(part, place))
                    self.at = self._ledger.chain.after(self.at)
        except BrokerError as error:
            log.error("%s: cannot read at %s: %s", self.topic.name, self.at, error)
            await trio.sleep(RETRY_SECONDS)
        finally:
            self._loading = False
        if self.is_read:
            self.look()

    async def read(self, position: Position) -> Slice:
        """Entries from there on; at least one."""
        return await self._ledger.read(position, LOAD_ENTRIES_MAX, LOAD_BYTES_MAX)

    def messages(self, part: Slice, place: int) -> Messages:
        """What stands in an entry; nothing where its transaction was aborted, or it is damaged."""
        sent = part.sent(place)
        transactions = self._ledger.transactions
        try:
            if transactions.aborted:
                mark = form_of(sent).transaction_mark(sent)
                index = part.header(place).first_index
                if mark is not None and transactions.hides(mark.key, index):
                    return NO_MESSAGES
            return messages_of(sent, self._topic_of)
        except Corrupted as error:
            entry_id = part.first_entry + place
            log.error(
                "%s: no client can be given entry %d:%d: %s",
                self.topic.name, part.ledger_id, entry_id, error,
            )  # fmt: skip
            return NO_MESSAGES

    def _offer(self, position: Position, messages: Messages) -> None:
        touched: dict[FeedReader, None] = {}
        for packet in messages.packets:
            for target in self._matcher.targets(packet.topic):
                subscriber = target.subscriber
                own = subscriber.client_id == messages.client_id
                grant = target.own if own else target.others
                if grant is not None and subscriber in self._subscribers:
                    subscriber.offer(self, position, messages.published_ms, packet, grant)
                    touched[subscriber] = None
        for subscriber in touched:
            subscriber.flush()

    # -- who lags ---------------------------------------------------------------------------------

    def cached(self, position: Position) -> tuple[Slice, int] | None:
        """An entry that is in memory; None says nothing."""
        return self._ledger.cached(position)

    def next(self, position: Position) -> Position:
        return self._ledger.chain.after(position)

    def normal(self, position: Position) -> Position:
        """The same, or the next one that is left if it was trimmed."""
        return self._ledger.chain.normal(position)
