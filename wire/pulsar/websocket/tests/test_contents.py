"""Messages from JSON to the stored form and back, by any codec; what is damaged is refused."""

import json
import zlib
from contextlib import suppress
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import Corrupted, Invalid
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.tests import peer
from magnetar.wire.pulsar.websocket import contents, documents
from magnetar.wire.pulsar.websocket.contents import Position, ProducerWays, position_of
from magnetar.wire.pulsar.websocket.documents import EncryptionKey, Published
from magnetar.wire.pulsar.websocket.endpoint import CODECS

AT = Position(-1, 5, 7)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def document(found: contents.ReceivedMessage) -> Any:
    return json.loads(documents.encoded(found.document))


@given(
    st.binary(max_size=200),
    st.dictionaries(TEXTS, TEXTS, max_size=3),
    st.none() | TEXTS,
    st.sampled_from(list(CODECS.values())),
)
def test_there_and_back(
    payload: bytes, properties: dict[str, str], key: str | None, codec: pb.CompressionType
) -> None:
    message = Published(contents.base64(payload), properties, key=key)
    tail = contents.tail_of(message, payload, ProducerWays("p", codec), 3, 1_700_000_000_123)
    (found,) = contents.received(tail, AT, 2)
    assert found.position == AT
    said = document(found)
    assert contents.base64_decoded(said["payload"]) == payload
    assert (said["properties"], said.get("key")) == (properties, key)
    assert said["publishTime"] == "2023-11-14T22:13:20.123Z"
    assert said["redeliveryCount"] == 2


@given(
    st.builds(
        Position,
        st.integers(-1, 9),
        st.integers(0, (1 << 63) - 1),
        st.integers(0, (1 << 63) - 1),
        st.just(-1),
        st.just(0),
    )
)
def test_positions(position: Position) -> None:
    assert position_of(contents.position_text(position)) == position
    batched = position._replace(batch_index=3, batch_size=9)
    assert position_of(contents.position_text(batched)) == batched


@pytest.mark.parametrize("text", ["", "x", "====", "aGk", "aGk=", "CAAQ!"])
def test_what_is_no_position(text: str) -> None:
    with pytest.raises(Invalid):
        position_of(text)


def test_a_batch_without_what_is_done() -> None:
    tail = peer.tail(peer.batch([b"a", b"b", b"c"]), peer.metadata(num_messages_in_batch=3))
    found = list(contents.received(tail, AT, 0, acked=0b010))
    assert [each.position.batch_index for each in found] == [0, 2]
    assert [document(each)["payload"] for each in found] == ["YQ==", "Yw=="]
    assert {each.position.batch_size for each in found} == {3}


def test_times() -> None:
    message = Published(event_time="2023-11-14T23:13:20.500+01:00", deliver_after_ms=10)
    tail = contents.tail_of(message, b"", ProducerWays("p"), 0, 1_000)
    (found,) = contents.received(tail, AT, 0)
    assert document(found)["eventTime"] == "2023-11-14T22:13:20.500Z"
    about = pb.MessageMetadata.FromString(contents.split_tail(tail).metadata)
    assert about.deliver_at_time == 1_010
    for text in ("yesterday", "2023-11-14T23:13:20", ""):
        with pytest.raises(Invalid):
            contents.tail_of(Published(event_time=text), b"", ProducerWays("p"), 0, 0)


def test_what_a_client_has_encrypted_is_passed_through() -> None:
    keys = {"k": EncryptionKey("c2VjcmV0", {"version": "1"})}
    message = Published(
        encryption_param="cGFyYW0=", compression_type="LZ4", uncompressed_message_size=100
    )
    ways = ProducerWays("p", CODECS["ZSTD"], keys)
    tail = contents.tail_of(message, b"scrambled", ways, 0, 0)
    (found,) = contents.received(tail, AT, 0)
    said = document(found)
    assert contents.base64_decoded(said["payload"]) == b"scrambled"
    assert said["encryptionContext"] == {
        "keys": {"k": {"keyValue": "c2VjcmV0", "metadata": {"version": "1"}}},
        "param": "cGFyYW0=",
        "compressionType": "LZ4",
        "uncompressedMessageSize": 100,
    }
    for bad in (Published(encryption_param="!"), Published(compression_type="RAR")):
        with pytest.raises(Invalid):
            contents.tail_of(bad, b"", ways, 0, 0)


@given(st.binary(max_size=60))
def test_damaged_bytes_are_corrupted_and_nothing_else(damaged: bytes) -> None:
    for tail in (damaged, peer.tail(damaged, peer.metadata(num_messages_in_batch=2))):
        with suppress(Corrupted):
            list(contents.received(tail, AT, 0))


def test_a_batch_that_lies() -> None:
    one = pb.SingleMessageMetadata(payload_size=50).SerializeToString()
    for payload in (b"", pack(">I", 99), pack(">I", len(one)) + one):
        tail = peer.tail(payload, peer.metadata(num_messages_in_batch=1))
        with pytest.raises(Corrupted):
            list(contents.received(tail, AT, 0))


@pytest.mark.parametrize("payload", [None, "a", "a*==", "YQ="])
def test_what_is_no_payload(payload: str | None) -> None:
    with pytest.raises(Invalid):
        contents.payload_of(Published(payload))


def test_a_batch_cannot_claim_millions_of_messages() -> None:
    """Each would be a document, and compressed they are next to nothing."""
    count = contents.BATCH_MAX + 1
    payload = bytes.fromhex("000000021800") * count
    about = peer.metadata(
        0,
        compression=pb.ZLIB,
        uncompressed_size=len(payload),
        num_messages_in_batch=count,
    )
    tail = peer.tail(zlib.compress(payload), about)
    with pytest.raises(Corrupted, match="claims"):
        list(contents.received(tail, AT, 0))


@pytest.mark.parametrize("more", [0, 1])
def test_a_long_payload_is_not_compressed(more: int) -> None:
    """It would take the loop for too long."""
    for codec, size in contents.COMPRESSED_BYTES_MAX.items():
        ways = ProducerWays("p", codec)
        tail = contents.tail_of(Published(), bytes(size + more), ways, 0, 0)
        assert (contents.read(tail).about.compression == 0) is bool(more)
