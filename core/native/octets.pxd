# cython: language_level=3
"""Functions that compiled modules share: numbers in bytes, and CRC32C.

Invariant: nothing here checks the length of a buffer. Callers ensure that reads and writes lie
inside; `all_bytes` ensures that items are bytes.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* Eight bytes at a time where the processor has an instruction for it. The package `crc32c` has
       more tricks, which pay above a few kilobytes, and other processors. */
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <nmmintrin.h>
    #define CRC32C_TARGET __attribute__((target("sse4.2")))
    #define crc32c_eight(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
    #define crc32c_one(crc, byte) _mm_crc32_u8((crc), (byte))
    #define crc32c_has_instruction() (__builtin_cpu_init(), __builtin_cpu_supports("sse4.2") != 0)
    #elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
    #include <arm_acle.h>
    #define CRC32C_TARGET
    #define crc32c_eight(crc, word) __crc32cd((crc), (word))
    #define crc32c_one(crc, byte) __crc32cb((crc), (byte))
    #define crc32c_has_instruction() 1
    #else
    #define CRC32C_TARGET
    #define crc32c_eight(crc, word) (crc)
    #define crc32c_one(crc, byte) (crc)
    #define crc32c_has_instruction() 0
    #endif

    CRC32C_TARGET static uint32_t crc32c_by_instruction(
        const uint8_t *data, size_t size, uint32_t value)
    {
        uint32_t crc = ~value;
        uint64_t word;
        for (; size >= 8; size -= 8, data += 8) {
            memcpy(&word, data, 8);
            crc = crc32c_eight(crc, word);
        }
        for (; size > 0; size--, data++)
            crc = crc32c_one(crc, *data);
        return ~crc;
    }
    """
    uint32_t crc32c_by_instruction(const uint8_t *data, size_t size, uint32_t value) noexcept nogil
    bint crc32c_has_instruction() noexcept nogil

cdef enum:
    # As in `core/kernel/varints.py`; longer forms are decoded elsewhere.
    VARINT_BYTES_MAX = 9
    # Above this size the package is faster, even with a call and a view.
    CHECKED_HERE_BYTES_MAX = 2048


cdef inline uint8_t *bytes_of(bytes data) noexcept:
    return <uint8_t *>PyBytes_AS_STRING(data)


cdef inline bytes cut_out(const uint8_t *data, Py_ssize_t start, Py_ssize_t end):
    return PyBytes_FromStringAndSize(<const char *>data + start, end - start)


cdef inline bytes unwritten(Py_ssize_t size):
    """A new bytes object, to be filled before it is exposed."""
    return PyBytes_FromStringAndSize(NULL, size)


cdef inline list all_bytes(items):
    """A copy of a list of bytes objects; raises for any other item."""
    cdef list copied = list(items)
    for item in copied:
        if not PyBytes_Check(item):
            raise TypeError(f"bytes are expected, not {type(item).__name__}")
    return copied


cdef inline uint32_t checksum(
    const uint8_t *data, Py_ssize_t size, uint32_t value, object crc32c
) except? 0xDEAD:
    """CRC32C of `size` bytes, continued from `value`; `crc32c` is that of `core/kernel/checksum.py`."""
    if size <= CHECKED_HERE_BYTES_MAX and crc32c_has_instruction():
        return crc32c_by_instruction(data, size, value)
    return crc32c(PyMemoryView_FromMemory(<char *>data, size, PyBUF_READ), value)


cdef inline uint32_t u32_at(const uint8_t *data) noexcept nogil:
    return <uint32_t>data[0] << 24 | <uint32_t>data[1] << 16 | <uint32_t>data[2] << 8 | data[3]


cdef inline uint64_t u64_at(const uint8_t *data) noexcept:
    return <uint64_t>u32_at(data) << 32 | u32_at(data + 4)


cdef inline uint8_t *put_u32(uint8_t *to, uint32_t number) noexcept:
    to[0], to[1], to[2], to[3] = number >> 24, number >> 16, number >> 8, number
    return to + 4


cdef inline uint8_t *put_u64(uint8_t *to, uint64_t number) noexcept:
    return put_u32(put_u32(to, number >> 32), <uint32_t>number)


cdef inline uint8_t *put_bytes(uint8_t *to, const uint8_t *data, Py_ssize_t size) noexcept:
    memcpy(to, data, size)
    return to + size


cdef inline Py_ssize_t varint_size(uint64_t number) noexcept:
    cdef Py_ssize_t size = 1
    while number > 127:
        number >>= 7
        size += 1
    return size


cdef inline uint8_t *put_varint(uint8_t *to, uint64_t number) noexcept:
    while number > 127:
        to[0] = <uint8_t>(number & 127 | 128)
        number >>= 7
        to += 1
    to[0] = <uint8_t>number
    return to + 1


cdef inline Py_ssize_t varint_end(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """The offset after the varint at `at`; 0 if it is incomplete or too long."""
    if end - at > VARINT_BYTES_MAX:
        end = at + VARINT_BYTES_MAX
    while at < end:
        if data[at] < 128:
            return at + 1
        at += 1
    return 0


cdef inline uint64_t number_at(const uint8_t *data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """The number whose varint is exactly `data[at:end]`."""
    cdef uint64_t number = 0
    while end > at:
        end -= 1
        number = number << 7 | data[end] & 127
    return number
