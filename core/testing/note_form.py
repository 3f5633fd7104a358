"""A form of no protocol, for tests that a new form needs only one folder; a message is a line.

u32 size | b"note" | writer or 0, commit or abort or 0, JSON: time, [[key, value]...]
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from magnetar.core.entry.compaction import Item, KeyRows, Removal, rows_of
from magnetar.core.entry.form import Chunk, MarkKind, TransactionMark
from magnetar.core.entry.record import NO_TIME, DetailedRecord, Record
from magnetar.core.kernel.errors import Corrupted

NAME: Final = "note"
BEGINS: Final = b"note"
_HEAD: Final = struct.Struct(">I4sB")
_KINDS: Final = (None, MarkKind.PART, MarkKind.COMMIT, MarkKind.ABORT)
_KEY: Final = 7
Body = tuple[int, list[tuple[str | None, str | None]]]
_decode: Final[Callable[[bytes], Body]] = msgspec.json.Decoder(Body).decode


def note(
    time_ms: int, pairs: Sequence[tuple[str | None, str | None]], kind: MarkKind | None = None
) -> bytes:
    body = msgspec.json.encode((time_ms, pairs))
    return _HEAD.pack(len(body), BEGINS, _KINDS.index(kind)) + body


def _opened(sent: bytes) -> Body:
    try:
        return _decode(sent[_HEAD.size :])
    except msgspec.MsgspecError as error:
        raise Corrupted("no note") from error


def publish_time(sent: bytes) -> int:
    try:
        return _opened(sent)[0]
    except Corrupted:
        return 0


def latest_time(sent: bytes) -> int:
    return publish_time(sent) or -1


def deliver_at(_sent: bytes) -> int | None:
    return None


def ordering_key(_sent: bytes) -> bytes | None:
    return b""


def sequence(_sent: bytes) -> tuple[bytes, int] | None:
    return None


def chunk(_sent: bytes) -> Chunk | None:
    return None


def remaining_places(_sent: bytes) -> Sequence[int]:
    return ()


def transaction_mark(sent: bytes) -> TransactionMark | None:
    if len(sent) < _HEAD.size or sent[_HEAD.size - 1] >= len(_KINDS):
        raise Corrupted("no note")
    kind = _KINDS[sent[_HEAD.size - 1]]
    return None if kind is None else TransactionMark(_KEY, kind)


def records(sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[Record]:
    time_ms, pairs = _opened(sent)
    return [
        Record(place, time_ms, _bytes(key), _bytes(value))
        for place, (key, value) in enumerate(pairs)
    ]


def messages(sent: bytes, _earlier: Sequence[bytes] = ()) -> Sequence[DetailedRecord]:
    time_ms, _ = _opened(sent)
    return [
        DetailedRecord(one.place, time_ms, NO_TIME, one.key, None, one.value, (), None, None, None)
        for one in records(sent)
    ]


def entry_of(records: Sequence[Record], _index: int, publish_time_ms: int, _producer: str) -> bytes:
    return note(publish_time_ms, [(_text(one.key), _text(one.value)) for one in records])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


class UnpackedNote:
    producer = None
    tombstones_until_ms = -1
    notes_tombstone_time = False
    loses_some = is_decided = True

    def __init__(self, sent: bytes) -> None:
        self._time_ms, self._pairs = _opened(sent)

    @property
    def items(self) -> list[Item]:
        return [
            Item(place, _bytes(key), -1 if value is None else len(value.encode()))
            for place, (key, value) in enumerate(self._pairs)
        ]

    def key_rows(self) -> KeyRows:
        return rows_of(self.items)

    def without(self, fate: Removal) -> bytes:
        pairs = [pair for place, pair in enumerate(self._pairs) if place not in fate.lost]
        return note(self._time_ms, pairs)


def unpacked(sent: bytes) -> UnpackedNote:
    return UnpackedNote(sent)


keyed = unpacked


def marker(_key: int, _epoch: int, now_ms: int, *, committed: bool) -> bytes:
    return note(now_ms, (), MarkKind.COMMIT if committed else MarkKind.ABORT)
