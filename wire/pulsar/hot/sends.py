"""Hand-written decoding of SEND: runs of messages of one producer.

Invariant: a payload is taken unchanged, checksum part first, and only if its frame is complete and
within the limit, and its checksum is right (if that is checked).
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct as Layout
from typing import Final, NamedTuple

from magnetar.core.kernel.checksum import crc32c
from magnetar.core.kernel.varints import number_at, varint, varint_end
from magnetar.wire.pulsar.events import RUN_BYTES_MAX, RUN_MESSAGES_MAX, Sends
from magnetar.wire.pulsar.frames import CHECKED_BYTES, SIZE, TAIL_BYTES_MIN
from magnetar.wire.pulsar.varints import all_varints

SEND_HEAD: Final = b"\x08\x06\x32"  # type SEND, field send
CHECKSUM_MARK: Final = 0x0E01
COPY_BYTES_MAX: Final = 2048
"""Up to this size a copy is cheaper than a view."""


class FrameLimits(NamedTuple):
    """The limit of a frame, and whether its checksum is verified."""

    frame_bytes_max: int
    verify: bool


class _Shape(NamedTuple):
    """The constant parts of a producer's frames."""

    head: bytes
    """The bytes from the command's size up to the tag of the sequence id."""
    producer_id: int
    rest_bytes: int
    """The size of the command after that tag."""
    tail_at: int
    layout: Layout
    """Frame size, head, rest, magic of the checksum, checksum, size of the metadata."""


@lru_cache(maxsize=4096)
def _shape_of(head: bytes) -> _Shape | None:
    """The shape of a regular SEND with this beginning; None for any other."""
    (command_bytes,) = SIZE.unpack_from(head)
    producer_end = len(head) - 1
    rest_bytes = 4 + command_bytes - len(head)
    # The length of the inner message is one byte, and the command ends with that message.
    if (
        head[4:7] != SEND_HEAD
        or head[7] > 127
        or head[7] + 4 != command_bytes
        or head[8] != 0x08
        or head[producer_end] != 0x10
        or varint_end(head, 9, producer_end) != producer_end
        or rest_bytes < 1
    ):
        return None
    return _Shape(
        head,
        number_at(head, 9, producer_end),
        rest_bytes,
        8 + command_bytes,
        Layout(f">I{len(head)}s{rest_bytes}sHII"),
    )


def parse_sends(data: bytes, offset: int, limits: FrameLimits) -> tuple[int, Sends | None]:
    """The run of SENDs at `offset`, and the offset after it; None if there is none."""
    payloads: list[bytes] = []
    sequences: list[bytes] = []
    counts: list[int] | None = None
    producer_id = -1
    bytes_end = offset + RUN_BYTES_MAX
    limit = RUN_MESSAGES_MAX
    while limit > 0 and offset < bytes_end and offset + 16 < len(data):
        at = offset + 14 if data[offset + 13] < 128 else varint_end(data, offset + 13, len(data))
        shape = _shape_of(data[offset + 4 : at + 1]) if at else None
        if shape is None or (payloads and shape.producer_id != producer_id):
            break
        producer_id = shape.producer_id
        begin = offset
        offset, some, rests = _take_alike(data, offset, shape, (bytes_end, limit), limits)
        limit = limit - len(some) if some else 0
        if some and not all_varints(rests, shape.rest_bytes):
            rests, some_counts = _read_rests(rests)
            if len(rests) < len(some):
                del some[len(rests) :]
                offset = begin + len(some) * shape.tail_at + sum(map(len, some))
                limit = 0
            if counts is None and some_counts.count(1) != len(some_counts):
                counts = [1] * len(payloads)
            if counts is not None:
                counts += some_counts
        elif counts is not None:
            counts += [1] * len(some)
        if payloads:
            payloads += some
            sequences += rests
        else:
            payloads, sequences = some, rests
    if not payloads:
        return offset, None
    return offset, Sends(producer_id, payloads, sequences, sum(map(len, payloads)), counts)


def _take_alike(
    data: bytes, offset: int, shape: _Shape, until: tuple[int, int], limits: FrameLimits
) -> tuple[int, list[bytes], list[bytes]]:
    """The inner loop: takes frames of one shape, up to a limit of bytes or messages.

    Returns their payloads, and the unparsed rests of their commands.
    """
    head, _, _, tail_at, layout = shape
    bytes_end, limit = until
    frame_bytes_max, verify = limits
    read, size_of_data = layout.unpack_from, len(data)
    last = size_of_data - layout.size
    payloads: list[bytes] = []
    rests: list[bytes] = []
    while offset <= last and len(payloads) < limit:
        size, its_head, rest, mark, checksum, metadata_bytes = read(data, offset)
        end = offset + 4 + size
        tail = data[offset + tail_at : end]
        if (
            its_head != head
            or mark != CHECKSUM_MARK
            or end > size_of_data
            # A larger message is a run of its own; any other must fit into the run.
            or (end > bytes_end and offset + RUN_BYTES_MAX > bytes_end)
            or size > frame_bytes_max
            or metadata_bytes + TAIL_BYTES_MIN > len(tail)
        ):
            break
        if verify and checksum != crc32c(
            tail[CHECKED_BYTES:] if size < COPY_BYTES_MAX else memoryview(tail)[CHECKED_BYTES:]
        ):
            break
        payloads.append(tail)
        rests.append(rest)
        offset = end
    return offset, payloads, rests


def _read_rests(rests: list[bytes]) -> tuple[list[bytes], list[int]]:
    """Echoes and numbers of messages, up to the first command with rare fields."""
    echoes: list[bytes] = []
    counts: list[int] = []
    for rest in rests:
        echo, count = _read_rest(rest)
        if not echo:
            break
        echoes.append(echo)
        counts.append(count)
    return echoes, counts


def _read_rest(rest: bytes) -> tuple[bytes, int]:
    """Parse the command after the tag of the sequence id: the echo (`echo_of`), and the number of
    messages. The echo is empty if there are rare fields.
    """
    end = len(rest)
    at = sequence_end = varint_end(rest, 0, end)
    count = 1
    if at and at < end and rest[at] == 0x18:
        start = at + 1
        at = varint_end(rest, start, min(end, start + 4))
        count = number_at(rest, start, at) if at else 1
    if not at or at == end:
        return rest[: sequence_end if at else 0], count or 1
    if rest[at] != 0x30 or varint_end(rest, at + 1, end) != end:
        return b"", 1
    return rest[:sequence_end] + b"\x20" + rest[at + 1 :], count or 1


def echo_of(sequence_id: int, highest: int | None) -> bytes:
    """The item of `Sends.sequences` for a message: the bytes of its sequence ids in a receipt.

    These are the varint of the sequence id and, if the client gave one, the field of the highest
    sequence id. Fields may come in any order, so both are echoed in one piece.
    """
    if highest is None:
        return varint(sequence_id)
    return varint(sequence_id) + b"\x20" + varint(highest)


def sequence_of(echo: bytes) -> tuple[int, int]:
    """The sequence id and the highest sequence id (0 if there is none)."""
    number = shift = 0
    numbers = []
    at = 0
    while at < len(echo):
        byte = echo[at]
        number |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            numbers.append(number)
            number = shift = 0
            at += 1  # the tag between the two
    return numbers[0], numbers[1] if len(numbers) > 1 else 0
