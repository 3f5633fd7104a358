# cython: language_level=3
"""The compiled twins of `receipts.receipts` and of `messages`, which are the reference.

Invariant: the size of the output is computed first, by the same rules as the output.
"""

from magnetar.core.native.octets cimport (
    all_bytes,
    bytes_of,
    cut_out,
    put_bytes,
    put_u32,
    put_varint,
    u32_at,
    unwritten,
    varint_size,
)
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from magnetar.wire.pulsar.hot.messages import COPY_BYTES_MAX, Suffix, stored_tail

cdef Py_ssize_t copy_bytes_max = COPY_BYTES_MAX

cdef enum:
    SIZES_BYTES = 8
    # The largest receipt: its size is one byte.
    INNER_BYTES_MAX = 127

# -- SEND_RECEIPT ----------------------------------------------------------------------------------


def receipts(
    uint64_t producer_id, sequences not None, uint64_t ledger_id, uint64_t first_entry_id
) -> bytes:
    """Receipts for messages that are stored consecutively."""
    cdef list echoes = all_bytes(sequences)
    cdef Py_ssize_t place, size = 0
    cdef bytes echo, packed
    cdef uint8_t *to
    _check_last(first_entry_id, len(echoes))
    for place in range(len(echoes)):
        echo = echoes[place]
        size += SIZES_BYTES + 4
        size += _inner_bytes(producer_id, len(echo), ledger_id, first_entry_id + place)
    packed = unwritten(size)
    to = bytes_of(packed)
    for place in range(len(echoes)):
        to = _put_receipt(to, producer_id, echoes[place], ledger_id, first_entry_id + place)
    return packed


cdef int _check_last(uint64_t first_entry_id, Py_ssize_t count) except -1:
    if first_entry_id + <uint64_t>count < first_entry_id:
        raise OverflowError("an entry id has more than 64 bits")
    return 0


cdef Py_ssize_t _inner_bytes(
    uint64_t producer_id, Py_ssize_t echo_bytes, uint64_t ledger_id, uint64_t entry_id
) except -1:
    """The parts of a receipt: producer id and echo with their tags, and the message id."""
    cdef Py_ssize_t inner = 2 + varint_size(producer_id) + echo_bytes
    inner += 2 + 2 + varint_size(ledger_id) + varint_size(entry_id)
    if inner > INNER_BYTES_MAX:
        raise IndexError("a sequence id is too long for a receipt")
    return inner


cdef uint8_t *_put_receipt(
    uint8_t *to, uint64_t producer_id, bytes echo, uint64_t ledger_id, uint64_t entry_id
) except NULL:
    cdef Py_ssize_t inner = _inner_bytes(producer_id, len(echo), ledger_id, entry_id)
    to = put_u32(to, <uint32_t>(inner + 8))
    to = put_u32(to, <uint32_t>(inner + 4))
    to[0], to[1], to[2], to[3], to[4] = 0x08, 0x07, 0x3A, <uint8_t>inner, 0x08
    to = put_varint(to + 5, producer_id)
    to[0] = 0x10
    to = put_bytes(to + 1, bytes_of(echo), len(echo))
    to[0] = 0x1A
    to[1] = <uint8_t>(2 + varint_size(ledger_id) + varint_size(entry_id))
    to[2] = 0x08
    to = put_varint(to + 3, ledger_id)
    to[0] = 0x10
    return put_varint(to + 1, entry_id)


# -- MESSAGE ---------------------------------------------------------------------------------------

# The recipient of messages, and the id of the next one.
cdef struct Ids:
    uint64_t consumer
    uint64_t ledger
    uint64_t entry

# Sizes in one MESSAGE: its id, the fields of the command, the command.
cdef struct Sizes:
    uint64_t id
    uint64_t inner
    uint64_t command


def messages(
    uint64_t consumer_id,
    uint64_t ledger_id,
    uint64_t first_entry_id,
    payloads not None,
    suffixes not None,
) -> list[bytes]:
    """MESSAGE frames for consecutive entries, in order."""
    cdef list bodies = all_bytes(payloads), in_ids, in_commands, out = []
    cdef Ids ids
    cdef Py_ssize_t start = 0, stop
    in_ids, in_commands = _split(suffixes, len(bodies))
    _check_last(first_entry_id, len(bodies))
    ids.consumer, ids.ledger, ids.entry = consumer_id, ledger_id, first_entry_id
    while start < len(bodies):
        stop = start
        while stop < len(bodies) and len(<bytes>bodies[stop]) <= copy_bytes_max:
            stop += 1
        some = slice(start, stop + 1)
        out.append(_packed(&ids, bodies[some], in_ids[some], in_commands[some]))
        if stop < len(bodies):
            out.append(bodies[stop])
        start = stop + 1
    return out


cdef tuple _split(suffixes, Py_ssize_t count):
    """The suffixes of each message: in its id, and in its command."""
    if isinstance(suffixes, Suffix):
        in_id, in_command = all_bytes(suffixes)
        return [in_id] * count, [in_command] * count
    if len(suffixes) != count:
        raise ValueError("one suffix for all messages, or one for each")
    in_ids, in_commands = [], []
    for in_id, in_command in suffixes:
        in_ids.append(in_id)
        in_commands.append(in_command)
    return all_bytes(in_ids), all_bytes(in_commands)


cdef bytes _packed(Ids *ids, list bodies, list in_ids, list in_commands):
    """Frames as one piece, without the payload of the last if that is large."""
    cdef Ids at = ids[0]
    cdef Sizes sizes
    cdef Py_ssize_t place, size = 0
    cdef bytes body, packed
    cdef uint8_t *to
    for place in range(len(bodies)):
        sizes = _measure(&at, len(<bytes>in_ids[place]), len(<bytes>in_commands[place]))
        size += SIZES_BYTES + <Py_ssize_t>sizes.command
        body = bodies[place]
        size += len(body) if len(body) <= copy_bytes_max else 0
        at.entry += 1
    packed = unwritten(size)
    to = bytes_of(packed)
    for place in range(len(bodies)):
        body = bodies[place]
        to = _put_command(to, ids, len(body), <bytes>in_ids[place], <bytes>in_commands[place])
        if len(body) <= copy_bytes_max:
            to = put_bytes(to, bytes_of(body), len(body))
        ids.entry += 1
    return packed


cdef Sizes _measure(Ids *ids, uint64_t in_id_bytes, uint64_t in_command_bytes) noexcept:
    cdef Sizes sizes
    sizes.id = 2 + varint_size(ids.ledger) + varint_size(ids.entry) + in_id_bytes
    sizes.inner = 2 + varint_size(ids.consumer) + varint_size(sizes.id) + sizes.id
    sizes.inner += in_command_bytes
    sizes.command = 3 + varint_size(sizes.inner) + sizes.inner
    return sizes


cdef uint8_t *_put_command(
    uint8_t *to, Ids *ids, Py_ssize_t body_bytes, bytes in_id, bytes in_command
) noexcept:
    """Write a MESSAGE up to its payload."""
    cdef Sizes sizes = _measure(ids, len(in_id), len(in_command))
    to = put_u32(to, <uint32_t>(4 + sizes.command + body_bytes))
    to = put_u32(to, <uint32_t>sizes.command)
    to[0], to[1], to[2] = 0x08, 0x09, 0x4A
    to = put_varint(to + 3, sizes.inner)
    to[0] = 0x08
    to = put_varint(to + 1, ids.consumer)
    to[0] = 0x12
    to = put_varint(to + 1, sizes.id)
    to[0] = 0x08
    to = put_varint(to + 1, ids.ledger)
    to[0] = 0x10
    to = put_varint(to + 1, ids.entry)
    to = put_bytes(to, bytes_of(in_id), len(in_id))
    return put_bytes(to, bytes_of(in_command), len(in_command))


def without_broker_part(payloads not None):
    """Stored entries without broker metadata: from the checksum part on."""
    cdef list stored = all_bytes(payloads), tails = []
    cdef bytes entry
    cdef Py_ssize_t at
    cdef bint changed = len(stored) == 1
    for entry in stored:
        at = _checksum_part(bytes_of(entry), len(entry))
        if at > 0:
            tails.append(cut_out(bytes_of(entry), at, len(entry)))
        else:
            tails.append(entry if at == 0 else stored_tail(entry))
        changed = changed or at != 0
    return tails if changed else payloads


cdef Py_ssize_t _checksum_part(const uint8_t *entry, Py_ssize_t size) noexcept:
    """The offset of the checksum part; -1 if only the pure twin can find it."""
    cdef Py_ssize_t at = 0
    if size >= 6 and entry[0] == 0x0E and entry[1] == 0x02:
        if u32_at(entry + 2) > <uint64_t>(size - 6):
            return -1
        at = 6 + <Py_ssize_t>u32_at(entry + 2)
    if size - at >= 2 and entry[at] == 0x0E and entry[at + 1] == 0x01:
        return at
    return -1
