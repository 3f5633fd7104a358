"""What all layers do: they feed the wire above, and as seldom as they can."""

from __future__ import annotations

from magnetar.core.link.large_frame import LargeFrame
from magnetar.core.link.layers.layer import Layer
from magnetar.core.link.tests.echo import LineWire, SizedWire


class Doubling(Layer):
    """Each byte comes twice."""

    def feed(self, data: bytes) -> int:
        self._plain += data[::2]
        self._feed_inner()
        return len(data)

    def take_outgoing(self) -> list[bytes]:
        return [bytes(byte for byte in piece for _ in "12") for piece in self.inner.take_outgoing()]

    def farewell(self) -> list[bytes]:
        return [*self._inner_farewell(), b"bye\n"]


def test_what_the_wire_above_leaves_is_held() -> None:
    layer = Doubling(LineWire())
    assert layer.feed(b"aabb") == 4
    assert (layer.bytes_held, layer.frame_bytes_wanted, layer.body_in(b"aa")) == (2, 0, (0, 0))
    layer.feed(b"\n\n")
    assert layer.take_events() == [b"ab"]
    assert layer.bytes_held == 0


def test_a_frame_that_is_not_whole_is_not_fed_again() -> None:
    above = SizedWire()
    layer = Doubling(above)
    fed = []
    above.feed = lambda data: fed.append(data) or SizedWire.feed(above, data)  # type: ignore[method-assign]
    for byte in b"\0\0\0\x64" + b"x" * 100:
        layer.feed(bytes((byte, byte)))
    assert layer.take_events() == [b"x" * 100]
    assert len(fed) <= 6


def test_a_large_frame_is_taken_as_a_whole() -> None:
    layer = Doubling(LineWire())
    layer.feed_large(LargeFrame(b"aabbcc\n\n", 8))
    assert layer.take_events() == [b"abc"]


def test_layers_say_farewell_from_the_top() -> None:
    assert Doubling(Doubling(LineWire())).farewell() == [b"bye\n", b"bye\n"]
