"""The log of a shadow topic: reads another one's, and has a record of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from magnetar.core.kernel.errors import Fenced, NotAllowed
from magnetar.core.ledger.log.change_notice import KEPT, MARKED
from magnetar.core.ledger.log.ledger_list import CREATED
from magnetar.core.ledger.log.ledger_list_record import NEXT_INDEX
from magnetar.core.ledger.log.managed_ledger import LogState, ManagedLedger
from magnetar.core.testing.bench import NAME, Bench, bench, settled
from magnetar.core.topic.shadow_ledger import ShadowLedger

SHADOW = "public/default/persistent/shadow"


@pytest.fixture
async def desk() -> AsyncIterator[Bench]:
    async with bench() as made:
        yield made


async def pair(desk: Bench) -> tuple[ManagedLedger, ShadowLedger]:
    source = ManagedLedger(desk.storage, NAME, lambda: None)
    await source.open()
    record = ManagedLedger(desk.storage, SHADOW, lambda: None)
    await record.open()
    await record.set_property("mine", "1")
    shadow = ShadowLedger(desk.storage, SHADOW, lambda: None, lambda: None, source)
    await shadow.open()
    return source, shadow


async def texts(log: ManagedLedger) -> list[bytes]:
    return [payload[-1:] for payload in (await log.read((0, 0), 10, 1_000)).payloads]


async def append(log: ManagedLedger, *payloads: bytes) -> list[object]:
    told: list[object] = []
    log.append(list(payloads), None, told.append)
    await settled()
    return told


async def test_it_reads_what_its_source_has(desk: Bench) -> None:
    source, shadow = await pair(desk)
    assert await append(source, b"a", b"b") == [(0, 0)]
    assert shadow.chain.confirmed == source.chain.confirmed
    assert shadow.confirmed_index == source.confirmed_index == 2
    assert (await texts(shadow)) == [b"a", b"b"]
    assert (shadow.size, shadow.open_bytes) == (source.size, source.open_bytes)
    assert shadow.statistics() == source.statistics()
    assert (source.writes.entries, shadow.writes.entries) == (2, 0), "counted once"
    await source.set_property("magnetar.mixed", "")
    assert shadow.mixed


async def test_properties_are_its_own(desk: Bench) -> None:
    source, shadow = await pair(desk)
    await shadow.set_property("other", "2")
    assert "mine" not in source.properties
    again = ManagedLedger(desk.storage, SHADOW, lambda: None)
    await again.open()
    assert again.properties["mine"] == "1"
    assert again.properties["other"] == "2"
    assert again.chain.segments == []
    await again.claim()
    with pytest.raises(Fenced):
        await shadow.set_property("late", "3")
    assert shadow.fenced
    assert not source.fenced


async def test_it_changes_nothing(desk: Bench) -> None:
    source, shadow = await pair(desk)
    await append(source, b"a")
    (told,) = await append(shadow, b"b")
    assert isinstance(told, NotAllowed)
    for change in (shadow.terminate(), shadow.trim([0]), shadow.cut(1, (0, 0))):
        with pytest.raises(NotAllowed):
            await change
    await shadow.roll()
    await shadow.roll_if_old()
    await shadow.close()
    assert source.state is LogState.WRITING
    assert source.chain.confirmed == (0, 0)
    assert (await texts(source)) == [b"a"]


async def test_the_end_is_its_sources(desk: Bench) -> None:
    source, shadow = await pair(desk)
    assert not shadow.terminated
    await source.terminate()
    assert shadow.terminated


async def test_deleting_it_deletes_no_ledger(desk: Bench) -> None:
    source, shadow = await pair(desk)
    await append(source, b"a")
    await shadow.delete()
    assert (await texts(source)) == [b"a"]
    late = ShadowLedger(desk.storage, SHADOW, lambda: None, lambda: None, source)
    await late.open()
    assert set(late.properties) == {CREATED, NEXT_INDEX}, "a new one"


async def test_nobody_keeps_what_is_made_of_it(desk: Bench) -> None:
    """The source has one keeper, who would hear of the shadow's changes in its place."""
    _, shadow = await pair(desk)
    marks = bytearray(3)
    shadow.notice.ask(marks, bytearray(), 1, KEPT)
    assert marks == bytes([KEPT, MARKED, KEPT])
    assert shadow.notice.marks is None
