# cython: language_level=3
"""The compiled twins of `key_index.KeyIndex` and `py_among`, which are the reference. See
`core/native`.

Who computes for long offers the core to others (`sched_yield`, next to nothing if nobody waits), as
long as it has not got the interpreter's lock: see `core/kernel/long_slices.py`.

Invariants: a slot whose order is 0 is empty (orders are stored one higher); a quarter of the slots
is empty at least, so each search ends; a row is inside its data before a byte of it is read.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, qsort

from magnetar.core.native.octets cimport bytes_of, unwritten

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    #define SIP_TURN(word, bits) (((word) << (bits)) | ((word) >> (64 - (bits))))
    #define SIP_ROUND                                                              \\
        do {                                                                       \\
            v0 += v1; v1 = SIP_TURN(v1, 13); v1 ^= v0; v0 = SIP_TURN(v0, 32);      \\
            v2 += v3; v3 = SIP_TURN(v3, 16); v3 ^= v2;                             \\
            v0 += v3; v3 = SIP_TURN(v3, 21); v3 ^= v0;                             \\
            v2 += v1; v1 = SIP_TURN(v1, 17); v1 ^= v2; v2 = SIP_TURN(v2, 32);      \\
        } while (0)

    /* Eight bytes as a little-endian number. */
    static inline uint64_t sip_word(const uint8_t *data)
    {
        uint64_t word = 0;
        for (int at = 7; at >= 0; at--)
            word = word << 8 | data[at];
        return word;
    }

    /* SipHash-2-4 with 128 bits (Aumasson and Bernstein, https://github.com/veorq/SipHash). */
    static inline void sip_hash(
        uint64_t k0, uint64_t k1, const uint8_t *data, size_t size, uint64_t *low, uint64_t *high)
    {
        uint64_t v0 = 0x736f6d6570736575ULL ^ k0, v1 = 0x646f72616e646f6dULL ^ k1 ^ 0xee;
        uint64_t v2 = 0x6c7967656e657261ULL ^ k0, v3 = 0x7465646279746573ULL ^ k1;
        uint64_t last = (uint64_t)size << 56;
        for (; size >= 8; size -= 8, data += 8) {
            uint64_t word = sip_word(data);
            v3 ^= word; SIP_ROUND; SIP_ROUND; v0 ^= word;
        }
        while (size > 0) {
            size--;
            last |= (uint64_t)data[size] << (8 * size);
        }
        v3 ^= last; SIP_ROUND; SIP_ROUND; v0 ^= last;
        v2 ^= 0xee;
        SIP_ROUND; SIP_ROUND; SIP_ROUND; SIP_ROUND;
        *low = v0 ^ v1 ^ v2 ^ v3;
        v1 ^= 0xdd;
        SIP_ROUND; SIP_ROUND; SIP_ROUND; SIP_ROUND;
        *high = v0 ^ v1 ^ v2 ^ v3;
    }

    #if defined(__GNUC__)
    #define fetch_slot(slot) __builtin_prefetch((slot), 1)
    #else
    #define fetch_slot(slot) ((void)(slot))
    #endif

    static int ascending_orders(const void *one, const void *other)
    {
        uint64_t first = *(const uint64_t *)one, second = *(const uint64_t *)other;
        return (first > second) - (first < second);
    }
    """
    uint64_t sip_word(const uint8_t *data) noexcept nogil
    void sip_hash(
        uint64_t k0, uint64_t k1, const uint8_t *data, size_t size, uint64_t *low, uint64_t *high
    ) noexcept nogil
    void fetch_slot(const void *slot) noexcept nogil
    int ascending_orders(const void *one, const void *other) noexcept nogil

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef struct Slot:
    uint64_t low
    uint64_t high
    uint64_t order
    # one more than the message's; 0 for an empty slot

cdef struct Hash:
    uint64_t low
    uint64_t high

cdef struct Row:
    # `ROW` of core/entry/compaction.py
    int32_t place
    int32_t begin
    int32_t size
    int32_t value

cdef enum:
    SLOTS_MIN = 1024
    TOGETHER = 64
    # Keys that are looked for at once: the memory fetches the slots of all meanwhile.
    PAUSE = 512
    # Rows, which take microseconds, between two offers of the core.
    LOST = 0
    STAYS = 1
    TOMBSTONE = 2
    KEYLESS = 3


cdef inline const Row *rows_in(bytes rows, bytes data, Py_ssize_t *count) except NULL:
    """The rows, each of which is inside the data."""
    cdef const Row *found = <const Row *>bytes_of(rows)
    cdef Py_ssize_t size = len(data), at
    count[0] = len(rows) // <Py_ssize_t>sizeof(Row)
    if count[0] * <Py_ssize_t>sizeof(Row) != len(rows):
        raise ValueError("these are no rows")
    for at in range(count[0]):
        if found[at].size >= 0 and (
            found[at].begin < 0 or <Py_ssize_t>found[at].begin + found[at].size > size
        ):
            raise ValueError("a key lies outside its data")
    return found


def hashed(bytes seed not None, bytes key not None) -> bytes:
    """The hash of a key, for tests."""
    cdef uint64_t words[2]
    cdef const uint8_t *k = bytes_of(seed)
    assert len(seed) == 16
    sip_hash(sip_word(k), sip_word(k + 8), bytes_of(key), len(key), &words[0], &words[1])
    return int(words[0]).to_bytes(8, "little") + int(words[1]).to_bytes(8, "little")


cdef class KeyIndex:
    cdef Slot *slots
    cdef Py_ssize_t mask
    cdef Py_ssize_t used
    cdef uint64_t k0, k1

    def __cinit__(self, bytes seed not None):
        assert len(seed) == 16
        self.k0, self.k1 = sip_word(bytes_of(seed)), sip_word(bytes_of(seed) + 8)
        self._begin()

    def __dealloc__(self):
        free(self.slots)

    cdef int _begin(self) except -1:
        self.slots = <Slot *>calloc(SLOTS_MIN, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError
        self.mask, self.used = SLOTS_MIN - 1, 0

    def __len__(self):
        return self.used

    cdef inline Slot *_find(self, uint64_t low, uint64_t high) noexcept nogil:
        """The slot of a key, or the empty one where it belongs."""
        cdef Py_ssize_t at = <Py_ssize_t>(low & <uint64_t>self.mask)
        cdef Slot *slot = self.slots + at
        while slot.order and (slot.low != low or slot.high != high):
            at = (at + 1) & self.mask
            slot = self.slots + at
        return slot

    cdef inline Hash _hash(self, const uint8_t *key, Py_ssize_t size) noexcept nogil:
        cdef Hash hash
        sip_hash(self.k0, self.k1, key, size, &hash.low, &hash.high)
        return hash

    cdef int _make_room(self, Py_ssize_t more) except -1 nogil:
        """Grow so that so many more keys have room."""
        cdef Py_ssize_t capacity = self.mask + 1, before = capacity, at
        cdef Slot *old = self.slots
        while (self.used + more) * 4 > capacity * 3:
            capacity *= 2
        if capacity == before:
            return 0
        cdef Slot *made = <Slot *>calloc(capacity, sizeof(Slot))
        if made == NULL:
            with gil:
                raise MemoryError
        self.slots, self.mask = made, capacity - 1
        for at in range(before):
            if old[at].order:
                self._find(old[at].low, old[at].high)[0] = old[at]
        free(old)
        return 0

    cdef inline void _put(self, const Hash *hash, uint64_t order) noexcept nogil:
        cdef Slot *slot = self._find(hash.low, hash.high)
        if not slot.order:
            slot.low, slot.high = hash.low, hash.high
            self.used += 1
        slot.order = order + 1

    cdef inline void _hash_rows(
        self, const uint8_t *content, const Row *row, Py_ssize_t count, Hash *hashes
    ) noexcept nogil:
        """Hash keys, and have the memory fetch their slots."""
        cdef Py_ssize_t at
        for at in range(count):
            if row[at].size >= 0:
                hashes[at] = self._hash(content + row[at].begin, row[at].size)
                fetch_slot(self.slots + (hashes[at].low & <uint64_t>self.mask))

    def note(self, bytes key not None, uint64_t order):
        cdef Hash hash = self._hash(bytes_of(key), len(key))
        self._make_room(1)
        self._put(&hash, order)

    def order_of(self, bytes key not None):
        cdef Hash hash = self._hash(bytes_of(key), len(key))
        return <long long>self._find(hash.low, hash.high).order - 1

    def note_rows(self, keys, uint64_t base, int32_t last_place):
        cdef bytes data = keys.data, rows = keys.rows
        cdef const uint8_t *content = bytes_of(data)
        cdef Hash hashes[TOGETHER]
        cdef Py_ssize_t count, at, begin = 0
        cdef const Row *row = rows_in(rows, data, &count)
        with nogil:
            self._make_room(count)
            while begin < count:
                self._hash_rows(content, row + begin, min(count - begin, TOGETHER), hashes)
                for at in range(begin, min(count, begin + TOGETHER)):
                    if row[at].size >= 0:
                        self._put(&hashes[at - begin], base + min(row[at].place, last_place))
                begin += TOGETHER
                sched_yield()

    def unknown(self, keys):
        cdef bytes data = keys.data, rows = keys.rows
        cdef const uint8_t *content = bytes_of(data)
        cdef Hash hashes[TOGETHER]
        cdef Py_ssize_t count, at, begin = 0
        cdef const Row *row = rows_in(rows, data, &count)
        judged = bytearray(count)
        cdef uint8_t *view = <uint8_t *>PyByteArray_AS_STRING(judged)
        with nogil:
            while begin < count:
                self._hash_rows(content, row + begin, min(count - begin, TOGETHER), hashes)
                for at in range(begin, min(count, begin + TOGETHER)):
                    if row[at].size < 0:
                        view[at] = KEYLESS
                    elif self._find(hashes[at - begin].low, hashes[at - begin].high).order:
                        view[at] = LOST
                    else:
                        view[at] = STAYS if row[at].value > 0 else TOMBSTONE
                begin += TOGETHER
                sched_yield()
        return judged

    def orders(self):
        cdef bytes made = unwritten(self.used * <Py_ssize_t>sizeof(uint64_t))
        cdef uint64_t *to = <uint64_t *>bytes_of(made)
        cdef Py_ssize_t at, count = 0
        with nogil:
            for at in range(self.mask + 1):
                if self.slots[at].order:
                    to[count] = self.slots[at].order - 1
                    count += 1
            qsort(to, count, sizeof(uint64_t), ascending_orders)
        return made

    def forget(self, Py_ssize_t count):
        free(self.slots)
        self.slots = NULL
        self._begin()
        return False


def among(bytes orders not None, keys, uint64_t base, int32_t last_place):
    cdef bytes data = keys.data, rows = keys.rows
    cdef const uint64_t *every = <const uint64_t *>bytes_of(orders)
    cdef Py_ssize_t end = len(orders) // <Py_ssize_t>sizeof(uint64_t), low = 0, high = end, middle
    cdef Py_ssize_t count, at
    cdef const Row *row = rows_in(rows, data, &count)
    cdef uint64_t order
    judged = bytearray(count)
    cdef uint8_t *view = <uint8_t *>PyByteArray_AS_STRING(judged)
    with nogil:
        while low < high:
            middle = (low + high) // 2
            if every[middle] < base:
                low = middle + 1
            else:
                high = middle
        for at in range(count):
            # places ascend, and so do orders
            order = base + min(row.place, last_place)
            while low < end and every[low] < order:
                low += 1
            if row.size < 0:
                view[at] = KEYLESS
            elif low == end or every[low] != order:
                view[at] = LOST
            else:
                view[at] = STAYS if row.value > 0 else TOMBSTONE
            row += 1
            if at % PAUSE == PAUSE - 1:
                sched_yield()
    return judged
