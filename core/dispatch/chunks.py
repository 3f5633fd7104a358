"""Chunks of large messages (PIP-37): all chunks of one message go to the same consumer. Pure.

The consumer of the first chunk gets the others too, even beyond its permits, because no other
consumer can use them. A later chunk whose first one was delivered to no consumer is an orphan:
unless the first is delayed still, its message can never be assembled, and the caller
acknowledges it (`SharedConsumerAssignor.java` of Pulsar 4.2 does the same).

Invariant: at most `MESSAGES_OPEN_MAX` unfinished messages are remembered; the oldest is removed
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic

from msgspec import Struct

from magnetar.core.dispatch.shared import C, Share, choose

MESSAGES_OPEN_MAX: Final = 10_000
"""Chunked messages whose last chunk has not been assigned."""


class ChunkedEntry(Struct, frozen=True):
    """The chunk that an entry is, from its metadata."""

    uuid: bytes
    first: bool
    last: bool


class Deal(Struct, Generic[C], frozen=True):
    """The shares to deliver, and the orphans to acknowledge, of the first `seen` entries."""

    shares: list[Share[C]]
    orphans: list[int]
    seen: int
    turn: int


class PermitBalance(Generic[C]):
    """The permits of a consumer within one deal."""

    __slots__ = ("consumer", "permits", "priority")

    def __init__(self, consumer: C) -> None:
        self.consumer = consumer
        self.priority = consumer.priority
        self.permits = consumer.permits


class ChunkOwners(Generic[C]):
    """The consumer of each chunked message. An assignment must be carried out unchanged."""

    def __init__(self) -> None:
        self._owners: dict[bytes, C] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def left(self, consumer: C) -> None:
        """A consumer has left; its messages are delivered again from the first chunk on."""
        self._owners = {u: owner for u, owner in self._owners.items() if owner is not consumer}

    def choose(
        self,
        entries: int,
        counts: Sequence[int] | None,
        consumers: Sequence[C],
        turn: int,
        chunks: Mapping[int, ChunkedEntry],
    ) -> Deal[C]:
        """As `shared.choose`; `chunks` has the entries that are chunks, by place."""
        purses = [PermitBalance(consumer) for consumer in consumers]
        shares: list[Share[C]] = []
        orphans: list[int] = []
        start = 0
        for place in [*sorted(chunks), entries]:
            between = None if counts is None else counts[start:place]
            dealt, turn = choose(place - start, between, purses, turn)
            for share in dealt:
                shares.append(Share(share.consumer.consumer, start + share.start, share.count))
                share.consumer.permits -= _cost(between, share.start, share.count)
            start += sum(share.count for share in dealt)
            if start < place or place == entries:
                break
            owner, turn = self._owner(chunks[place], purses, turn)
            if owner is not None:
                shares.append(Share(owner, place, 1))
            elif chunks[place].first:
                break  # no consumer can take it now
            else:
                orphans.append(place)
            start = place + 1
        return Deal(shares, orphans, start, turn)

    def _owner(
        self, chunk: ChunkedEntry, purses: list[PermitBalance[C]], turn: int
    ) -> tuple[C | None, int]:
        """The consumer for a chunk; a first chunk goes to the consumer whose turn it is."""
        owner = self._owners.get(chunk.uuid)
        if owner is None and chunk.first:
            shares, turn = choose(1, None, purses, turn)
            if shares:
                owner = shares[0].consumer.consumer
                while len(self._owners) >= MESSAGES_OPEN_MAX:
                    del self._owners[next(iter(self._owners))]
                self._owners[chunk.uuid] = owner
        if owner is not None:
            for purse in purses:
                if purse.consumer is owner:
                    purse.permits -= 1
            if chunk.last:
                self._owners.pop(chunk.uuid, None)
        return owner, turn


def _cost(counts: Sequence[int] | None, start: int, count: int) -> int:
    return count if counts is None else sum(counts[start : start + count])
