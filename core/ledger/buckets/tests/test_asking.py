"""Who asks the index, and waits: with others, for storage, for memory."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from magnetar.core.ledger.buckets import delayed_index
from magnetar.core.ledger.buckets.bucket import (
    UNMERGED_MAX,
    buckets_of,
)
from magnetar.core.ledger.buckets.delayed_index import (
    LOAD_SECONDS,
    NOTED_BLOCKS,
    UNREADABLE_SECONDS,
)
from magnetar.core.ledger.buckets.index_memory import AT_ONCE
from magnetar.core.ledger.buckets.tests.indexes import (
    Asked,
    found,
    left_behind,
    note_blocks,
    opened,
    told,
    with_many_buckets,
    with_wide_buckets,
)
from magnetar.core.ports.ledger_store import LedgerInfo
from magnetar.core.testing.bench import Bench, settled


async def hang(*_asked: int) -> list[bytes]:
    """A read that storage never answers."""
    await trio.sleep_forever()


async def test_who_asks_at_the_same_time_is_told_once(desk: Bench) -> None:
    ledger = await opened(desk)
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    await ledger.close()
    index = (await opened(desk)).delayed_index
    heard: Asked = []

    def loaded() -> None:
        heard.append("one")

    for _ in range(3):
        assert not index.is_loaded((0, 3), loaded)
    assert not index.is_loaded((0, 4), lambda: heard.append("other"))
    await settled()
    assert heard == ["one", "other"]
    assert index.is_loaded((0, 3), loaded)
    index.let_go(buckets_of(ledger.properties)[0].ledger_id)
    assert await found(index, (0, 3)) is not None, "it is read again"


async def test_of_many_buckets_for_one_block_some_are_asked(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that read at different places note blocks of both, so that buckets are wide: to read all
    of them, one would have to go for the other.
    """
    monkeypatch.setattr(delayed_index, "COVERING_BLOCKS_MAX", 8)
    index = (await with_wide_buckets(desk, monkeypatch)).delayed_index
    middle = (0, 50)
    assert len([one for one in index._find_named() if one.first <= middle <= one.last]) > 4
    assert await found(index, middle) is None
    assert len(index._loaded) == 4


async def test_who_has_waited_goes_on_though_others_took_the_memory(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = (await with_wide_buckets(desk, monkeypatch)).delayed_index
    desk.storage.index_memory._blocks_max = 3
    for _ in range(2):
        assert await found(index, (0, 50)) is None
        assert len(index._loaded) < 4, "the others were let go of"


async def test_of_two_that_read_none_waits_for_all_that_the_other_reads(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await with_many_buckets(desk, monkeypatch)
    await ledger.close()
    index = (await opened(desk)).delayed_index
    heard: Asked = []
    assert not index.is_loaded((0, 0), lambda: heard.append("one"))
    assert not index.is_loaded((0, 9), lambda: heard.append("other"))

    def again() -> None:
        assert index.is_loaded((0, 0), again)
        index.let_go(index._covering((0, 1))[0].ledger_id)
        assert not index.is_loaded((0, 1), lambda: heard.append("one again"))

    index._waiting[0, 0].append(again)
    await settled()
    assert heard == ["one", "other", "one again"]
    assert await found(index, (0, 9)) is not None


async def test_what_is_lost_stays_so_though_others_are_slow(
    desk: Bench, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    ledger = await with_wide_buckets(desk, monkeypatch)
    lost, slow = ledger.delayed_index._covering((0, 50))[:2]
    desk.ledgers.ledgers[lost.ledger_id].damaged.add(0)
    monkeypatch.setattr(desk.ledgers.ledgers[slow.ledger_id], "read", hang)
    assert await told(ledger.delayed_index, (0, 50))
    assert lost not in buckets_of(ledger.properties)
    assert slow in buckets_of(ledger.properties)


@pytest.mark.parametrize("for_a_turn", [False, True])
async def test_nobody_waits_for_long(
    desk: Bench,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: MockClock,
    for_a_turn: bool,
) -> None:
    """Neither for storage, nor for others who wait for it."""
    made = await left_behind(desk)
    others = AT_ONCE if for_a_turn else 0
    for _ in range(others):
        desk.storage.index_memory.loads.acquire_nowait()
    monkeypatch.setattr(desk.ledgers.ledgers[made.ledger_id], "read", hang)
    index = (await opened(desk)).delayed_index
    began = trio.current_time()
    assert await told(index, made.first)
    assert trio.current_time() - began == LOAD_SECONDS
    assert "was not read in 5 s" in caplog.text
    assert await found(index, made.first) is None
    assert await found(index, made.last) is None, "nobody waits for it again"

    monkeypatch.undo()
    for _ in range(others):
        desk.storage.index_memory.loads.release()
    desk.clock.forward(UNREADABLE_SECONDS)
    assert await found(index, made.last) is not None


async def test_a_bucket_that_becomes_one_with_others_while_it_is_read(
    desk: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = await with_many_buckets(desk, monkeypatch)
    index = ledger.delayed_index
    first = buckets_of(ledger.properties)[0]
    merged, original = trio.Event(), desk.ledgers.info

    async def late(ledger_id: int) -> LedgerInfo:
        if ledger_id == first.ledger_id and not index._storing:
            await merged.wait()
        return await original(ledger_id)

    monkeypatch.setattr(desk.ledgers, "info", late)
    assert not index.is_loaded((0, 0), lambda: None)
    await settled()
    await note_blocks(index, [UNMERGED_MAX])
    merged.set()
    await settled()
    assert (caplog.text, index._unreadable) == ("", {})
    assert await found(index, (0, 0)) is not None


async def test_who_waits_for_a_lost_bucket_does_not_wait_for_the_metadata(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await left_behind(desk)
    del desk.ledgers.ledgers[made.ledger_id]
    ledger = await opened(desk)

    answered, put = trio.Event(), desk.metadata.put

    async def late(path: str, value: bytes, expected: int) -> int:
        await answered.wait()
        return await put(path, value, expected)

    monkeypatch.setattr(desk.metadata, "put", late)
    assert await found(ledger.delayed_index, (0, 3)) is None
    assert buckets_of(ledger.properties) == [made]
    answered.set()
    await settled()
    assert buckets_of(ledger.properties) == []
