"""The index of delayed entries of one log: what is stored, found again, lost and forgotten."""

from __future__ import annotations

import logging
import zlib

import pytest
import trio
from msgspec import msgpack

from magnetar.core.kernel.errors import Fenced, StorageFailed
from magnetar.core.ledger import formats
from magnetar.core.ledger.buckets import delayed_index
from magnetar.core.ledger.buckets.bucket import (
    BLOCK_ENTRIES,
    BUCKETS,
    LEDGER_BLOCKS_MAX,
    MERGED,
    UNMERGED_MAX,
    buckets_of,
)
from magnetar.core.ledger.buckets.delayed_index import (
    NOTED_BLOCKS,
    NOTED_MAX,
    UNREADABLE_SECONDS,
)
from magnetar.core.ledger.buckets.index_memory import AT_ONCE
from magnetar.core.ledger.buckets.tests.indexes import (
    FULL,
    found,
    left_behind,
    note_blocks,
    opened,
    with_many_buckets,
)
from magnetar.core.ledger.log import removal
from magnetar.core.ledger.log.ledger_list_record import CompactedLedger
from magnetar.core.ports.ledger_store import LedgerWriter
from magnetar.core.testing.bench import Bench, settled, stored


async def test_what_is_noted_is_found_by_the_next_owner(desk: Bench) -> None:
    ledger = await opened(desk)
    index = ledger.delayed_index
    assert not index.reaches((0, 0))
    await note_blocks(index, range(NOTED_BLOCKS))
    assert (buckets_of(ledger.properties), index.reaches((0, 0))) == ([], False)
    await note_blocks(index, [NOTED_BLOCKS])
    (made,) = buckets_of(ledger.properties)
    assert (made.first, made.last, made.blocks) == ((0, 0), (0, NOTED_BLOCKS - 1), NOTED_BLOCKS)
    assert desk.ledgers.ledgers[made.ledger_id].closed
    assert list(index._noted) == [(0, NOTED_BLOCKS)], "it may still grow"
    await ledger.close()
    assert desk.storage.index_memory.blocks == 0
    index = (await opened(desk)).delayed_index
    assert index.reaches((0, NOTED_BLOCKS * BLOCK_ENTRIES - 1))
    assert not index.reaches((0, NOTED_BLOCKS * BLOCK_ENTRIES))
    assert await found(index, (0, 7)) == ((0, 7), FULL, 1_007)
    assert await found(index, (0, NOTED_BLOCKS)) is None
    assert desk.storage.index_memory.blocks == NOTED_BLOCKS


async def test_a_block_says_what_any_subscription_has_noted_before_it_was_stored(
    desk: Bench,
) -> None:
    ledger = await opened(desk)
    index = ledger.delayed_index
    index.note(0, [5, 1023], [80_000, 70_999])
    index.note(0, [5, 6], [80_000, 80_000])
    await note_blocks(index, range(1, NOTED_BLOCKS + 1))
    assert await found(index, (0, 0)) == ((0, 0), 1 << 5 | 1 << 6 | 1 << 1023, 70)
    index.note(0, [7], [10])
    assert (0, 0) not in index._noted, "it is stored once"


async def test_many_buckets_become_one(desk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = await with_many_buckets(desk, monkeypatch)
    index = ledger.delayed_index
    assert len(buckets_of(ledger.properties)) == UNMERGED_MAX - 1
    await note_blocks(index, [UNMERGED_MAX])
    buckets = buckets_of(ledger.properties)
    assert len(buckets) == UNMERGED_MAX - MERGED + 1
    assert (buckets[0].last, buckets[0].blocks) == ((0, MERGED - 1), MERGED)
    named = {one.ledger_id for one in buckets} | {0}
    assert set(desk.ledgers.ledgers) == named, "the others are deleted"
    assert ledger.ledgers.doomed == set()
    for number in range(UNMERGED_MAX):
        assert await found(index, (0, number)) == ((0, number), FULL, 1_000 + number)


@pytest.mark.parametrize("loss", ["damaged", "deleted"])
async def test_a_lost_bucket_is_told_and_forgotten(
    desk: Bench, loss: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = await left_behind(desk)
    if loss == "damaged":
        desk.ledgers.ledgers[made.ledger_id].damaged.add(0)
    else:
        del desk.ledgers.ledgers[made.ledger_id]
    ledger = await opened(desk)
    index = ledger.delayed_index
    assert await found(index, (0, 3)) is None
    assert f"the index of delayed entries in ledger {made.ledger_id} cannot be read" in caplog.text
    assert (buckets_of(ledger.properties), index.reaches((0, 0))) == ([], False)
    assert made.ledger_id not in desk.ledgers.ledgers
    assert ledger.ledgers.doomed == set()
    await note_blocks(index, range(NOTED_BLOCKS + 1))
    assert await found(index, (0, 3)) is not None, "it is noted again"


async def test_a_bucket_that_cannot_be_read_now_stays(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await left_behind(desk)
    ledger = await opened(desk)

    async def away(*_args: object) -> list[bytes]:
        raise StorageFailed("its bookies are away")

    monkeypatch.setattr(desk.ledgers.ledgers[made.ledger_id], "read", away)
    assert await found(ledger.delayed_index, (0, 3)) is None
    assert buckets_of(ledger.properties) == [made]
    monkeypatch.undo()
    assert await found(ledger.delayed_index, (0, 3)) is None
    desk.clock.forward(UNREADABLE_SECONDS)
    assert await found(ledger.delayed_index, (0, 3)) is not None


async def test_what_cannot_be_stored_is_not_indexed(
    desk: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = await opened(desk)
    desk.ledgers.create_failure = StorageFailed("there are no bookies")
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    assert "delayed entries are not indexed: there are no bookies" in caplog.text
    assert (buckets_of(ledger.properties), set(desk.ledgers.ledgers)) == ([], {0})
    desk.ledgers.create_failure = None
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    (made,) = buckets_of(ledger.properties)
    assert (made.first, made.last) == ((0, 0), (0, NOTED_BLOCKS - 1)), "the same were noted again"


async def test_a_crash_before_a_bucket_is_named(desk: Bench) -> None:
    ledger = await opened(desk)
    desk.ledgers.sync_at_once = False
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    assert set(desk.ledgers.ledgers) == {0, 1}
    after = await desk.ledger()
    assert (set(desk.ledgers.ledgers), buckets_of(after.properties)) == ({0}, [])


async def test_buckets_leave_with_what_they_are_about(desk: Bench) -> None:
    ledger = await opened(desk)
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    (made,) = buckets_of(ledger.properties)
    await ledger.roll()
    await stored(ledger, b"x")
    later = ledger.chain.segments[-1].ledger_id
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1), later)
    assert len(buckets_of(ledger.properties)) == 2
    await ledger.trim([0])
    (left,) = buckets_of(ledger.properties)
    assert (left.last[0], made.ledger_id in desk.ledgers.ledgers) == (later, False)
    assert list(ledger.delayed_index._stored) == [later]
    await ledger.delete()
    assert desk.ledgers.ledgers == {}


async def test_a_deleted_log_takes_its_buckets_with_it(desk: Bench) -> None:
    ledger = await opened(desk)
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    await ledger.delete()
    assert desk.ledgers.ledgers == {}


async def test_the_loser_of_a_log_names_nothing(
    desk: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    ledger = await opened(desk)
    winner = await desk.ledger()
    await winner.claim()
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    assert ledger.fenced
    assert set(desk.ledgers.ledgers) == {0}
    assert buckets_of((await desk.ledger()).properties) == []


async def test_a_list_of_buckets_that_cannot_be_read(
    desk: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does it name the ledgers of the log itself, which are deleted with it alone."""
    ledger = await opened(desk)
    words = "nonsense 0:0.0:0.31:32"
    await ledger.set_property(BUCKETS, words)
    assert not ledger.delayed_index.reaches((0, 0))
    assert "no buckets of delayed entries, 2 such as '0:0.0:0.31:32'" in caplog.text
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    (made,) = buckets_of(ledger.properties)
    assert (ledger.ledgers.doomed, set(desk.ledgers.ledgers)) == (set(), {0, made.ledger_id})
    await ledger.delete()
    assert desk.ledgers.ledgers == {}


async def test_what_is_noted_is_bounded_for_all_logs(desk: Bench) -> None:
    ledger = await opened(desk)
    other = await desk.ledger("public/default/persistent/other")
    memory = desk.storage.index_memory
    memory._blocks_max = 40
    await note_blocks(ledger.delayed_index, range(25))
    await note_blocks(other.delayed_index, range(25))
    assert (memory.blocks, ledger.delayed_index._noted) == (25, {})


async def test_what_was_named_and_is_not_known_to_be_is_not_lost(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is stored, and its writer hears of an error: then the process ends."""
    ledger = await with_many_buckets(desk, monkeypatch)
    index = ledger.delayed_index
    put = desk.metadata.put

    async def unsure(path: str, value: bytes, expected: int) -> int:
        version = await put(path, value, expected)
        buckets = buckets_of(formats.decode_managed_ledger(value).properties)
        if len(buckets) < UNMERGED_MAX - 1:
            raise StorageFailed("the answer is lost")
        return version

    monkeypatch.setattr(desk.metadata, "put", unsure)
    await note_blocks(index, [UNMERGED_MAX])
    assert len(buckets_of(ledger.properties)) == UNMERGED_MAX
    monkeypatch.undo()
    after = await desk.ledger()
    buckets = buckets_of(after.properties)
    assert len(buckets) == UNMERGED_MAX - MERGED + 1
    assert set(desk.ledgers.ledgers) == {0} | {one.ledger_id for one in buckets}
    for number in range(UNMERGED_MAX):
        assert await found(after.delayed_index, (0, number)) is not None


@pytest.mark.parametrize("number", [-1, LEDGER_BLOCKS_MAX, 1 << 62])
async def test_a_block_that_no_ledger_has_is_damage(
    desk: Bench, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    made = await left_behind(desk)
    entries = desk.ledgers.ledgers[made.ledger_id].entries
    wild = msgpack.encode([(0, number, bytes(4 * BLOCK_ENTRIES))])
    entries[:] = [zlib.compress(wild)] * len(entries)
    index = (await opened(desk)).delayed_index
    assert await found(index, made.first) is None
    assert "cannot be read" in caplog.text


async def test_what_two_note_at_different_places_is_stored_once(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_index, "NOTED_BLOCKS", 4)
    ledger = await opened(desk)
    for number in range(80):
        await note_blocks(ledger.delayed_index, [number])
        await note_blocks(ledger.delayed_index, [number + 80])
    for _ in range(4):
        await ledger.close()
        ledger = await desk.ledger()
        unknown = [
            number
            for number in range(160)
            if not ledger.delayed_index.reaches((0, number * BLOCK_ENTRIES))
            or await found(ledger.delayed_index, (0, number)) is None
        ]
        assert len(unknown) <= 4, "those that were noted, and not stored"
        await note_blocks(ledger.delayed_index, unknown)
        assert sum(one.blocks for one in buckets_of(ledger.properties)) <= 160


async def test_blocks_that_are_stored_twice_become_one(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await with_many_buckets(desk, monkeypatch)
    ledger.delayed_index._stored.clear()  # as if it had not been loaded when they were noted again
    await note_blocks(ledger.delayed_index, [0, UNMERGED_MAX])
    buckets = buckets_of(ledger.properties)
    assert sum(one.blocks for one in buckets) == UNMERGED_MAX
    assert await found(ledger.delayed_index, (0, 0)) == ((0, 0), FULL, 1_000)


async def test_a_bucket_without_blocks_is_damaged(
    desk: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    made = await left_behind(desk)
    entries = desk.ledgers.ledgers[made.ledger_id].entries
    entries[:] = [zlib.compress(msgpack.encode([]))] * len(entries)
    index = (await opened(desk)).delayed_index
    assert await found(index, made.first) is None
    assert "cannot be read" in caplog.text


async def test_a_log_that_is_closed_has_no_index(desk: Bench) -> None:
    ledger = await opened(desk)
    index = ledger.delayed_index
    await note_blocks(index, range(NOTED_BLOCKS + 1))
    assert index.reaches((0, 0))
    ledger.fence(Fenced("it is another owner's"))
    await note_blocks(index, range(NOTED_BLOCKS + 1, NOTED_BLOCKS + 5))
    assert not index.reaches((0, 0))
    assert (desk.storage.index_memory.blocks, index._noted, index._loaded) == (0, {}, {})


async def test_while_storage_takes_nothing_no_more_is_noted(desk: Bench) -> None:
    ledger = await opened(desk)
    desk.ledgers.sync_at_once = False
    await note_blocks(ledger.delayed_index, range(2 * NOTED_MAX))
    assert len(ledger.delayed_index._noted) <= NOTED_MAX
    assert desk.storage.index_memory.blocks <= NOTED_MAX


async def test_storing_begins_again_after_it_has_failed(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await opened(desk)
    index, failing = ledger.delayed_index, trio.Event()

    async def create(*_asked: object) -> LedgerWriter:
        await failing.wait()
        raise StorageFailed("no bookies")

    monkeypatch.setattr(desk.ledgers, "create", create)
    await note_blocks(index, range(NOTED_BLOCKS + 1))
    await note_blocks(index, range(NOTED_BLOCKS + 1, 2 * NOTED_MAX))
    assert len(index._noted) == NOTED_MAX
    failing.set()
    await settled()
    monkeypatch.undo()
    await note_blocks(index, range(2 * NOTED_MAX, 2 * NOTED_MAX + 2))
    assert buckets_of(ledger.properties)


async def test_one_that_cannot_be_read_does_not_stop_the_others_from_becoming_one(
    desk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await with_many_buckets(desk, monkeypatch)
    index = ledger.delayed_index
    away = buckets_of(ledger.properties)[2]

    async def unreadable(*_args: object) -> list[bytes]:
        raise StorageFailed("its bookies are away")

    monkeypatch.setattr(desk.ledgers.ledgers[away.ledger_id], "read", unreadable)
    for number in range(UNMERGED_MAX, UNMERGED_MAX + 3):
        await note_blocks(index, [number])
    buckets = buckets_of(ledger.properties)
    assert away in buckets
    assert len(buckets) < UNMERGED_MAX


async def test_a_compacted_ledger_is_no_bucket(desk: Bench) -> None:
    ledger = await opened(desk)
    writer = await removal.create_beside(ledger)
    await writer.close()
    compacted = CompactedLedger(writer.ledger_id, 0, 0, (0, 0), 1, 1)
    await ledger.ledgers.set_compacted(compacted, None)
    await ledger.set_property(BUCKETS, f"{writer.ledger_id}:0.0:0.31:32")
    assert not ledger.delayed_index.reaches((0, 0))
    await note_blocks(ledger.delayed_index, range(NOTED_BLOCKS + 1))
    assert (writer.ledger_id in desk.ledgers.ledgers, ledger.ledgers.doomed) == (True, set())


@pytest.mark.parametrize("slots", [0, AT_ONCE])
@pytest.mark.parametrize("gone", ["closed", "let go"])
async def test_what_waits_to_be_stored_and_is_gone_by_then(
    desk: Bench, slots: int, gone: str
) -> None:
    ledger = await opened(desk)
    index, stores = ledger.delayed_index, desk.storage.index_memory.stores
    for _ in range(slots):
        await stores.acquire()
    for number in range(NOTED_BLOCKS + 1):
        index.note(0, [number * BLOCK_ENTRIES], [1_000_000])
    await trio.lowlevel.checkpoint()
    if gone == "closed":
        await ledger.close()
    else:
        index.let_go(-1)
        index.note(0, [0], [1_000_000])
    for _ in range(slots):
        stores.release()
    await settled()
    if slots:
        assert buckets_of(ledger.properties) == []
    assert not index._storing
