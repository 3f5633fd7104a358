"""Entries as they are stored, over HTTP: in order, bounded, and what is lost is said."""

from struct import unpack_from

import pytest

from magnetar.core.testing.ledgers import MemoryLedgers
from magnetar.wire.http.admin.programs import reader_entries
from magnetar.wire.http.tests.visitor import Visitor, visiting

ENTRIES = "/admin/v2/reading/entries"
TOPIC = "persistent://public/default/t"


def parts(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(data):
        entry_id, size = unpack_from(">qI", data, at)
        found.append((entry_id, data[at + 12 : at + 12 + size]))
        at += 12 + size
    return found


async def asked(visitor: Visitor, ledger: int, first: int, last: int):
    body = {"topic": "t", "ledger": ledger, "first": first, "last": last}
    return await visitor.ask("POST", ENTRIES, body)


async def test_entries_with_their_headers(visitor: Visitor) -> None:
    places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
    ledger = places[0][0]
    log = (await visitor.topic(TOPIC)).ledger
    stored = (await log.read((ledger, 0), 3, 1 << 20)).stored()
    response = await asked(visitor, ledger, 1, 2)
    assert response.headers["magnetar-next-entry"] == "3"
    assert "magnetar-lost-entry" not in response.headers
    assert parts(response.content) == [(1, stored[1]), (2, stored[2])]


async def test_an_answer_is_bounded_and_says_where_to_go_on(visitor: Visitor, monkeypatch) -> None:
    places = await visitor.publish(TOPIC, [b"x" * 100] * 20)
    monkeypatch.setattr(reader_entries, "ANSWER_BYTES", 500)
    response = await asked(visitor, places[0][0], 0, 19)
    found = parts(response.content)
    assert 0 < len(found) < 20
    assert response.headers["magnetar-next-entry"] == str(len(found))


async def test_a_lost_entry_ends_the_answer_before_it() -> None:
    ledgers = MemoryLedgers()
    async with visiting(ledgers=ledgers) as visitor:
        places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
        ledger = places[0][0]
        ledgers.ledgers[ledger].damaged.add(1)
        response = await asked(visitor, ledger, 0, 2)
        assert [entry_id for entry_id, _ in parts(response.content)] == [0]
        assert response.headers["magnetar-next-entry"] == "1"
        response = await asked(visitor, ledger, 1, 2)
        assert (response.content, response.headers["magnetar-next-entry"]) == (b"", "1")
        assert "does not have its digest" in response.headers["magnetar-lost-entry"]
        response = await asked(visitor, ledger, 2, 2)
        assert [entry_id for entry_id, _ in parts(response.content)] == [2]


@pytest.mark.parametrize(
    ("first", "last", "status"), [(0, 3, 404), (-1, 0, 400), (2, 1, 400), (3, 3, 404)]
)
async def test_what_is_not_there_is_refused(
    visitor: Visitor, first: int, last: int, status: int
) -> None:
    places = await visitor.publish(TOPIC, [b"a", b"b", b"c"])
    assert (await asked(visitor, places[0][0], first, last)).status_code == status
    assert (await asked(visitor, places[0][0] + 7, 0, 0)).status_code == 404
