# cython: language_level=3
"""The compiled twins of `sends.parse_sends`, `contents.suspects`, `contents.holds`,
`acks.parse_acks` and `acks_in_transaction.parse_acks_in_transaction`, which are the reference.

Invariant: every offset and size from a buffer is compared with the available bytes before it is
used.
"""

from magnetar.core.native.octets cimport (
    bytes_of,
    checksum,
    cut_out,
    number_at,
    put_bytes,
    u32_at,
    varint_end,
)
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memchr, memcmp

from magnetar.core.kernel.checksum import crc32c
from magnetar.wire.pulsar.events import RUN_BYTES_MAX, RUN_MESSAGES_MAX, Acks, Sends
from magnetar.wire.pulsar.hot.acks_in_transaction import RUN_MAX

cdef Py_ssize_t run_acks_max = RUN_MAX
cdef Py_ssize_t run_bytes_max = RUN_BYTES_MAX
cdef Py_ssize_t run_messages_max = RUN_MESSAGES_MAX

cdef enum:
    # The bytes that must be there before any is read.
    HEAD_BYTES_MIN = 16
    # The checksum covers a tail from here on.
    CHECKED_AT = 6
    TAIL_BYTES_MIN = 10
    COUNT_BYTES_MAX = 4
    # Two numbers and a tag between them.
    ECHO_BYTES_MAX = 19
    CONSECUTIVE_IDS_MIN = 64
    # Tags in CommandAck.
    LEAST_BITS = 6 << 3
    MOST_BITS = 7 << 3
    REQUEST_ID = 8 << 3
    # Tags in MessageMetadata and in SingleMessageMetadata.
    COUNT = 11 << 3
    COMPRESSION = 8 << 3
    ENCRYPTION_KEYS = 13 << 3 | 2
    CHUNKS = 27 << 3
    PAYLOAD_SIZE = 3 << 3
    PAYLOAD_BYTES_MAX = 0x7FFFFFFF

cdef uint64_t NEGATIVE = <uint64_t>1 << 63
cdef uint64_t NO_NUMBER = NEGATIVE

# -- SEND ------------------------------------------------------------------------------------------

# A regular SEND: ids, and offsets in the buffer.
cdef struct Frame:
    uint64_t producer_id
    Py_ssize_t rest_at
    Py_ssize_t tail_at
    Py_ssize_t end

# The fields of a SEND after the producer id; `highest_at` is 0 if it is absent.
cdef struct Rest:
    Py_ssize_t sequence_end
    Py_ssize_t highest_at
    uint64_t count


def parse_sends(bytes data not None, Py_ssize_t offset, limits not None):
    """The run of SENDs at `offset`, and the offset after it; None if there is none."""
    cdef uint64_t frame_bytes_max = limits[0], producer_id = 0
    cdef bint verify = limits[1], counted = False
    cdef const uint8_t *start = bytes_of(data)
    cdef Py_ssize_t size = len(data), bytes_end, taken = 0
    cdef list payloads = [], sequences = [], counts = []
    cdef Frame frame
    cdef Rest rest
    _check_offset(offset, size)
    bytes_end = offset + run_bytes_max
    while len(payloads) < run_messages_max and offset < bytes_end:
        if not _find_send(start, offset, size, frame_bytes_max, &frame):
            break
        # A larger message is a run of its own; any other must fit into the run.
        if payloads and (frame.producer_id != producer_id or frame.end > bytes_end):
            break
        if verify and not _checksum_fits(start, &frame):
            break
        if not _find_rest(start, &frame, &rest):
            break
        producer_id = frame.producer_id
        payloads.append(cut_out(start, frame.tail_at, frame.end))
        taken += frame.end - frame.tail_at
        sequences.append(_echo(start, &frame, &rest))
        counts.append(rest.count)
        counted = counted or rest.count != 1
        offset = frame.end
    if not payloads:
        return offset, None
    return offset, Sends(producer_id, payloads, sequences, taken, counts if counted else None)


cdef int _check_offset(Py_ssize_t offset, Py_ssize_t size) except -1:
    if offset < 0 or offset > size:
        raise IndexError("an offset outside the data")
    return 0


cdef bint _find_send(
    const uint8_t *data, Py_ssize_t offset, Py_ssize_t size, uint64_t size_max, Frame *frame
) noexcept:
    """Whether a complete, regular SEND is there; sets the offsets of its parts."""
    cdef Py_ssize_t at = offset + 8
    cdef uint64_t frame_bytes, command_bytes
    if size - offset <= HEAD_BYTES_MIN:
        return False
    frame_bytes, command_bytes = u32_at(data + offset), u32_at(data + offset + 4)
    if data[at] != 0x08 or data[at + 1] != 0x06 or data[at + 2] != 0x32:
        return False
    # The size of the inner message is one byte, and the command ends with that message.
    if data[at + 3] > 127 or data[at + 3] + <uint64_t>4 != command_bytes or data[at + 4] != 0x08:
        return False
    at = varint_end(data, offset + 13, size)
    if not at or at == size or data[at] != 0x10:
        return False
    frame.producer_id = number_at(data, offset + 13, at)
    frame.rest_at = at + 1
    frame.tail_at = offset + 8 + <Py_ssize_t>command_bytes
    if frame.rest_at >= frame.tail_at or size - frame.tail_at < TAIL_BYTES_MIN:
        return False
    if frame_bytes > size_max or frame_bytes > <uint64_t>(size - offset - 4):
        return False
    frame.end = offset + 4 + <Py_ssize_t>frame_bytes
    return _is_checked_tail(data + frame.tail_at, frame.end - frame.tail_at)


cdef bint _is_checked_tail(const uint8_t *tail, Py_ssize_t size) noexcept:
    """Whether a tail has a checksum, and contains its metadata."""
    return (
        size >= TAIL_BYTES_MIN
        and tail[0] == 0x0E
        and tail[1] == 0x01
        and u32_at(tail + CHECKED_AT) <= <uint64_t>(size - TAIL_BYTES_MIN)
    )


cdef bint _checksum_fits(const uint8_t *data, Frame *frame) except -1:
    cdef const uint8_t *checked = data + frame.tail_at + CHECKED_AT
    cdef Py_ssize_t size = frame.end - frame.tail_at - CHECKED_AT
    return checksum(checked, size, 0, crc32c) == u32_at(checked - 4)


cdef bint _find_rest(const uint8_t *data, Frame *frame, Rest *rest) noexcept:
    """Read sequence id, number of messages and highest sequence id; False for other fields."""
    cdef Py_ssize_t start, end = frame.tail_at
    cdef Py_ssize_t at = varint_end(data, frame.rest_at, end)
    rest.sequence_end, rest.highest_at, rest.count = at, 0, 1
    if at and at < end and data[at] == 0x18:
        start = at + 1
        at = varint_end(data, start, min(end, start + COUNT_BYTES_MAX))
        if at:
            rest.count = number_at(data, start, at) or 1
    if not at or at == end:
        return at == end
    rest.highest_at = at + 1
    return data[at] == 0x30 and varint_end(data, at + 1, end) == end


cdef bytes _echo(const uint8_t *data, Frame *frame, Rest *rest):
    """The echo for the receipt: the bytes of the sequence id, and of the highest if present."""
    cdef uint8_t[ECHO_BYTES_MAX] echo
    cdef uint8_t *to
    if not rest.highest_at:
        return cut_out(data, frame.rest_at, rest.sequence_end)
    to = put_bytes(echo, data + frame.rest_at, rest.sequence_end - frame.rest_at)
    to[0] = 0x20
    to = put_bytes(to + 1, data + rest.highest_at, frame.tail_at - rest.highest_at)
    return cut_out(echo, 0, to - echo)


# -- batches ---------------------------------------------------------------------------------------

# One field of a protobuf message.
cdef struct Field:
    uint64_t tag
    uint64_t number
    Py_ssize_t behind


def suspects(list payloads not None):
    """The places of malformed batches, and of compressed messages."""
    cdef list found = []
    cdef Py_ssize_t place
    cdef bytes payload
    for place in range(len(payloads)):
        payload = payloads[place]
        if payload is None:
            raise TypeError("a payload is expected")
        if _is_suspect(bytes_of(payload), len(payload)):
            found.append(place)
    return found


def holds(bytes data not None, Py_ssize_t at, uint64_t count) -> bool:
    """Whether a batch has that many messages; bytes after them do not matter."""
    _check_offset(at, len(data))
    return _holds(bytes_of(data), at, len(data), count)


cdef bint _is_suspect(const uint8_t *tail, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t at = CHECKED_AT if size >= 2 and tail[0] == 0x0E and tail[1] == 0x01 else 0
    cdef Py_ssize_t end
    cdef uint64_t count = 0, codec = 0
    cdef Field field
    if size < at + 4 or u32_at(tail + at) > size - at - 4:
        return False
    end = at + 4 + u32_at(tail + at)
    at += 4
    if memchr(tail + at, COUNT, end - at) == NULL:
        if memchr(tail + at, COMPRESSION, end - at) == NULL:
            return False
    while at < end:
        if not _field(tail, at, end, &field) or field.tag == ENCRYPTION_KEYS:
            return False
        if field.tag == CHUNKS and field.number:
            return False
        if field.tag == COUNT:
            count = field.number
        elif field.tag == COMPRESSION:
            codec = field.number
        at = field.behind
    if codec or count > PAYLOAD_BYTES_MAX:
        return True
    return count > 0 and not _holds(tail, end, size, count)


cdef bint _holds(
    const uint8_t *tail, Py_ssize_t at, Py_ssize_t size, uint64_t count
) noexcept nogil:
    cdef Py_ssize_t end
    cdef uint64_t bytes_of_it
    cdef Field field
    while count:
        if size - at < 4 or u32_at(tail + at) > size - at - 4:
            return False
        end = at + 4 + u32_at(tail + at)
        at += 4
        bytes_of_it = NO_NUMBER
        while at < end:
            if not _field(tail, at, end, &field):
                return False
            if field.tag == PAYLOAD_SIZE:
                bytes_of_it = field.number
            at = field.behind
        if bytes_of_it > PAYLOAD_BYTES_MAX or bytes_of_it > <uint64_t>(size - end):
            return False
        at = end + bytes_of_it
        count -= 1
    return True


cdef bint _field(const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Field *field) noexcept nogil:
    """Whether a complete field is there; sets its tag and offsets."""
    cdef Py_ssize_t behind = varint_end(data, at, end)
    cdef int kind
    if not behind:
        return False
    field.tag = number_at(data, at, behind)
    field.number = 0
    kind = field.tag & 7
    if field.tag < 8:
        return False
    if kind == 0 or kind == 2:
        at = behind
        behind = varint_end(data, at, end)
        if behind:
            field.number = number_at(data, at, behind)
        else:
            behind = _behind_negative(data, at, end)
            field.number = NEGATIVE
        if not behind:
            return False
        if kind == 2:
            if field.number > <uint64_t>(end - behind):
                return False
            behind += field.number
    elif kind == 1:
        behind += 8
    elif kind == 5:
        behind += 4
    else:
        return False
    field.behind = behind
    return behind <= end


cdef inline Py_ssize_t _behind_negative(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    cdef Py_ssize_t place
    if end - at < 10 or data[at + 9] != 1:
        return 0
    for place in range(9):
        if data[at + place] < 128:
            return 0
    return at + 10


# -- ACK -------------------------------------------------------------------------------------------

# A regular ACK up to its message ids.
cdef struct Head:
    uint64_t consumer_id
    bint cumulative
    Py_ssize_t ids_at
    Py_ssize_t end

# A message id of ledger and entry only.
cdef struct Id:
    Py_ssize_t at
    Py_ssize_t entry_at
    Py_ssize_t end
    uint64_t ledger
    uint64_t entry


def parse_acks(bytes data not None, Py_ssize_t offset, limits not None):
    """The ACK at `offset`, joined with following ones that differ only in their one entry id."""
    cdef const uint8_t *start = bytes_of(data)
    cdef Py_ssize_t at, request_at, size = len(data)
    cdef list ranges = []
    cdef Head head
    cdef Id first
    _check_offset(offset, size)
    if not _find_head(start, offset, size, limits[0], &head):
        return offset, None
    at = _take_ids(start, &head, ranges)
    request_id = None
    if at < head.end and start[at] == 0x40:
        request_at, at = at + 1, varint_end(start, at + 1, head.end)
        request_id = number_at(start, request_at, at) if at else None
    if at != head.end:
        return offset, None
    acks = Acks(head.consumer_id, bool(head.cumulative), ranges, [], request_id)
    if request_id is None and not head.cumulative and head.ids_at < at:
        if _find_id(start, head.ids_at, at, &first) and first.end == at:
            at = _take_single_acks(start, offset, size, &first, ranges)
    return at, acks


cdef bint _find_head(
    const uint8_t *data, Py_ssize_t offset, Py_ssize_t size, uint64_t size_max, Head *head
) noexcept:
    cdef uint64_t frame_bytes
    cdef Py_ssize_t at = offset + 8, consumer_at
    if size - offset < HEAD_BYTES_MIN:
        return False
    frame_bytes = u32_at(data + offset)
    if data[at] != 0x08 or data[at + 1] != 0x0A or data[at + 2] != 0x52:
        return False
    if frame_bytes > <uint64_t>(size - offset - 4) or frame_bytes > size_max:
        return False
    if frame_bytes != u32_at(data + offset + 4) + <uint64_t>4:
        return False
    head.end = offset + 4 + <Py_ssize_t>frame_bytes
    at = varint_end(data, offset + 11, head.end)
    if not at or number_at(data, offset + 11, at) != <uint64_t>(head.end - at):
        return False
    if head.end - at < 4 or data[at] != 0x08:
        return False
    consumer_at = at + 1
    at = varint_end(data, consumer_at, head.end)
    if not at or head.end - at < 2 or data[at] != 0x10 or data[at + 1] > 1:
        return False
    head.consumer_id = number_at(data, consumer_at, at)
    head.cumulative = data[at + 1] == 1
    head.ids_at = at + 2
    return True


cdef bint _find_id(const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Id *found) noexcept:
    cdef Py_ssize_t ledger_end
    if end - at <= 5 or data[at] != 0x1A or data[at + 2] != 0x08:
        return False
    found.at, found.end = at, at + data[at + 1] + 2
    ledger_end = varint_end(data, at + 3, end)
    if found.end > end or not ledger_end or ledger_end + 1 >= found.end:
        return False
    found.entry_at = ledger_end + 1
    if data[ledger_end] != 0x10 or varint_end(data, found.entry_at, end) != found.end:
        return False
    found.ledger = number_at(data, at + 3, ledger_end)
    found.entry = number_at(data, found.entry_at, found.end)
    return True


cdef Py_ssize_t _take_ids(const uint8_t *data, Head *head, list ranges) except -1:
    """Take message ids that have only ledger and entry; returns the offset after them."""
    cdef Py_ssize_t at = head.ids_at
    cdef Id found
    while (not head.cumulative or not ranges) and _find_id(data, at, head.end, &found):
        if head.cumulative:
            _join(ranges, found.ledger, found.entry, found.entry)
            at = found.end
        else:
            at = _take_alike_ids(data, head.end, &found, ranges)
    return at


cdef Py_ssize_t _take_alike_ids(
    const uint8_t *data, Py_ssize_t end, Id *first, list ranges
) except -1:
    """Take the ids with the size and ledger of the first; returns the offset after them.

    Ids that are not consecutive are sorted, so that only gaps cost a range.
    """
    cdef Py_ssize_t stride = first.end - first.at, limit = (end - first.at) // stride
    cdef Py_ssize_t alike = 0
    cdef list entries = []
    # only in the shortest form, as in the pure twin
    while alike < limit and _is_alike(data, first, alike) and (
        _entry(data, first, alike) == first.entry + alike
        and (first.end - first.entry_at == 1 or data[first.end + alike * stride - 1])
    ):
        alike += 1
    if alike >= min(limit, CONSECUTIVE_IDS_MIN):
        _join(ranges, first.ledger, first.entry, first.entry + alike - 1)
        return first.at + alike * stride
    while len(entries) < limit and _is_alike(data, first, len(entries)):
        entries.append(_entry(data, first, len(entries)))
    entries.sort()
    _join_all(ranges, first.ledger, entries)
    return first.at + len(entries) * stride


cdef bint _is_alike(const uint8_t *data, Id *first, Py_ssize_t place) noexcept:
    cdef Py_ssize_t at = first.at + place * (first.end - first.at)
    cdef Py_ssize_t entry_at = at + first.entry_at - first.at, end = at + first.end - first.at
    return (
        memcmp(data + first.at, data + at, first.entry_at - first.at) == 0
        and varint_end(data, entry_at, end) == end
    )


cdef uint64_t _entry(const uint8_t *data, Id *first, Py_ssize_t place) noexcept:
    cdef Py_ssize_t step = place * (first.end - first.at)
    return number_at(data, first.entry_at + step, first.end + step)


cdef int _join_all(list ranges, uint64_t ledger, list entries) except -1:
    cdef uint64_t begin = entries[0], last = entries[0], number
    for number in entries:
        if number > last + 1:
            _join(ranges, ledger, begin, last)
            begin = number
        last = number
    return _join(ranges, ledger, begin, last)


cdef int _join(list ranges, uint64_t ledger, uint64_t first, uint64_t last) except -1:
    cdef tuple before
    if ranges:
        before = ranges[-1]
        if before[0] == ledger and before[2] + 1 == first:
            ranges[-1] = (ledger, before[1], last)
            return 0
    ranges.append((ledger, first, last))
    return 0


cdef Py_ssize_t _take_single_acks(
    const uint8_t *data, Py_ssize_t offset, Py_ssize_t size, Id *first, list ranges
) except -1:
    """Take the following frames that equal the one at `offset` except for the entry id."""
    cdef Py_ssize_t frame_bytes = first.end - offset, into_entry = first.entry_at - offset
    cdef Py_ssize_t at = first.end
    cdef uint64_t entry
    while size - at >= frame_bytes and memcmp(data + offset, data + at, into_entry) == 0:
        if varint_end(data, at + into_entry, at + frame_bytes) != at + frame_bytes:
            break
        entry = number_at(data, at + into_entry, at + frame_bytes)
        _join(ranges, first.ledger, entry, entry)
        at += frame_bytes
    return at


# -- ACK in a transaction --------------------------------------------------------------------------


def parse_acks_in_transaction(bytes data not None, Py_ssize_t offset, limits not None):
    """The ACK at `offset`, joined with following ones that differ in entry and request alone."""
    cdef const uint8_t *start = bytes_of(data)
    cdef Py_ssize_t size = len(data), at = offset, least_end, most_end = 0
    cdef Py_ssize_t frame_bytes, entry_in, entry_out, request_in
    cdef uint64_t least, most, entry, request_id
    cdef list ranges = [], joined = []
    cdef Head head
    cdef Id only
    _check_offset(offset, size)
    if not _find_head(start, offset, size, limits[0], &head) or head.cumulative:
        return offset, None
    if not _find_id(start, head.ids_at, head.end, &only):
        return offset, None
    least_end = _number_end(start, only.end, head.end, LEAST_BITS)
    if least_end:
        most_end = _number_end(start, least_end, head.end, MOST_BITS)
    if not most_end or _number_end(start, most_end, head.end, REQUEST_ID) != head.end:
        return offset, None
    least = number_at(start, only.end + 1, least_end)
    most = number_at(start, least_end + 1, most_end)
    frame_bytes = head.end - offset
    entry_in, entry_out, request_in = only.entry_at - offset, only.end - offset, most_end + 1 - offset
    while True:
        entry = number_at(start, at + entry_in, at + entry_out)
        request_id = number_at(start, at + request_in, at + frame_bytes)
        _join(ranges, only.ledger, entry, entry)
        joined.append((request_id, only.ledger, entry))
        at += frame_bytes
        if len(joined) >= run_acks_max or size - at < frame_bytes:
            break
        if memcmp(start + offset, start + at, entry_in) != 0:
            break
        if memcmp(start + offset + entry_out, start + at + entry_out, request_in - entry_out) != 0:
            break
        if varint_end(start, at + entry_in, at + entry_out) != at + entry_out:
            break
        if varint_end(start, at + request_in, at + frame_bytes) != at + frame_bytes:
            break
    single = len(joined) == 1
    return at, Acks(
        head.consumer_id,
        cumulative=False,
        ranges=ranges,
        request_id=request_id if single else None,
        txn=(most, least),
        joined=[] if single else joined,
    )


cdef Py_ssize_t _number_end(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, uint8_t tag
) noexcept:
    """The end of a number that is the field at `at`; 0 if it is another field."""
    return varint_end(data, at + 1, end) if at < end and data[at] == tag else 0
