# cython: language_level=3
"""The compiled twin of `row_numbers.py_rows_text`, which is the reference. See `core/native`.

Invariant: what is written of a row takes at most `ROW_BYTES_MAX`; the text is measured first.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from magnetar.core.native.octets cimport all_bytes, put_bytes

cdef enum:
    COUNTED = 2
    FIELDS = 6
    # 13 numbers of 20 digits with their signs, and what is between them.
    ROW_BYTES_MAX = 320


cdef inline uint8_t *put_number(uint8_t *to, int64_t number) noexcept:
    cdef uint8_t digits[20]
    cdef int count = 0
    cdef uint64_t left = <uint64_t>number
    if number < 0:
        to[0] = c"-"
        to += 1
        left = 0 - left
    while True:
        digits[count] = c"0" + <uint8_t>(left % 10)
        count += 1
        left //= 10
        if left == 0:
            break
    while count > 0:
        count -= 1
        to[0] = digits[count]
        to += 1
    return to


cdef inline uint8_t *put_text(uint8_t *to, const char *text, Py_ssize_t size) noexcept:
    memcpy(to, text, size)
    return to + size


cdef uint8_t *put_row(uint8_t *to, const int64_t *n) noexcept:
    """Of the fields that `row_numbers.LAYOUT` names."""
    cdef int turn
    to = put_text(to, b"[[", 2)
    to = put_number(to, n[0])
    to = put_text(to, b",0,", 3)
    to = put_number(to, n[1])
    for turn in range(2):
        to = put_text(to, b"],[", 3)
        to = put_number(to, n[0])
        to = put_text(to, b",", 1)
        to = put_number(to, n[2])
        to = put_text(to, b",", 1)
        to = put_number(to, n[3])
    to = put_text(to, b"],[[", 4)
    to = put_number(to, n[0])
    to = put_text(to, b",", 1)
    to = put_number(to, n[1])
    to = put_text(to, b",", 1)
    to = put_number(to, n[2])
    to = put_text(to, b",", 1)
    to = put_number(to, n[4])
    to = put_text(to, b",true,", 6)
    to = put_number(to, n[5])
    return put_text(to, b",0,\"\"]],[]]", 11)


def rows_text(rows, bytearray marks not None, bytearray numbers not None):
    """All rows with commas between: those that are counted by their numbers, others as they are."""
    cdef list texts = all_bytes(rows)
    cdef Py_ssize_t count = len(texts), at, size = 0
    cdef const uint8_t *mark = <const uint8_t *>PyByteArray_AS_STRING(marks)
    cdef const char *number = PyByteArray_AS_STRING(numbers)
    cdef int64_t fields[FIELDS]
    if len(marks) != count or len(numbers) < count * <Py_ssize_t>sizeof(fields):
        raise ValueError("each row has a mark and numbers")
    for at in range(count):
        size += 1 + (ROW_BYTES_MAX if mark[at] == COUNTED else len(<bytes>texts[at]))
    cdef bytearray room = bytearray(size)
    cdef uint8_t *begin = <uint8_t *>PyByteArray_AS_STRING(room)
    cdef uint8_t *to = begin
    for at in range(count):
        if at:
            to[0] = c","
            to += 1
        if mark[at] == COUNTED:
            memcpy(fields, number + at * <Py_ssize_t>sizeof(fields), sizeof(fields))
            to = put_row(to, fields)
        else:
            to = put_bytes(to, <const uint8_t *>PyBytes_AS_STRING(texts[at]), len(<bytes>texts[at]))
    return (<char *>begin)[:to - begin]
