"""The keys of a batch's messages, and a batch of which some messages are left. Pure.

Compaction reads each message of a topic, so these functions have compiled twins. What clients write
most (a key of less than 128 bytes, a value, its time or sequence id) is read here, and by the twins
all that `metadata` of one message may hold but for keys in base64; the rest is left to
`messages.message_of_batch`.

Invariant: reading raises `Corrupted` and nothing else, and takes memory in proportion to the
payload.
"""

from __future__ import annotations

from array import array
from typing import Final

from magnetar.core.entry.pulsar import messages
from magnetar.core.kernel.errors import Corrupted
from magnetar.core.native import quickest

COMPACTED_OUT: Final = b"\x00\x00\x00\x04\x18\x00\x20\x01"
"""A message of a batch that is marked as compacted out, and has no value."""
_MESSAGE_BYTES_MIN: Final = 4
_TIME_OR_SEQUENCE: Final = (5 << 3, 8 << 3)
"""The tags of these fields of `SingleMessageMetadata`."""


def py_batch_rows(payload: bytes, count: int) -> tuple[bytes, bytes, bytes]:
    """A `ROW` for each message that is not marked as compacted out; where all of them end, four
    bytes each; and the bytes in which the keys are, which begin with the payload.
    """
    rows, ends = array("i"), array("i")
    more: list[bytes] = []
    at, behind = 0, len(payload)
    for place in range(count):
        usual = usual_message(payload, at)
        if usual is not None:
            key_end, size, end = usual
            key_at = at + 6
            rows.extend((place, key_at, key_end - key_at, size))
            at = end
        elif payload.startswith(COMPACTED_OUT, at):
            at += len(COMPACTED_OUT)
        else:
            at, is_gone, key, size = messages.message_of_batch(payload, at)
            if not is_gone:
                rows.extend((place, behind, -1 if key is None else len(key), size))
                if key is not None:
                    more.append(key)
                    behind += len(key)
        ends.append(at)
    return rows.tobytes(), ends.tobytes(), b"".join((payload, *more)) if more else payload


def usual_message(payload: bytes, at: int) -> tuple[int, int, int] | None:
    """Where the key of the message of a batch at `at` ends, the size of its value, and where it
    ends, if it is as clients write most. The key begins at `at + 6`.
    """
    if payload[at : at + 3] != b"\0\0\0" or payload[at + 4 : at + 5] != b"\x12":
        return None
    try:
        end = at + 4 + payload[at + 3]
        key_end = at + 6 + payload[at + 5]
        size, behind = payload[key_end + 1], key_end + 2
        if payload[at + 5] > 127 or payload[key_end] != 0x18 or not size:
            return None
        if size > 127:
            size, behind = messages.varint_at(payload, key_end + 1, end)
        while behind < end:
            if payload[behind] not in _TIME_OR_SEQUENCE:
                return None
            behind += 2
            while payload[behind - 1] > 127:
                behind += 1
    except (IndexError, Corrupted):
        return None
    if behind != end or end + size > len(payload):
        return None
    return key_end, size, end + size


def py_marked(payload: bytes, ends: bytes, left: bytes) -> bytes:
    """The payload with the messages marked as compacted out at whose place `left` has a 0. So the
    others keep their places, which are in the ids that clients know.
    """
    pieces: list[bytes] = []
    begin = 0
    for end, stays in zip(memoryview(ends).cast("i"), left, strict=True):
        pieces.append(payload[begin:end] if stays else COMPACTED_OUT)
        begin = end
    return b"".join(pieces)


batch_rows = quickest(py_batch_rows, "magnetar.core.entry.pulsar.compiled")
marked = quickest(py_marked, "magnetar.core.entry.pulsar.compiled")
