"""A feed: reads the messages of one topic once for all connected subscribers.

    an entry is stored    `advance` reads its messages, matches them, and offers each to its
                          subscribers, which accept it or note its place: such a subscriber lags
    a subscriber has room it reads on from its place by itself, until it has caught up

The log is the queue: no message is copied for a subscriber without room, and a slow one takes no
memory but its place. Only messages of QoS 1 and 2 are caught up with. Messages of QoS 0 are offered
once, and are lost for a subscriber without room (4.3.1).

Reading is a plain call on the loop while the entries are in the tail cache. Otherwise a task loads
them, at most one for the feed and one for each subscriber.

    detached    its topic is not loaded; nothing is read, and places remain
    attached    reads as above

Lost entries (`core/ledger/read/losses.py`, which logs and counts them) are skipped, whatever
`auto_skip_non_recoverable_data` says: a device cannot seek, and one log has the topics of many.

A topic may be unloaded at any time, and be loaded again (`logs.py`). A subscriber's place is a
position of the log, so it stays valid.

Invariants: a subscriber is offered the messages of a topic in order; `at` follows the last offered
entry; a subscriber that does not lag was offered everything before `at`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from zlib import crc32

import trio

from magnetar.core.entry.forms import form_of
from magnetar.core.kernel.errors import BrokerError, Corrupted, NotReady
from magnetar.core.kernel.names import TopicName
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.wire.mqtt.delivery.stored_messages import Messages, TopicOf, messages_of

if TYPE_CHECKING:
    from magnetar.core.entry.mqtt.run import StoredPublish
    from magnetar.core.entry.mqtt.segments import PublishSegment
    from magnetar.core.ledger.log.managed_ledger import ManagedLedger
    from magnetar.core.topic.persistent_topic import PersistentTopic
    from magnetar.wire.mqtt.delivery.matcher import Grant, Matcher

log = logging.getLogger(__name__)

LOAD_BYTES_MAX: Final = 512 * 1024
LOAD_ENTRIES_MAX: Final = 1_000
RETRY_SECONDS: Final = 1.0
ENTRIES_PER_TURN: Final = 64
"""Entries that are read in one call, after which other tasks run."""
OFFERS_PER_TURN: Final = 2_000
"""Offers of messages to subscribers in one call, at 7 us each; an entry is offered as a whole."""
NO_MESSAGES: Final = Messages(b"", 0, ())


class MessagePlace(NamedTuple):
    """The place of a message: its entry, and its place in that."""

    position: Position
    place: int


class FeedReader(Protocol):
    """A session as a feed uses it."""

    @property
    def client_id(self) -> bytes: ...

    def offer(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        segment: PublishSegment,
        grant: Grant,
        /,
    ) -> None:
        """Offer messages that match; the reader accepts them, notes its place, or drops them."""
        ...

    def send_unconfirmed(self, messages: Messages, packet: StoredPublish, grant: Grant, /) -> bool:
        """Send a message with QoS 0; False if there is no room."""
        ...

    def flush(self) -> None:
        """All messages of an entry have been offered."""
        ...

    def has_room(self) -> None:
        """The topic is loaded again: catch up."""
        ...


class Feed:
    """See the module's docstring."""

    replays = False

    def __init__(
        self,
        name: TopicName,
        matcher: Matcher[FeedReader],
        topic_of: TopicOf,
        spawn: Callable[..., None],
        publisher_prefix: bytes = b"",
    ) -> None:
        self.name = name
        self.publisher_prefix = publisher_prefix
        """What comes before the client ids of these subscribers' listeners (`mapping/names.py`)."""
        self.packet_id_offset = crc32(name.full.encode())
        """Where the packet identifiers of messages for durable subscribers begin."""
        self._topic: PersistentTopic | None = None
        self._ledger: ManagedLedger | None = None
        self._matcher = matcher
        self._topic_of = topic_of
        self._spawn = spawn
        self._former: Position | None = None
        """The last entry when this process opened the log first; None before."""
        self.at: Position = START
        """The entry to offer next."""
        self._loading = False
        self._subscribers: dict[FeedReader, Position] = {}
        """The subscribers, and the first position that concerns each."""

    # -- the topic --------------------------------------------------------------------------------

    def attach(self, topic: PersistentTopic) -> None:
        """The topic is loaded: read on."""
        self._topic, self._ledger = topic, topic.ledger
        if self._former is None:
            self._former = topic.ledger.chain.opened_behind
        if self._subscribers:
            topic.watch(self.advance)
            self.advance()
            for subscriber in list(self._subscribers):
                subscriber.has_room()

    def detach(self) -> None:
        """The topic is unloaded."""
        self._topic = self._ledger = None

    def map_by(self, topic_of: TopicOf) -> None:
        """Find the MQTT topics of other protocols' messages so from now on."""
        self._topic_of = topic_of

    @property
    def full_name(self) -> str:
        return self.name.full

    @property
    def is_attached(self) -> bool:
        return self._topic is not None

    @property
    def end(self) -> Position:
        """The position of the next entry; the place of a subscriber that has got all."""
        ledger = self._log()
        return ledger.chain.after(ledger.chain.confirmed)

    @property
    def begun(self) -> Position:
        """All messages before it are of a former process, or of another server's time."""
        if self._former is None:
            return self.at
        return min(self.at, (self._former[0], self._former[1] + 1))

    @property
    def last(self) -> Position:
        """The position of the last entry, which need not exist any more."""
        return self._log().chain.confirmed

    @property
    def beginning(self) -> Position:
        """The position of the first entry."""
        return self._log().chain.first

    def _log(self) -> ManagedLedger:
        if self._ledger is None:
            raise NotReady(f"{self.name} is not loaded")
        return self._ledger

    # -- subscribers ----------------------------------------------------------------------------

    def join(self, subscriber: FeedReader) -> None:
        """Add a subscriber, which gets later messages."""
        self._subscribers[subscriber] = self._began_reading()

    def resume(self, subscriber: FeedReader) -> None:
        """Add a subscriber that catches up with everything before `at` by itself."""
        self._began_reading()
        self._subscribers[subscriber] = self.at

    def _began_reading(self) -> Position:
        """Read new entries from now on; returns the position of the next one."""
        if self._topic is None:
            return self.at
        end = self.end
        if not self._subscribers:
            self.at = end
            self._topic.watch(self.advance)
        return end

    def leave(self, subscriber: FeedReader) -> None:
        gone = self._subscribers.pop(subscriber, None)
        if gone is not None and not self._subscribers and self._topic is not None:
            self._topic.unwatch(self.advance)

    def is_read_by(self, subscriber: FeedReader) -> bool:
        return subscriber in self._subscribers

    def readers(self) -> list[FeedReader]:
        """Its subscribers."""
        return list(self._subscribers)

    @property
    def is_read(self) -> bool:
        return bool(self._subscribers)

    # -- new entries ------------------------------------------------------------------------------

    def advance(self) -> None:
        """Read and offer new entries, if there are any."""
        ledger = self._ledger
        if self._loading or ledger is None:
            return
        offers, chain = 0, ledger.chain
        for _ in range(ENTRIES_PER_TURN):
            self.at = at = chain.normal(self.at)
            if not self._is_readable(ledger, at):
                return
            cached = ledger.cached(at)
            if cached is None:
                break
            part, place = cached
            offers += self._offer(at, self.messages(part, place))
            if at == chain.confirmed:  # the usual case: one entry is new
                self.at = (at[0], at[1] + 1)
                return
            self.at = chain.after(at)
            if offers >= OFFERS_PER_TURN:
                break
        self._loading = True
        self._spawn(self._load)

    @staticmethod
    def _is_readable(ledger: ManagedLedger, position: Position) -> bool:
        """Whether the entry exists, and its transaction, if it has one, is decided."""
        if not ledger.chain.has(position):
            return False
        transactions = ledger.transactions
        return not transactions.open or transactions.stable_entries(*position, 1) > 0

    async def _load(self) -> None:
        """Continue with entries that are not in memory, or after other tasks have run."""
        try:
            await trio.lowlevel.checkpoint()
            ledger = self._log()
            self.at = ledger.chain.normal(self.at)
            if self._is_readable(ledger, self.at) and ledger.cached(self.at) is None:
                await self._offer_all(ledger, await self.read(self.at))
        except NotReady:
            return  # `attach` reads on
        except BrokerError as error:
            log.error("%s: cannot read at %s: %s", self.name, self.at, error)
            await trio.sleep(RETRY_SECONDS)
        finally:
            self._loading = False
        if self.is_read:
            self.advance()

    async def _offer_all(self, ledger: ManagedLedger, part: Slice) -> None:
        """Offer entries from storage, as long as nobody moves `at` while other tasks run."""
        offers = 0
        for place in range(len(part.payloads)):
            if not self.is_read or self.at != (part.ledger_id, part.first_entry + place):
                return
            if self._ledger is not ledger or not self._is_readable(ledger, self.at):
                return
            offers += self._offer(self.at, self.messages(part, place))
            self.at = ledger.chain.after(self.at)
            if offers >= OFFERS_PER_TURN:
                offers = 0
                await trio.lowlevel.checkpoint()

    async def read(self, position: Position) -> Slice:
        """Read entries from a position on; at least one, and empty ones in place of lost ones.
        `NotReady` while it is detached.
        """
        return await self._log().losses.read_round(position, LOAD_ENTRIES_MAX, LOAD_BYTES_MAX)

    async def message_at(self, position: Position) -> Messages:
        """The messages of one entry; none if it is lost or no longer stored."""
        chain = self._log().chain
        if not chain.has(position) or chain.normal(position) != position:
            return NO_MESSAGES
        part, place = self.cached(position) or (await self.read(position), 0)
        if (part.ledger_id, part.first_entry + place) != position:
            return NO_MESSAGES
        return self.messages(part, place)

    def messages(self, part: Slice, place: int) -> Messages:
        """The messages of an entry; none if its transaction was aborted, or it is damaged."""
        sent = part.sent(place)
        transactions = self._log().transactions
        try:
            index = part.header(place).first_index
            if transactions.aborted:
                mark = form_of(sent).transaction_mark(sent)
                if mark is not None and transactions.hides(mark.key, index):
                    return NO_MESSAGES
            return messages_of(sent, self._topic_of, index, self.publisher_prefix)
        except Corrupted as error:
            entry_id = part.first_entry + place
            log.error(
                "%s: no client can be given entry %d:%d: %s",
                self.name, part.ledger_id, entry_id, error,
            )  # fmt: skip
            return NO_MESSAGES

    def _offer(self, position: Position, messages: Messages) -> int:
        """Offer the messages of an entry; returns how many offers that are, at most."""
        touched: dict[FeedReader, None] = {}
        begins, offers = self._subscribers, 0
        for segment in messages.segments:
            targets = self._matcher.targets(segment.topic)
            offers += len(targets)
            for target in targets:
                subscriber = target.subscriber
                own = subscriber.client_id == messages.client_id
                grant = target.own if own else target.others
                begin = begins.get(subscriber)
                if grant is not None and begin is not None and position >= begin:
                    subscriber.offer(self, position, messages, segment, grant)
                    touched[subscriber] = None
        for subscriber in touched:
            subscriber.flush()
        return offers

    # -- for subscribers that lag -----------------------------------------------------------------

    def cached(self, position: Position) -> tuple[Slice, int] | None:
        """The entry if it is in memory, else None."""
        return None if self._ledger is None else self._ledger.cached(position)

    def next(self, position: Position) -> Position:
        return self._log().chain.after(position)

    def normal(self, position: Position) -> Position:
        """The position itself, or the next existing one if it was trimmed."""
        return position if self._ledger is None else self._ledger.chain.normal(position)
