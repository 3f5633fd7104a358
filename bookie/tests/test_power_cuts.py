"""The whole bookie on a disk in memory, which loses power during every step that it makes.

A run appends, checkpoints, rolls journals and entry logs, deletes, compacts, fences and stops. Then
the bookie is started on what each power cut has left: all that was acknowledged before the cut is
there, nothing is there that was not appended, and what was fenced is fenced. A seed decides who
runs when, and which unsynced bytes and names are lost: it repeats a failure.
"""

import random

import msgspec
import pytest
import trio

from magnetar.bookie.tests.memory_machine import QUIET, START_MS, open_in_memory
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.core.kernel.errors import LedgerNotFound
from magnetar.core.ports.disk import DiskUsage
from magnetar.core.testing.memory_disk import MemoryDisk

SETTINGS = msgspec.structs.replace(
    QUIET,
    journal_size_max_bytes=8 * 1024,
    journal_spares_max=1,
    entry_log_size_max_bytes=6_000,
    write_cache_bytes=64 * 1024,
)


class Metadata(DictMetadata):
    """Remembers what it held after so many steps of the disk."""

    def __init__(self, disk):
        super().__init__()
        self.disk = disk
        self.versions = []

    def _save(self):
        self.versions.append((self.disk.steps, self.without_leases(), dict(self.counters)))

    def after(self, steps):
        found = DictMetadata()
        for count, values, counters in self.versions:
            if count <= steps:
                found.values, found.counters = dict(values), dict(counters)
        return found


def opened(disk, metadata, seed, now_ms=START_MS, ledgers=()):
    return open_in_memory(disk, metadata, SETTINGS, seed=seed, now_ms=now_ms, ledgers=ledgers)


class Run:
    """What a run has appended, and after how many steps of the disk it was told what."""

    def __init__(self, disk, ledgers=()):
        self.disk = disk
        self.ledgers = ledgers
        self.metadata = Metadata(disk)
        self.appended = {}
        self.acknowledged = []
        """(steps, ledger id, entries)"""
        self.fenced = []
        """(steps, ledger id)"""
        self.deleted = set()

    async def append(self, writer, count, size=40):
        ledger = self.appended.setdefault(writer.ledger_id, [])
        new = [b"%d-%d " % (writer.ledger_id, len(ledger) + i) * size for i in range(count)]
        ledger += new
        total, over = len(ledger), trio.Event()

        def done(error):
            assert error is None
            self.acknowledged.append((self.disk.steps, writer.ledger_id, total))
            over.set()

        writer.append(new, done)
        await over.wait()

    async def go(self, seed):
        async with opened(self.disk, self.metadata, seed, ledgers=self.ledgers) as store:
            first, second, third = [await store.create({}) for _ in range(3)]
            for number in range(3):
                for writer in (first, second, third):
                    await self.append(writer, 3)
                if number != 1:
                    await store.checkpoint()
            await third.close()
            await store.delete(third.ledger_id)
            self.deleted.add(third.ledger_id)
            await store.collect(compact_below=1.0)
            await self.append(first, 2)
            await store._client._link.fence(second.ledger_id, b"k" * 20)
            self.fenced.append((self.disk.steps, second.ledger_id))
            await store._parts.checkpointer.make_room()
            await self.append(first, 1)
            # More than is left of the journal, and not handed over before the index has it.
            await self.append(first, 4, size=200)
            seen = store.statistics()
            assert seen.bytes_compacted, "the run must come by all that may go wrong"
            assert seen.entry_logs_unlinked
            assert store._parts.journal.synced.journal_id > START_MS

    async def check(self, steps, store):
        """After a cut behind so many steps."""
        promised = dict.fromkeys(self.appended, 0)
        for count, ledger_id, entries in self.acknowledged:
            if count <= steps:
                promised[ledger_id] = max(promised[ledger_id], entries)
        for count, ledger_id in self.fenced:
            if count <= steps:
                assert store._bookie.states.touch(ledger_id, b"").fenced, steps
        for ledger_id, appended in self.appended.items():
            try:
                reader = await store.open(ledger_id, recover=True)
            except LedgerNotFound:
                assert ledger_id in self.deleted or not promised[ledger_id], steps
                continue
            last = reader.last_confirmed
            assert last + 1 >= promised[ledger_id], f"lost in the cut behind {steps} steps"
            if last >= 0:
                assert await reader.read(0, last, 1 << 20) == appended[: last + 1], steps


async def a_run(seed, *, direct, ledgers=()):
    run = Run(MemoryDisk(direct=direct), ledgers)
    await run.go(seed)
    return run


@pytest.mark.parametrize("direct", [True, False], ids=["kernel", "thread"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))]
)
async def test_nothing_acknowledged_is_lost_at_any_step(seed, direct, autojump_clock):
    run = await a_run(seed, direct=direct)
    chance = random.Random(seed)
    starts = 0
    for steps, disk in run.disk.cuts(chance.randrange):
        metadata = run.metadata.after(steps)
        async with opened(disk, metadata, seed, START_MS + 1) as store:
            await run.check(steps, store)
        starts += 1
    assert starts == run.disk.steps + 1 > 100


@pytest.mark.parametrize("struck", [None, "/bookie", "/a", "/b"])
async def test_several_ledger_directories_lose_power_together_or_one_alone(struck, autojump_clock):
    """The first has the indexes as well, `/bookie` has the journal."""
    ledgers = ("/a", "/b")
    run = await a_run(11, direct=True, ledgers=ledgers)
    logs = [
        any(name.endswith(".log") for name in run.disk.directory(f"{path}/current").names())
        for path in ledgers
    ]
    assert logs == [True, True]
    chance = random.Random(11)
    for steps, disk in run.disk.cuts(chance.randrange, struck):
        metadata = run.metadata.after(steps)
        async with opened(disk, metadata, 11, START_MS + 1, ledgers) as store:
            await run.check(steps, store)


@pytest.mark.parametrize("usage", [DiskUsage(0.5, 1 << 40), DiskUsage(0.97, 0)], ids=["", "full"])
async def test_a_start_that_loses_power_loses_nothing_either(usage, autojump_clock):
    """A cut during each step of the start after a cut, also without room for a whole replay."""
    run = await a_run(3, direct=True)
    chance = random.Random(3)
    cuts = list(run.disk.cuts(chance.randrange))
    steps, disk = cuts[len(cuts) * 2 // 3]
    disk.usage_now = usage
    metadata = run.metadata.after(steps)
    async with opened(disk, metadata, 4, START_MS + 1):
        pass
    for _, again in disk.cuts(chance.randrange):
        again.usage_now = usage
        async with opened(again, run.metadata.after(steps), 5, START_MS + 2) as store:
            await run.check(steps, store)


async def test_the_same_seed_gives_the_same_run(autojump_clock):
    one, two = [await a_run(7, direct=True) for _ in range(2)]
    assert one.disk.history == two.disk.history
    assert one.acknowledged == two.acknowledged


async def test_a_disk_that_lies_about_syncs_is_found_out(autojump_clock, monkeypatch):
    """The test itself can fail: here a durable write is not."""
    run = Run(MemoryDisk())
    write = MemoryDisk.change

    def lie(disk, step, path, *arguments):
        if step == "write" and path.endswith(".txn"):
            arguments = (*arguments[:3], False)
        return write(disk, step, path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryDisk, "change", lie)
        await run.go(0)
    with pytest.raises(AssertionError, match="lost in the cut"):
        await fail_as_one(run)


async def fail_as_one(run):
    """The first of the errors that nurseries have wrapped."""
    for steps, disk in run.disk.cuts(lambda count: 0):
        try:
            async with opened(disk, run.metadata.after(steps), 1, START_MS + 1) as store:
                await run.check(steps, store)
        except BaseExceptionGroup as group:
            error = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None
