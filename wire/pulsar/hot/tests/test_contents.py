"""Messages that no consumer can read, and that they are told from those that all can."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import pack
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.hot import contents
from magnetar.wire.pulsar.tests.peer import batch, metadata, tail


def one(message: bytes, size: int | None = None, about: bytes | None = None) -> bytes:
    said = len(message) if size is None else size
    single = pb.SingleMessageMetadata(payload_size=said).SerializeToString()
    single = single if about is None else about
    return pack(">I", len(single)) + single + message


GOOD = one(b"a")
BAD: list[tuple[str, bytes, int]] = [
    ("nothing", b"", 1),
    ("fewer messages than it says", GOOD, 2),
    ("a message longer than its batch", one(b"a", size=2), 1),
    ("a message of less than nothing", one(b"a", size=-1), 1),
    ("metadata longer than the batch", pack(">I", 5000) + b"\x18\x01a", 1),
    ("metadata of four gigabytes", b"\xff\xff\xff\xff\x18\x01a", 1),
    ("metadata that is none", one(b"a", about=b"\xff\xff\xff"), 1),
    ("a size cut off", GOOD + b"\0\0", 2),
    ("no size of the message", one(b"a", about=b""), 1),
    ("fewer messages than none", GOOD, -1),
]
PACKERS: dict[int, Any] = {
    1: lambda data: bytes(cramjam.lz4.compress_block(data, store_size=False)),
    2: zlib.compress,
    3: lambda data: bytes(cramjam.zstd.compress(data)),
    4: lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


def sent(payload: bytes, count: int | None, **fields: Any) -> bytes:
    about = metadata(7, **fields)
    if count is not None:
        about.num_messages_in_batch = count
    return tail(payload, about)


def packed(payload: bytes, count: int | None, codec: int) -> bytes:
    if not codec:
        return sent(payload, count)
    return sent(PACKERS[codec](payload), count, compression=codec, uncompressed_size=len(payload))


@pytest.mark.parametrize("codec", [0, *PACKERS])
@pytest.mark.parametrize(("payload", "count"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_batches_that_are_none(payload: bytes, count: int, codec: int) -> None:
    if payload or not codec:
        assert contents.malformed([sent(b"x", None), packed(payload, count, codec)]) == [1]


@pytest.mark.parametrize("count", [None, 1])
@pytest.mark.parametrize("codec", PACKERS)
def test_what_cannot_be_uncompressed(codec: int, count: int | None) -> None:
    garbage = sent(b"garbage" * 3, count, compression=codec, uncompressed_size=100)
    other = sent(PACKERS[codec](GOOD), count, compression=codec, uncompressed_size=len(GOOD) + 1)
    assert contents.malformed([garbage, other]) == [0, 1]


@pytest.mark.parametrize("codec", [0, *PACKERS])
def test_what_everybody_can_read(codec: int) -> None:
    fine = [(batch([b"a", b"", b"c" * 300]), 3), (GOOD + GOOD, 1), (b"no batch at all", None)]
    assert contents.malformed([packed(payload, count, codec) for payload, count in fine]) == []


def test_what_is_not_looked_into() -> None:
    keys = [pb.EncryptionKeys(key="k", value=b"v")]
    much = contents.UNCOMPRESSED_BYTES_MAX + 1
    others = [
        sent(b"?", 3, encryption_keys=keys),
        sent(b"?", None, compression=1, uncompressed_size=9, num_chunks_from_msg=2, chunk_id=0),
        sent(b"?", 1, compression=2, uncompressed_size=much),
        sent(b"", None, compression=1, uncompressed_size=0),
        b"\0\0\0\x02\xff\xff" + b"metadata that is none",
        b"\0\0\1\0too short",
        b"",
    ]
    assert contents.malformed(others) == []


# -- the twins -------------------------------------------------------------------------------------


def mutations(data: bytes) -> Iterator[bytes]:
    for at in range(len(data)):
        yield data[:at] + data[at + 1 :]
        for byte in (0, 1, 88, 127, 128, 255):
            yield data[:at] + bytes((byte,)) + data[at + 1 :]


def same(payloads: list[bytes]) -> None:
    assert contents.suspects(payloads) == contents.py_suspects(payloads)
    for payload in payloads:
        for count in (1, 2):
            assert contents.holds(payload, 0, count) == contents.py_holds(payload, 0, count)


@given(st.lists(st.binary(max_size=40), max_size=3))
def test_twins_agree_on_arbitrary_bytes(payloads: list[bytes]) -> None:
    same(payloads)


@pytest.mark.parametrize("payload", [GOOD + GOOD, *[case[1] for case in BAD]])
def test_twins_agree_on_what_is_nearly_right(payload: bytes) -> None:
    same(list(mutations(payload)))
    whole = sent(payload, 2)
    same(list(mutations(whole)))
    contents.malformed(list(mutations(sent(payload, 2, compression=2, uncompressed_size=9))))
