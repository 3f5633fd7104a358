"""Messages in flight to a client: what each is, and where it is stored.

They are not kept in memory. A message is known by its source and its place in that, and is read
again if it has to be sent again.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from magnetar.core.kernel.structs import FrozenLeafStruct
from magnetar.core.ledger.log.chain import Position
from magnetar.wire.mqtt.delivery.feed import MessagePlace
from magnetar.wire.mqtt.delivery.stored_messages import Messages


class MessageSource(Protocol):
    """Where a message in flight is stored: a feed, or the retained messages."""

    replays: bool
    """Whether its messages are sent with RETAIN, because a new subscription asked for them."""

    @property
    def full_name(self) -> str:
        """The name of its topic."""
        ...

    async def message_at(self, position: Position) -> Messages:
        """The messages of one entry; none if it is no longer stored."""
        ...


class SharingGroup(Protocol):
    """The subscription that several sessions share, as one of them knows it."""

    def sent(self, sent: Sent) -> None:
        """A message is in flight to a member."""
        ...

    def acknowledged(self, sent: Sent) -> None:
        """A member has received a message."""
        ...

    def has_room(self) -> None:
        """A member has room."""
        ...


class Sent(FrozenLeafStruct, frozen=True, gc=False):
    """A message in flight. It is part of no reference cycle once its connection is closed."""

    source: MessageSource
    place: MessagePlace
    group: SharingGroup | None = None
    """The group of which its receiver is a member, if it is a shared message."""


class SentTogether:
    """Messages of one entry that are in flight, each of which is a `Sent` when it is asked for."""

    __slots__ = ("_places", "_position", "_source")

    def __init__(self, source: MessageSource, position: Position, places: range) -> None:
        self._source = source
        self._position = position
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> Sent:
        return Sent(self._source, MessagePlace(self._position, self._places[place]))


class Resumed(NamedTuple):
    """A message in flight of an earlier connection."""

    packet_id: int
    sent: Sent
    qos: int
    released: bool
