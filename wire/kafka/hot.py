"""The fast path of Produce requests with one batch for one partition, which are the most frequent.

A producer repeats its requests: all bytes but the correlation id and the records are the same. So
the codec decodes the first request of a shape, and the bytes before its records are remembered. A
later request that has the same bytes is recognized by comparing them, and only its records are
located. Its response is a template with a few numbers. All other requests use the codec.

Invariant: the results are exactly those of the codec. Pure.
`records_in` and `answer` have compiled twins (`core/native`).
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final

from magnetar.core.kernel.varints import number_at, varint, varint_end
from magnetar.core.native import quickest
from magnetar.wire.kafka.messages.records import (
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)

HOME: Final = "magnetar.wire.kafka.compiled"
VERSIONS: Final = range(7, 14)
"""Versions of Produce from the first that allows zstd."""
FLEXIBLE: Final = ProduceRequest.FLEXIBLE
BY_ID_VERSION: Final = 13
"""From this version on topics are named by their ids (KIP-516)."""
SHAPES_MAX: Final = 8
"""Shapes that a connection remembers: it may write several partitions in turn."""
WORDS_BYTES_MAX: Final = 1024

_WORDS_AT: Final = 8
"""The offset after key, version and correlation id."""
_SIZE_BYTES_MAX: Final = 5
"""The longest size in a flexible version."""
_TAIL: Final = b"\0\0\0"
"""Empty tagged fields of partition, topic and request."""
_NUMBER: Final = Layout(">i")
_LENGTH: Final = Layout(">h").pack
_HEAD: Final = Layout(">ii").pack
_NUMBERS: Final = Layout(">hqqq").pack
_ONE: Final = b"\0\0\0\x01"
_NOTHING: Final = b"\0\0\0\0"
_REFUSALS_VERSION: Final = 8
"""From this version on responses have record errors and an error message (KIP-467)."""


class Shape:
    """The repeated bytes of a request, and their meaning."""

    __slots__ = (
        "acks",
        "answer_words",
        "client_id",
        "head",
        "name",
        "partition",
        "rest",
        "tail",
        "timeout_ms",
        "topic_id",
        "transactional_id",
        "version",
        "words",
    )

    def __init__(
        self, frame: bytes, at: int, words_end: int, client_id: str | None, request: ProduceRequest
    ) -> None:
        self.head = frame[at : at + 4]
        self.words = frame[at + _WORDS_AT : words_end]
        self.version = int.from_bytes(self.head[2:], "big")
        self.tail = _tail(self.version)
        self.client_id = client_id or ""
        self.transactional_id = request.transactional_id
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        (topic,) = request.topic_data
        self.name = topic.name
        self.topic_id = topic.topic_id
        """In place of the name, from `BY_ID_VERSION` on."""
        self.partition = topic.partition_data[0].index
        self.answer_words = _answer_words(self.version, topic, self.partition)
        self.rest = _rest(self.version)
        """The end of a response without errors."""

    def asks(self, records: memoryview) -> ProduceRequest:
        """The request of this shape with these records."""
        part = ProducePartition(index=self.partition, records=records)
        topic = ProduceTopic(name=self.name, topic_id=self.topic_id, partition_data=[part])
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.acks,
            timeout_ms=self.timeout_ms,
            topic_data=[topic],
        )


def _answer_words(version: int, topic: ProduceTopic, partition: int) -> bytes:
    """The bytes of a response between correlation id and error code."""
    name, index = topic.name.encode(), _NUMBER.pack(partition)
    if version < FLEXIBLE:
        return b"".join((_ONE, _LENGTH(len(name)), name, _ONE, index))
    named = topic.topic_id if version >= BY_ID_VERSION else varint(len(name) + 1) + name
    return b"".join((b"\0\x02", named, b"\x02", index))


def _rest(version: int) -> bytes:
    """The bytes of a response after the log start offset: no errors, no throttling."""
    if version >= FLEXIBLE:
        return b"\x01\0\0\0" + _NOTHING + b"\0"
    if version >= _REFUSALS_VERSION:
        return _NOTHING + b"\xff\xff" + _NOTHING
    return _NOTHING


class Shapes:
    """The shapes of one connection; the last one is tried first."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: list[Shape] = []

    def read(self, frame: bytes, at: int) -> tuple[Shape, memoryview] | None:
        """The shape and the records of a request; None for an unknown shape."""
        for place, shape in enumerate(self._known):
            found = records_in(frame, at, shape.head, shape.words)
            if found is not None:
                if place:
                    self._known.insert(0, self._known.pop(place))
                return shape, found
        return None

    def begun(self, frame: bytes, frame_bytes: int) -> tuple[Shape, int] | None:
        """The shape of a partly received frame of that size, and the offset of its records; None
        for an unknown shape, or if the records are not reached yet.
        """
        for shape in self._known:
            found = _records_at(frame, 4, shape.head, shape.words)
            if found is not None and found[1] + len(shape.tail) == frame_bytes:
                return shape, found[0]
        return None

    def remember(
        self, frame: bytes, at: int, version: int, client_id: str | None, request: ProduceRequest
    ) -> Shape | None:
        """Remember the shape of a decoded request, if it has one batch for one partition."""
        if version not in VERSIONS or len(request.topic_data) != 1:
            return None
        parts = request.topic_data[0].partition_data
        if len(parts) != 1 or not parts[0].records:
            return None
        count = len(parts[0].records)
        tail = _tail(version)
        size = varint(count + 1) if version >= FLEXIBLE else _NUMBER.pack(count)
        words_end = len(frame) - len(tail) - count - len(size)
        plain = frame.endswith(tail) and frame.startswith(size, words_end)
        if not plain or not 0 < words_end - at <= WORDS_BYTES_MAX:
            return None
        shape = Shape(frame, at, words_end, client_id, request)
        self._known.insert(0, shape)
        del self._known[SHAPES_MAX:]
        return shape


def py_records_in(frame: bytes, at: int, head: bytes, words: bytes) -> memoryview | None:
    """The records of a request with this beginning; None for any other."""
    found = _records_at(frame, at, head, words)
    if found is None:
        return None
    begin, end = found
    tail = _tail(frame[at + 3])
    if end + len(tail) != len(frame) or not frame.endswith(tail):
        return None
    return memoryview(frame)[begin:end]


def _records_at(frame: bytes, at: int, head: bytes, words: bytes) -> tuple[int, int] | None:
    """Where the records of a request begin and end, if it has this shape."""
    if not (frame.startswith(words, at + _WORDS_AT) and frame.startswith(head, at)):
        return None
    begin = at + _WORDS_AT + len(words)
    if frame[at + 3] < FLEXIBLE:
        if len(frame) < begin + 4:
            return None
        (size,) = _NUMBER.unpack_from(frame, begin)
        return (begin + 4, begin + 4 + size) if size > 0 else None
    behind = varint_end(frame, begin, min(begin + _SIZE_BYTES_MAX, len(frame)))
    size = number_at(frame, begin, behind) - 1 if behind else 0
    return (behind, behind + size) if size > 0 else None


def _tail(version: int) -> bytes:
    """The bytes after the records."""
    return _TAIL if version >= FLEXIBLE else b""


def py_answer(correlation_id: int, words: bytes, offset: int, start: int, rest: bytes) -> bytes:
    """The frame of a response: the offset of a batch with CreateTime."""
    numbers = _NUMBERS(0, offset, -1, start)
    size = 4 + len(words) + len(numbers) + len(rest)
    return b"".join((_HEAD(size, correlation_id), words, numbers, rest))


records_in = quickest(py_records_in, HOME)
answer = quickest(py_answer, HOME)
