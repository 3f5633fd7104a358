"""Ledgers of topics for who reads them from bookies: whose they are, and tickets."""

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec
import pytest
from msgspec.structs import replace

from magnetar.core.ledger.read import tickets
from magnetar.core.ledger.read.tickets import TicketOffice
from magnetar.wire.http.admin.programs.reader_ledgers import MESSAGE_PACK
from magnetar.wire.http.tests.test_rights import bearer, guarded
from magnetar.wire.http.tests.visitor import OPTIONS, Visitor, visiting

LEDGERS = "/admin/v2/reading/ledgers"
TOPIC, OTHER = "persistent://public/default/t", "persistent://public/default/o"
KEY = bytes(32)


class Places:
    """One bookie, with every ledger below 1,000,000."""

    async def metadata(self, ledger_ids: Sequence[int]) -> Mapping[int, bytes]:
        return {each: b"metadata %d" % each for each in ledger_ids if each < 1_000_000}

    def bookies(self) -> Mapping[str, str]:
        return {"one": "10.0.0.1:3181"}


PLACED = replace(OPTIONS, ledger_places=Places())
WITH_TICKETS = replace(PLACED, tickets=TicketOffice(KEY, 60), body_bytes_max=1 << 20)


@pytest.fixture
async def secured() -> AsyncIterator[Visitor]:
    async with visiting(WITH_TICKETS, access=guarded(superusers=["root"])) as visitor:
        tenant = {"adminRoles": ["admin"], "allowedClusters": ["standalone"]}
        await visitor.does("POST", "/admin/v2/tenants/public", tenant, headers=bearer("root"))
        yield visitor


async def ask(visitor: Visitor, body: object, who: str = "root") -> dict:
    response = await visitor.ask("POST", LEDGERS, body, headers=bearer(who))
    assert response.status_code == 200, response.text
    return response.json()


async def permit(visitor: Visitor, topic: str, role: str, *actions: str) -> None:
    path = f"/admin/v2/{topic.replace('://', '/')}/permissions/{role}"
    await visitor.does("POST", path, list(actions), headers=bearer("root"))


async def ledger_of(visitor: Visitor, topic: str) -> int:
    return (await visitor.publish(topic, [b"a"]))[0][0]


async def test_ledgers_of_a_topic() -> None:
    async with visiting(PLACED) as visitor:
        ledger, other = await ledger_of(visitor, TOPIC), await ledger_of(visitor, OTHER)
        found = await ask(visitor, {"topics": {TOPIC: [ledger, other, 1 << 40]}})
        assert found == {
            "ledgers": {str(ledger): b64encode(b"metadata %d" % ledger).decode()},
            "bookies": {"one": "10.0.0.1:3181"},
            "missing": [other, 1 << 40],
        }


async def test_who_accepts_message_pack_gets_the_same_in_it(secured: Visitor) -> None:
    ledger = await ledger_of(secured, TOPIC)
    body, accept = {"topics": {TOPIC: [ledger, 1 << 40]}}, {"accept": f"{MESSAGE_PACK}, */*"}
    response = await secured.ask("POST", LEDGERS, body, headers=bearer("root") | accept)
    assert response.headers["content-type"] == MESSAGE_PACK
    found = msgspec.msgpack.decode(response.content)
    ((named, ticket),) = found["tickets"]
    assert found["ledgers"] == {ledger: b"metadata %d" % ledger}
    assert (found["missing"], named) == ([1 << 40], [ledger])
    now = secured.broker.clock.wall_ms()
    assert tickets.read(KEY, ticket, now).ledgers == {ledger}
    said = bearer("root") | accept
    refused = await secured.ask("POST", LEDGERS, {"ledgers": ["1"]}, headers=said)
    assert (refused.status_code, "reason" in refused.json()) == (400, True), "reasons are in JSON"


async def test_a_topic_that_is_gone_has_none() -> None:
    async with visiting(PLACED) as visitor:
        found = await ask(visitor, {"topics": {TOPIC: [1]}})
        assert (found["ledgers"], found["missing"]) == ({}, [1])


async def test_who_may_consume_gets_tickets_for_what_he_may_read(secured: Visitor) -> None:
    ledger, other = await ledger_of(secured, TOPIC), await ledger_of(secured, OTHER)
    await permit(secured, TOPIC, "reader", "consume")
    found = await ask(secured, {"topics": {TOPIC: [ledger, other]}}, "reader")
    ((named, ticket),) = found["tickets"]
    assert named == [ledger]
    now = secured.broker.clock.wall_ms()
    assert tickets.read(KEY, b64decode(ticket), now).ledgers == {ledger}
    assert 0 < tickets.read(KEY, b64decode(ticket), now).expires_ms - now <= 60_000
    assert found["missing"] == [other], "of another topic"


@pytest.mark.parametrize("who", ["maker", "stranger"])
async def test_who_may_not_consume_gets_nothing(secured: Visitor, who: str) -> None:
    ledger = await ledger_of(secured, TOPIC)
    await permit(secured, TOPIC, "maker", "produce")
    await permit(secured, OTHER, who, "consume")  # something else
    for body in ({"topics": {TOPIC: [ledger]}}, {"ledgers": [ledger]}):
        response = await secured.ask("POST", LEDGERS, body, headers=bearer(who))
        assert response.status_code == 403, response.text


async def test_without_topics_it_is_for_superusers(secured: Visitor) -> None:
    found = await ask(secured, {"ledgers": [3]})
    assert found["tickets"][0][0] == [3]


async def test_ten_thousand_ledgers_have_many_small_tickets(secured: Visitor) -> None:
    found = await ask(secured, {"ledgers": list(range(10_000))})
    assert sum(len(ids) for ids, _ in found["tickets"]) == 10_000
    assert max(len(ticket) for _, ticket in found["tickets"]) < 200
    both = {"ledgers": [1], "topics": {TOPIC: [2] * 10_000}}
    response = await secured.ask("POST", LEDGERS, both, headers=bearer("root"))
    assert (response.status_code, response.json()["reason"]) == (400, "more than 10000 ledgers")


async def partitioned(visitor: Visitor, number: int, who: str = "root") -> list[int]:
    """A topic of so many partitions, and the ledger of each."""
    path = f"/admin/v2/{TOPIC.replace('://', '/')}/partitions"
    await visitor.does("PUT", path, number, headers=bearer(who))
    return [await ledger_of(visitor, f"{TOPIC}-partition-{each}") for each in range(number)]


async def test_ledgers_of_partitions() -> None:
    """A topic is named once; each ledger is one of the partition with which it is named."""
    async with visiting(PLACED) as visitor:
        first, second, third = await partitioned(visitor, 3)
        named = [[2, third], [0, first], [0, second], [1, second], [3, first], [0, 1 << 40]]
        found = await ask(visitor, {"partitions": {TOPIC: named}})
        assert set(found["ledgers"]) == {str(first), str(second), str(third)}
        assert found["missing"] == [1 << 40]
        found = await ask(visitor, {"partitions": {TOPIC: [[0, second], [3, first]]}})
        assert (found["ledgers"], found["missing"]) == ({}, [second, first])
        for nothing in (OTHER, f"{TOPIC}-partition-0"):
            found = await ask(visitor, {"partitions": {nothing: [[0, first]]}})
            assert (found["ledgers"], found["missing"]) == ({}, [first]), nothing


async def test_who_may_not_consume_gets_nothing_of_partitions(secured: Visitor) -> None:
    ledgers = await partitioned(secured, 2)
    await permit(secured, TOPIC, "reader", "consume")
    await permit(secured, OTHER, "stranger", "consume")
    body = {"partitions": {TOPIC: list(enumerate(ledgers))}}
    ((named, _),) = (await ask(secured, body, "reader"))["tickets"]
    assert named == ledgers
    response = await secured.ask("POST", LEDGERS, body, headers=bearer("stranger"))
    assert response.status_code == 403, response.text


@pytest.mark.parametrize(
    "body",
    [
        {"ledgers": [1 << 63]},
        {"ledgers": [-1]},
        {"ledgers": ["1"]},
        {"topics": {TOPIC: [[1]]}},
        {"partitions": {TOPIC: [[1]]}},
        {"partitions": {TOPIC: [[-1, 1]]}},
        {"partitions": {TOPIC: [[1, 1 << 64]]}},
        {"others": []},
        [],
    ],
)
async def test_what_is_no_question(body: object) -> None:
    async with visiting(PLACED) as visitor:
        response = await visitor.ask("POST", LEDGERS, body)
        assert (response.status_code, response.json()["reason"][:19]) == (
            400,
            "the body is invalid",
        )


async def test_too_many_ledgers_of_partitions() -> None:
    async with visiting(replace(PLACED, body_bytes_max=1 << 20)) as visitor:
        body = {"partitions": {TOPIC: [[0, 1]] * 10_000}, "ledgers": [1]}
        response = await visitor.ask("POST", LEDGERS, body)
        assert (response.status_code, response.json()["reason"]) == (400, "more than 10000 ledgers")
