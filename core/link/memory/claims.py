"""Memory for replies whose size is known before they are built, and the queues for it.

A reply claims its memory, and is built when it has it. What is kept back for one class of replies
cannot be taken by those below it, so peers that do not receive what is large hold up nobody who
asks for little:

    class      its part of all memory    replies
    LARGE      17/32                     all others
    READING    21/32                     of peers that have shown that they receive
    PREFERRED  24/32                     that their clients prefer
    URGENT     27/32                     for which others wait, as their clients say
    RECOVERING 30/32                     the same, of peers that have shown that they receive
    SMALL      31/32                     of no more than `small_bytes`
    BRIEF      32/32                     small and urgent

A claim for which there is no memory waits in the queue of its class; classes with a larger part go
first. One that is larger than its part has it when nothing else is held.

A queue is served in order, but for those of LARGE, PREFERRED and URGENT: there the one that came
first and the one that came last have their turn, one after the other. Nobody in them has shown that
it receives, and each that does not keeps its memory until it is closed, after seconds
(`stalls.py`). Behind hundreds of those, in order, who does receive would wait for all of them; so
it waits for the next turn but one, as long as they do not come again and again.

Anybody can say that a reply is preferred or urgent. So those who have not shown that they receive
hold `CLAIMED_PARTS` of the memory at most with such replies, all together, from the claim until
they have received them: there is always something left for those who ask for no preference.

Invariants: whoever is granted a claim releases it, once; before a claim are granted, of its class,
no more than twice as many as came earlier, and one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from magnetar.core.link.memory.outbound import OutboundMemory

SMALL_BYTES_MAX: Final = 64 * 1024
SMALL_PART: Final = 256
"""A reply up to this part of all memory is small, if it has no more bytes than that."""
PARTS: Final = 32
CLAIMED_PARTS: Final = 10
"""Of the memory, for what somebody says to be preferred or urgent who is not known to receive."""


class ReplyClass(IntEnum):
    """See the module's docstring."""

    LARGE = 17
    READING = 21
    PREFERRED = 24
    URGENT = 27
    RECOVERING = 30
    SMALL = 31
    BRIEF = 32


UNPROVEN: Final = frozenset((ReplyClass.LARGE, ReplyClass.PREFERRED, ReplyClass.URGENT))
"""Classes of those who have not shown that they receive."""
BOUNDED: Final = UNPROVEN - {ReplyClass.LARGE}


class Holder(Protocol):
    """Somebody with a reply that is said to be preferred or urgent."""

    @property
    def holds(self) -> bool:
        """Whether it has not received all of it."""
        ...


class Claimant(Protocol):
    """Somebody who waits for memory."""

    def granted(self) -> None:
        """The claim is granted, and counted."""
        ...


class Claims:
    """See the module's docstring."""

    __slots__ = (
        "_bounded_max",
        "_holders",
        "_large",
        "_large_max",
        "_levels",
        "_memory",
        "_newest",
        "_queues",
        "small_bytes",
        "waiting",
    )

    def __init__(self, memory: OutboundMemory) -> None:
        self.small_bytes = min(SMALL_BYTES_MAX, memory.limit // SMALL_PART)
        self.waiting = 0
        """Claims that wait."""
        self._memory = memory
        self._levels = {each: memory.limit * each // PARTS for each in ReplyClass}
        self._queues: dict[ReplyClass, dict[Claimant, int]] = {
            each: {} for each in reversed(ReplyClass)
        }
        self._large = self._queues[ReplyClass.LARGE]
        self._large_max = self._levels[ReplyClass.LARGE]
        self._newest: set[ReplyClass] = set()
        """The queues in which it is the turn of the last."""
        self._bounded_max = memory.limit * CLAIMED_PARTS // PARTS
        self._holders: dict[Holder, int] = {}
        """What each has been granted of the classes that are bounded, until it has received it."""

    def is_plentiful(self, size: int) -> bool:
        """Whether any reply of that size has its memory. Asked for each one."""
        return not self._large and self._memory.used + size <= self._large_max

    def left(self, kind: ReplyClass) -> int:
        """The memory that this class has left; 0 if others of it wait."""
        return 0 if self._queues[kind] else max(self._levels[kind] - self._memory.used, 0)

    def take(self, kind: ReplyClass, size: int) -> bool:
        """Reserve memory, until `release`; False if there is none, or others wait for it."""
        if self._queues[kind] or not self._fits(kind, size):
            return False
        self._memory.add(size)
        return True

    def hold(self, who: Holder, kind: ReplyClass, size: int) -> None:
        """What it was granted counts until it has received it."""
        if kind in BOUNDED:
            self._holders[who] = size

    def _held(self) -> int:
        for who in [who for who in self._holders if not who.holds]:
            del self._holders[who]
        return sum(self._holders.values())

    def release(self, size: int) -> None:
        self._memory.remove(size)

    def wait(self, who: Claimant, kind: ReplyClass, size: int) -> None:
        """Call `granted` when the memory is reserved. A claimant has one claim at a time."""
        assert not any(who in queue for queue in self._queues.values()), "it waits already"
        self._queues[kind][who] = size
        self.waiting += 1

    def forget(self, who: Claimant) -> None:
        """It does not wait any more."""
        for queue in self._queues.values():
            if who in queue:
                del queue[who]
                self.waiting -= 1

    def _fits(self, kind: ReplyClass, size: int) -> bool:
        used = self._memory.used
        if not used:
            return True
        if kind in BOUNDED and (held := self._held()) and held + size > self._bounded_max:
            return False
        return used + size <= self._levels[kind]

    @property
    def may_grant(self) -> bool:
        """Whether there is memory for a claim that waits."""
        return bool(self.waiting) and any(
            self._fits(kind, queue[self._next_of(kind, queue)])
            for kind, queue in self._queues.items()
            if queue
        )

    def _next_of(self, kind: ReplyClass, queue: dict[Claimant, int]) -> Claimant:
        """Who has its turn."""
        return next(reversed(queue) if kind in self._newest else iter(queue))

    def grant(self) -> None:
        """Grant claims that wait, in turn, as many as there is memory for."""
        for kind, queue in self._queues.items():
            while queue:
                who = self._next_of(kind, queue)
                size = queue[who]
                if not self._fits(kind, size):
                    break
                del queue[who]
                if kind in UNPROVEN:
                    self._newest ^= {kind}
                self.waiting -= 1
                self._memory.add(size)
                who.granted()
