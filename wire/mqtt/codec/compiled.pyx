# cython: language_level=3
"""The compiled twins of `publishes.py_parse_publishes` and of the functions of
`acknowledgements.py`, which are the reference. See `core/native`.

Every offset is compared with the size of the data before it is read. A packet with properties is
parsed by the reference's function for one; what is not in order is left to the reference, which
raises.
"""

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject, PyObject_GetItem
from libc.stdint cimport uint8_t
from libc.string cimport memcmp

from magnetar.core.native.octets cimport bytes_of, cut_out, unwritten

cdef object Acknowledgements = None
cdef object KINDS = None
cdef object NO_PROPERTIES = None
cdef object Publish = None
cdef object reference = None
cdef object pack_reference = None

cdef enum:
    PUBLISH = 3
    RETAIN = 1
    DUP = 8
    LENGTH_BYTES_MAX = 4
    ACKNOWLEDGEMENT_BYTES = 4


cdef _load():
    global Acknowledgements, KINDS, NO_PROPERTIES, Publish, reference, pack_reference
    from magnetar.wire.mqtt.codec import acknowledgements, properties, publishes

    Acknowledgements, KINDS = acknowledgements.Acknowledgements, acknowledgements.KINDS
    NO_PROPERTIES, Publish, reference = properties.NO_PROPERTIES, publishes.Publish, publishes
    pack_reference = acknowledgements.py_pack_acknowledgements


cdef inline Py_ssize_t fields_after(
    const uint8_t *data, Py_ssize_t at, Py_ssize_t size, Py_ssize_t *length
) noexcept:
    """The offset after a remaining length; 0 if it is incomplete, -1 if it is invalid."""
    cdef Py_ssize_t last = min(at + LENGTH_BYTES_MAX, size), first = at
    cdef int shift = 0
    length[0] = 0
    while at < last:
        length[0] |= <Py_ssize_t>(data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return -1 if data[at - 1] == 0 and shift else at
        shift += 7
    return -1 if size - first >= LENGTH_BYTES_MAX else 0


cdef inline bint is_valid(unsigned int flags) noexcept:
    """Whether the QoS is below 3, and not 0 with DUP."""
    return flags & 6 != 6 and (flags & 14) != DUP


cdef struct Identifiers:
    # While they are consecutive, no object is made for each.
    unsigned int first
    Py_ssize_t count
    bint consecutive


cdef inline bint follows(Identifiers *ids, unsigned int number) noexcept:
    """Add one to consecutive ones; False if it is none of these."""
    if ids.count == 0:
        ids.first, ids.consecutive = number, True
    elif not ids.consecutive or number != ids.first + ids.count:
        return False
    ids.count += 1
    return True


cdef list with_other(Identifiers *ids, list all_ids, unsigned int number):
    """Add one that does not follow; returns all of them."""
    if ids.consecutive:
        ids.consecutive = False
        all_ids = list(range(ids.first, ids.first + ids.count))
    ids.count += 1
    all_ids.append(number)
    return all_ids


cdef inline object as_range(Identifiers *ids, list all_ids):
    """As in `identifiers.py`."""
    if ids.count == 0:
        return []
    if not ids.consecutive:
        return all_ids
    return [ids.first] if ids.count == 1 else range(ids.first, ids.first + ids.count)


cdef inline object name_of(names, bytes data):
    """A known name without asking the class of the cache, which makes it if it is not there."""
    cdef PyObject *found = PyDict_GetItemWithError(names, data)
    return PyObject_GetItem(names, data) if found is NULL else <object>found


def parse_publishes(
    bytes data not None, Py_ssize_t start, names not None, Py_ssize_t size_max, bint has_properties
) -> tuple:
    cdef const uint8_t *octets = bytes_of(data)
    cdef Py_ssize_t size = len(data), at = start
    cdef Py_ssize_t length, fields_at, end, topic_at, topic_end, payload_at
    cdef Py_ssize_t begin = 0, first_payload_at = 0, packets = 0, last_topic = 0, last_size = -1
    cdef unsigned int flags, last_flags = 0, number
    cdef bint is_plain
    cdef object topic = None
    cdef list found = [], all_ids = None
    cdef Identifiers ids
    ids.count = 0
    if Publish is None:
        _load()
    if at < 0:
        return reference.py_parse_publishes(data, start, names, size_max, has_properties)
    while at + 2 < size and octets[at] >> 4 == PUBLISH:
        fields_at = fields_after(octets, at + 1, size, &length)
        if fields_at < 0:
            return reference.py_parse_publishes(data, start, names, size_max, has_properties)
        if fields_at == 0 or length > size - fields_at:
            break
        end = fields_at + length
        flags = octets[at] & 15
        topic_at = fields_at + 2
        if end - at > size_max or not is_valid(flags) or topic_at > end:
            return reference.py_parse_publishes(data, start, names, size_max, has_properties)
        topic_end = topic_at + (octets[fields_at] << 8 | octets[fields_at + 1])
        payload_at = topic_end + 2 if flags > RETAIN else topic_end
        number = 1
        if flags > RETAIN and payload_at <= end:
            number = octets[topic_end] << 8 | octets[topic_end + 1]
        if payload_at > end or number == 0 or topic_end == topic_at and not has_properties:
            return reference.py_parse_publishes(data, start, names, size_max, has_properties)
        is_plain = not flags & (RETAIN | DUP)
        if has_properties:
            if topic_end == topic_at or payload_at == end or octets[payload_at]:
                if packets:
                    found.append(Publish(
                        last_flags, topic, as_range(&ids, all_ids), packets, begin, first_payload_at, at,
                        NO_PROPERTIES,
                    ))
                    packets = 0
                found.append(reference.parse_publish(
                    data, at, fields_at, end, names, has_properties
                ))
                at = end
                continue
            payload_at += 1
        if (
            packets and is_plain and flags == last_flags and topic_end - topic_at == last_size
            and memcmp(octets + topic_at, octets + last_topic, last_size) == 0
        ):
            packets += 1
        else:
            if packets:
                found.append(Publish(
                    last_flags, topic, as_range(&ids, all_ids), packets, begin, first_payload_at, at,
                    NO_PROPERTIES,
                ))
            topic = name_of(names, cut_out(octets, topic_at, topic_end))
            ids.count = 0
            last_flags, last_topic, last_size = flags, topic_at, topic_end - topic_at
            begin, first_payload_at, packets = at, payload_at, 1
        if flags > RETAIN and not follows(&ids, number):
            all_ids = with_other(&ids, all_ids, number)
        at = end
    if packets:
        found.append(Publish(
            last_flags, topic, as_range(&ids, all_ids), packets, begin, first_payload_at, at,
            NO_PROPERTIES,
        ))
    if size - at == 2 and octets[at] >> 4 == PUBLISH and octets[at + 1] == 0:
        return reference.py_parse_publishes(data, start, names, size_max, has_properties)
    return at, found


def parse_acknowledgements(bytes data not None, Py_ssize_t at) -> tuple:
    cdef const uint8_t *octets = bytes_of(data)
    cdef Py_ssize_t size = len(data), start = at
    cdef uint8_t first
    cdef unsigned int number
    cdef Identifiers ids
    cdef list all_ids = None
    ids.count = 0
    if Publish is None:
        _load()
    if not 0 <= at < size:
        return at, None
    first = octets[at]
    while at + ACKNOWLEDGEMENT_BYTES <= size and octets[at] == first and octets[at + 1] == 2:
        number = octets[at + 2] << 8 | octets[at + 3]
        if number == 0:
            break
        if not follows(&ids, number):
            all_ids = with_other(&ids, all_ids, number)
        at += ACKNOWLEDGEMENT_BYTES
    if at == start:
        return start, None
    return at, Acknowledgements(KINDS[first], as_range(&ids, all_ids))


cdef inline void put_acknowledgement(uint8_t *to, unsigned int begin, unsigned int number) noexcept:
    to[0], to[1] = <uint8_t>(begin >> 8), <uint8_t>begin
    to[2], to[3] = <uint8_t>(number >> 8), <uint8_t>number


def pack_acknowledgements(unsigned int begin, ids) -> bytes:
    cdef Py_ssize_t count = len(ids), place
    cdef unsigned int number
    cdef bytes packed
    cdef list numbers
    if Publish is None:
        _load()
    packed = unwritten(ACKNOWLEDGEMENT_BYTES * count)
    if isinstance(ids, range) and count > 1 and ids.start >= 0 and ids.step == 1:
        number = ids.start
        if number + count > 65536:
            return pack_reference(begin, ids)
        for place in range(count):
            put_acknowledgement(
                bytes_of(packed) + ACKNOWLEDGEMENT_BYTES * place, begin, number + <unsigned int>place
            )
        return packed
    numbers = list(ids)
    for place in range(count):
        if not 0 <= numbers[place] <= 65535:
            return pack_reference(begin, ids)
        put_acknowledgement(
            bytes_of(packed) + ACKNOWLEDGEMENT_BYTES * place, begin, numbers[place]
        )
    return packed
