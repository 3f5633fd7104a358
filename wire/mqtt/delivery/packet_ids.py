"""Packet identifiers of the messages in flight to one client. Pure.

    sent      PUBLISH is sent; QoS 1 waits for PUBACK, QoS 2 for PUBREC
    released  PUBREL is sent; QoS 2 waits for PUBCOMP

The window is the client's Receive Maximum, which limits the messages in flight [MQTT-3.3.4-9].
Identifiers are assigned in turn; those in use are skipped [MQTT-2.2.1-3]. A client that reconnects
gets the messages in flight again, in their original order [MQTT-4.4.0-1, MQTT-4.6.0-1].

Messages that are sent together have consecutive identifiers and share one object (`_Run`). Clients
acknowledge in the order in which they receive, so such runs are a queue, and a run of
acknowledgements at its beginning is one step, whatever their number. For anything else (QoS 2,
another order, single messages behind them) they move to a mapping by identifier.

Invariants: an identifier is in use from `begin` until its last acknowledgement, across connections;
the queue's messages were sent after those of the mapping.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from magnetar.core.kernel.structs import LeafStruct

Message = TypeVar("Message")
Item = TypeVar("Item", covariant=True)

PACKET_ID_MAX: Final = 65_535
RUNS_MAX: Final = 16
"""Of the queue: each is compared with every new one."""
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


class Ended(Generic[Message]):
    """What a run of acknowledgements has ended."""

    __slots__ = ("alone", "total")

    def __init__(self, total: int, alone: Sequence[Message]) -> None:
        self.total = total
        self.alone = alone
        """Among them all those that were begun alone."""


class _Run(Generic[Message]):
    """Messages in flight with consecutive identifiers, all of them in one state."""

    __slots__ = ("begin", "end", "first", "messages", "qos", "released", "successor")

    def __init__(
        self, messages: MessageSequence[Message], first: int, qos: int, *, released: bool = False
    ) -> None:
        self.messages = messages
        self.first = first
        """The identifier of the first one."""
        self.begin = first
        """That of the first one in flight, and the one after the last, while it is queued."""
        self.end = first + len(messages)
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

    __slots__ = ("_by_number", "_last", "_queue", "_queued", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        """Set by each connection."""
        self._last = 0
        self._by_number: dict[int, _Run[Message]] = {}
        """Messages in flight, in the order in which they were sent."""
        self._queue: deque[_Run[Message]] = deque()
        """Those that were sent together, after them."""
        self._queued = 0
        """How many messages these are."""

    def __len__(self) -> int:
        return len(self._by_number) + self._queued

    def __iter__(self) -> Iterator[tuple[int, InFlight[Message]]]:
        for number, run in self._by_number.items():
            yield number, InFlight(run.message(number), run.qos, run.released)
        for run in self._queue:
            for number in range(run.begin, run.end):
                yield number, InFlight(run.message(number), run.qos, run.released)

    @property
    def room(self) -> int:
        """How many more messages may be in flight; may be negative after a reconnect."""
        return self.window - len(self)

    @property
    def is_full(self) -> bool:
        return len(self) >= self.window

    def _each(self) -> dict[int, _Run[Message]]:
        """All messages in flight, by identifier."""
        while self._queue:
            run = self._queue.popleft()
            self._by_number.update(dict.fromkeys(range(run.begin, run.end), run))
        self._queued = 0
        return self._by_number

    # -- sending ----------------------------------------------------------------------------------

    def begin(self, message: Message, qos: int) -> int:
        """Assign an identifier to a message that is being sent. The window must not be full."""
        in_flight = self._each()
        assert len(in_flight) < PACKET_ID_MAX
        number = self._last
        while True:
            number = number % PACKET_ID_MAX + 1
            if number not in in_flight:
                break
        self._last = number
        in_flight[number] = _Run((message,), number, qos)
        return number

    def begin_many(self, messages: MessageSequence[Message], qos: int) -> Sequence[int]:
        """The same for several messages; the window must have room for all."""
        first = self._last % PACKET_ID_MAX + 1
        if self._are_free(first, first + len(messages)):
            self._last = first + len(messages) - 1
            return self._enter(first, messages, qos)
        return [self.begin(messages[place], qos) for place in range(len(messages))]

    def claim(self, number: int, message: Message, qos: int) -> bool:
        """Assign this identifier to a message that is being sent; False if it is in use."""
        in_flight = self._each()
        if number in in_flight:
            return False
        in_flight[number] = _Run((message,), number, qos)
        return True

    def claim_many(self, first: int, messages: MessageSequence[Message], qos: int) -> Sequence[int]:
        """The same for several messages, with consecutive identifiers; returns those before the
        first one that is in use.
        """
        if self._are_free(first, first + len(messages)):
            return self._enter(first, messages, qos)
        numbers = []
        for place in range(len(messages)):
            number = (first - 1 + place) % PACKET_ID_MAX + 1
            if not self.claim(number, messages[place], qos):
                break
            numbers.append(number)
        return numbers

    def _are_free(self, first: int, end: int) -> bool:
        """Whether these identifiers exist, and are not in use."""
        if first == end or end > PACKET_ID_MAX + 1:
            return False
        for run in self._queue:
            if first < run.end and run.begin < end:
                return False
        return not self._by_number or self._by_number.keys().isdisjoint(range(first, end))

    def _enter(self, first: int, messages: MessageSequence[Message], qos: int) -> Sequence[int]:
        if len(self._queue) == RUNS_MAX:
            self._each()
        run = _Run(messages, first, qos)
        self._queue.append(run)
        self._queued += run.end - first
        return range(first, run.end)

    def get(self, number: int) -> InFlight[Message] | None:
        run = self._each().get(number)
        return None if run is None else InFlight(run.message(number), run.qos, run.released)

    def resume(self, number: int, message: Message, qos: int, *, released: bool) -> None:
        """Restore a message in flight after a restart; called in their original order."""
        self._each()[number] = _Run((message,), number, qos, released=released)
        self._last = number

    def forget(self, number: int) -> None:
        """Free the identifier of a message that was not sent."""
        del self._each()[number]

    # -- acknowledgements -------------------------------------------------------------------------

    def acknowledged(self, number: int) -> Message | None:
        """Process PUBACK; None if the identifier does not wait for one."""
        run = self._each().get(number)
        if run is None or run.qos != 1:
            return None
        del self._by_number[number]
        return run.message(number)

    def received(self, number: int) -> Message | None:
        """Process PUBREC, first or repeated: send PUBREL. None as above."""
        run = self._each().get(number)
        if run is None or run.qos != 2:
            return None
        if not run.released:
            self._by_number[number] = run.after_release()
        return run.message(number)

    def refused(self, number: int) -> Message | None:
        """Process PUBREC with a failure, which ends the message (4.3.3)."""
        found = self.received(number)
        if found is not None:
            del self._by_number[number]
        return found

    def completed(self, number: int) -> Message | None:
        """Process PUBCOMP; None if the identifier does not wait for one."""
        run = self._each().get(number)
        if run is None or not run.released:
            return None
        del self._by_number[number]
        return run.message(number)

    def all_acknowledged(self, numbers: Sequence[int]) -> Ended[Message]:
        """Process a run of PUBACK."""
        count = self._end_first(numbers)
        if count == len(numbers):
            return Ended(count, ())
        rest = numbers[count:]
        runs = self._runs_of(rest)
        if runs is not None and all(run.qos == 1 for run in runs):
            return self._end(rest, runs, count)
        return _ended([self.acknowledged(number) for number in rest], count)

    def all_completed(self, numbers: Sequence[int]) -> Ended[Message]:
        """Process a run of PUBCOMP."""
        runs = self._runs_of(numbers)
        if runs is not None and all(run.released for run in runs):
            return self._end(numbers, runs)
        return _ended([self.completed(number) for number in numbers])

    def all_refused(self, numbers: Sequence[int]) -> Ended[Message]:
        """Process a run of PUBREC with a failure."""
        return _ended([self.refused(number) for number in numbers])

    def _end_first(self, numbers: Sequence[int]) -> int:
        """End messages at the beginning of the queue that PUBACK acknowledges, as long as these are
        their identifiers; returns how many.
        """
        count = len(numbers)
        if not (self._queue and (count == 1 or isinstance(numbers, range))):
            return 0
        first: int = numbers[0]
        at, end = first, first + count
        while at < end and self._queue:
            run = self._queue[0]
            if run.begin != at or run.qos != 1:
                break
            if run.end > end:
                run.begin = at = end
            else:
                at = run.end
                self._queue.popleft()
        self._queued -= at - first
        return at - first

    def _runs_of(self, numbers: Sequence[int]) -> Sequence[_Run[Message]] | None:
        """The runs of these identifiers; None if one is not in use, or comes twice."""
        runs = dict.fromkeys(map(self._each().get, numbers))
        if None in runs or len(set(numbers)) < len(numbers):
            return None
        return [run for run in runs if run is not None]

    def _end(
        self, numbers: Sequence[int], runs: Sequence[_Run[Message]], before: int = 0
    ) -> Ended[Message]:
        if len(numbers) == len(self._by_number):  # no identifier comes twice
            self._by_number.clear()
        else:
            consume(map(self._by_number.__delitem__, numbers))
        alone = [run.messages[0] for run in runs if len(run.messages) == 1]
        return Ended(before + len(numbers), alone)


def _ended(messages: Sequence[Message | None], before: int = 0) -> Ended[Message]:
    """What these calls have ended, besides so many messages before."""
    found = [one for one in messages if one is not None]
    return Ended(before + len(found), found)
