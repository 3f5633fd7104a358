"""Reading on from where a reader stopped: one session, or a group that shares a subscription.

A feed offers each new message once. A reader without room for one notes its place, lags in that
feed from then on, and reads by itself until it has caught up with the feed. Nothing is queued for
it: the log is the queue.

Reading is a plain call while entries are in memory; otherwise a task loads them, one for each feed.

Invariant: a reader that does not lag in a feed has got everything before `feed.at`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import BrokerError, NotReady
from magnetar.core.ledger.log.chain import START, Position
from magnetar.core.ledger.read.tail_cache import Slice
from magnetar.wire.mqtt.delivery.feed import ENTRIES_PER_TURN, RETRY_SECONDS, Feed, MessagePlace

if TYPE_CHECKING:
    from magnetar.core.entry.mqtt.run import StoredPublish
    from magnetar.core.entry.mqtt.segments import PublishSegment
    from magnetar.wire.mqtt.delivery.matcher import Grant
    from magnetar.wire.mqtt.delivery.stored_messages import Messages

log = logging.getLogger(__name__)

NOWHERE: Final = MessagePlace(START, 0)


class LaggingReader(ABC):
    """See the module's docstring. Subclasses define what a message is sent to."""

    __slots__ = ("_catching_up", "_lagging", "_spawn", "client_id")

    def __init__(self, client_id: bytes, spawn: Callable[..., None]) -> None:
        self.client_id = client_id
        self._spawn = spawn
        self._lagging: dict[Feed, MessagePlace] = {}
        """Where to continue in the feeds in which it lags."""
        self._catching_up: dict[Feed, None] = {}  # a set takes more memory, and most are empty
        """Feeds with a task that catches up."""

    # -- what subclasses define -------------------------------------------------------------------

    @abstractmethod
    def send(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        packet: StoredPublish,
        grant: Grant,
    ) -> bool:
        """Send a message of QoS 1 or 2 that matches; False if there is no room."""

    def send_segment(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        segment: PublishSegment,
        start: int,
        grant: Grant,
    ) -> int:
        """Send a segment of QoS 1 or 2, from its packet `start` on; returns how many have room."""
        for sent, packet in enumerate(messages.packets_of(segment, start)):
            if not self.send(feed, position, messages, packet, grant):
                return sent
        return segment.packets - start

    @abstractmethod
    def grant_of(self, topic: bytes, *, own: bool) -> Grant | None:
        """The options with which it gets the messages of a topic; None if it does not."""

    @abstractmethod
    def flush(self) -> None:
        """Send what is packed."""

    @abstractmethod
    def has_room(self) -> None:
        """Go on: messages were acknowledged, or the connection or a feed has room again."""

    # -- places -----------------------------------------------------------------------------------

    @property
    def lags(self) -> bool:
        return bool(self._lagging)

    def place_in(self, feed: Feed) -> MessagePlace:
        """The first message of the feed that is not sent; all before it are sent or in flight."""
        return self._lagging.get(feed) or MessagePlace(feed.at, 0)

    def is_lagging(self, feed: Feed) -> bool:
        return feed in self._lagging

    def lag(self, feed: Feed, place: MessagePlace) -> None:
        """Continue from there by itself."""
        self._lagging[feed] = place

    def leave(self, feed: Feed) -> None:
        """Stop reading a feed."""
        self._lagging.pop(feed, None)

    # -- catching up ------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Read on in all feeds in which it lags, as long as there is room."""
        for feed in list(self._lagging):
            if feed not in self._catching_up:
                self._catch_up(feed)
        self.flush()

    def _catch_up(self, feed: Feed) -> None:
        """Catch up with one feed, while there is room and entries are in memory."""
        for _ in range(ENTRIES_PER_TURN):
            position, first = self._lagging[feed]
            normal = feed.normal(position)
            if normal != position:
                position, first = normal, 0  # it was trimmed meanwhile
            if position >= feed.at:
                del self._lagging[feed]
                return
            cached = feed.cached(position)
            if cached is None:
                break
            if not self._take(feed, position, first, *cached):
                return
        self._catching_up[feed] = None
        self._spawn(self._load, feed)

    def _take(self, feed: Feed, position: Position, first: int, part: Slice, at: int) -> bool:
        """Send the rest of one entry; False if there is no room for all of it."""
        messages = feed.messages(part, at)
        own = messages.client_id == self.client_id
        for segment in messages.segments:
            places = messages.places_of(segment)
            if places[-1] < first or not segment.qos:
                continue
            grant = self.grant_of(segment.topic, own=own)
            if grant is None or not grant.qos:
                continue
            start = max(first - places[0], 0)
            sent = self.send_segment(feed, position, messages, segment, start, grant)
            if start + sent < len(places):
                self._lagging[feed] = MessagePlace(position, places[start + sent])
                return False
        self._lagging[feed] = MessagePlace(feed.next(position), 0)
        return True

    async def _load(self, feed: Feed) -> None:
        """Catch up with entries that are not in memory, or after other tasks have run."""
        has_room = True
        try:
            await trio.lowlevel.checkpoint()
            position, first = self._lagging.get(feed, NOWHERE)
            position = feed.normal(position)
            if feed in self._lagging and position < feed.at and feed.cached(position) is None:
                part = await feed.read(position)
                for at in range(len(part.payloads)):
                    if feed not in self._lagging:
                        break
                    has_room = self._take(feed, position, first, part, at)
                    if not has_room:
                        break
                    position, first = self._lagging[feed]
                    if position >= feed.at:
                        break
        except NotReady:
            return  # the feed notifies its readers when its topic is loaded
        except BrokerError as error:
            log.error("%s: cannot read at %s: %s", feed.name, position, error)
            await trio.sleep(RETRY_SECONDS)
        finally:
            self._catching_up.pop(feed, None)
        self.flush()
        if has_room:
            self.has_room()
