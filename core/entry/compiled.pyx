# cython: language_level=3
"""The compiled twins of `stamps.headers` and `stamps.plain`, which are the reference. See
`core/native`.
"""

from magnetar.core.native.octets cimport (
    bytes_of,
    cut_out,
    number_at,
    put_u32,
    put_varint,
    u32_at,
    varint_end,
)
from libc.stdint cimport uint8_t, uint64_t

from magnetar.core.entry.stamps import EntryHeader

cdef enum:
    PREFIX_BYTES = 6
    # Three fields, each a tag and at most ten bytes.
    HEADER_BYTES_MAX = PREFIX_BYTES + 3 * 11


def headers(
    Py_ssize_t entries, list counts, uint64_t timestamp_ms, uint64_t first_index
) -> list[bytes]:
    """The headers of a run; `counts` is None if each entry holds one message."""
    cdef uint8_t[HEADER_BYTES_MAX] head
    cdef uint8_t *index_at
    cdef uint8_t *end
    cdef uint64_t index = first_index - 1, count = 1
    cdef list made = []
    cdef Py_ssize_t place
    head[0], head[1], head[PREFIX_BYTES] = 0x0E, 0x02, 0x08
    index_at = put_varint(head + PREFIX_BYTES + 1, timestamp_ms)
    index_at[0] = 0x10
    for place in range(entries if counts is None else len(counts)):
        if counts is not None:
            count = counts[place]
        index += count
        end = put_varint(index_at + 1, index)
        if count > 1:
            end[0] = 0x78
            end = put_varint(end + 1, count)
        put_u32(head + 2, <unsigned int>(end - head - PREFIX_BYTES))
        made.append(cut_out(head, 0, end - head))
    return made


def plain(bytes entry not None):
    """The header of an entry that begins with one; None for any other entry."""
    cdef const uint8_t *data = bytes_of(entry)
    cdef Py_ssize_t at = PREFIX_BYTES, end
    cdef uint64_t timestamp_ms, index, count = 1
    if len(entry) < PREFIX_BYTES or data[0] != 0x0E or data[1] != 0x02:
        return None
    end = PREFIX_BYTES + <Py_ssize_t>u32_at(data + 2)
    if end > len(entry):
        return None
    if not (at := _take(data, at, end, 0x08, &timestamp_ms)):
        return None
    if not (at := _take(data, at, end, 0x10, &index)):
        return None
    if at < end and not (at := _take(data, at, end, 0x78, &count)):
        return None
    return EntryHeader(end, timestamp_ms, index, count) if at == end and count else None


cdef Py_ssize_t _take(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t end, uint8_t tag, uint64_t *number
) noexcept:
    """Read a varint field; returns the offset after it, 0 for any other field."""
    cdef Py_ssize_t behind
    if at >= end or data[at] != tag:
        return 0
    behind = varint_end(data, at + 1, end)
    if behind:
        number[0] = number_at(data, at + 1, behind)
    return behind
