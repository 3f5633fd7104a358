# cython: language_level=3
"""Memory that grows, and the columns in it. See `compiled.pyx`."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy


cdef struct Growing:
    uint8_t *data
    Py_ssize_t size
    Py_ssize_t room


cdef inline uint8_t *more(Growing *one, Py_ssize_t size) except NULL:
    """Where `size` bytes are to be written, which count from now on."""
    cdef Py_ssize_t needed = one.size + size
    cdef Py_ssize_t room
    cdef uint8_t *data
    if needed > one.room or one.data == NULL:
        room = max(needed, 2 * one.room, 1024)
        data = <uint8_t *>PyMem_RawRealloc(one.data, room)
        if data == NULL:
            raise MemoryError
        one.data, one.room = data, room
    data = one.data + one.size
    one.size = needed
    return data


cdef inline int put_i32(Growing *one, int32_t number) except -1:
    (<int32_t *>more(one, 4))[0] = number
    return 0


cdef inline int put_i64(Growing *one, int64_t number) except -1:
    (<int64_t *>more(one, 8))[0] = number
    return 0


cdef struct Column:
    # Values, each of 4 or 8 bytes, or of any size up to its end.
    Growing values
    Growing ends
    # One byte a row.
    Growing valid
    Py_ssize_t nulls
    bint wanted


cdef inline int put_valid(Column *one, bint is_valid) except -1:
    more(&one.valid, 1)[0] = is_valid
    one.nulls += not is_valid
    return 0


cdef inline int put_number(Column *one, int64_t number, bint is_valid) except -1:
    put_i64(&one.values, number if is_valid else 0)
    return put_valid(one, is_valid)


cdef inline int put_octets(Column *one, const uint8_t *data, Py_ssize_t size) except -1:
    """A value of bytes; null if `data` is NULL."""
    if data != NULL and size:
        if size > INT32_MAX - one.values.size:
            raise OverflowError("a column has more than 2 GiB")
        memcpy(more(&one.values, size), data, size)
    put_i32(&one.ends, <int32_t>one.values.size)
    return put_valid(one, data != NULL)


cdef inline void cut_numbers(Column *one, Py_ssize_t rows, Py_ssize_t width) noexcept:
    """Keep that many rows of a column of numbers."""
    one.values.size = rows * width
    cut_valid(one, rows)


cdef inline void cut_octets(Column *one, Py_ssize_t rows) noexcept:
    """Keep that many rows of a column of bytes."""
    one.values.size = (<int32_t *>one.ends.data)[rows - 1] if rows else 0
    one.ends.size = rows * 4
    cut_valid(one, rows)


cdef inline void cut_valid(Column *one, Py_ssize_t rows) noexcept:
    cdef Py_ssize_t place
    for place in range(rows, one.valid.size):
        one.nulls -= not one.valid.data[place]
    one.valid.size = rows


cdef inline void free_column(Column *one) noexcept:
    PyMem_RawFree(one.values.data)
    PyMem_RawFree(one.ends.data)
    PyMem_RawFree(one.valid.data)
