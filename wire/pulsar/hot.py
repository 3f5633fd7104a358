"""The hot path by hand: SEND, SEND_RECEIPT, MESSAGE, ACK and FLOW, a run at a time.

Theory. Frames of one producer (or acks of one consumer) in one buffer look alike: the same sizes,
tags and ids; only sequence ids, checksums and payloads differ. So the shape of a frame is learned
once, and each further frame costs one `unpack_from`, one comparison with the shape, and the copy
and check of what is inside. In the other direction everything but entry ids is a constant of the
run, and the pieces are joined in C.

Rules:
- A reader recognises the regular encoding only, the one in which every stock client writes. For
  anything else (other field order, rare fields, a bad checksum, an impossible size) it returns
  nothing and takes nothing: `commands` then does the frame with protobuf, and judges it.
- A run is returned as soon as a frame does not belong to it.
- No object per message but the payload and its sequence id; no state between calls.

The functions take and give plain values, so that a compiled twin can have the same signatures.
Measured by `bench/codec.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from struct import Struct as Layout
from typing import Final, NamedTuple

from crc32c import crc32c

from wire.pulsar.events import RUN_BYTES_MAX, RUN_MESSAGES_MAX, Acks, Flow, Sends
from wire.pulsar.frames import (
    BROKER_PART,
    CHECKED_BYTES,
    CHECKSUM_PART,
    SIZE,
    SIZES,
    TAIL_BYTES_MIN,
    tail_to_store,
)
from wire.pulsar.varints import (
    MORE_FOLLOWS,
    ONE_BYTE,
    all_varints,
    number_at,
    stretches,
    varint,
    varint_end,
)

COPY_BYTES_MAX: Final = 2048
"""Up to here a copy is cheaper than a view of the bytes (or a piece of its own)."""

SEND_HEAD: Final = b"\x08\x06\x32"  # type SEND, field send
ACK_HEAD: Final = b"\x08\x0a\x52"
FLOW_HEAD: Final = b"\x08\x0b\x5a"
CHECKSUM_MARK: Final = 0x0E01
ID_TAG: Final = 0x1A  # field message_id of an ACK
UNSIGNED: Final = (1 << 64) - 1


# -- Sequence ids ----------------------------------------------------------------------------


def echo_of(sequence_id: int, highest: int | None) -> bytes:
    """What stands for sequence ids in `Sends.sequences`: their bytes in a receipt.

    These are the varint of the sequence id and, if the client gave one, the field of the highest
    sequence id. Fields may come in any order, so both are echoed in one piece.
    """
    if highest is None:
        return varint(sequence_id)
    return varint(sequence_id) + b"\x20" + varint(highest)


def sequence_of(echo: bytes) -> tuple[int, int]:
    """The sequence id and the highest sequence id (0 when there is none)."""
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


# -- SEND ------------------------------------------------------------------------------------


class SendOptions(NamedTuple):
    """What a frame may be, and whether its checksum is looked at."""

    frame_bytes_max: int
    verify: bool


class _Shape(NamedTuple):
    """What frames of one producer have in common."""

    head: bytes
    """From the command's size up to the tag of the sequence id."""
    producer_id: int
    rest_bytes: int
    """The command behind that tag."""
    tail_at: int
    layout: Layout
    """Frame size, head, rest, mark of the checksum, checksum, size of the metadata."""


@lru_cache(maxsize=4096)
def _shape_of(head: bytes) -> _Shape | None:
    """The shape of a regular SEND that begins like this; None for anything else."""
    (command_bytes,) = SIZE.unpack_from(head)
    producer_end = len(head) - 1
    rest_bytes = 4 + command_bytes - len(head)
    # One byte says how long the inner message is, and the command ends with it.
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


def parse_sends(data: bytes, offset: int, options: SendOptions) -> tuple[int, Sends | None]:
    """The run of SENDs at `offset`, and the offset behind it; None when there is none to be had."""
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
        offset, some, rests = _take_alike(data, offset, shape, (bytes_end, limit), options)
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
        payloads += some
        sequences += rests
    if not payloads:
        return offset, None
    return offset, Sends(producer_id, payloads, sequences, counts)


def _take_alike(
    data: bytes, offset: int, shape: _Shape, until: tuple[int, int], options: SendOptions
) -> tuple[int, list[bytes], list[bytes]]:
    """The inner loop: frames of one shape, until an offset or a number.

    Returns their payloads, and the rests of their commands, which are not looked at yet.
    """
    head, _, _, tail_at, layout = shape
    bytes_end, limit = until
    frame_bytes_max, verify = options
    read, size_of_data = layout.unpack_from, len(data)
    last = min(size_of_data - layout.size, bytes_end)
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
    """Echoes and numbers of messages, up to the first command with fields that are not everyday."""
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
    """What follows the tag of the sequence id when it is more than that: `echo_of` and the number
    of messages. An empty echo for fields that are not everyday.
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


# -- SEND_RECEIPT ----------------------------------------------------------------------------


def receipts(
    producer_id: int, sequences: Sequence[bytes], ledger_id: int, first_entry_id: int
) -> bytes:
    """Receipts for messages stored one behind the other."""
    producer = b"\x08" + varint(producer_id) + b"\x10"
    ledger = b"\x08" + varint(ledger_id & UNSIGNED) + b"\x10"
    pieces: list[bytes] = []
    at = 0
    for firsts, entry_rest in stretches(first_entry_id, len(sequences)):
        echoes = sequences[at : at + len(firsts)]
        at += len(firsts)
        entry_bytes = len(entry_rest) + 1
        sizes = set(map(len, echoes))
        if len(sizes) == 1:
            head, middle = _receipt_parts(producer, ledger, sizes.pop(), entry_bytes)
            pieces += chain.from_iterable(
                zip(repeat(head), echoes, repeat(middle), firsts, repeat(entry_rest))
            )
        else:
            for echo, first in zip(echoes, firsts, strict=True):
                head, middle = _receipt_parts(producer, ledger, len(echo), entry_bytes)
                pieces += (head, echo, middle, first, entry_rest)
    return b"".join(pieces)


def receipts_without_id(producer_id: int, sequences: Iterable[bytes]) -> bytes:
    """Receipts for messages that are not stored, and rightly so: duplicates, dropped ones."""
    producer = b"\x08" + varint(producer_id) + b"\x10"
    nowhere = varint(UNSIGNED)
    ledger = b"\x08" + nowhere + b"\x10"
    pieces: list[bytes] = []
    for echo in sequences:
        head, middle = _receipt_parts(producer, ledger, len(echo), len(nowhere))
        pieces += (head, echo, middle, nowhere)
    return b"".join(pieces)


def _receipt_parts(
    producer: bytes, ledger: bytes, echo_bytes: int, entry_bytes: int
) -> tuple[bytes, bytes]:
    """What stands before the echoed sequence ids, and between them and the entry id.

    The longest receipt has less than 128 bytes, so one byte says each inner size.
    """
    id_bytes = len(ledger) + entry_bytes
    inner = len(producer) + echo_bytes + 2 + id_bytes
    head = SIZES.pack(inner + 8, inner + 4) + b"\x08\x07\x3a" + ONE_BYTE[inner] + producer
    return head, b"\x1a" + ONE_BYTE[id_bytes] + ledger


# -- MESSAGE ---------------------------------------------------------------------------------


def without_broker_part(payloads: Sequence[bytes]) -> Sequence[bytes]:
    """Stored entries as a client without that feature gets them: from the checksum part on.

    Entries written by others may lack the checksum; it is added, for Go's sake.
    """
    if all(map(bytes.startswith, payloads, repeat(CHECKSUM_PART))):
        return payloads
    first = payloads[0][:6]
    if first.startswith(BROKER_PART) and all(map(bytes.startswith, payloads, repeat(first))):
        at = 6 + int(SIZE.unpack_from(first, 2)[0])
        payloads = [payload[at:] for payload in payloads]
        if all(map(bytes.startswith, payloads, repeat(CHECKSUM_PART))):
            return payloads
    return [_stored_tail(payload) for payload in payloads]


def _stored_tail(payload: bytes) -> bytes:
    if payload.startswith(BROKER_PART):
        payload = payload[6 + SIZE.unpack_from(payload, 2)[0] :]
    return tail_to_store(payload)


class Suffix(NamedTuple):
    """What follows the entry id in a MESSAGE: in its message id, and in the command."""

    in_id: bytes
    in_command: bytes


def suffix_of(
    partition: int = -1,
    redelivery_count: int = 0,
    ack_mask: int | None = None,
    consumer_epoch: int | None = None,
) -> Suffix:
    """The fields of a MESSAGE beside its ids; those at their defaults are left out."""
    in_id = b"\x18" + varint(partition) if partition >= 0 else b""
    in_command = b"\x18" + varint(redelivery_count) if redelivery_count else b""
    if ack_mask is not None:
        for _ in range(max(1, (ack_mask.bit_length() + 63) // 64)):
            in_command += b"\x20" + varint(ack_mask & UNSIGNED)
            ack_mask >>= 64
    if consumer_epoch is not None:
        in_command += b"\x28" + varint(consumer_epoch & UNSIGNED)
    return Suffix(in_id, in_command)


def messages(
    consumer_id: int,
    ledger_id: int,
    first_entry_id: int,
    payloads: Sequence[bytes],
    suffixes: Suffix | Sequence[Suffix],
) -> list[bytes]:
    """MESSAGE frames for consecutive entries, to be sent one behind the other.

    One suffix for all of them, or one for each.
    """
    if not isinstance(suffixes, Suffix) or max(map(len, payloads)) > COPY_BYTES_MAX:
        return _messages_one_by_one(consumer_id, ledger_id, first_entry_id, payloads, suffixes)
    parts: list[bytes] = []
    at = 0
    for firsts, entry_rest in stretches(first_entry_id, len(payloads)):
        some = payloads[at : at + len(firsts)]
        at += len(firsts)
        head, rest = _message_parts(consumer_id, ledger_id, entry_rest, suffixes)
        sizes = map((len(head) + 1 + len(rest)).__add__, map(len, some))
        parts += chain.from_iterable(
            zip(map(SIZE.pack, sizes), repeat(head), firsts, repeat(rest), some)
        )
    return [b"".join(parts)]


def _messages_one_by_one(
    consumer_id: int,
    ledger_id: int,
    first_entry_id: int,
    payloads: Sequence[bytes],
    suffixes: Suffix | Sequence[Suffix],
) -> list[bytes]:
    """The same where frames differ in more than the entry id, or are too large to be copied."""
    each = repeat(suffixes) if isinstance(suffixes, Suffix) else suffixes
    firsts = chain.from_iterable(
        zip(firsts, repeat(rest)) for firsts, rest in stretches(first_entry_id, len(payloads))
    )
    out: list[bytes] = []
    small: list[bytes] = []
    for payload, suffix, (first, entry_rest) in zip(payloads, each, firsts):  # noqa: B905 -- repeat() has no end
        head, rest = _message_parts(consumer_id, ledger_id, entry_rest, suffix)
        small += (SIZE.pack(len(head) + 1 + len(rest) + len(payload)), head, first, rest)
        if len(payload) > COPY_BYTES_MAX:
            out += (b"".join(small), payload)
            small.clear()
        else:
            small.append(payload)
    if small:
        out.append(b"".join(small))
    return out


@lru_cache(maxsize=1024)
def _message_parts(
    consumer_id: int, ledger_id: int, entry_rest: bytes, suffix: Suffix
) -> tuple[bytes, bytes]:
    """What stands before an entry id's first byte (behind the frame's size), and behind it."""
    ledger = b"\x08" + varint(ledger_id) + b"\x10"
    in_id, in_command = suffix
    id_bytes = len(ledger) + 1 + len(entry_rest) + len(in_id)
    consumer = b"\x08" + varint(consumer_id) + b"\x12" + varint(id_bytes)
    inner = varint(len(consumer) + id_bytes + len(in_command))
    command = b"\x08\x09\x4a" + inner + consumer + ledger
    command_bytes = len(command) + 1 + len(entry_rest) + len(in_id) + len(in_command)
    return SIZE.pack(command_bytes) + command, entry_rest + in_id + in_command


# -- ACK -------------------------------------------------------------------------------------

Ranges = list[tuple[int, int, int]]

CONSECUTIVE_IDS_MIN: Final = 64
"""Ids with gaps closer than this are read in another way."""


def parse_acks(data: bytes, offset: int, frame_bytes_max: int) -> tuple[int, Acks | None]:
    """The ACK at `offset`, together with those behind it that differ only in their one entry id."""
    end = len(data)
    if end < offset + 16 or data[offset + 8 : offset + 11] != ACK_HEAD:
        return offset, None
    size, command_bytes = SIZES.unpack_from(data, offset)
    frame = offset + 4 + size
    at = varint_end(data, offset + 11, frame if frame < end else end)
    if (
        frame > end
        or size > frame_bytes_max
        or size != command_bytes + 4
        or not at
        or number_at(data, offset + 11, at) != frame - at
        or frame < at + 4
        or data[at] != 0x08
    ):
        return offset, None
    consumer = at + 1
    at = varint_end(data, consumer, frame)
    if not at or frame < at + 2 or data[at] != 0x10 or data[at + 1] > 1:
        return offset, None
    consumer_id = number_at(data, consumer, at)
    cumulative = data[at + 1] == 1
    ids_at = at + 2
    ranges: Ranges = []
    at = _take_ids(data, ids_at, frame, ranges, 1 if cumulative else frame)
    request_id = None
    if at < frame and data[at] == 0x40:
        start, at = at + 1, varint_end(data, at + 1, frame)
        request_id = number_at(data, start, at) if at else None
    if at != frame:
        return offset, None
    acks = Acks(consumer_id, cumulative, ranges, [], request_id)
    if request_id is None and not cumulative and ids_at < frame == ids_at + 2 + data[ids_at + 1]:
        frame = _take_single_acks(data, offset, ids_at, ranges)
    return frame, acks


def _take_ids(data: bytes, at: int, end: int, ranges: Ranges, limit: int) -> int:
    """Take message ids of ledger and entry only; returns the offset behind them."""
    while at < end - 5 and data[at] == ID_TAG and data[at + 2] == 0x08 and len(ranges) < limit:
        behind = at + data[at + 1] + 2
        ledger_end = varint_end(data, at + 3, end)
        if behind > end or not ledger_end or ledger_end + 1 >= behind or data[ledger_end] != 0x10:
            break
        entry_at = ledger_end + 1
        if varint_end(data, entry_at, end) != behind:
            break
        ledger, entry = number_at(data, at + 3, ledger_end), number_at(data, entry_at, behind)
        if limit == 1 or not data.startswith(data[at:entry_at], behind):
            _join(ranges, ledger, entry, entry)
            at = behind
        else:
            at = _take_alike_ids(data, (at, entry_at, behind), end, ledger, entry, ranges)
    return at


def _take_alike_ids(
    data: bytes, first: tuple[int, int, int], end: int, ledger: int, entry: int, ranges: Ranges
) -> int:
    """Take the ids that have the size and ledger of the first; returns the offset behind them."""
    at, _, behind = first
    stride = behind - at
    limit = (end - at) // stride
    alike = _count_consecutive(data, first, entry, limit)
    if alike >= min(limit, CONSECUTIVE_IDS_MIN):
        _join(ranges, ledger, entry, entry + alike - 1)
        return at + alike * stride
    entries = _entries_alike(data, first, limit)
    entries.sort()
    begin = last = entries[0]
    for number in entries:
        if number > last + 1:
            _join(ranges, ledger, begin, last)
            begin = number
        last = number
    _join(ranges, ledger, begin, last)
    return at + len(entries) * stride


def _entries_alike(data: bytes, first: tuple[int, int, int], limit: int) -> list[int]:
    """The entry ids of all ids that follow with the same size and ledger, in whatever order.

    Ids of one size are a table, and each constant of it a column: all rows are checked, and
    decoded, a column at a time.
    """
    at, entry_at, behind = first
    stride = behind - at
    count = limit
    for place in range(at, entry_at):
        column = data[place : at + count * stride : stride]
        count = len(column) - len(column.lstrip(data[place : place + 1]))
    columns = []
    for place in range(entry_at, behind):
        column = data[place : at + count * stride : stride]
        more = column.translate(MORE_FOLLOWS)
        count = len(more) - len(more.lstrip(b"\x00" if place == behind - 1 else b"\x01"))
        columns.append(column)
    entries = list(columns.pop()[:count])
    while columns:
        entries = [high << 7 | low & 127 for high, low in zip(entries, columns.pop(), strict=False)]
    return entries


def _count_consecutive(data: bytes, first: tuple[int, int, int], entry: int, limit: int) -> int:
    """How many ids are those of consecutive entries, beginning with `entry`.

    What the bytes would be is made for up to 128 ids at once, and compared.
    """
    at, entry_at, behind = first
    prefix = data[at:entry_at]
    stride = behind - at
    taken = 0
    for firsts, rest in stretches(entry, limit):
        if len(rest) + 1 + len(prefix) != stride:
            break
        count = len(firsts)
        expected = prefix + (rest + prefix).join(firsts) + rest
        start = at + taken * stride
        if data.startswith(expected, start):
            taken += count
            continue
        same, different = 0, count
        while different - same > 1:
            middle = (same + different) // 2
            if data.startswith(expected[: middle * stride], start):
                same = middle
            else:
                different = middle
        return taken + same
    return taken


def _join(ranges: Ranges, ledger: int, first: int, last: int) -> None:
    if ranges and ranges[-1][0] == ledger and ranges[-1][2] == first - 1:
        ranges[-1] = (ledger, ranges[-1][1], last)
    else:
        ranges.append((ledger, first, last))


def _take_single_acks(data: bytes, offset: int, ids_at: int, ranges: Ranges) -> int:
    """Take the frames behind `offset` that equal the one there but for the entry id."""
    entry_at = varint_end(data, ids_at + 3, len(data)) + 1
    frame_bytes = 12 + data[offset + 11]
    prefix = data[offset:entry_at]
    ledger = number_at(data, ids_at + 3, entry_at - 1)
    into_entry = entry_at - offset
    offset += frame_bytes
    while data.startswith(prefix, offset):
        start, end = offset + into_entry, offset + frame_bytes
        if varint_end(data, start, min(end, len(data))) != end:
            break
        entry = number_at(data, start, end)
        _join(ranges, ledger, entry, entry)
        offset = end
    return offset


# -- FLOW ------------------------------------------------------------------------------------


def parse_flow(data: bytes, offset: int, end: int) -> Flow | None:
    """The FLOW that is the whole frame `offset`..`end`."""
    if end < offset + 16 or data[offset + 8 : offset + 11] != FLOW_HEAD:
        return None
    if data[offset + 11] != end - offset - 12 or data[offset + 7] != end - offset - 8:
        return None
    at = varint_end(data, offset + 13, end)
    if data[offset + 12] != 0x08 or not at or at == end or data[at] != 0x10:
        return None
    permits_at = at + 1
    if varint_end(data, permits_at, min(end, permits_at + 4)) != end:
        return None
    return Flow(number_at(data, offset + 13, at), number_at(data, permits_at, end))
