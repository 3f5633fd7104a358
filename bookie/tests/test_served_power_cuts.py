"""A bookie that serves strangers, on a disk in memory that loses power during every step.

As `test_power_cuts.py`, with what only strangers do: entries with digests that the bookie cannot
check, ledgers made by their first add, adds of a recovery that come again with other bytes, fences
of ledgers that were never here, explicit LACs, wrong keys. After each cut: what was acknowledged is
there byte for byte, nothing else is, fences and keys hold.
"""

import random

import msgspec
import pytest

from magnetar.bookie.format import digests
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.session import run_of
from magnetar.bookie.rpc.messages import Add
from magnetar.bookie.server.ledgers.served import ServedLedgers
from magnetar.bookie.tests.memory_machine import QUIET, START_MS, open_in_memory
from magnetar.bookie.tests.test_power_cuts import Metadata
from magnetar.core.kernel.errors import EntryNotFound, LedgerNotFound, Unauthorized
from magnetar.core.ports.tests.contract_ledger_store import Outcome
from magnetar.core.testing import FixedClock
from magnetar.core.testing.memory_disk import MemoryDisk

SETTINGS = msgspec.structs.replace(
    QUIET,
    journal_size_max_bytes=8 * 1024,
    journal_spares_max=1,
    entry_log_size_max_bytes=6_000,
    write_cache_bytes=64 * 1024,
    entries_prove_themselves=False,
)
KEY = b"k" * 20
DIGESTS = {
    1: digests.digest_type(LedgerMetadata.CRC32, b""),
    2: digests.digest_type(LedgerMetadata.DUMMY, b""),
    3: digests.digest_type(LedgerMetadata.CRC32C, b""),
    4: digests.digest_type(LedgerMetadata.HMAC, b"password"),
}
NEVER_HERE = 77
PACKET = digests.seal_lac(DIGESTS[3], 3, 5)


def opened(disk, metadata, seed, now_ms=START_MS):
    return open_in_memory(disk, metadata, SETTINGS, seed=seed, now_ms=now_ms)


class Strangers:
    """What clients have added, and after how many steps of the disk they were told what."""

    def __init__(self, disk):
        self.disk = disk
        self.metadata = Metadata(disk)
        self.added = {ledger_id: [] for ledger_id in DIGESTS}
        """All that an entry may be, of each entry of each ledger."""
        self.acknowledged = []
        """(steps, ledger id, entry id, entry)"""
        self.fenced = []
        """(steps, ledger id)"""
        self.lacs = []
        """(steps, packet)"""

    async def add(self, ledgers, ledger_id, entry_id, size, **more):
        header = DigestHeader(ledger_id, entry_id, entry_id - 1, size)
        payload = (b"%d-%d;" % (ledger_id, entry_id) * size)[:size]
        entry = digests.seal_entry(DIGESTS[ledger_id], header, payload)
        known = self.added[ledger_id]
        if entry_id == len(known):
            known.append([])
        known[entry_id].append(entry)
        outcome = Outcome()
        ledgers.add(run_of(Add(ledger_id, entry_id, KEY, entry)), KEY, outcome, **more)
        assert await outcome.wait() == [None]
        self.acknowledged.append((self.disk.steps, ledger_id, entry_id, entry))

    async def fence(self, ledgers, ledger_id):
        outcome = Outcome()
        ledgers.fence(ledger_id, KEY, outcome)
        assert await outcome.wait() == [None]
        self.fenced.append((self.disk.steps, ledger_id))

    async def go(self, seed):
        chance = random.Random(seed)
        async with opened(self.disk, self.metadata, seed) as store:
            ledgers = ServedLedgers(store._bookie, FixedClock(START_MS), 0)
            for number in range(4):
                for ledger_id in DIGESTS:
                    for _ in range(3):
                        entry_id = len(self.added[ledger_id])
                        size = chance.choice([0, 1, 5, 300, 700])
                        await self.add(ledgers, ledger_id, entry_id, size)
                if number == 1:
                    await store.checkpoint()
                if number == 2:
                    await store._parts.checkpointer.make_room()
            await self.fence(ledgers, 2)
            await self.fence(ledgers, NEVER_HERE)
            await self.add(ledgers, 2, 4, 40, recovery=True)
            await self.add(ledgers, 2, len(self.added[2]), 0, recovery=True)
            outcome = Outcome()
            ledgers.write_lac(3, KEY, PACKET, outcome)
            assert await outcome.wait() == [None]
            self.lacs.append((self.disk.steps, PACKET))
            await self.add(ledgers, 1, len(self.added[1]), 2000)

    async def check(self, steps, store):
        """After a cut behind so many steps."""
        ledgers = ServedLedgers(store._bookie, FixedClock(START_MS), 0)
        promised = {}
        for count, ledger_id, entry_id, entry in self.acknowledged:
            if count <= steps:
                promised[ledger_id, entry_id] = entry
        for ledger_id, known in self.added.items():
            for entry_id in range(len(known) + 1):
                try:
                    ledgers.known(ledger_id)
                    found = await ledgers.entry(ledger_id, entry_id)
                except (LedgerNotFound, EntryNotFound):
                    assert (ledger_id, entry_id) not in promised, "lost in the cut"
                    continue
                assert found in known[entry_id], "nobody has added this"
                if len(known[entry_id]) == 1 or not promised.get((ledger_id, entry_id)):
                    continue
                last = known[entry_id][-1]
                assert promised[ledger_id, entry_id] != last or found == last
        for count, ledger_id in self.fenced:
            if count <= steps:
                assert ledgers.known(ledger_id).fenced, steps
        for count, packet in self.lacs:
            if count <= steps:
                assert ledgers.known(3).explicit_lac == packet, steps
        for ledger_id in {ledger_id for ledger_id, _ in promised}:
            assert ledgers.known(ledger_id).other_digest == (ledger_id != 3)
            with pytest.raises(Unauthorized):
                ledgers.fence(ledger_id, b"x" * 20, pytest.fail)


@pytest.mark.parametrize("direct", [True, False], ids=["kernel", "thread"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 3))]
)
async def test_nothing_acknowledged_is_lost_at_any_step(seed, direct, autojump_clock):
    run = Strangers(MemoryDisk(direct=direct))
    await run.go(seed)
    chance = random.Random(seed)
    starts = 0
    for steps, disk in run.disk.cuts(chance.randrange):
        async with opened(disk, run.metadata.after(steps), seed, START_MS + 1) as store:
            await run.check(steps, store)
        starts += 1
    assert starts == run.disk.steps + 1 > 50


async def test_without_seals_the_last_entries_are_lost(autojump_clock, monkeypatch):
    """The test itself can fail."""
    monkeypatch.setattr(
        "magnetar.bookie.tests.test_served_power_cuts.SETTINGS",
        msgspec.structs.replace(SETTINGS, journal_seals=False),
    )
    run = Strangers(MemoryDisk())
    await run.go(0)
    with pytest.raises(BaseExceptionGroup) as caught:
        await check_all(run)
    assert caught.group_contains(AssertionError, match="lost in the cut")


async def check_all(run):
    for steps, disk in run.disk.cuts(lambda count: 0):
        async with opened(disk, run.metadata.after(steps), 1, START_MS + 1) as store:
            await run.check(steps, store)
