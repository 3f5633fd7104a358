# cython: language_level=3
"""The compiled twin of `stamps.headers`, which is the reference. See `core/native`."""

from core.native.octets cimport cut_out, put_u32, put_varint
from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    PREFIX_BYTES = 6
    # Three fields, each a tag and at most ten bytes.
    HEADER_BYTES_MAX = PREFIX_BYTES + 3 * 11


def headers(
    Py_ssize_t entries, list counts, uint64_t timestamp_ms, uint64_t first_index
) -> list[bytes]:
    """Headers of a run; `counts` is None where every entry holds one message."""
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
