"""Records of sessions in memory and in storage: what each costs, and what the logs keep."""

from __future__ import annotations

import pytest

from magnetar.core.testing.bench import settled
from magnetar.core.testing.broker import Stores
from magnetar.wire.mqtt.clients import session_records
from magnetar.wire.mqtt.clients.session_records import lower
from magnetar.wire.mqtt.conftest import Stage, serving
from magnetar.wire.mqtt.tests.peer import V5, acknowledge, publish, subscribe, unsubscribe

LOG = "persistent://public/default/mqtt"
NOTHING_CACHED = {"sleeping_bytes_max": 0}


async def sleeper(stage: Stage, name: str, *filters: str, expiry: int = 1_000) -> None:
    properties = b"\x11" + expiry.to_bytes(4, "big")
    wanted = ((filter, 1) for filter in filters or ("t",))
    client = await stage.subscribed(name, *wanted, version=V5, properties=properties)
    await client.leaves()
    await client.is_cut()


async def write(stage: Stage, *payloads: bytes) -> None:
    writer = await stage.connected("w")
    for number, payload in enumerate(payloads, 1):
        await writer.says(publish("t", payload, qos=1, number=number))
    await writer.leaves()
    await writer.is_cut()


async def test_sleeping_sessions_are_read_from_storage() -> None:
    """Also after a restart, and also those that are in memory."""
    stores = Stores()
    for options in ({}, NOTHING_CACHED, {}):
        async with serving(stores, **options) as stage:
            if options:
                assert stage.services.sessions.records.count == 3
            for number in range(3):
                await sleeper(stage, f"c{number}")
            await write(stage, b"x")
            for number in range(3):
                client, (connack, *got) = await stage.connects(f"c{number}", clean=False)
                assert (connack.number, [one.payload for one in got]) == (1, [b"x"])
                await client.acknowledges(*got)
                await client.leaves()
                await client.is_cut()


async def test_only_the_last_ones_are_in_memory() -> None:
    async with serving(sleeping_bytes_max=2_000) as stage:
        records = stage.services.sessions.records
        for number in range(30):
            await sleeper(stage, f"c{number}")
        names = [f"c{number}" for number in range(30)]
        assert list(records._cached) == names[-len(records._cached) :]
        assert 1 <= len(records._cached) < 8
        assert records.bytes_in_memory < 2_000 + 30 * session_records.INDEX_BYTES
        assert (records.asleep, records.count) == (30, 30)
        size = records.bytes_stored
        for number in range(30):
            await stage.connected(f"c{number}", version=V5)  # a clean start
        assert (records.count, records.bytes_stored) == (0, 0)
        assert size > 30 * 20


async def test_client_ids_count_as_parts_of_records() -> None:
    """A record may be the smaller part: a few thousand of the longest ids fill a gigabyte."""
    stores = Stores()
    async with serving(stores, sleeping_bytes_max=500_000) as stage:
        records = stage.services.sessions.records
        for number in range(10):
            await sleeper(stage, f"{number}" + "é" * 30_000)
        assert len(records._cached) == 8
        assert 600_000 < records.bytes_stored < 620_000
        size = records.bytes_stored
        client, _ = await stage.connects("9" + "é" * 30_000, clean=False)
        assert abs(records.bytes_stored - size) < 1_000
        await client.leaves()
        await client.is_cut()
    async with serving(stores) as stage:
        records = stage.services.sessions.records
        assert abs(records.bytes_stored - size) < 1_000
        for number in range(10):
            await stage.connected(f"{number}" + "é" * 30_000, version=V5)  # a clean start
        assert (records.count, records.bytes_stored, records._cached_bytes) == (0, 0, 0)


async def test_sessions_in_storage_expire_and_publish_their_wills() -> None:
    async with serving(**NOTHING_CACHED) as stage:
        reader = await stage.subscribed("reader", ("w", 0))
        client = await stage.connected(
            "d", version=V5, properties=b"\x11\0\0\0\x64", will=("w", b"bye", 0, False),
            will_properties=b"\x18\0\0\0\x32",
        )  # fmt: skip
        await client.is_cut()
        await stage.forward(49)
        assert await reader.receive() == []
        await stage.forward(2)
        assert [one.payload for one in await reader.receive()] == [b"bye"]
        await stage.forward(47)
        assert "d" in stage.services.sessions.records
        await stage.forward(3)
        assert "d" not in stage.services.sessions.records
        assert stage.services.sessions.expired == 1


async def test_the_logs_keep_what_sleeping_sessions_need() -> None:
    """Before a scan perhaps more, never less."""
    async with serving(**NOTHING_CACHED) as stage:
        records = stage.services.sessions.records
        await sleeper(stage, "first")
        await write(stage, b"1", b"2")
        await sleeper(stage, "second")
        (first,) = records.lowest.values()
        await stage.connected("first", version=V5)  # ends it
        assert records.lowest == {LOG: first}
        await records.scan_if_due()
        assert records.lowest[LOG] > first
        third = records.lowest
        await write(stage, b"3")
        await sleeper(stage, "third")
        assert records.lowest == third


async def test_a_session_that_falls_asleep_during_a_scan_counts() -> None:
    async with serving(**NOTHING_CACHED) as stage:
        records = stage.services.sessions.records
        await sleeper(stage, "first")
        early = await stage.subscribed("early", ("t", 1), clean=False)
        await write(stage, b"1")
        await sleeper(stage, "second")
        await stage.connected("first", version=V5)  # so that a scan is due
        lowest = min(at for _, at in stage.services.sessions.connected["early"].positions())
        scan = records.sleeping()
        await anext(scan)
        records._since_scan = {}
        await early.leaves()
        await early.is_cut()
        await settled()
        assert records._since_scan == {LOG: lowest}
        await scan.aclose()


async def test_scans_rest_longer_than_they_take(stage: Stage) -> None:
    records = stage.services.sessions.records
    records._scan_after = stage.stores.clock.monotonic() + 10
    await sleeper(stage, "first")
    await sleeper(stage, "first")
    before = records.lowest
    await stage.connected("first", version=V5)
    await records.scan_if_due()
    assert records.lowest == before != {}
    await stage.forward(11)
    await records.scan_if_due()
    assert records.lowest == {}


async def test_a_session_whose_record_cannot_be_stored_is_tried_again(stage: Stage) -> None:
    client = await stage.subscribed("d", ("t", 1), clean=False)
    records = stage.services.sessions.records
    stage.stores.ledgers.full = True
    await client.leaves()
    await client.is_cut()
    assert records.is_awake("d")
    stage.stores.ledgers.full = False
    await stage.forward(10)
    assert not records.is_awake("d")
    _, (connack,) = await stage.connects("d", clean=False)
    assert connack.number == 1


def stored_bytes(stage: Stage) -> int:
    topic = stage.broker.topics[stage.services.sessions.topic.full].stored
    assert topic is not None
    return topic.ledger.size


async def test_an_acknowledgement_stores_little_of_a_large_session(stage: Stage) -> None:
    """Also those of QoS 2 on both ways."""
    filters = [("x" * 100 + f"/{number}", 1) for number in range(1_000)]
    client = await stage.subscribed("c", ("t", 2), *filters, clean=False)
    assert stored_bytes(stage) > 100_000
    before = stored_bytes(stage)
    for qos in (1, 2):
        writer = await stage.connected("w")
        await writer.completes(*await writer.says(publish("t", b"x", qos=qos, number=1)))
        await client.acknowledges(*await client.receive())
        await stage.forward(1)
        await client.completes(*await client.says(publish("u", b"x", qos=qos, number=1)))
        assert before < stored_bytes(stage) < before + 2_000, qos


async def test_a_subscription_stores_little_of_a_large_session(stage: Stage) -> None:
    """Clients that wait for each SUBACK had all of it stored as often."""
    filters = [("x" * 100 + f"/{number}", 1) for number in range(1_000)]
    client = await stage.subscribed("c", *filters, clean=False)
    before = stored_bytes(stage)
    for number in range(15):
        await client.says(subscribe((f"t/{number}", 1)))
        await client.says(unsubscribe(filters[number][0]))
    assert stored_bytes(stage) < before + 100_000
    for number in range(100, 200):
        await client.says(subscribe((f"t/{number}/" + "x" * 100, 1)))
    assert before + 300_000 < stored_bytes(stage) < before + 900_000, "whole again, three times"


async def test_a_subscription_that_the_session_has_stores_little(stage: Stage) -> None:
    """Many clients subscribe to all their filters again whenever they connect."""
    filters = [("x" * 100 + f"/{number}", 1) for number in range(1_000)]
    client = await stage.subscribed("c", *filters, clean=False)
    before = stored_bytes(stage)
    (suback,) = await client.says(subscribe(*filters[:10]))
    assert suback.reasons == (1,) * 10
    assert before < stored_bytes(stage) < before + 2_000


async def test_requests_that_wait_are_stored_together(stage: Stage) -> None:
    """Else a client that sends one for each filter has the record stored as often, ever larger."""
    client = await stage.connected("c", clean=False)
    names = ["x" * 100 + f"/{number}" for number in range(300)]
    answers = await client.says(*(subscribe((name, 1), number=9) for name in names))
    assert [(one.kind, one.reasons) for one in answers] == [("SUBACK", (1,))] * 300
    assert stored_bytes(stage) < 80_000
    answers = await client.says(*(unsubscribe(name, number=9) for name in names))
    assert [one.kind for one in answers] == ["UNSUBACK"] * 300
    assert stored_bytes(stage) < 160_000


async def progress(stage: Stage) -> list[tuple[str, bool]]:
    """The progress that is in the topic, after compaction: of whom, and whether it counts."""
    found: dict[bytes, bytes] = {}
    places: dict[bytes, int] = {}
    async for message in stage.services.sessions.records.stored.messages():
        key = message.packet.topic
        places[key] = len(places)
        found.pop(key, None)
        if message.packet.payload:
            found[key] = message.packet.payload
    names = list(found)
    return [
        (key[1:].decode(), key[1:] in names[: names.index(key)])
        for key in names
        if key[:1] == b"\0"
    ]


async def test_a_crash_leaves_subscriptions_and_progress_of_one_moment() -> None:
    """At each step: a subscription, an acknowledgement, and one more change of each."""
    stores = Stores()
    filters: dict[str, int] = {"t": 1}
    received = []
    for step in range(5):
        async with serving(stores) as stage:
            client, (connack, *_) = await stage.connects("c", clean=False)
            assert connack.number == (step > 0)
            record = stage.services.sessions.connected["c"].record()  # type: ignore[attr-defined]
            assert {one.filter: one.qos for one in record.subscriptions} == filters or not step
            assert [one.packet_id for one in record.in_flight] == []
            assert list(record.received) == received
            if step in (0, 2):
                filters = {"t": 1, f"f{step}": 1}
                await client.says(subscribe(*filters.items()))
                if step:
                    await client.says(unsubscribe("f0"))
            await write(stage, b"1", b"2")
            got = await client.receive()
            await client.acknowledges(*got)
            await stage.forward(1)
            if step % 2:
                await client.says(publish("u", b"x", qos=2, number=step))
                received.append(step)
    async with serving(stores) as stage:
        assert await progress(stage) == [("c", True)]


async def test_a_crash_leaves_the_subscriptions_of_one_by_one() -> None:
    """Whatever was acknowledged, whether the record was stored whole since or not."""
    stores = Stores()
    filters: dict[str, int] = {}
    for number in range(12):
        async with serving(stores, **NOTHING_CACHED) as stage:
            assert stage.services.groups.count == bool(number)
            record = await stage.services.sessions.records.read("c")
            if number:
                assert record is not None
                assert {one.filter: one.qos for one in record.subscriptions} == filters
                client = await stage.connected("c", clean=False)
            else:
                client = await stage.subscribed("c", ("$share/g/s", 1), clean=False)
                filters["$share/g/s"] = 1
            for qos in range(3):
                name = "y" * 100 * number + f"/{qos}"
                await client.says(subscribe((name, qos)))
                filters[name] = qos
            filters.pop(ended := list(filters)[number])
            await client.says(unsubscribe(ended))
            await client.says(subscribe((ended, 1)))
            filters[ended] = 1


async def test_progress_is_deleted_with_its_session_and_once_that_sleeps() -> None:
    stores = Stores()
    async with serving(stores) as stage:
        for name in ("asleep", "gone", "crashed"):
            client = await stage.subscribed(name, ("t", 1), clean=False)
            await write(stage, b"1")
            await client.says(acknowledge("PUBACK", (await client.receive())[0].number))
            await stage.forward(1)
            assert (name, True) in await progress(stage)
            if name != "crashed":
                await client.leaves()
            if name == "gone":
                await stage.connected(name)
        assert await progress(stage) == [("crashed", True)]
    async with serving(stores, **NOTHING_CACHED) as stage:
        records = stage.services.sessions.records
        assert await progress(stage) == [("crashed", True)]
        (end,) = records.lowest.values()
        (at,) = (await records.read("crashed")).places  # type: ignore[union-attr]
        assert (at.ledger_id, at.entry_id) > end, "never too high"
        await stage.connected("crashed")
        assert await progress(stage) == []


async def test_progress_without_a_session_is_deleted_by_the_next_start() -> None:
    """As a crash leaves it, between the two deletions."""
    stores = Stores()
    async with serving(stores) as stage:
        await sleeper(stage, "asleep")
        records = stage.services.sessions.records
        progress_of_others = b"\x01\x95\x90\x90\x90\x90\x90"
        await records.stored.store(b"\0nobody", progress_of_others)
        await records.stored.store(b"\0asleep", progress_of_others)
        await sleeper(stage, "asleep", "t", "u")
        assert await progress(stage) == [("nobody", False), ("asleep", False)]
    async with serving(stores) as stage:
        await settled()
        assert await progress(stage) == []
        _, (connack,) = await stage.connects("asleep", clean=False)
        assert connack.number == 1


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x02\x95\x90\x90\x90\x90\x90",
        b"\x01\x95\x90",
        b"\x01\x95\x90\x91\x97\1\0\0\0\0\1\xc2\x90\x90\x90",
    ],
    ids=["layout", "end", "log"],
)
async def test_damaged_progress_costs_the_progress_alone(
    caplog: pytest.LogCaptureFixture, damaged: bytes
) -> None:
    """The session is as the record before it says: messages are sent again."""
    stores = Stores()
    async with serving(stores) as stage:
        client = await stage.subscribed("c", ("t", 1), clean=False)
        await write(stage, b"1")
        await client.acknowledges(*await client.receive())
        await stage.forward(1)
        await stage.services.sessions.records.stored.store(b"\0c", damaged)
        await sleeper(stage, "other")
    async with serving(stores) as stage:
        assert stage.services.sessions.records.count == 2
        client, (connack, *got) = await stage.connects("c", clean=False)
        assert (connack.number, [one.payload for one in got]) == (1, [b"1"])
        await client.acknowledges(*got)
    (line,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert line.startswith("the session of 'c' is resumed from its last whole record: ")


def test_lower() -> None:
    lowest = {"a": (1, 5)}
    lower(lowest, [("a", (1, 4)), ("a", (2, 0)), ("b", (9, 9))])
    assert lowest == {"a": (1, 4), "b": (9, 9)}
