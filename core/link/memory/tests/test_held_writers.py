"""Connections that are not read while storage is congested. `test_loop.py` has them on sockets."""

from __future__ import annotations

from typing import Any

from magnetar.core.link.memory.held_writers import RELEASED_MAX, HeldWriters
from magnetar.core.link.memory.inbound import InboundMemory
from magnetar.core.link.memory.pauses import PAUSE_STORAGE


class Peer:
    """A connection with reasons not to read it."""

    def __init__(self) -> None:
        self.paused = 0

    def pause(self, reason: int) -> None:
        self.paused |= reason

    def resume(self, reason: int) -> None:
        self.paused &= ~reason


def test_writers_are_held_while_storage_is_congested_and_resume_some_at_a_time() -> None:
    writers = HeldWriters(InboundMemory(1000, 1000))
    peers: list[Any] = [Peer() for _ in range(RELEASED_MAX + 2)]
    assert not writers.check(congested=True)
    assert writers.holding
    for peer in peers:
        writers.hold(peer)
    writers.forget(peers[0])
    assert not writers.check(congested=True)
    assert all(peer.paused == PAUSE_STORAGE for peer in peers)
    assert writers.check(congested=False), "one more is held"
    assert not writers.holding
    assert [place for place, peer in enumerate(peers) if peer.paused] == [0, len(peers) - 1]
    assert not writers.check(congested=False)
    assert [place for place, peer in enumerate(peers) if peer.paused] == [0]


def test_bytes_that_are_being_stored_hold_writers_until_half_of_them_are() -> None:
    memory = InboundMemory(1000, 1000)
    writers = HeldWriters(memory)
    seen = []
    for memory.storing in (999, 1000, 700, 501, 500, 700):
        writers.check(congested=False)
        seen.append(writers.holding)
    assert seen == [False, True, True, True, False, False]
