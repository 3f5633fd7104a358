"""Who is asked whether it lives, and who is closed."""

import math
from typing import Any

import pytest

from magnetar.core.link.keep_alive import Silence
from magnetar.core.link.limits import LinkLimits

LIMITS = LinkLimits(silence_seconds=30, unread_seconds=120)


class Session:
    silence_seconds_allowed = 0.0
    requested = 0

    def quiet(self) -> None:
        self.requested += 1


class Peer:
    def __init__(self) -> None:
        self.session = Session()
        self.since = self.heard = self.progress = 0.0
        self.introduced = True
        self.pinged = False
        self.paused = 0
        self.outbox: list[bytes] = []
        self.partial = self
        self.large: object = None


def end_of(peer: Any, each_second: Any = lambda now: None) -> tuple[float, str]:
    """When it is closed, and why; nothing within an hour is never."""
    silence = Silence(LIMITS)
    silence.enter(peer, 0.0)
    for now in range(3600):
        each_second(now)
        for found, reason in silence.expired(now):
            silence.leave(found)
            return now, reason
    return math.inf, ""


def test_a_silent_peer_is_asked_and_closed() -> None:
    peer = Peer()
    assert end_of(peer) == (45, "silent for 45 s")
    assert peer.session.requested == 1


@pytest.mark.parametrize("allowed", [0.0, 600.0, math.inf])
def test_one_that_asks_for_nothing_has_one_span_whatever_it_sends(allowed: float) -> None:
    peer = Peer()
    peer.introduced = False
    peer.session.silence_seconds_allowed = allowed

    def trickles(now: float) -> None:
        peer.heard = now

    at, reason = end_of(peer, trickles)
    assert at == 30
    assert "not introduced itself" in reason


def test_one_whose_first_frame_is_large_has_time_for_it() -> None:
    peer = Peer()
    peer.introduced, peer.large = False, b"much"

    def comes(now: float) -> None:
        peer.heard = now

    assert end_of(peer, comes)[0] == math.inf
    stops, waits = Peer(), Peer()
    stops.introduced, stops.large = False, b"much"
    assert end_of(stops)[1].startswith("silent")
    waits.introduced, waits.paused = False, 1
    assert end_of(waits)[0] == math.inf


def test_one_that_takes_nothing_is_closed_whatever_its_session_allows() -> None:
    peer = Peer()
    peer.session.silence_seconds_allowed = math.inf
    peer.outbox = [b"x"]
    at, reason = end_of(peer)
    assert 120 <= at <= 150
    assert "took nothing" in reason


def test_one_that_takes_a_little_or_is_not_read_stays() -> None:
    reads, waits = Peer(), Peer()
    reads.outbox = [b"x"]

    def takes(now: float) -> None:
        reads.progress = now

    assert end_of(reads, takes)[0] == math.inf
    waits.paused = 1
    assert end_of(waits)[0] == math.inf
