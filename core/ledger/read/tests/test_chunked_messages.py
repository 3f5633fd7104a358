"""Large messages, from their last part backwards."""

from __future__ import annotations

import pytest

from magnetar.core.ledger.read import chunked_messages
from magnetar.core.testing.bench import Bench, bench, stored
from magnetar.core.testing.entries import entry


def part(number: int, of: int = 3, uuid: bytes = b"u", payload: bytes | None = None) -> bytes:
    return entry(payload or b"%d" % number, chunk=(uuid, number, of))


async def found(desk: Bench, *entries: bytes) -> bytes | None:
    ledger = await desk.ledger()
    places = await stored(ledger, *entries)
    records = await chunked_messages.records_at(ledger, places[-1], entries[-1])
    return records[0].value if records else None


@pytest.mark.parametrize("between", [0, 1, 10, 200])
async def test_parts_among_others(between: int) -> None:
    others = [entry(b"x"), part(0, uuid=b"v"), part(1, uuid=b"v")] * between
    async with bench() as desk:
        assert await found(desk, part(0), *others, part(1), *others, part(2)) == b"012"


async def test_a_part_that_was_sent_again() -> None:
    async with bench() as desk:
        again = part(0, payload=b"new")
        assert await found(desk, part(0), part(1), again, part(1), part(2)) == b"new12"


@pytest.mark.parametrize("lacking", [0, 1])
async def test_a_message_that_is_not_whole(lacking: int) -> None:
    parts = [part(0), part(1), part(2)]
    del parts[lacking]
    async with bench() as desk:
        assert await found(desk, *parts) is None


async def test_what_is_in_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [part(0), part(1), part(2)]
    for loop_bytes in (0, 1000):
        monkeypatch.setattr(chunked_messages, "ON_THE_LOOP_BYTES", loop_bytes)
        async with bench() as desk:
            ledger = await desk.ledger()
            places = await stored(ledger, *parts, entry(b"small"))
            values = [
                [one.value for one in await chunked_messages.records_at(ledger, place, sent)]
                for place, sent in zip(places, [*parts, entry(b"small")], strict=True)
            ]
            assert values == [[], [], [b"012"], [b"small"]]
            assert not await chunked_messages.records_at(ledger, places[2], part(2, uuid=b"other"))


async def test_too_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked_messages, "LOOKED_AT_MAX", 64)
    async with bench() as desk:
        assert await found(desk, part(0), part(1), *[entry(b"x")] * 130, part(2)) is None


async def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [entry(b"x")] * 130
    for bytes_max, whole in ((len(part(0)) * 2, b"012"), (0, None)):
        monkeypatch.setattr(chunked_messages, "BYTES_MAX", bytes_max)
        async with bench() as desk:
            assert await found(desk, part(0), *others, part(1), *others, part(2)) == whole
