"""Key_Shared: all messages of one key go to one consumer, in order. Pure.

Theory. A key's hash has an owner (see `selectors.py`). When consumers come and go, hashes change
hands, and then the old owner may still hold messages of a key that the new one must not get yet.
Ordered delivery rests on one rule: **all entries of a hash that are out are out to one consumer,
its holder** (`DrainingHashesTracker.java` of Pulsar 4). While there is a holder other than the
owner, the hash is *draining* and no consumer gets more of it; once the holder has nothing left of
it (acknowledged, returned, or gone), the owner takes over. If the hash returns to its holder before
that, delivery simply goes on.

The second rule keeps order within a hash: an entry must not overtake an earlier one that waits to
be delivered again, nor one that was held back a moment ago.

With `out_of_order` neither rule applies; with ranges that consumers name themselves no hash changes
hands while its holder is present, so the first rule never bites.

Invariant: a plan covers each entry it has looked at exactly once, as delivered or as held back.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from magnetar.core.dispatch.selectors import CONSISTENT, Division, HashRange, Selector, Sticky
from magnetar.core.kernel.errors import SubscriptionBusy


class Keyed(Protocol):
    """What the decisions look at."""

    @property
    def name(self) -> str: ...

    @property
    def permits(self) -> int: ...

    @property
    def ready(self) -> bool:
        """May be given an entry now."""
        ...


C = TypeVar("C", bound=Keyed)


class Mode(Struct, frozen=True):
    """How keys are divided; the first consumer of a subscription decides for all."""

    sticky: bool = False
    out_of_order: bool = False


class Portion(Struct, Generic[C], frozen=True):
    """Entries `start`..`start + count` (exclusive) of what was looked at go to `consumer`."""

    consumer: C
    start: int
    count: int


class KeyedPlan(Struct, Generic[C], frozen=True):
    """What to do with the first `seen` entries: deliver the portions, hold the others back."""

    portions: list[Portion[C]]
    held: list[int]
    """Places of entries to be looked at again later: into replay with them."""
    seen: int


class _Holder(Generic[C]):
    """Who holds entries of a hash, and how many."""

    __slots__ = ("consumer", "entries")

    def __init__(self, consumer: C) -> None:
        self.consumer = consumer
        self.entries = 0


class KeyShared(Generic[C]):
    """See the module's docstring."""

    def __init__(self, mode: Mode, division: Division = CONSISTENT) -> None:
        self.mode = mode
        self.drained_total = 0
        """Hashes that were draining and are no more."""
        self._selector: Selector[C] = Sticky() if mode.sticky else division.selector()
        self._holders: dict[int, _Holder[C]] = {}

    # -- consumers ----------------------------------------------------------------------------

    def attach(self, consumer: C, mode: Mode, ranges: Sequence[HashRange] = ()) -> None:
        """`SubscriptionBusy` if it wants another mode, `HashRangeTaken` if another's hashes."""
        if mode != self.mode:
            raise SubscriptionBusy(
                "the consumers of this subscription divide keys in another way: key-shared mode and"
                " out-of-order delivery must be the same for all"
            )
        self._selector.add(consumer, ranges)

    def detach(self, consumer: C) -> None:
        """A consumer that leaves holds nothing; the caller delivers its entries again."""
        self._selector.remove(consumer)
        for hash_ in [h for h, holder in self._holders.items() if holder.consumer is consumer]:
            del self._holders[hash_]

    def hash_of(self, key: bytes) -> int:
        """The hash of a message's key, as this subscription divides them."""
        return self._selector.hash_of(key)

    def owner(self, hash_: int) -> C | None:
        """The consumer for messages of this hash; None if there is none."""
        return self._selector.select(hash_)

    def ranges_of(self, consumer: C) -> list[HashRange]:
        """For statistics."""
        return self._selector.ranges_of(consumer)

    # -- what is out --------------------------------------------------------------------------

    def sent(self, consumer: C, hash_: int) -> None:
        """An entry of this hash is delivered."""
        holder = self._holders.get(hash_)
        if holder is None:
            holder = self._holders[hash_] = _Holder(consumer)
        holder.entries += 1

    def returned(self, consumer: C, hash_: int) -> bool:
        """An entry is acknowledged or comes again; True if that lets a drained hash go on."""
        holder = self._holders.get(hash_)
        if holder is None or holder.consumer is not consumer:
            return False
        holder.entries -= 1
        if holder.entries > 0:
            return False
        del self._holders[hash_]
        if self.mode.out_of_order or self.owner(hash_) is consumer:
            return False
        self.drained_total += 1
        return True

    def free(self, hash_: int, owner: C) -> bool:
        """Whether its owner may get more of it: no other consumer holds any."""
        holder = self._holders.get(hash_)
        return holder is None or holder.consumer is owner or self.mode.out_of_order

    def draining(self) -> dict[int, tuple[C, int]]:
        """Hashes whose holder is not their owner any more: who that is, with how many entries."""
        if self.mode.out_of_order:
            return {}
        return {
            hash_: (holder.consumer, holder.entries)
            for hash_, holder in self._holders.items()
            if self.owner(hash_) is not holder.consumer
        }

    # -- deciding -----------------------------------------------------------------------------

    def choose(
        self,
        hashes: Sequence[int],
        counts: Sequence[int] | None,
        waiting: Container[int],
        held_max: int,
    ) -> KeyedPlan[C]:
        """Deal out entries with these hashes, in order; carry the plan out before the next call.

        `waiting` has the hashes of entries that come before these and wait to be delivered again
        (nothing, when these are such entries themselves). After `held_max` entries held back the
        plan ends: looking further ahead would only fill memory.
        """
        portions: list[Portion[C]] = []
        held: list[int] = []
        left: dict[int, int] = {}
        stopped: set[int] = set()
        in_order = not self.mode.out_of_order
        current: C | None = None
        start = 0
        select = self._selector.select
        for at, hash_ in enumerate(hashes):
            consumer = select(hash_)
            if in_order and consumer is not None:
                holder = self._holders.get(hash_)
                late = hash_ in stopped or hash_ in waiting
                if late or (holder is not None and holder.consumer is not consumer):
                    consumer = None
            if consumer is not None and not _pay(left, consumer, counts, at):
                consumer = None
            if consumer is not current:
                if current is not None:
                    portions.append(Portion(current, start, at - start))
                current, start = consumer, at
            if consumer is None:
                if len(held) >= held_max:
                    return KeyedPlan(portions, held, at)
                held.append(at)
                stopped.add(hash_)
        if current is not None:
            portions.append(Portion(current, start, len(hashes) - start))
        return KeyedPlan(portions, held, len(hashes))


def _pay(left: dict[int, int], consumer: Keyed, counts: Sequence[int] | None, at: int) -> bool:
    """Take the price of an entry from what the consumer has left, if it has anything left."""
    identity = id(consumer)
    permits = left.get(identity)
    if permits is None:
        permits = consumer.permits if consumer.ready else 0
    if permits <= 0:
        left[identity] = 0
        return False
    left[identity] = permits - (1 if counts is None else counts[at])
    return True
