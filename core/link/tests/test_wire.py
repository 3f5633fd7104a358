"""The wire of a connection that is closed: it is one, takes all bytes, and has nothing to say."""

import typing

import pytest

from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.wire import NO_WIRE, NoWire, Wire

MEMBERS = sorted(
    {*typing.get_type_hints(Wire), *(name for name in vars(Wire) if not name.startswith("_"))}
)


@pytest.mark.parametrize("member", MEMBERS)
def test_it_has_all_that_the_link_asks_of_a_wire(member: str) -> None:
    assert hasattr(NO_WIRE, member)


def test_it_takes_everything_and_wants_nothing() -> None:
    assert NO_WIRE.feed(b"abc") == 3
    NO_WIRE.feed_large(LargeFrame(b"a", 3))
    assert (NO_WIRE.frame_bytes_wanted, NO_WIRE.bytes_held) == (0, 0)
    assert NO_WIRE.body_in(b"abc") == (0, 0)
    assert not NO_WIRE.packs_unasked


def test_it_says_nothing() -> None:
    NO_WIRE.feed(b"abc")
    assert list(NO_WIRE.take_events()) == []
    assert list(NO_WIRE.take_outgoing()) == []


def test_it_keeps_nothing_alive() -> None:
    """It stands for thousands of connections that have gone."""
    assert not vars(NO_WIRE)
    assert isinstance(NO_WIRE, NoWire)
