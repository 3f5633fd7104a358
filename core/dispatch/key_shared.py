"""Key_Shared: all messages of one key go to one consumer, in order. Pure.

Theory. A key's hash has an owner (see `selectors.py`). When consumers attach or leave, hashes get
new owners, while the old one may still have pending messages of a key. Ordered delivery follows
from one rule: **all pending entries of a hash are with one consumer, its holder** (PIP-379,
`DrainingHashesTracker.java` of Pulsar 4.2). While the holder is not the owner, the hash is
*draining*, and no consumer gets more of it; once the holder has no pending entry of it,
the owner takes over. If the hash returns to its holder before that, delivery continues. Before
PIP-379, Pulsar blocked new consumers as a whole (`recentlyJoinedConsumers`).

The second rule keeps the order within a hash: an entry must not overtake an earlier one that waits
to be delivered again, or was held back.

With `out_of_order` (`allowOutOfOrderDelivery`) neither rule applies. With ranges that consumers
choose, no hash gets a new owner while its holder is attached, so the first rule has no effect.

Invariant: a plan has each examined entry exactly once, as delivered or as held back.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from magnetar.core.dispatch.selectors import CONSISTENT, Division, HashRange, Selector, Sticky
from magnetar.core.kernel.errors import SubscriptionBusy


class Keyed(Protocol):
    """A consumer, as decisions see it."""

    @property
    def name(self) -> str: ...

    @property
    def permits(self) -> int: ...

    @property
    def ready(self) -> bool:
        """Whether an entry may be delivered to it now."""
        ...


C = TypeVar("C", bound=Keyed)


class Mode(Struct, frozen=True):
    """How keys are divided; the first consumer of a subscription sets it for all."""

    sticky: bool = False
    out_of_order: bool = False


class Portion(Struct, Generic[C], frozen=True):
    """Entries `start`..`start + count` (exclusive) go to `consumer`."""

    consumer: C
    start: int
    count: int


class KeyedPlan(Struct, Generic[C], frozen=True):
    """What to do with the first `seen` entries: deliver the portions, hold the others back."""

    portions: list[Portion[C]]
    held: list[int]
    """Places of entries that are held back, to join replay."""
    seen: int


class _Holder(Generic[C]):
    """The consumer with pending entries of a hash, and how many."""

    __slots__ = ("consumer", "entries")

    def __init__(self, consumer: C) -> None:
        self.consumer = consumer
        self.entries = 0


class KeyShared(Generic[C]):
    """See the module's docstring."""

    def __init__(self, mode: Mode, division: Division = CONSISTENT) -> None:
        self.mode = mode
        self.drained_total = 0
        """How many hashes have finished draining."""
        self._selector: Selector[C] = Sticky() if mode.sticky else division.selector()
        self._holders: dict[int, _Holder[C]] = {}

    # -- consumers ----------------------------------------------------------------------------

    def attach(self, consumer: C, mode: Mode, ranges: Sequence[HashRange] = ()) -> None:
        """Raise `SubscriptionBusy` for another mode, `HashRangeTaken` for owned hashes."""
        if mode != self.mode:
            raise SubscriptionBusy(
                "the consumers of this subscription divide keys in another way: key-shared mode and"
                " out-of-order delivery must be the same for all"
            )
        self._selector.add(consumer, ranges)

    def detach(self, consumer: C) -> None:
        """Remove a consumer; the caller delivers its pending entries again."""
        self._selector.remove(consumer)
        for hash_ in [h for h, holder in self._holders.items() if holder.consumer is consumer]:
            del self._holders[hash_]

    def hash_of(self, key: bytes) -> int:
        """The hash of a message's key."""
        return self._selector.hash_of(key)

    def owner(self, hash_: int) -> C | None:
        """The owner of a hash; None if there is none."""
        return self._selector.select(hash_)

    def ranges_of(self, consumer: C) -> list[HashRange]:
        """The hash ranges of a consumer, for statistics."""
        return self._selector.ranges_of(consumer)

    # -- what is out --------------------------------------------------------------------------

    def sent(self, consumer: C, hash_: int) -> None:
        """An entry of this hash is delivered."""
        holder = self._holders.get(hash_)
        if holder is None:
            holder = self._holders[hash_] = _Holder(consumer)
        holder.entries += 1

    def returned(self, consumer: C, hash_: int) -> bool:
        """Settle a pending entry; True if that ends the draining of its hash."""
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
        """Whether no consumer but the owner has pending entries of a hash."""
        holder = self._holders.get(hash_)
        return holder is None or holder.consumer is owner or self.mode.out_of_order

    def draining(self) -> dict[int, tuple[C, int]]:
        """Draining hashes, with their holders and the number of pending entries."""
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
        """Assign entries with these hashes, in order; carry out the plan before the next call.

        `waiting` has the hashes of earlier entries that wait to be delivered again (none, if these
        entries are such themselves). The plan ends after `held_max` entries held back, since each
        takes memory.
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
    """Take the messages of an entry from a consumer's permits; False if it has none left."""
    identity = id(consumer)
    permits = left.get(identity)
    if permits is None:
        permits = consumer.permits if consumer.ready else 0
    if permits <= 0:
        left[identity] = 0
        return False
    left[identity] = permits - (1 if counts is None else counts[at])
    return True
