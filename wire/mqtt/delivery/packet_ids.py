"""Packet identifiers of the messages on their way to one client. Pure.

    sent      PUBLISH has gone; QoS 1 waits for PUBACK, QoS 2 for PUBREC
    released  PUBREL has gone, PUBCOMP is waited for (QoS 2)

The window is the client's Receive Maximum: so many may be on their way [MQTT-3.3.4-9]. Identifiers
are given out in turn and are skipped while they are in use [MQTT-2.2.1-3]. Whoever connects again
gets what is on its way once more, in the order in which it went [MQTT-4.4.0-1, MQTT-4.6.0-1].

Invariant: an identifier is in use from `begin` until its last acknowledgement, whatever becomes of
the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

Message = TypeVar("Message")

PACKET_ID_MAX: Final = 65_535


class InFlight(Generic[Message]):
    """One message on its way."""

    __slots__ = ("message", "qos", "released")

    def __init__(self, message: Message, qos: int) -> None:
        self.message = message
        self.qos = qos
        self.released = False


class PacketIds(Generic[Message]):
    """See the module's docstring."""

    __slots__ = ("_last", "_on_their_way", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        """Changes with each connection."""
        self._last = 0
        self._on_their_way: dict[int, InFlight[Message]] = {}
        """In the order in which they went."""

    def __len__(self) -> int:
        return len(self._on_their_way)

    def __iter__(self) -> Iterator[tuple[int, InFlight[Message]]]:
        return iter(self._on_their_way.items())

    @property
    def is_full(self) -> bool:
        return len(self._on_their_way) >= self.window

    def begin(self, message: Message, qos: int) -> int:
        """An identifier for a message that goes now. Only while the window is not full."""
        assert len(self._on_their_way) < PACKET_ID_MAX
        number = self._last
        while True:
            number = number % PACKET_ID_MAX + 1
            if number not in self._on_their_way:
                break
        self._last = number
        self._on_their_way[number] = InFlight(message, qos)
        return number

    def resume(self, number: int, message: Message, qos: int, *, released: bool) -> None:
        """As it was before a restart; in the order in which they went."""
        found = self._on_their_way[number] = InFlight(message, qos)
        found.released = released
        self._last = number

    def forget(self, number: int) -> None:
        """The message has not gone after all."""
        del self._on_their_way[number]

    def acknowledged(self, number: int) -> Message | None:
        """PUBACK; None for an identifier that waits for none."""
        found = self._on_their_way.get(number)
        if found is None or found.qos != 1:
            return None
        del self._on_their_way[number]
        return found.message

    def received(self, number: int) -> Message | None:
        """PUBREC: PUBREL is to go, now and whenever PUBREC comes again; None as above."""
        found = self._on_their_way.get(number)
        if found is None or found.qos != 2:
            return None
        found.released = True
        return found.message

    def refused(self, number: int) -> Message | None:
        """PUBREC with a failure: the message is done with, and so is its identifier (4.3.3)."""
        found = self.received(number)
        if found is not None:
            del self._on_their_way[number]
        return found

    def completed(self, number: int) -> Message | None:
        """PUBCOMP; None for an identifier that waits for none."""
        found = self._on_their_way.get(number)
        if found is None or not found.released:
            return None
        del self._on_their_way[number]
        return found.message
