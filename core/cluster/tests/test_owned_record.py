"""One owner goes on, the other one hears of it, and nothing of another's is written over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from magnetar.core.cluster import owned_record
from magnetar.core.cluster.owned_record import OwnedRecord, RecordState
from magnetar.core.kernel.errors import (
    BadVersion,
    BrokerError,
    Corrupted,
    Fenced,
    StorageFailed,
)
from magnetar.core.metadata.memory import MemoryMetadata
from magnetar.core.ports.metadata_store import ABSENT, PutDone, Versioned
from magnetar.core.testing.metadata import overwrite, remove

PATH = "/r"


class Flaky(MemoryMetadata):
    """A store whose next write fails, before it happens or after: a connection that breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.breaks: str = ""
        self.writes = 0

    async def put(self, path: str, value: bytes, expected: int) -> int:
        breaks, self.breaks = self.breaks, ""
        self.writes += 1
        if breaks == "before":
            raise StorageFailed("not written")
        version = await super().put(path, value, expected)
        if breaks == "after":
            raise StorageFailed("written, and nobody was told")
        return version

    async def delete(self, path: str, expected: int) -> None:
        breaks, self.breaks = self.breaks, ""
        if breaks == "before":
            raise StorageFailed("not deleted")
        await super().delete(path, expected)
        if breaks == "after":
            raise StorageFailed("deleted, and nobody was told")


@pytest.fixture
def store() -> Flaky:
    return Flaky()


def record_of(store: MemoryMetadata) -> OwnedRecord[str]:
    return OwnedRecord(store, PATH, str.encode, bytes.decode)


async def held(store: MemoryMetadata, value: str = "one") -> OwnedRecord[str]:
    record = record_of(store)
    await record.create(value)
    return record


async def test_from_creation_to_deletion(store: Flaky) -> None:
    record = record_of(store)
    assert await record.load() is None
    await record.write("one")
    assert (record.value, record.version, record.epoch) == ("one", 0, 0)
    await record.write("two")
    assert (record.value, record.version, record.epoch) == ("two", 1, 0)
    assert await store.get(PATH) == Versioned(b"two", 1)
    await record.delete()
    await record.delete()
    assert (record.value, record.version) == (None, ABSENT)
    assert await store.get(PATH) is None
    await record.write("again")
    assert await store.get(PATH) == Versioned(b"again", 0)


async def test_what_is_loaded_is_what_was_written(store: Flaky) -> None:
    await overwrite(store, PATH, b"one")
    await overwrite(store, PATH, b"two")
    record = record_of(store)
    assert await record.load() == "two"
    assert (record.version, record.epoch) == (1, 1)
    with pytest.raises(AssertionError, match="read once"):
        await record.load()


Change = Callable[[OwnedRecord[str]], object]


async def write(record: OwnedRecord[str]) -> None:
    await record.write("the loser's")


async def delete(record: OwnedRecord[str]) -> None:
    await record.delete()


@pytest.mark.parametrize("change", [write, delete])
async def test_the_loser_is_fenced_and_never_writes_again(store: Flaky, change: Change) -> None:
    loser = await held(store)
    winner = record_of(store)
    await winner.load()
    await winner.write("the winner's")
    for _ in range(2):
        with pytest.raises(Fenced, match="taken over /r"):
            await change(loser)  # type: ignore[misc]  # both are coroutines
        assert loser.state is RecordState.FENCED
    await winner.write("the winner's, again")
    writes = store.writes
    with pytest.raises(Fenced):
        await loser.write("not even asked for")
    assert store.writes == writes
    assert await store.get(PATH) == Versioned(b"the winner's, again", 2)


async def test_of_two_who_create_the_first_one_wins(store: Flaky) -> None:
    first, second = record_of(store), record_of(store)
    assert await first.load() is await second.load() is None
    await first.write("first")
    with pytest.raises(Fenced):
        await second.write("second")
    with pytest.raises(Fenced):
        await record_of(store).create("third")
    assert await store.get(PATH) == Versioned(b"first", 0)


async def test_a_claim_fences_the_owner_before_at_once(store: Flaky) -> None:
    before = await held(store)
    after = record_of(store)
    assert await after.claim() == "one"
    assert after.epoch > before.epoch
    with pytest.raises(Fenced):
        await before.write("too late")
    await after.write("two")
    assert await store.get(PATH) == Versioned(b"two", 2)


async def test_a_load_does_not_fence_but_no_write_is_lost(store: Flaky) -> None:
    before = await held(store)
    after = record_of(store)
    await after.load()
    await before.write("a last word")
    with pytest.raises(Fenced):
        await after.write("upon an old value")
    again = record_of(store)
    assert await again.load() == "a last word"
    await again.write("upon the last word")
    with pytest.raises(Fenced):
        await before.write("one more")


async def test_a_claim_of_nothing_leaves_it_to_the_first_write(store: Flaky) -> None:
    record = record_of(store)
    assert await record.claim() is None
    assert (record.state, record.epoch) == (RecordState.HELD, ABSENT)
    await record.write("one")
    assert record.epoch == 0


async def test_a_claim_reads_again_while_the_former_owner_writes(
    store: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_record, "CLAIMS_MAX", 3)
    before = await held(store)
    get, rounds = store.get, 1

    async def read_then_overwritten(path: str) -> Versioned | None:
        nonlocal rounds
        found = await get(path)
        if rounds:
            rounds -= 1
            await before.write("newer")
        return found

    monkeypatch.setattr(store, "get", read_then_overwritten)
    after = record_of(store)
    assert await after.claim() == "newer"
    before, rounds = after, 10
    last = record_of(store)
    with pytest.raises(Fenced, match="keeps writing"):
        await last.claim()
    assert last.state is RecordState.UNREAD


@pytest.mark.parametrize("breaks", ["before", "after"])
@pytest.mark.parametrize("create", [True, False])
async def test_a_write_that_may_have_happened_is_looked_for(
    store: Flaky, breaks: str, create: bool
) -> None:
    record = record_of(store)
    await record.load()
    if not create:
        await record.write("one")
    store.breaks = breaks
    with pytest.raises(StorageFailed):
        await record.write("two")
    assert record.state is RecordState.UNSURE
    await record.settle()
    assert record.state is RecordState.HELD
    kept = None if create else "one"
    assert record.value == ("two" if breaks == "after" else kept)
    await record.write("three")
    found = await store.get(PATH)
    assert found is not None
    assert (found.value, found.version) == (b"three", record.version)


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_a_deletion_that_may_have_happened_is_looked_for(store: Flaky, breaks: str) -> None:
    record = await held(store)
    store.breaks = breaks
    with pytest.raises(StorageFailed):
        await record.delete()
    await record.delete()
    assert await store.get(PATH) is None
    await record.write("again")
    assert await store.get(PATH) == Versioned(b"again", 0)


@pytest.mark.parametrize("others", [[b"theirs"], [b"two", b"two"]])
@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_what_another_owner_wrote_meanwhile_is_not_ours(
    store: Flaky, breaks: str, others: list[bytes]
) -> None:
    """The very bytes that were tried, at a version that they cannot have, are not ours either."""
    record = await held(store)
    store.breaks = breaks
    with pytest.raises(StorageFailed):
        await record.write("two")
    for value in others:
        await overwrite(store, PATH, value)
    with pytest.raises(Fenced):
        await record.settle()
    assert record.state is RecordState.FENCED


async def test_what_is_gone_when_it_should_be_there_is_another_owners(store: Flaky) -> None:
    record = await held(store)
    store.breaks = "before"
    with pytest.raises(StorageFailed):
        await record.write("two")
    await remove(store, PATH)
    with pytest.raises(Fenced):
        await record.write("three")
    assert await store.get(PATH) is None


async def test_a_write_over_a_deleted_record_is_refused(store: Flaky) -> None:
    record = await held(store)
    await remove(store, PATH)
    with pytest.raises(Fenced) as refused:
        await record.write("two")
    assert isinstance(refused.value.__cause__, BadVersion)


async def test_a_write_without_a_task_takes_the_turn(store: Flaky) -> None:
    record = await held(store)
    outcomes: list[BrokerError | None] = []
    assert record.write_at_once("two", outcomes.append)
    assert not record.write_at_once("three", outcomes.append), "its turn is taken"
    assert record.value == "one"
    await record.write("three")
    assert outcomes == [None], "the task has waited"
    assert await store.get(PATH) == Versioned(b"three", 2)
    assert record.write_at_once("four", outcomes.append)
    await record.verify()
    assert (record.value, record.version) == ("four", 3)


async def test_one_without_a_task_is_fenced_as_any_other(store: Flaky) -> None:
    loser, winner = await held(store), record_of(store)
    await winner.claim()
    outcomes: list[BrokerError | None] = []
    assert loser.write_at_once("mine", outcomes.append)
    with pytest.raises(Fenced):
        await loser.write("mine again")
    assert isinstance(outcomes[0], Fenced)
    assert loser.state is RecordState.FENCED
    assert not loser.write_at_once("once more", outcomes.append)
    assert winner.value == "one"


@pytest.mark.parametrize("happened", [True, False])
async def test_one_without_a_task_that_may_have_happened_is_looked_for(happened: bool) -> None:
    class Breaking(Flaky):
        def put_at_once(self, path: str, value: bytes, expected: int, done: PutDone) -> bool:
            def told(version: int, _: BrokerError | None) -> None:
                del version
                done(0, StorageFailed("nobody was told"))

            if happened:
                return super().put_at_once(path, value, expected, told)
            trio.lowlevel.current_trio_token().run_sync_soon(told, 0, None)
            return True

    store = Breaking()
    record = await held(store)
    outcomes: list[BrokerError | None] = []
    assert record.write_at_once("two", outcomes.append)
    await record.settle()
    assert isinstance(outcomes[0], StorageFailed)
    assert record.state is RecordState.HELD
    assert (record.value, record.version) == (("two", 1) if happened else ("one", 0))


async def test_tasks_of_one_owner_do_not_fence_each_other() -> None:
    class Slow(MemoryMetadata):
        async def put(self, path: str, value: bytes, expected: int) -> int:
            await trio.lowlevel.checkpoint()
            return await super().put(path, value, expected)

    store = Slow()
    record = await held(store)
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(record.write, str(number))
    assert record.version == 20


async def test_a_caller_that_is_cancelled_does_not_lose_the_version() -> None:
    class Slow(MemoryMetadata):
        async def put(self, path: str, value: bytes, expected: int) -> int:
            version = await super().put(path, value, expected)
            await trio.lowlevel.checkpoint()
            return version

    store = Slow()
    record = await held(store)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(record.write, "two")
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    await record.write("three")
    assert await store.get(PATH) == Versioned(b"three", record.version)


async def test_an_attempt_that_changed_nothing_proves_nothing(store: Flaky) -> None:
    """A claim writes the bytes that are there, as the write that did not happen would have."""
    record = await held(store)
    store.breaks = "before"
    with pytest.raises(StorageFailed):
        await record.write("one")
    claimer = record_of(store)
    await claimer.claim()
    with pytest.raises(Fenced):
        await record.settle()
    await claimer.write("two")


@pytest.mark.parametrize("take", [OwnedRecord.load, OwnedRecord.claim])
async def test_what_cannot_be_read_is_not_held(
    store: Flaky, take: Callable[[OwnedRecord[str]], Awaitable[str | None]]
) -> None:
    await overwrite(store, PATH, b"\xff")
    record = record_of(store)
    with pytest.raises(Corrupted, match="the record /r cannot be read"):
        await take(record)
    assert record.state is RecordState.UNREAD
    assert await store.get(PATH) is not None


async def test_an_owner_may_ask_whether_it_still_is_one(store: Flaky) -> None:
    record = await held(store)
    await record.verify()
    other = record_of(store)
    await other.load()
    await record.verify()
    await other.write("two")
    with pytest.raises(Fenced):
        await record.verify()
    await other.delete()
    with pytest.raises(Fenced):
        await record.verify()
    await other.verify()
