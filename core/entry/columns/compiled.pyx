# cython: language_level=3
"""The compiled twin of `columns.ListedColumns`, with the messages of the two forms in it that have
most: Pulsar's (`pulsar/messages.py`) and Kafka's (`kafka/record_batch.py`). See `core/native`.

What is unusual is not for here: a damaged entry, one of another broker, an encrypted message, a
chunk, a key in base64. The rows that it has added are taken back, and the caller has its form
decode it, and say what is wrong with it.
"""

from magnetar.core.entry.columns.buffers cimport (
    Column,
    Growing,
    cut_numbers,
    cut_octets,
    free_column,
    more,
    put_i32,
    put_number,
    put_octets,
)
from magnetar.core.native.octets cimport bytes_of, number_at, u32_at, u64_at, varint_end
from cpython.bytes cimport PyBytes_Check, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from magnetar.core.entry.columns.columns import (
    BYTES_MAX,
    MS_MAX,
    NAMES,
    PRODUCER_BYTES_MAX,
    ROWS_MAX,
    Buffers,
    HeaderBuffers,
)
from magnetar.core.entry.kafka import compression as kafka_compression
from magnetar.core.entry.pulsar import compression as pulsar_compression
from magnetar.core.entry.pulsar.messages import BATCH_MESSAGES_MAX
from magnetar.core.entry.pulsar.properties import ALL
from magnetar.core.kernel.errors import Corrupted

cdef int64_t LATEST_MS = MS_MAX
cdef Py_ssize_t MOST_ROWS = ROWS_MAX
cdef Py_ssize_t MOST_BYTES = BYTES_MAX
cdef Py_ssize_t PRODUCER_BYTES = PRODUCER_BYTES_MAX
cdef int64_t BATCH_MESSAGES = BATCH_MESSAGES_MAX
cdef int64_t NO_TIME = -1

cdef bytes KAFKA_BEGINS = b"\x0a\x05kafka\x10\x00\x18"
cdef bytes MQTT_BEGINS = b"\x0a\x04mqtt\x10\x00\x18"
cdef bytes ALL_HEADERS = ALL
cdef bytes KAFKA_NAME = b"kafka"
cdef bytes PULSAR_NAME = b"pulsar"

cdef enum:
    # The header of Kafka's batches, and what is in it.
    BATCH_HEADER_BYTES = 61
    ATTRIBUTES_AT = 21
    FIRST_TIME_AT = 27
    LAST_TIME_AT = 35
    PRODUCER_ID_AT = 43
    FIRST_SEQUENCE_AT = 53
    RECORDS_AT = 57
    CODEC = 7
    LOG_APPEND_TIME = 8
    TRANSACTIONAL = 16
    CONTROL = 32
    # Columns of numbers, and of bytes, by their place in `_columns`.
    OFFSET = 0
    ENTRY_ID = 1
    BATCH_INDEX = 2
    PUBLISH_TIME = 3
    EVENT_TIME = 4
    SEQUENCE_ID = 5
    SCHEMA_VERSION = 6
    NUMBERS = 7
    KEY = 7
    ORDERING_KEY = 8
    VALUE = 9
    PRODUCER_NAME = 10
    PROTOCOL = 11
    COLUMNS = 12
    # Of headers, which are a list in each row.
    HEADER_NAME = 12
    HEADER_VALUE = 13
    ALL_COLUMNS = 14

cdef tuple COLUMN_NAMES = (
    "offset", "entry_id", "batch_index", "publish_time", "event_time", "sequence_id",
    "schema_version", "key", "ordering_key", "value", "producer_name", "protocol",
)


cdef struct Octets:
    # NULL for what is absent.
    const uint8_t *data
    Py_ssize_t size


cdef struct Row:
    int64_t place
    int64_t publish_ms
    int64_t event_ms
    int64_t sequence_id
    bint has_sequence_id
    int64_t version
    bint has_version
    Octets key
    Octets ordering_key
    Octets value


cdef struct Shared:
    # What all rows of an entry have in common.
    int64_t entry_id
    int64_t first_offset
    bint has_offset
    # Offsets of which messages count.
    int64_t start
    int64_t end
    Octets producer
    Octets protocol


def columns_of(names):
    return BufferedColumns(names)


cdef class BufferedColumns:
    """Columns as Arrow lays them out."""

    cdef Column columns[ALL_COLUMNS]
    cdef Growing header_ends
    cdef bint headers_wanted
    cdef readonly Py_ssize_t rows
    cdef Py_ssize_t size

    def __cinit__(self):
        memset(self.columns, 0, sizeof(self.columns))
        memset(&self.header_ends, 0, sizeof(self.header_ends))

    def __init__(self, names):
        cdef Py_ssize_t place
        for place in range(COLUMNS):
            self.columns[place].wanted = COLUMN_NAMES[place] in names
        self.headers_wanted = "headers" in names

    def __dealloc__(self):
        cdef Py_ssize_t place
        cdef Column rest
        memset(&rest, 0, sizeof(rest))
        for place in range(ALL_COLUMNS):
            free_column(&self.columns[place])
        rest.values = self.header_ends
        free_column(&rest)

    @property
    def full(self):
        return self._is_full()

    cdef bint _is_full(self) noexcept:
        return self.rows >= MOST_ROWS or self.size >= MOST_BYTES

    # -- entries ---------------------------------------------------------------------------------

    def add_entries(
        self,
        list entries not None,
        Py_ssize_t at,
        int64_t first_entry,
        int64_t start,
        int64_t end,
        bint are_committed,
    ):
        """As many entries as are for here."""
        cdef Shared shared
        cdef Py_ssize_t rows, size
        cdef bytes entry
        memset(&shared, 0, sizeof(shared))
        shared.start, shared.end = start, end
        while at < len(entries) and not self._is_full():
            entry = entries[at]
            if entry is None:
                raise TypeError("an entry is bytes")
            shared.entry_id = first_entry + at
            rows, size = self.rows, self.size
            try:
                if not self._entry(entry, &shared, are_committed):
                    self._cut(rows, size)
                    break
            except BaseException:
                self._cut(rows, size)
                raise
            at += 1
        return at

    cdef bint _entry(self, bytes entry, Shared *shared, bint are_committed) except -1:
        """Whether an entry is for here, and all of it has been added."""
        cdef const uint8_t *data = bytes_of(entry)
        cdef Py_ssize_t at = 6, end, after, begin
        cdef Py_ssize_t size = len(entry)
        cdef uint64_t numbers[3]
        cdef int place
        cdef uint8_t tags[3]
        tags[0], tags[1], tags[2] = 0x08, 0x10, 0x78
        numbers[0], numbers[1], numbers[2] = 0, 0, 1
        if size < 6 or data[0] != 0x0E or data[1] != 0x02:
            return False
        end = 6 + <Py_ssize_t>u32_at(data + 2)
        if end > size:
            return False
        for place in range(3):
            if place == 2 and at == end:
                break
            if at >= end or data[at] != tags[place]:
                return False
            begin, after = at + 1, varint_end(data, at + 1, end)
            if not after:
                return False
            numbers[place] = number_at(data, begin, after)
            at = after
        if at != end or not numbers[2]:
            return False
        shared.first_offset = <int64_t>(numbers[1] - numbers[2] + 1)
        shared.has_offset = True
        if <int64_t>numbers[1] < shared.start or shared.first_offset >= shared.end:
            return True
        if size - at < 4:
            return False
        if self._begins(data, at + 4, size, KAFKA_BEGINS):
            return self._kafka(data, at, size, shared, are_committed)
        if self._begins(data, at + 4, size, MQTT_BEGINS):
            return False
        return self._pulsar(data, at, size, shared)

    cdef bint _begins(self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, bytes begin):
        return end - at >= len(begin) and not memcmp(data + at, bytes_of(begin), len(begin))

    # -- Kafka -----------------------------------------------------------------------------------

    cdef bint _kafka(
        self,
        const uint8_t *data,
        Py_ssize_t at,
        Py_ssize_t end,
        Shared *shared,
        bint are_committed,
    ) except -1:
        cdef Py_ssize_t batch = at + 4 + <Py_ssize_t>u32_at(data + at)
        cdef Py_ssize_t stored_at = at + 4 + len(KAFKA_BEGINS)
        cdef Py_ssize_t after = varint_end(data, stored_at, batch if batch < end else end)
        cdef const uint8_t *head = data + batch
        cdef const uint8_t *records
        cdef int attributes
        cdef int64_t producer_id
        cdef Py_ssize_t size
        cdef bytes unpacked, producer
        cdef Row row
        if not after or end - batch < BATCH_HEADER_BYTES:
            return False
        attributes = head[ATTRIBUTES_AT] << 8 | head[ATTRIBUTES_AT + 1]
        if attributes & CONTROL:
            return True
        if attributes & TRANSACTIONAL and not are_committed:
            return False
        memset(&row, 0, sizeof(row))
        row.publish_ms = <int64_t>number_at(data, stored_at, after) or NO_TIME
        producer_id = <int64_t>u64_at(head + PRODUCER_ID_AT)
        row.has_sequence_id = producer_id >= 0
        producer = b"%d" % producer_id
        shared.producer.data = bytes_of(producer) if producer_id >= 0 else NULL
        shared.producer.size = len(producer)
        shared.protocol.data, shared.protocol.size = bytes_of(KAFKA_NAME), len(KAFKA_NAME)
        records, size = head + BATCH_HEADER_BYTES, end - batch - BATCH_HEADER_BYTES
        if attributes & CODEC:
            try:
                unpacked = kafka_compression.decompress_records(
                    PyBytes_FromStringAndSize(<const char *>records, size), attributes & CODEC
                )
            except Corrupted:
                return False  # it is said elsewhere what is wrong
            records, size = bytes_of(unpacked), len(unpacked)
        return self._records(head, records, size, attributes, shared, &row)

    cdef bint _records(
        self,
        const uint8_t *head,
        const uint8_t *data,
        Py_ssize_t end,
        int attributes,
        Shared *shared,
        Row *row,
    ) except -1:
        cdef int64_t base = <int64_t>u64_at(head + FIRST_TIME_AT)
        cdef int64_t fixed = <int64_t>u64_at(head + LAST_TIME_AT)
        cdef int64_t first_sequence = <int32_t>u32_at(head + FIRST_SEQUENCE_AT)
        cdef int32_t count = <int32_t>u32_at(head + RECORDS_AT)
        cdef Py_ssize_t at = 0, record_end
        cdef int64_t number, delta
        cdef int32_t place
        cdef bint counts
        if not NO_TIME <= base <= LATEST_MS:
            return False
        for place in range(count):
            if not _signed(data, &at, end, &number) or number < 0 or number > end - at:
                return False
            record_end = at + number
            at += 1  # attributes
            if not (
                _signed(data, &at, record_end, &delta)
                and _signed(data, &at, record_end, &row.place)
                and _sized(data, &at, record_end, &row.key)
                and _sized(data, &at, record_end, &row.value)
                and _signed(data, &at, record_end, &number)
            ):
                return False
            if not 0 <= row.place <= INT32_MAX or not -LATEST_MS <= delta <= LATEST_MS:
                return False
            row.event_ms = fixed if attributes & LOG_APPEND_TIME else base + delta
            if row.event_ms < 0:
                row.event_ms = NO_TIME
            row.sequence_id = first_sequence + row.place
            counts = self._has_place(shared, row.place)
            if not self._kafka_headers(data, &at, record_end, number, counts) or at != record_end:
                return False
            if counts:
                self._put(shared, row)
        return True

    cdef bint _kafka_headers(
        self, const uint8_t *data, Py_ssize_t *at, Py_ssize_t end, int64_t count, bint are_kept
    ) except -1:
        cdef Octets name, value
        cdef int64_t _
        if not 0 <= count <= end - at[0]:
            return False
        for _ in range(count):
            if not (_sized(data, at, end, &name) and _sized(data, at, end, &value)):
                return False
            if name.data == NULL or not _is_text(&name):
                return False
            if are_kept:
                self._header(&name, &value)
        return True

    # -- Pulsar ----------------------------------------------------------------------------------

    cdef bint _pulsar(
        self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, Shared *shared
    ) except -1:
        cdef Py_ssize_t metadata_end, after
        cdef uint64_t tag, number
        cdef Octets found
        cdef Row row
        cdef bint is_null = False, is_batch = False, has_null_key = False, has_headers = False
        cdef int64_t count = 0, codec = 0, size_before = 0
        cdef Py_ssize_t size
        cdef const uint8_t *payload
        cdef bytes unpacked
        memset(&row, 0, sizeof(row))
        row.publish_ms = row.event_ms = NO_TIME
        shared.producer.data, shared.producer.size = NULL, 0
        shared.protocol.data, shared.protocol.size = bytes_of(PULSAR_NAME), len(PULSAR_NAME)
        if end - at >= 2 and data[at] == 0x0E and data[at + 1] == 0x01:
            at += 6
        if end - at < 4:
            return False
        metadata_end = at + 4 + <Py_ssize_t>u32_at(data + at)
        if metadata_end > end or metadata_end == at + 4:
            return False
        at += 4
        payload, size = data + metadata_end, end - metadata_end
        after = at
        while after < metadata_end:
            if not _field(data, &after, metadata_end, &tag, &number, &found):
                return False
            if tag in (13 << 3 | 2, 20 << 3, 22 << 3, 23 << 3) or 26 <= tag >> 3 <= 29:
                return False  # encrypted, a marker, of a transaction, a chunk
            if tag == 1 << 3 | 2:
                shared.producer = found
            elif tag == 2 << 3:
                row.sequence_id, row.has_sequence_id = <int64_t>number, True
            elif tag == 3 << 3:
                row.publish_ms = <int64_t>number or NO_TIME
            elif tag == 4 << 3 | 2:
                has_headers = True
            elif tag == 6 << 3 | 2:
                row.key = found
            elif tag == 8 << 3:
                codec = <int64_t>number
            elif tag == 9 << 3:
                size_before = <int64_t>number
            elif tag == 11 << 3:
                count, is_batch = <int64_t>number, True
            elif tag == 12 << 3:
                row.event_ms = <int64_t>number or NO_TIME
            elif tag == 16 << 3 | 2:
                row.has_version = found.size == 8
                row.version = <int64_t>u64_at(found.data) if found.size == 8 else 0
            elif tag == 17 << 3:
                if number:
                    return False
            elif tag == 18 << 3 | 2:
                row.ordering_key = found
            elif tag == 25 << 3:
                is_null = number != 0
            elif tag == 30 << 3:
                has_null_key = number != 0
        if shared.producer.data != NULL and (
            shared.producer.size > PRODUCER_BYTES or not _is_text(&shared.producer)
        ):
            return False
        if codec:
            try:
                unpacked = pulsar_compression.decompress(
                    PyBytes_FromStringAndSize(<const char *>payload, size), codec, size_before
                )
            except (Corrupted, OverflowError, ValueError):
                return False
            payload, size = bytes_of(unpacked), len(unpacked)
        if is_batch:
            return self._batch(payload, size, count, shared, &row)
        if not self._has_place(shared, 0):
            return True
        if has_null_key:
            row.key.data = NULL
        row.value.data, row.value.size = payload, size
        if is_null:
            row.value.data = NULL
        if has_headers and not self._pulsar_headers(data, at, metadata_end, 4):
            return False
        self._put(shared, &row)
        return True

    cdef bint _batch(
        self, const uint8_t *data, Py_ssize_t end, int64_t count, Shared *shared, Row *row
    ) except -1:
        """The messages of a batch; `row` has what they share."""
        cdef Py_ssize_t at = 0, begin, about_end, after
        cdef uint64_t tag, number
        cdef Octets found
        cdef int64_t event_ms = row.event_ms
        cdef int64_t sequence_id = row.sequence_id
        cdef bint has_sequence_id = row.has_sequence_id
        cdef bint is_null, is_gone, has_null_key, has_headers
        cdef int64_t size
        if count > BATCH_MESSAGES:
            return False
        row.place = 0
        while row.place < count:
            if end - at < 4:
                return False
            begin = at + 4
            about_end = begin + <Py_ssize_t>u32_at(data + at)
            if about_end > end:
                return False
            row.key.data = row.ordering_key.data = NULL
            row.event_ms, row.sequence_id = event_ms, sequence_id
            row.has_sequence_id = has_sequence_id
            is_null = is_gone = has_null_key = has_headers = False
            size = 0
            after = begin
            while after < about_end:
                if not _field(data, &after, about_end, &tag, &number, &found):
                    return False
                if tag == 1 << 3 | 2:
                    has_headers = True
                elif tag == 2 << 3 | 2:
                    row.key = found
                elif tag == 3 << 3:
                    size = <int64_t>number
                elif tag == 4 << 3:
                    is_gone = number != 0
                elif tag == 5 << 3:
                    row.event_ms = <int64_t>number or event_ms
                elif tag == 6 << 3:
                    if number:
                        return False
                elif tag == 7 << 3 | 2:
                    row.ordering_key = found
                elif tag == 8 << 3:
                    row.sequence_id, row.has_sequence_id = <int64_t>number, True
                elif tag == 9 << 3:
                    is_null = number != 0
                elif tag == 10 << 3:
                    has_null_key = number != 0
            if not 0 <= size <= end - about_end:
                return False
            at = about_end + size
            if not is_gone and self._has_place(shared, row.place):
                if has_null_key:
                    row.key.data = NULL
                row.value.data, row.value.size = data + about_end, size
                if is_null:
                    row.value.data = NULL
                if has_headers and not self._pulsar_headers(data, begin, about_end, 1):
                    return False
                self._put(shared, row)
            row.place += 1
        return True

    cdef bint _pulsar_headers(
        self, const uint8_t *data, Py_ssize_t at, Py_ssize_t end, uint64_t number
    ) except -1:
        """The properties, which are the fields of that number."""
        cdef uint64_t tag, _
        cdef Octets pair, found, name, value
        cdef Py_ssize_t inside
        while at < end:
            if not _field(data, &at, end, &tag, &_, &pair):
                return False
            if tag != (number << 3 | 2):
                continue
            name.data = value.data = pair.data  # empty, if they are not there
            name.size = value.size = inside = 0
            while inside < pair.size:
                if not _field(pair.data, &inside, pair.size, &tag, &_, &found):
                    return False
                if tag == 1 << 3 | 2:
                    name = found
                elif tag == 2 << 3 | 2:
                    value = found
            if not _is_text(&name) or (
                name.size == len(ALL_HEADERS)
                and not memcmp(name.data, bytes_of(ALL_HEADERS), name.size)
            ):
                return False
            self._header(&name, &value)
        return True

    # -- messages that a form has decoded --------------------------------------------------------

    def add(self, int64_t entry_id, first_offset, str protocol not None, messages not None):
        """Messages of one entry."""
        cdef Shared shared
        cdef Row row
        cdef bytes name = protocol.encode(), producer
        cdef list kept
        cdef Octets title, value
        cdef Py_ssize_t rows = self.rows, size = self.size
        memset(&shared, 0, sizeof(shared))
        shared.entry_id = entry_id
        shared.has_offset = first_offset is not None
        shared.first_offset = first_offset if shared.has_offset else 0
        shared.protocol.data, shared.protocol.size = bytes_of(name), len(name)
        try:
            for one in messages:
                kept = []  # what is pointed at
                row.place = one.place
                row.publish_ms, row.event_ms = _ms(one.publish_ms), _ms(one.event_ms)
                row.has_sequence_id = one.sequence_id is not None
                row.sequence_id = one.sequence_id if row.has_sequence_id else 0
                row.key = _octets(one.key, kept)
                row.ordering_key = _octets(one.ordering_key, kept)
                row.value = _octets(one.value, kept)
                producer = one.producer
                if producer is not None:
                    producer = producer[:PRODUCER_BYTES].decode(errors="replace").encode()
                shared.producer = _octets(producer, kept)
                value = _octets(one.schema_version, kept)
                row.has_version = value.data != NULL and value.size == 8
                row.version = <int64_t>u64_at(value.data) if row.has_version else 0
                for text, content in one.headers:
                    title = _octets(text.decode(errors="replace").encode(), kept)
                    value = _octets(content, kept)
                    self._header(&title, &value)
                self._put(&shared, &row)
        except BaseException:
            self._cut(rows, size)
            raise

    # -- rows ------------------------------------------------------------------------------------

    cdef bint _has_place(self, Shared *shared, int64_t place) noexcept:
        cdef int64_t offset = shared.first_offset + place
        return shared.start <= offset < shared.end

    cdef int _header(self, Octets *name, Octets *value) except -1:
        """A header of the row that comes next."""
        self.size += name.size
        if value.data != NULL:
            self.size += value.size
        if self.headers_wanted:
            put_octets(&self.columns[HEADER_NAME], name.data, name.size)
            put_octets(&self.columns[HEADER_VALUE], value.data, value.size)
        return 0

    cdef int _put(self, Shared *shared, Row *row) except -1:
        cdef Column *columns = self.columns
        if columns[OFFSET].wanted:
            put_number(
                &columns[OFFSET], shared.first_offset + row.place, shared.has_offset
            )
        if columns[ENTRY_ID].wanted:
            put_number(&columns[ENTRY_ID], shared.entry_id, True)
        if columns[BATCH_INDEX].wanted:
            put_number(&columns[BATCH_INDEX], row.place, True)
        if columns[PUBLISH_TIME].wanted:
            put_time(&columns[PUBLISH_TIME], row.publish_ms)
        if columns[EVENT_TIME].wanted:
            put_time(&columns[EVENT_TIME], row.event_ms)
        if columns[SEQUENCE_ID].wanted:
            put_number(&columns[SEQUENCE_ID], row.sequence_id, row.has_sequence_id)
        if columns[SCHEMA_VERSION].wanted:
            put_number(&columns[SCHEMA_VERSION], row.version, row.has_version)
        if columns[KEY].wanted:
            put_octets(&columns[KEY], row.key.data, row.key.size)
        if columns[ORDERING_KEY].wanted:
            put_octets(&columns[ORDERING_KEY], row.ordering_key.data, row.ordering_key.size)
        if columns[VALUE].wanted:
            put_octets(&columns[VALUE], row.value.data, row.value.size)
        if columns[PRODUCER_NAME].wanted:
            put_octets(&columns[PRODUCER_NAME], shared.producer.data, shared.producer.size)
        if columns[PROTOCOL].wanted:
            put_octets(&columns[PROTOCOL], shared.protocol.data, shared.protocol.size)
        if self.headers_wanted:
            put_i32(&self.header_ends, <int32_t>self.columns[HEADER_NAME].valid.size)
        if row.key.data != NULL:
            self.size += row.key.size
        if row.value.data != NULL:
            self.size += row.value.size
        if row.ordering_key.data != NULL:
            self.size += row.ordering_key.size
        if shared.producer.data != NULL:
            self.size += shared.producer.size
        self.rows += 1
        return 0

    cdef void _cut(self, Py_ssize_t rows, Py_ssize_t size) noexcept:
        """Take back the rows after so many, and parts of one."""
        cdef Py_ssize_t place, pairs = 0
        for place in range(COLUMNS):
            if self.columns[place].wanted:
                if place < NUMBERS:
                    cut_numbers(&self.columns[place], rows, 8)
                else:
                    cut_octets(&self.columns[place], rows)
        if self.headers_wanted:
            if rows:
                pairs = (<int32_t *>self.header_ends.data)[rows - 1]
            cut_octets(&self.columns[HEADER_NAME], pairs)
            cut_octets(&self.columns[HEADER_VALUE], pairs)
            self.header_ends.size = rows * 4
        self.rows, self.size = rows, size

    # -- out -------------------------------------------------------------------------------------

    def take(self):
        """The columns as buffers, by their names."""
        cdef dict taken = {}
        cdef Py_ssize_t place
        for place in range(COLUMNS):
            if self.columns[place].wanted:
                taken[COLUMN_NAMES[place]] = self._buffers(place)
        if self.headers_wanted:
            taken["headers"] = HeaderBuffers(
                _ends(&self.header_ends), self._buffers(HEADER_NAME), self._buffers(HEADER_VALUE)
            )
        self._cut(0, 0)
        return taken

    cdef object _buffers(self, Py_ssize_t place):
        cdef Column *column = &self.columns[place]
        cdef bytes values
        if place == BATCH_INDEX:
            values = _narrowed(&column.values)
        else:
            values = _bytes(&column.values)
        return Buffers(
            column.nulls,
            _bits(&column.valid) if column.nulls else None,
            _ends(&column.ends) if place >= NUMBERS else None,
            values,
        )


cdef int put_time(Column *column, int64_t ms) except -1:
    """Microseconds; null for what was never milliseconds."""
    cdef bint is_time = ms != NO_TIME and -LATEST_MS <= ms <= LATEST_MS
    return put_number(column, ms * 1000 if is_time else 0, is_time)


cdef int64_t _ms(ms) except? -1:
    """A time of any size, which if it does not fit is none."""
    return ms if -MS_MAX <= ms <= MS_MAX else -1


cdef Octets _octets(data, list kept) except *:
    """Where the bytes are, as long as `kept` is."""
    cdef Octets found
    found.data, found.size = NULL, 0
    if data is not None:
        if not PyBytes_Check(data):
            raise TypeError(f"bytes are expected, not {type(data).__name__}")
        kept.append(data)
        found.data, found.size = bytes_of(data), len(data)
    return found


cdef bytes _bytes(Growing *one):
    return PyBytes_FromStringAndSize(<const char *>one.data, one.size) if one.size else b""


cdef bytes _ends(Growing *ends):
    """Offsets: 0, and the end of each value."""
    cdef bytes made = PyBytes_FromStringAndSize(NULL, ends.size + 4)
    cdef uint8_t *to = bytes_of(made)
    memset(to, 0, 4)
    if ends.size:
        memcpy(to + 4, ends.data, ends.size)
    return made


cdef bytes _narrowed(Growing *values):
    """Numbers of 32 bits."""
    cdef Py_ssize_t place, count = values.size // 8
    cdef bytes made = PyBytes_FromStringAndSize(NULL, count * 4)
    cdef int32_t *to = <int32_t *>bytes_of(made)
    for place in range(count):
        to[place] = <int32_t>(<int64_t *>values.data)[place]
    return made


cdef bytes _bits(Growing *valid):
    """One bit a row, the lowest first."""
    cdef Py_ssize_t place
    cdef bytes made = PyBytes_FromStringAndSize(NULL, (valid.size + 7) // 8)
    cdef uint8_t *to = bytes_of(made)
    memset(to, 0, len(made))
    for place in range(valid.size):
        to[place >> 3] |= valid.data[place] << (place & 7)
    return made


# -- parts of messages ----------------------------------------------------------------------------


cdef bint _is_text(Octets *one) except -1:
    cdef Py_ssize_t place
    for place in range(one.size):
        if one.data[place] > 127:
            break
    else:
        return True
    try:
        PyUnicode_DecodeUTF8(<char *>one.data, one.size, NULL)
    except UnicodeDecodeError:
        return False
    return True


cdef bint _number(
    const uint8_t *data, Py_ssize_t *at, Py_ssize_t end, uint64_t *number
) noexcept:
    """Read a varint of up to 64 bits; False if it is not whole, or longer."""
    cdef int shift = 0
    cdef uint8_t octet
    number[0] = 0
    while at[0] < end and shift < 64:
        octet = data[at[0]]
        at[0] += 1
        number[0] |= <uint64_t>(octet & 127) << shift
        if octet < 128:
            return shift < 63 or octet <= 1
        shift += 7
    return False


cdef bint _signed(const uint8_t *data, Py_ssize_t *at, Py_ssize_t end, int64_t *number) noexcept:
    """Read a zigzag varint."""
    cdef uint64_t written
    if not _number(data, at, end, &written):
        return False
    number[0] = <int64_t>(written >> 1) ^ -<int64_t>(written & 1)
    return True


cdef bint _sized(const uint8_t *data, Py_ssize_t *at, Py_ssize_t end, Octets *found) noexcept:
    """Read a string of a record: its size, below 0 for none, and its bytes."""
    cdef int64_t size
    if not _signed(data, at, end, &size) or size > end - at[0]:
        return False
    found.data, found.size = NULL, 0
    if size >= 0:
        found.data, found.size = data + at[0], size
        at[0] += size
    return True


cdef bint _field(
    const uint8_t *data,
    Py_ssize_t *at,
    Py_ssize_t end,
    uint64_t *tag,
    uint64_t *number,
    Octets *found,
) noexcept:
    """Read a field of protobuf: a number, or bytes; others are skipped."""
    cdef uint64_t kind
    if not _number(data, at, end, tag):
        return False
    kind = tag[0] & 7
    if kind == 0:
        return _number(data, at, end, number)
    if kind == 2:
        if not _number(data, at, end, number) or number[0] > <uint64_t>(end - at[0]):
            return False
        found.data, found.size = data + at[0], <Py_ssize_t>number[0]
        at[0] += found.size
        return True
    if kind in (1, 5):
        at[0] += 8 if kind == 1 else 4
        return at[0] <= end
    return False
