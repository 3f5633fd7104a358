"""The frame format: the bounds of a frame, and the tail after its command.

    frame    = u32 size of all that follows, u32 size of the command, command, [tail]
    tail     = [0e 02, u32 size, broker metadata]  [0e 01, u32 CRC32-C]  u32 size, metadata, payload

Only SEND and MESSAGE have a tail. The checksum covers everything after it. Broker metadata
(PIP-70) precedes the checksum, so that a broker can add it without a new checksum. `hot` and
`commands` decode commands, `metadata` the metadata's fields.

Invariant: a size is compared with its limit and with the available bytes before it is used.
"""

from struct import Struct as Layout
from typing import Final, NamedTuple

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.errors import WireError

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
FRAME_SLACK_BYTES: Final = 10 * 1024
"""Bytes of a frame beside the largest message (`Commands.MESSAGE_SIZE_FRAME_PADDING` in Java)."""

BROKER_PART: Final = b"\x0e\x02"
CHECKSUM_PART: Final = b"\x0e\x01"
CHECKED_BYTES: Final = 6
"""The checksum covers a tail from here on."""
TAIL_BYTES_MIN: Final = 10
"""A checksum part and the size of the metadata."""

SIZE: Final = Layout(">I")
SIZES: Final = Layout(">II")


class FrameTail(NamedTuple):
    """The parts of a tail; `checked` is None when there is no checksum."""

    broker: bytes | None
    checked: int | None
    metadata: bytes
    payload: bytes


def frame_end(data: bytes, offset: int, frame_bytes_max: int) -> int:
    """The end of the frame at `offset`, perhaps past the data; its size field is received."""
    (size,) = SIZE.unpack_from(data, offset)
    if size > frame_bytes_max:
        raise WireError(f"a frame of {size} bytes is over the limit of {frame_bytes_max}")
    if size < 4:
        raise WireError(f"a frame of {size} bytes has no room for a command")
    return offset + 4 + int(size)


def command_end(data: bytes, offset: int, end: int) -> int:
    """The end of the command in the frame `offset`..`end`; it begins at `offset` + 8."""
    (size,) = SIZE.unpack_from(data, offset + 4)
    if size > end - offset - 8:
        raise WireError(f"a command of {size} bytes does not fit its frame")
    return offset + 8 + int(size)


def tail_to_store(tail: bytes) -> bytes:
    """A tail as it is stored: with its checksum part, which old clients leave out.

    A stock Go consumer takes a message without one for corrupted.
    """
    if not tail.startswith(CHECKSUM_PART):
        tail = CHECKSUM_PART + SIZE.pack(crc32c(tail)) + tail
    if len(tail) < TAIL_BYTES_MIN:
        raise WireError("a message without metadata")
    (size,) = SIZE.unpack_from(tail, CHECKED_BYTES)
    if size > len(tail) - TAIL_BYTES_MIN:
        raise WireError(f"metadata of {size} bytes does not fit its message")
    return tail


def checksum_fits(tail: bytes) -> bool:
    """Whether the checksum of a stored tail is right."""
    (expected,) = SIZE.unpack_from(tail, 2)
    return bool(crc32c(memoryview(tail)[CHECKED_BYTES:]) == expected)


def split_tail(tail: bytes) -> FrameTail:
    """All parts of a tail, sent or stored."""
    broker = checked = None
    at = 0
    if tail.startswith(BROKER_PART):
        broker, at = _sized(tail, 2)
    if tail.startswith(CHECKSUM_PART, at):
        if len(tail) < at + CHECKED_BYTES:
            raise WireError("a checksum is cut short")
        (checked,) = SIZE.unpack_from(tail, at + 2)
        at += CHECKED_BYTES
    metadata, at = _sized(tail, at)
    return FrameTail(broker, checked, metadata, tail[at:])


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    if len(data) < at + 4:
        raise WireError("a size is cut short")
    (size,) = SIZE.unpack_from(data, at)
    end = at + 4 + size
    if end > len(data):
        raise WireError(f"a part of {size} bytes does not fit its message")
    return data[at + 4 : end], end


def command_frame(command: bytes) -> bytes:
    """A frame without a tail."""
    return SIZES.pack(len(command) + 4, len(command)) + command
