"""Looking at messages without consuming them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import cramjam
import msgspec
import pytest

from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

HERE = "/admin/v2/persistent/public/default/a"
PUBLISHED_MS = 1_700_000_000_000


class Metadata(msgspec.Struct, frozen=True):
    producer_name: str = "p"
    sequence_id: int = 7
    publish_time: int = PUBLISHED_MS
    properties: dict[str, str] = {}
    event_time: int = 0
    deliver_at_time: int | None = None
    batch_size: int | None = None
    partition_key: str | None = None
    partition_key_is_base64: bool = False
    ordering_key: bytes | None = None
    null_value: bool = False
    compression: int = 0
    uncompressed_size: int = 0
    encryption_keys: tuple[str, ...] = ()
    schema_version: bytes | None = None
    uuid: str | None = None
    chunk_id: int = 0
    chunk_count: int = 0
    chunks_bytes: int = 0
    replicated_from: str | None = None


class Entry(msgspec.Struct, frozen=True):
    broker_timestamp: int | None
    index: int | None
    metadata: Metadata
    payload: bytes


def stored(payload: bytes, **about: Any) -> bytes:
    """A message as this test stores it: JSON, a zero, the payload."""
    return msgspec.json.encode(Metadata(**about)) + b"\0" + payload


def read_entry(entry: bytes) -> Entry:
    """Behind the broker's header comes what `stored` wrote."""
    about, _, payload = entry[entry.index(b"{") :].partition(b"\0")
    return Entry(PUBLISHED_MS, 4, msgspec.json.decode(about, type=Metadata), payload)


@pytest.fixture
async def visitor() -> AsyncIterator[Visitor]:
    options = msgspec.structs.replace(OPTIONS, read_entry=read_entry)
    async with visiting(options) as made:
        yield made


async def test_a_message_is_peeked_with_what_is_known_of_it(visitor: Visitor) -> None:
    await (await visitor.topic("a")).subscription("s")
    await visitor.publish(
        "a",
        [
            stored(
                b"one",
                properties={"k": "ü"},
                partition_key="key",
                ordering_key=b"\xff",
                event_time=PUBLISHED_MS,
                batch_size=1,
            )
        ],
    )
    answer = await visitor.ask("GET", f"{HERE}/subscription/s/position/1")
    assert answer.content == b"one"
    assert answer.headers["content-type"] == "application/octet-stream"
    found = {name: value for name, value in answer.headers.items() if name.startswith("x-pulsar")}
    assert json.loads(found.pop("x-pulsar-property")) == {"k": "ü"}
    assert found == {
        "x-pulsar-message-id": "0:0",
        "x-pulsar-broker-entry-metadata-timestamp": "2023-11-14T22:13:20.000+00:00",
        "x-pulsar-broker-entry-metadata-index": "4",
        "x-pulsar-producer-name": "p",
        "x-pulsar-sequence-id": "7",
        "x-pulsar-publish-time": "2023-11-14T22:13:20.000+00:00",
        "x-pulsar-event-time": "2023-11-14T22:13:20.000+00:00",
        "x-pulsar-partition-key": "key",
        "x-pulsar-base64-ordering-key": "/w==",
        "x-pulsar-num-batch-message": "1",
        "x-pulsar-batch-size": "0",
    }
    # the Java tool compares this one letter by letter
    assert b"X-Pulsar-PROPERTY" in dict(answer.headers.raw)


async def test_acknowledged_messages_are_stepped_over(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    cursor = (await topic.subscription("s")).cursor
    await visitor.publish("a", [stored(b"%d" % number) for number in range(5)])
    cursor.ack_range(0, 0, 0)
    cursor.ack_range(0, 2, 3)
    peeked = [
        (await visitor.ask("GET", f"{HERE}/subscription/s/position/{at}")).content
        for at in (0, 1, 2)
    ]
    assert peeked == [b"1", b"1", b"4"]
    await visitor.fails(404, "GET", f"{HERE}/subscription/s/position/3")


async def test_peeking_makes_a_subscription_at_the_beginning(visitor: Visitor) -> None:
    """As on Apache's broker: that is how its tools look into a topic that nobody reads."""
    await visitor.publish("a", [stored(b"one"), stored(b"two")])
    one = f"{HERE}/subscription/new/position"
    assert (await visitor.ask("GET", f"{one}/2")).content == b"two"
    assert await visitor.get(f"{HERE}/subscriptions") == ["new"]
    assert (await visitor.ask("GET", f"{one}/1")).content == b"one"
    assert await visitor.fails(404, "GET", f"{one}/3") == "Message not found"
    await visitor.fails(
        404, "GET", "/admin/v2/persistent/public/default/b/subscription/n/position/1"
    )


async def test_messages_are_got_by_id(visitor: Visitor) -> None:
    await visitor.publish("a", [stored(b"one"), stored(b"two")])
    assert (await visitor.ask("GET", f"{HERE}/ledger/0/entry/1")).content == b"two"
    for ledger, entry in ((0, 2), (9, 0), (-1, 0), (0, -1)):
        await visitor.fails(404, "GET", f"{HERE}/ledger/{ledger}/entry/{entry}")
    await visitor.fails(400, "GET", f"{HERE}/ledger/a/entry/0")


async def test_ledgers_of_other_topics_are_not_shown(visitor: Visitor) -> None:
    await visitor.publish("b", [stored(b"secret")])
    await visitor.publish("a", [stored(b"one")])
    await visitor.fails(404, "GET", f"{HERE}/ledger/0/entry/0")


async def test_messages_are_examined_from_both_ends(visitor: Visitor) -> None:
    await visitor.publish("a", [stored(b"1"), stored(b"2")])
    await (await visitor.topic("a")).ledger.roll()
    await visitor.publish("a", [stored(b"3")])
    path = f"{HERE}/examinemessage"
    for query, expected in (
        ("", b"3"),
        ("?initialPosition=latest&messagePosition=3", b"1"),
        ("?initialPosition=earliest&messagePosition=1", b"1"),
        ("?initialPosition=earliest&messagePosition=3", b"3"),
    ):
        assert (await visitor.ask("GET", path + query)).content == expected
    await visitor.fails(412, "GET", f"{path}?messagePosition=4")
    await visitor.fails(400, "GET", f"{path}?initialPosition=middle")


async def test_compressed_payloads_are_shown_as_they_were(visitor: Visitor) -> None:
    packed = bytes(cramjam.snappy.compress_raw(b"one" * 100))
    entries = [
        stored(packed, compression=4, uncompressed_size=300),
        stored(packed, compression=4, uncompressed_size=300, encryption_keys=("k",)),
        stored(b"nonsense", compression=4, uncompressed_size=300),
    ]
    await visitor.publish("a", entries)
    assert (await visitor.ask("GET", f"{HERE}/ledger/0/entry/0")).content == b"one" * 100
    encrypted = await visitor.ask("GET", f"{HERE}/ledger/0/entry/1")
    assert encrypted.content == packed
    assert encrypted.headers["x-pulsar-is-encrypted"] == "true"
    await visitor.fails(500, "GET", f"{HERE}/ledger/0/entry/2")


async def test_hostile_values_do_no_harm(visitor: Visitor) -> None:
    about = {"publish_time": 2**63, "producer_name": "a\r\nb\0\x7f", "partition_key": "ü"}
    await visitor.publish("a", [stored(b"one", **about)])
    answer = await visitor.ask("GET", f"{HERE}/ledger/0/entry/0")
    assert answer.status_code == 200
    assert "x-pulsar-publish-time" not in answer.headers
    assert answer.headers["x-pulsar-producer-name"].rstrip() == "a  b"


async def test_sizes_of_backlogs(visitor: Visitor) -> None:
    await visitor.publish("a", [stored(b"one"), stored(b"two")])
    whole = (
        await visitor.ask("PUT", f"{HERE}/backlogSize", {"ledgerId": -1, "entryId": -1})
    ).json()
    half = (await visitor.ask("PUT", f"{HERE}/backlogSize", {"ledgerId": 0, "entryId": 1})).json()
    assert whole == 2 * half > 0


async def test_ids_by_index(visitor: Visitor) -> None:
    topic = await visitor.topic("a")
    path = f"{HERE}/getMessageIdByIndex"
    assert "index 0" in await visitor.fails(404, "GET", f"{path}?index=0")
    await visitor.publish("a", [stored(b"one"), stored(b"two")])
    topic.publish([stored(b"three and four")], [2], lambda _: None)
    await visitor.publish("a", [stored(b"five")])
    (segment,) = topic.ledger.chain.segments
    for index, entry_id in enumerate((0, 1, 2, 2, 3)):
        found = {"ledgerId": segment.ledger_id, "entryId": entry_id, "partitionIndex": -1}
        assert await visitor.get(f"{path}?index={index}") == found
    for index in ("5", "-1", ""):
        await visitor.fails(404 if index else 400, "GET", f"{path}?index={index}")
    await visitor.fails(404, "GET", path)
    await visitor.fails(400, "GET", f"{path}?index=x")
    await visitor.does("DELETE", f"{HERE}/truncate")
    assert "index 1" in await visitor.fails(404, "GET", f"{path}?index=1")
    await visitor.publish("a", [stored(b"six")])
    deleted = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
    assert await visitor.get(f"{path}?index=1") == deleted
    assert (await visitor.get(f"{path}?index=5"))["entryId"] == 0


async def test_a_server_that_cannot_read_messages_says_so() -> None:
    async with visiting() as blind:
        await blind.publish("a", [b"one"])
        await blind.fails(405, "GET", f"{HERE}/ledger/0/entry/0")


async def test_an_empty_topic_ends_before_its_beginning(visitor: Visitor) -> None:
    await visitor.topic("a")
    assert await visitor.get(f"{HERE}/lastMessageId") == {
        "ledgerId": -1,
        "entryId": -1,
        "partitionIndex": -1,
    }
