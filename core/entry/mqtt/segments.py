"""Parts of a run that are handled as one: consecutive packets that differ in their payload. Pure.

A device sends to few topics, so most runs are one segment: its subscribers are looked up once, and
its bytes are sent as they are stored, with QoS 1 and 2 after new packet identifiers are set.

Invariant: reading raises `Corrupted` and nothing else, as that of the packets themselves. The
functions have compiled twins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from magnetar.core.entry.mqtt.run import PUBLISH, RETAIN, length_at, u16_at
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.native import quickest

DUP: Final = 8


class PublishSegment(NamedTuple):
    """See the module's docstring."""

    number: int
    """That of its first packet in the run."""
    packets: int
    begin: int
    end: int
    """Its offsets in the run."""
    first: int
    """The first byte of its packets."""
    topic: bytes
    plain: bool
    """Whether its packets have neither properties nor DUP. A packet with one is a segment."""

    @property
    def qos(self) -> int:
        return self.first >> 1 & 3

    @property
    def retain(self) -> bool:
        return bool(self.first & RETAIN)


def py_segments(data: bytes, at: int, has_properties: bool) -> list[PublishSegment]:
    """The segments of a run whose packets begin at `at`."""
    found: list[PublishSegment] = []
    size, index = len(data), 0
    while at < size:
        begin, first = at, data[at]
        if first & 0xF0 != PUBLISH:
            raise Corrupted(f"a packet of a run begins with {first:#x}")
        length, at = length_at(data, at + 1, size)
        end = at + length
        if end > size:
            raise Corrupted("a PUBLISH packet is longer than its run")
        topic_at = at + 2
        topic_end = topic_at + u16_at(data, at)
        at = topic_end + 2 if first >> 1 & 3 else topic_end
        plain = not first & DUP
        if has_properties and at < end:
            length, at = length_at(data, at, end)
            at += length
            plain = plain and not length
        if at > end:
            raise Corrupted("a PUBLISH packet ends within a field")
        topic, at = data[topic_at:topic_end], end
        last = found[-1] if found else None
        if (
            last is not None and plain and last.plain
            and first == last.first and topic == last.topic
        ):  # fmt: skip
            found[-1] = last._replace(packets=last.packets + 1, end=end)
        else:
            found.append(PublishSegment(index, 1, begin, end, first, topic, plain))
        index += 1
    return found


def py_behind(data: bytes, at: int, count: int) -> int:
    """The offset after so many packets of a run that was read before."""
    for _ in range(count):
        length, at = length_at(data, at + 1, len(data))
        at += length
    return at


def py_renumbered(data: bytes, begin: int, end: int, ids: Sequence[int]) -> bytes:
    """A copy of consecutive packets of QoS 1 or 2, with these packet identifiers."""
    copy = bytearray(data[begin:end])
    at = 0
    for number in ids:
        length, topic_at = length_at(copy, at + 1, len(copy))
        place = topic_at + 2 + u16_at(copy, topic_at)
        copy[place : place + 2] = number.to_bytes(2)
        at = topic_at + length
    return bytes(copy)


HOME: Final = "magnetar.core.entry.mqtt.compiled"
segments: Final = quickest(py_segments, HOME)
behind: Final = quickest(py_behind, HOME)
renumbered: Final = quickest(py_renumbered, HOME)
