"""A shared subscription: each message goes to one of its members (4.8.2).

    with members       a new message goes to the next member that has room, in turn; if none has,
                       the group lags, as one session would
    without members    it keeps its places, as long as a session has the subscription

A member that leaves returns its messages of QoS 1 that are not acknowledged, and others get them.
Those of QoS 2 stay with its session, and are sent to nobody else [MQTT-4.8.2-4, -5].

Invariant: a message is with one member, returned, or acknowledged.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import trio

from magnetar.core.kernel.errors import BrokerError, NotReady
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.mqtt.delivery.feed import RETRY_SECONDS, Feed, MessagePlace
from magnetar.wire.mqtt.delivery.lagging_reader import LaggingReader
from magnetar.wire.mqtt.delivery.matcher import Grant, TopicSubscription
from magnetar.wire.mqtt.delivery.sent_messages import Sent
from magnetar.wire.mqtt.delivery.subscriber import Subscriber
from magnetar.wire.mqtt.topics import matches

if TYPE_CHECKING:
    from magnetar.core.entry.mqtt.run import StoredPublish
    from magnetar.core.entry.mqtt.segments import PublishSegment
    from magnetar.wire.mqtt.delivery.stored_messages import Messages

log = logging.getLogger(__name__)

ALL: Final = Grant(2, retain_as_published=False, identifiers=())
"""The group's own options; each member has its own."""

Returned = tuple[str, MessagePlace]
"""A message that another member gets: the name of its log, and its place."""


class SharedGroup(LaggingReader):
    """See the module's docstring."""

    __slots__ = (
        "_dirty",
        "_in_flight",
        "_places",
        "_redelivers",
        "_returned",
        "_turns",
        "feeds",
        "filter",
        "members",
        "name",
    )

    def __init__(
        self,
        name: str,
        filter: str,
        dirty: Callable[[SharedGroup], None],
        spawn: Callable[..., None],
    ) -> None:
        """`dirty` is called when its places have changed."""
        super().__init__(b"", spawn)
        self.name = name
        """`$share/group/filter`."""
        self.filter = filter
        self.feeds: dict[str, Feed] = {}
        """The feeds that it reads, by name; none without members."""
        self.members: dict[Subscriber, TopicSubscription] = {}
        self._turns: deque[Subscriber] = deque()
        self._dirty = dirty
        self._places: dict[str, MessagePlace] = {}
        """Where to continue, while there are no members."""
        self._in_flight: dict[Returned, None] = {}
        """Messages with members."""
        self._returned: deque[Returned] = deque()
        self._redelivers = False

    # -- members ----------------------------------------------------------------------------------

    def attach(
        self, member: Subscriber, subscription: TopicSubscription, feeds: Mapping[str, Feed]
    ) -> None:
        """Add a member, or change its options."""
        if member not in self.members:
            self._turns.append(member)
            member.groups.append(self)
        self.members[member] = subscription
        self.read(feeds)
        self.has_room()

    def read(self, feeds: Mapping[str, Feed], *, whole: Container[str] = ()) -> bool:
        """Read these feeds, from the group's places, or else from now on, those that `whole` names
        from their beginning. Without members, note the places. Returns whether there is a new one.
        """
        places = self.places()
        added = [name for name in feeds if name not in places]
        for name in added:
            if name in whole or not self.members:
                feed = feeds[name]
                self._places[name] = MessagePlace(feed.beginning if name in whole else feed.end, 0)
        if self.members:
            for name, feed in feeds.items():
                if name not in self.feeds:
                    self.feeds[name] = feed
                    self._begin(name, feed)
            self.has_room()
        return bool(added)

    def forget(self, name: str) -> None:
        """It has read all of a feed that it needs no longer."""
        self._places.pop(name, None)
        self._dirty(self)

    def _begin(self, name: str, feed: Feed) -> None:
        place = self._places.pop(name, None)
        if place is None:
            feed.join(self)
            return
        feed.resume(self)
        self.lag(feed, place)

    def detach(self, member: Subscriber, *, lasts: bool) -> None:
        """A member leaves; its session may last."""
        if self.members.pop(member, None) is None:
            return
        self._turns.remove(member)
        member.groups.remove(self)
        for number, found in list(member.ids):
            sent = found.message
            if sent.group is not self:
                continue
            message = sent.source.full_name, sent.place
            self._in_flight.pop(message, None)
            if found.qos == 1:
                self._returned.append(message)
            if found.qos == 1 or not lasts:
                member.ids.forget(number)
        if not self.members:
            self._fall_asleep()
        self._dirty(self)
        self.has_room()

    def _fall_asleep(self) -> None:
        for name, feed in self.feeds.items():
            self._places[name] = self.place_in(feed)
            feed.leave(self)
            self.leave(feed)
        self.feeds.clear()

    # -- messages ---------------------------------------------------------------------------------

    def offer(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        segment: PublishSegment,
        _grant: Grant,
    ) -> None:
        """Give messages of a feed to members, as far as they have room; `flush` follows."""
        if not segment.qos:
            for packet in messages.packets_of(segment):
                self.send_unconfirmed(messages, packet, ALL)
        elif not self.is_lagging(feed):
            sent = self.send_segment(feed, position, messages, segment, 0, ALL)
            if sent < segment.packets:
                self.lag(feed, MessagePlace(position, messages.places_of(segment)[sent]))

    def send_unconfirmed(self, messages: Messages, packet: StoredPublish, _grant: Grant) -> bool:
        """Give a member a message with QoS 0; False if none has room."""
        return any(
            member.send_unconfirmed(messages, packet, self._options(member))
            for member in self._in_turn()
        )

    def _in_turn(self) -> Iterator[Subscriber]:
        """All members, from the next one on."""
        for _ in range(len(self._turns)):
            self._turns.rotate(-1)
            yield self._turns[-1]

    def _options(self, member: Subscriber) -> Grant:
        one = self.members[member]
        identifiers = (one.identifier,) if one.identifier else ()
        return Grant(one.qos, one.retain_as_published, identifiers)

    def send(
        self,
        feed: Feed,
        position: Position,
        messages: Messages,
        packet: StoredPublish,
        _grant: Grant,
    ) -> bool:
        for member in self._in_turn():
            options = self._options(member)
            if not options.qos:
                if member.send_unconfirmed(messages, packet, options):
                    return True
            elif member.send(feed, position, messages, packet, options, self):
                return True
        return False

    def grant_of(self, topic: bytes, *, own: bool) -> Grant | None:
        del own  # No Local is not permitted in a shared subscription [MQTT-3.8.3-4]
        return ALL if matches(self.filter, topic.decode()) else None

    def flush(self) -> None:
        for member in self.members:
            member.flush()

    def sent(self, sent: Sent) -> None:
        """A message is in flight to a member."""
        self._in_flight[sent.source.full_name, sent.place] = None

    def acknowledged(self, sent: Sent) -> None:
        """A member has received a message."""
        self._in_flight.pop((sent.source.full_name, sent.place), None)
        self._dirty(self)

    def has_room(self) -> None:
        """Go on: a member has room, or has come, or a feed is loaded again."""
        if not self.members:
            return
        if self._returned and not self._redelivers:
            self._redelivers = True
            self._spawn(self._redeliver)
        if self.lags:
            self.catch_up()

    # -- messages of members that have left -------------------------------------------------------

    async def _redeliver(self) -> None:
        """Give returned messages to other members, as long as they have room."""
        try:
            await trio.lowlevel.checkpoint()
            while self._returned and self.members:
                name, place = self._returned[0]
                feed = self.feeds.get(name)
                if feed is not None and not await self._is_redelivered(feed, place):
                    break
                self._returned.popleft()
        finally:
            self._redelivers = False
        self.flush()

    async def _is_redelivered(self, feed: Feed, place: MessagePlace) -> bool:
        """Send one message again; False if no member has room, or it cannot be read now."""
        try:
            messages = await feed.message_at(place.position)
        except NotReady:
            return False
        except BrokerError as error:
            log.error("%s: cannot read at %s: %s", feed.name, place.position, error)
            await trio.sleep(RETRY_SECONDS)
            return False
        for packet in messages.packets:
            if packet.place == place.place:
                return self.send(feed, place.position, messages, packet, ALL)
        return True  # it is no longer stored

    # -- its record -------------------------------------------------------------------------------

    def places(self) -> dict[str, MessagePlace]:
        """Where it continues in each log."""
        found = {name: self.place_in(feed) for name, feed in self.feeds.items()}
        return {**self._places, **found}

    def unacknowledged(self) -> Sequence[Returned]:
        """Messages with members, and those that are returned."""
        return [*self._in_flight, *self._returned]

    def restore(self, places: Mapping[str, MessagePlace], returned: Sequence[Returned]) -> None:
        """Restore a group without members from its record."""
        self._places.update(places)
        self._returned.extend(returned)
