"""Who does not move while others wait."""

from typing import Any

from magnetar.core.link.memory.inbound import InboundMemory
from magnetar.core.link.memory.outbound import OutboundMemory
from magnetar.core.link.memory.stalls import RATE_BYTES_MIN, Stalls


class Peer:
    def __init__(self) -> None:
        self.outbox: list[bytes] = []
        self.proven = self.reads = True
        self.taken_bytes = self.received_bytes = self.held = self.paused = 0
        self.fd = 0  # no socket: nobody can say what its system has not taken
        self.partial = self

    @property
    def waited_for(self) -> bool:
        return bool(self.held) and not self.paused

    def relieved(self) -> None: ...


def test_nobody_is_closed_while_nobody_waits() -> None:
    stalls = Stalls(InboundMemory(100, 0), OutboundMemory(100, 100), 2.0)
    idle: Any = Peer()
    idle.outbox, idle.held = [b"x"], 1
    for now in range(10):
        assert not list(stalls.stalled([idle], now))


def test_who_takes_nothing_is_closed_while_others_wait() -> None:
    outgoing = OutboundMemory(100, 100)
    stalls = Stalls(InboundMemory(100, 0), outgoing, 2.0)
    reader: Any
    stalled: Any
    empty: Any
    reader, stalled, empty = Peer(), Peer(), Peer()
    reader.outbox = stalled.outbox = [b"x"]
    outgoing.wait(empty)
    found = []
    for now in range(4):
        found += [one for one, _ in stalls.stalled([reader, stalled, empty], now)]
        reader.taken_bytes += 2 * RATE_BYTES_MIN
        stalled.taken_bytes += 1
    assert found == [stalled, stalled]


def test_time_counts_from_when_others_wait() -> None:
    outgoing = OutboundMemory(100, 100)
    stalls = Stalls(InboundMemory(100, 0), outgoing, 2.0)
    peer: Any = Peer()
    peer.outbox = [b"x"]
    assert not list(stalls.stalled([peer], 0))
    outgoing.wait(peer)
    assert not list(stalls.stalled([peer], 100))
    outgoing.forget(peer)
    assert not list(stalls.stalled([peer], 101))
    outgoing.wait(peer)
    assert not list(stalls.stalled([peer], 200))
    assert [one for one, _ in stalls.stalled([peer], 202)] == [peer]


def test_who_sends_no_more_of_its_frame_is_closed_unless_we_asked_it_to_wait() -> None:
    incoming = InboundMemory(100, 0)
    stalls = Stalls(incoming, OutboundMemory(100, 100), 2.0)
    stalled: Any
    waits: Any
    small: Any
    stalled, waits, small = Peer(), Peer(), Peer()
    for one in (stalled, waits):
        incoming.ask(one, 90, 90)
    assert not incoming.ask(small, 10, 10)
    waits.paused = 1
    found = [one for now in range(3) for one, _ in stalls.stalled([stalled, waits, small], now)]
    assert found == [stalled]


def test_who_sends_small_frames_all_the_time_is_not_taken_for_one_who_stops() -> None:
    """It is always in the middle of one, and never far in it."""
    incoming = InboundMemory(100, 0)
    stalls = Stalls(incoming, OutboundMemory(100, 100), 2.0)
    busy: Any = Peer()
    others: Any = Peer()
    incoming.ask(busy, 90, 90)
    incoming.ask(others, 90, 90)
    third: Any = Peer()
    assert not incoming.ask(third, 90, 90)
    for now in range(6):
        assert busy not in [one for one, _ in stalls.stalled([busy], now)]
        busy.received_bytes += 2 * RATE_BYTES_MIN
