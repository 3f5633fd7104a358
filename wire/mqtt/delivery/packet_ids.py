"""Packet identifiers of the messages in flight to one client. Pure.

    sent      PUBLISH is sent; QoS 1 waits for PUBACK, QoS 2 for PUBREC
    released  PUBREL is sent; QoS 2 waits for PUBCOMP

The window is the client's Receive Maximum, which limits the messages in flight [MQTT-3.3.4-9].
Identifiers are assigned in turn; those in use are skipped [MQTT-2.2.1-3]. A client that reconnects
gets the messages in flight again, in their original order [MQTT-4.4.0-1, MQTT-4.6.0-1].

Messages that are sent together have consecutive identifiers and share one object (`_Run`), and a
run of acknowledgements is one call: the cost of a message is that of its place in a mapping.

Invariant: an identifier is in use from `begin` until its last acknowledgement, across connections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from magnetar.core.kernel.structs import LeafStruct

Message = TypeVar("Message")
Item = TypeVar("Item", covariant=True)

PACKET_ID_MAX: Final = 65_535
consume: Final[Callable[[Iterable[object]], object]] = partial(deque, maxlen=0)
"""Makes all calls of a `map`, in half the time of a loop."""


class MessageSequence(Protocol[Item]):
    """Messages that are sent together, which need not exist as objects."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Item: ...


class InFlight(LeafStruct, Generic[Message], gc=False):
    """One message in flight. It is part of no reference cycle."""

    message: Message
    qos: int
    released: bool = False


class Ended(NamedTuple, Generic[Message]):
    """What a run of acknowledgements has ended."""

    total: int
    alone: Sequence[Message]
    """Those of the messages that were not sent together with others."""


class _Run(Generic[Message]):
    """Messages in flight with consecutive identifiers, all of them in one state."""

    __slots__ = ("first", "messages", "qos", "released", "successor")

    def __init__(
        self, messages: MessageSequence[Message], first: int, qos: int, *, released: bool = False
    ) -> None:
        self.messages = messages
        self.first = first
        """The identifier of the first one."""
        self.qos = qos
        self.released = released
        self.successor: _Run[Message] | None = None
        """The same run, released."""

    def message(self, number: int) -> Message:
        return self.messages[number - self.first]

    def after_release(self) -> _Run[Message]:
        if self.successor is None:
            self.successor = _Run(self.messages, self.first, self.qos, released=True)
        return self.successor


class PacketIds(Generic[Message]):
    """See the module's docstring."""

    __slots__ = ("_last", "_on_their_way", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        """Set by each connection."""
        self._last = 0
        self._on_their_way: dict[int, _Run[Message]] = {}
        """The messages in flight, in the order in which they were sent."""

    def __len__(self) -> int:
        return len(self._on_their_way)

    def __iter__(self) -> Iterator[tuple[int, InFlight[Message]]]:
        for number, run in self._on_their_way.items():
            yield number, InFlight(run.message(number), run.qos, run.released)

    @property
    def room(self) -> int:
        """How many more messages may be in flight; may be negative after a reconnect."""
        return self.window - len(self._on_their_way)

    @property
    def is_full(self) -> bool:
        return len(self._on_their_way) >= self.window

    # -- sending ----------------------------------------------------------------------------------

    def begin(self, message: Message, qos: int) -> int:
        """Assign an identifier to a message that is being sent. The window must not be full."""
        assert len(self._on_their_way) < PACKET_ID_MAX
        number = self._last
        while True:
            number = number % PACKET_ID_MAX + 1
            if number not in self._on_their_way:
                break
        self._last = number
        self._on_their_way[number] = _Run((message,), number, qos)
        return number

    def begin_many(self, messages: MessageSequence[Message], qos: int) -> Sequence[int]:
        """The same for several messages; the window must have room for all."""
        first = self._last % PACKET_ID_MAX + 1
        numbers = range(first, first + len(messages))
        if self._are_free(numbers):
            self._last = numbers[-1]
            return self._enter(numbers, messages, qos)
        return [self.begin(messages[place], qos) for place in range(len(messages))]

    def claim(self, number: int, message: Message, qos: int) -> bool:
        """Assign this identifier to a message that is being sent; False if it is in use."""
        if number in self._on_their_way:
            return False
        self._on_their_way[number] = _Run((message,), number, qos)
        return True

    def claim_many(self, first: int, messages: MessageSequence[Message], qos: int) -> Sequence[int]:
        """The same for several messages, with consecutive identifiers; returns those before the
        first one that is in use.
        """
        wanted = range(first, first + len(messages))
        if self._are_free(wanted):
            return self._enter(wanted, messages, qos)
        numbers = []
        for place in range(len(messages)):
            number = (first - 1 + place) % PACKET_ID_MAX + 1
            if not self.claim(number, messages[place], qos):
                break
            numbers.append(number)
        return numbers

    def _are_free(self, numbers: range) -> bool:
        """Whether these identifiers exist, and are not in use."""
        if not numbers or numbers[-1] > PACKET_ID_MAX:
            return False
        return not self._on_their_way or self._on_their_way.keys().isdisjoint(numbers)

    def _enter(self, numbers: range, messages: MessageSequence[Message], qos: int) -> Sequence[int]:
        self._on_their_way.update(dict.fromkeys(numbers, _Run(messages, numbers[0], qos)))
        return numbers

    def get(self, number: int) -> InFlight[Message] | None:
        run = self._on_their_way.get(number)
        return None if run is None else InFlight(run.message(number), run.qos, run.released)

    def resume(self, number: int, message: Message, qos: int, *, released: bool) -> None:
        """Restore a message in flight after a restart; called in their original order."""
        self._on_their_way[number] = _Run((message,), number, qos, released=released)
        self._last = number

    def forget(self, number: int) -> None:
        """Free the identifier of a message that was not sent."""
        del self._on_their_way[number]

    # -- acknowledgements -------------------------------------------------------------------------

    def acknowledged(self, number: int) -> Message | None:
        """Process PUBACK; None if the identifier does not wait for one."""
        run = self._on_their_way.get(number)
        if run is None or run.qos != 1:
            return None
        del self._on_their_way[number]
        return run.message(number)

    def received(self, number: int) -> Message | None:
        """Process PUBREC, first or repeated: send PUBREL. None as above."""
        run = self._on_their_way.get(number)
        if run is None or run.qos != 2:
            return None
        if not run.released:
            self._on_their_way[number] = run.after_release()
        return run.message(number)

    def refused(self, number: int) -> Message | None:
        """Process PUBREC with a failure, which ends the message (4.3.3)."""
        found = self.received(number)
        if found is not None:
            del self._on_their_way[number]
        return found

    def completed(self, number: int) -> Message | None:
        """Process PUBCOMP; None if the identifier does not wait for one."""
        run = self._on_their_way.get(number)
        if run is None or not run.released:
            return None
        del self._on_their_way[number]
        return run.message(number)

    def all_acknowledged(self, numbers: Sequence[int]) -> Ended[Message]:
        """Process a run of PUBACK."""
        runs = self._runs_of(numbers)
        if runs is not None and all(run.qos == 1 for run in runs):
            return self._end(numbers, runs)
        return _ended([self.acknowledged(number) for number in numbers])

    def all_completed(self, numbers: Sequence[int]) -> Ended[Message]:
        """Process a run of PUBCOMP."""
        runs = self._runs_of(numbers)
        if runs is not None and all(run.released for run in runs):
            return self._end(numbers, runs)
        return _ended([self.completed(number) for number in numbers])

    def all_refused(self, numbers: Sequence[int]) -> Ended[Message]:
        """Process a run of PUBREC with a failure."""
        return _ended([self.refused(number) for number in numbers])

    def _runs_of(self, numbers: Sequence[int]) -> Sequence[_Run[Message]] | None:
        """The runs of these identifiers; None if one is not in use, or comes twice."""
        runs = dict.fromkeys(map(self._on_their_way.get, numbers))
        if None in runs or len(set(numbers)) < len(numbers):
            return None
        return [run for run in runs if run is not None]

    def _end(self, numbers: Sequence[int], runs: Sequence[_Run[Message]]) -> Ended[Message]:
        if len(numbers) == len(self._on_their_way):  # no identifier comes twice
            self._on_their_way.clear()
        else:
            consume(map(self._on_their_way.__delitem__, numbers))
        return Ended(len(numbers), [run.messages[0] for run in runs if len(run.messages) == 1])


def _ended(messages: Sequence[Message | None]) -> Ended[Message]:
    found = [one for one in messages if one is not None]
    return Ended(len(found), found)
