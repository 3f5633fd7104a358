"""Frames that have come in part: who may have more room, and who waits for whom."""

import random
from typing import Any

from magnetar.core.link.memory.inbound import InboundMemory

KIB = 1024


class Frame:
    """A connection in the middle of a frame."""

    def __init__(self, incoming: InboundMemory, size: int = 0) -> None:
        self.incoming = incoming
        self.held = 0
        self.size = size
        self.proven = True
        self.waits = False

    def go_on(self) -> None:
        assert self.waits
        self.waits = False

    def ask(self, step: int, rest: int = 0) -> bool:
        this: Any = self
        granted = self.incoming.ask(this, step, rest or step)
        self.waits = not granted
        return granted

    def done(self) -> None:
        this: Any = self
        self.incoming.done(this)


def test_there_is_room_up_to_the_limit_and_for_one_beyond() -> None:
    incoming = InboundMemory(100 * KIB, 0)
    first, second, third = (Frame(incoming) for _ in range(3))
    assert first.ask(60 * KIB)
    assert second.ask(60 * KIB), "one may always go on"
    assert not third.ask(10 * KIB)
    assert incoming.short
    assert second.ask(60 * KIB), "the same one"
    assert not first.ask(1)
    second.done()
    assert not third.waits
    assert not first.waits
    assert incoming.partial == 70 * KIB + 1
    assert not incoming.short


def test_those_who_have_stored_something_go_first_and_have_a_part_of_their_own() -> None:
    incoming = InboundMemory(100, 0)
    stranger, late, later, known = (Frame(incoming) for _ in range(4))
    stranger.proven = late.proven = later.proven = False
    assert stranger.ask(75)
    assert late.ask(1), "privileged"
    assert not later.ask(1)
    assert known.ask(24)
    assert not known.ask(10)
    late.done()
    assert not known.waits
    assert later.waits
    known.done()
    assert not later.waits, "privileged now"


def test_who_waits_is_given_all_it_lacks() -> None:
    incoming = InboundMemory(100, 0)
    first, second, third = (Frame(incoming) for _ in range(3))
    assert first.ask(100)
    assert second.ask(1)
    assert not third.ask(4, rest=60)
    first.done()
    assert third.held == 60


def test_who_has_gone_does_not_wait() -> None:
    incoming = InboundMemory(100, 0)
    first, second, third = (Frame(incoming) for _ in range(3))
    assert first.ask(100)
    assert second.ask(100)
    assert not third.ask(100)
    third.done()
    assert not incoming.short or incoming.partial > 100
    second.done()
    first.done()
    assert incoming.partial == 0
    assert not incoming.short


def test_much_is_told_before_it_is_too_much() -> None:
    incoming = InboundMemory(100, 0)
    one: Any = Frame(incoming)
    incoming.hold(one, 50)
    assert not incoming.tight
    incoming.hold(one, 51)
    assert incoming.tight
    assert incoming.large_bytes < 100 * KIB
    incoming.hold(one, 0)
    assert not incoming.tight


def test_all_frames_come_to_an_end_whatever_the_order() -> None:
    """Nobody waits for ever, and there is never more than the limit and one frame."""
    for seed in range(50):
        chance = random.Random(seed)
        incoming = InboundMemory(1000, 0)
        frames = [Frame(incoming, chance.randrange(1, 900)) for _ in range(30)]
        for frame in frames:
            frame.proven = chance.random() < 0.5
        left = list(frames)
        while left:
            ready = [frame for frame in left if not frame.waits]
            assert ready, "they wait for each other"
            frame = chance.choice(ready)
            if frame.held >= frame.size:
                frame.done()
                left.remove(frame)
            else:
                rest = frame.size - frame.held
                frame.ask(min(chance.randrange(1, 300), rest), rest)
            assert incoming.partial <= 1000 + 900
            assert incoming.partial == sum(frame.held for frame in frames)
        assert incoming.partial == 0


def test_large_requests_have_room_or_not() -> None:
    incoming = InboundMemory(100, 0)
    assert incoming.take(60)
    assert not incoming.take(60)
    incoming.requested -= 60
    assert incoming.take(60)


def test_of_small_ones_a_part_is_kept_for_who_has_stored_something() -> None:
    incoming = InboundMemory(100, 0)
    assert incoming.take(25, proven=False)
    assert not incoming.requests_high
    assert incoming.take(50, proven=False)
    assert incoming.requests_high
    assert not incoming.take(1, proven=False)
    assert incoming.take(25)
    assert not incoming.take(1)


def test_what_is_stored_makes_room_at_half_the_limit() -> None:
    incoming = InboundMemory(0, 100)
    incoming.storing = 99
    assert not incoming.storing_much
    incoming.storing = 100
    assert incoming.storing_much
    incoming.storing = 51
    assert not incoming.storing_little
    incoming.storing = 50
    assert incoming.storing_little
