"""Packet identifiers of the messages in flight to one client. Pure.

    sent      PUBLISH is sent; QoS 1 waits for PUBACK, QoS 2 for PUBREC
    released  PUBREL is sent; QoS 2 waits for PUBCOMP

The window is the client's Receive Maximum, which limits the messages in flight [MQTT-3.3.4-9].
Identifiers are assigned in turn; those in use are skipped [MQTT-2.2.1-3]. A client that reconnects
gets the messages in flight again, in their original order [MQTT-4.4.0-1, MQTT-4.6.0-1].

Invariant: an identifier is in use from `begin` until its last acknowledgement, across connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

from msgspec import Struct

Message = TypeVar("Message")

PACKET_ID_MAX: Final = 65_535


class InFlight(Struct, Generic[Message], gc=False):
    """One message in flight. It is part of no reference cycle."""

    message: Message
    qos: int
    released: bool = False


class PacketIds(Generic[Message]):
    """See the module's docstring."""

    __slots__ = ("_last", "_on_their_way", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        """Set by each connection."""
        self._last = 0
        self._on_their_way: dict[int, InFlight[Message]] = {}
        """The messages in flight, in the order in which they were sent."""

    def __len__(self) -> int:
        return len(self._on_their_way)

    def __iter__(self) -> Iterator[tuple[int, InFlight[Message]]]:
        return iter(self._on_their_way.items())

    @property
    def room(self) -> int:
        """How many more messages may be in flight; may be negative after a reconnect."""
        return self.window - len(self._on_their_way)

    @property
    def is_full(self) -> bool:
        return len(self._on_their_way) >= self.window

    def begin(self, message: Message, qos: int) -> int:
        """Assign an identifier to a message that is being sent. The window must not be full."""
        assert len(self._on_their_way) < PACKET_ID_MAX
        number = self._last
        while True:
            number = number % PACKET_ID_MAX + 1
            if number not in self._on_their_way:
                break
        self._last = number
        self._on_their_way[number] = InFlight(message, qos)
        return number

    def begin_many(self, messages: Iterable[Message], qos: int) -> list[int]:
        """The same for several messages; the window must have room for all."""
        in_flight, number = self._on_their_way, self._last
        numbers = []
        for message in messages:
            number = number % PACKET_ID_MAX + 1
            while number in in_flight:
                number = number % PACKET_ID_MAX + 1
            in_flight[number] = InFlight(message, qos)
            numbers.append(number)
        self._last = number
        return numbers

    def claim(self, number: int, message: Message, qos: int) -> bool:
        """Assign this identifier to a message that is being sent; False if it is in use."""
        if number in self._on_their_way:
            return False
        self._on_their_way[number] = InFlight(message, qos)
        return True

    def get(self, number: int) -> InFlight[Message] | None:
        return self._on_their_way.get(number)

    def resume(self, number: int, message: Message, qos: int, *, released: bool) -> None:
        """Restore a message in flight after a restart; called in their original order."""
        found = self._on_their_way[number] = InFlight(message, qos)
        found.released = released
        self._last = number

    def forget(self, number: int) -> None:
        """Free the identifier of a message that was not sent."""
        del self._on_their_way[number]

    def acknowledged(self, number: int) -> Message | None:
        """Process PUBACK; None if the identifier does not wait for one."""
        found = self._on_their_way.get(number)
        if found is None or found.qos != 1:
            return None
        del self._on_their_way[number]
        return found.message

    def received(self, number: int) -> Message | None:
        """Process PUBREC, first or repeated: send PUBREL. None as above."""
        found = self._on_their_way.get(number)
        if found is None or found.qos != 2:
            return None
        found.released = True
        return found.message

    def refused(self, number: int) -> Message | None:
        """Process PUBREC with a failure, which ends the message (4.3.3)."""
        found = self.received(number)
        if found is not None:
            del self._on_their_way[number]
        return found

    def completed(self, number: int) -> Message | None:
        """Process PUBCOMP; None if the identifier does not wait for one."""
        found = self._on_their_way.get(number)
        if found is None or not found.released:
            return None
        del self._on_their_way[number]
        return found.message
