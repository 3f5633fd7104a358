"""What those hear who read ledgers themselves: where messages are, and what of them may be read."""

from base64 import b64encode
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from magnetar.core.entry.pulsar import form as pulsar
from magnetar.core.entry.record import Record
from magnetar.core.kernel.names import TopicName
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

HERE = "/admin/v2/reading"
TOPICS, POSITIONS, LEDGERS = f"{HERE}/topics", f"{HERE}/positions", f"{HERE}/ledgers"
TOPIC = "persistent://public/default/t"


class Places:
    """Two ledgers on one bookie."""

    async def metadata(self, ledger_ids: Sequence[int]) -> Mapping[int, bytes]:
        return {each: b"metadata %d" % each for each in ledger_ids if each <= 2}

    def bookies(self) -> Mapping[str, str]:
        return {"one": "10.0.0.1:3181"}


async def posted(visitor: Visitor, path: str, body: object) -> dict:
    response = await visitor.ask("POST", path, body)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_topic_begins_and_ends_somewhere(visitor: Visitor) -> None:
    places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
    ledger = places[0][0]
    found = await posted(visitor, TOPICS, {"topics": ["t"]})
    assert (found["partitions"], found["missing"]) == ({}, [])
    plan = found["topics"][TOPIC]
    assert (plan["first"], plan["end"], plan["stable"]) == (
        [ledger, 0, 0],
        [ledger, 3, 3],
        [ledger, 3, 3],
    )
    (only,) = plan["ledgers"]
    assert (only["id"], only["first_index"], only["entries"]) == (ledger, 0, 3)
    assert only["open"]
    assert plan["aborted"] == []


async def test_an_unfinished_transaction_ends_what_is_stable(visitor: Visitor) -> None:
    await visitor.publish(TOPIC, [b"a", b"b"])
    topic = await visitor.topic(TOPIC)
    at = topic.ledger.chain.confirmed
    topic.ledger.transactions.wrote(7, 1, at, 0)
    topic.ledger.transactions.wrote(8, 0, at, 0)
    topic.ledger.transactions.ended(8, 1, committed=False)
    plan = (await posted(visitor, TOPICS, {"topics": [TOPIC]}))["topics"][TOPIC]
    assert plan["stable"] == [*at, 1]
    assert plan["end"][2] == 2
    assert plan["aborted"] == [[8, 0, 1]]


async def test_all_partitions_are_meant_and_those_that_are_missing_named(visitor: Visitor) -> None:
    await visitor.does("PUT", "/admin/v2/persistent/public/default/p/partitions", 2)
    found = await posted(visitor, TOPICS, {"topics": ["p", "nobody"]})
    base = "persistent://public/default/p"
    assert found["partitions"] == {base: 2}
    assert set(found["topics"]) == {f"{base}-partition-0", f"{base}-partition-1"}
    assert found["missing"] == ["persistent://public/default/nobody"]
    assert found["topics"][f"{base}-partition-0"]["ledgers"] == []


async def test_the_entry_of_a_message(visitor: Visitor) -> None:
    places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
    ledger = places[0][0]
    for offset in range(4):
        found = await posted(visitor, POSITIONS, {"offsets": {TOPIC: offset}})
        assert found["positions"] == {TOPIC: [ledger, offset, offset, min(offset + 1, 3)]}
    reason = await visitor.fails(400, "POST", POSITIONS, {"offsets": {TOPIC: 4}})
    assert reason == f"{TOPIC} has no offset 4, only 0 to 3"


async def test_the_first_message_since_a_time(visitor: Visitor) -> None:
    entries = [pulsar.entry_of([Record(0, ms, None, b"x")], 0, ms, "p") for ms in (1000, 2000)]
    places = await visitor.publish(TOPIC, entries)
    for since_ms, entry_id in ((0, 0), (1001, 1), (2000, 1), (2001, 2)):
        found = await posted(visitor, POSITIONS, {"times": {TOPIC: since_ms}})
        assert found["positions"] == {
            TOPIC: [places[0][0], entry_id, entry_id, min(entry_id + 1, 2)]
        }


async def test_the_offset_of_an_entry(visitor: Visitor) -> None:
    places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
    ledger = places[0][0]
    for asked, entry_id in (([ledger, 1], 1), ([-1, -1], 0), ([ledger, 3], 3), ([1 << 40, 0], 3)):
        found = await posted(visitor, POSITIONS, {"entries": {TOPIC: asked}})
        assert found["positions"] == {TOPIC: [ledger, entry_id, entry_id, min(entry_id + 1, 3)]}


async def test_what_is_not_stored_has_no_plan(visitor: Visitor) -> None:
    name = TopicName.parse("non-persistent://public/default/n")
    await visitor.broker.topic(name)
    reason = await visitor.fails(400, "POST", TOPICS, {"topics": [name.full]})
    assert reason == f"{name} is not persistent: nothing of it is stored"


async def test_a_request_has_a_limit() -> None:
    async with visiting(replace(OPTIONS, body_bytes_max=1 << 20)) as visitor:
        reason = await visitor.fails(400, "POST", TOPICS, {"topics": ["t"] * 10_001})
        assert reason == "more than 10000 topics"


async def test_ledgers_and_bookies() -> None:
    async with visiting(replace(OPTIONS, ledger_places=Places())) as visitor:
        found = await posted(visitor, LEDGERS, {"ledgers": [1, 2, 3]})
        assert found == {
            "ledgers": {str(n): b64encode(b"metadata %d" % n).decode() for n in (1, 2)},
            "bookies": {"one": "10.0.0.1:3181"},
            "missing": [3],
        }


async def test_without_a_bookie_for_readers_it_is_said_how_to_get_one(visitor: Visitor) -> None:
    reason = await visitor.fails(404, "POST", LEDGERS, {"ledgers": [1]})
    assert reason == "no bookie serves readers: start the server with --bookie-port"
