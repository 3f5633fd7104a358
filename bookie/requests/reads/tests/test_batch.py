"""Batched reads: what fits, across runs and from the disk."""

import pytest

from magnetar.bookie.requests.limits import RequestLimits
from magnetar.bookie.requests.reads.batch import Batch
from magnetar.bookie.requests.reads.responses import Responses
from magnetar.bookie.requests.tests.peers import add, entry
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import BatchRead, Status
from magnetar.bookie.rpc.wire import Call


class EntriesOnDisk:
    """Ledgers whose entries are all alike and never in memory; notes how much is read ahead."""

    def __init__(self, payload):
        self.payload, self.asked = payload, []

    def known(self, ledger_id):
        """It is."""

    def records_at_once(self, ledger_id, first, count_max, bytes_max):
        return None

    async def records(self, ledger_id, first, count_max, bytes_max, ahead_bytes):
        self.asked.append(ahead_bytes)
        return len(self.payload).to_bytes(4, "big") + self.payload, 1


@pytest.mark.parametrize("version", [2])
async def test_a_batch_crosses_runs_and_the_disk(served, version):
    sizes = [100, 1, 5000, 70_000, 10, 10, 10, 3000, 1]
    whole = [entry(1, i, b"p" * size) for i, size in enumerate(sizes)]
    async with served.dial(version) as peer:
        for i, size in enumerate(sizes):
            await peer.ask(add(1, i, b"p" * size))
            if i == 5:
                await served.checkpoint()
        for first in range(len(sizes)):
            for budget in (1, 200, 5300, 80_000, 1 << 20):
                got = await peer.ask(BatchRead(1, first, first, 0, budget))
                assert got.status is Status.OK
                fits, left = 0, budget - 36
                while first + fits < len(whole) and left >= len(whole[first + fits]) + 4:
                    left -= len(whole[first + fits]) + 4
                    fits += 1
                assert list(got.entries) == whole[first : first + max(fits, 1)]


async def test_a_batch_ends_before_a_gap(served):
    async with served.dial() as peer:
        await peer.ask(add(1, 0), add(1, 1), add(1, 3))
        for _ in range(2):
            got = await peer.ask(BatchRead(1, 0, 9, 10, 1000))
            assert list(got.entries) == [entry(1, 0), entry(1, 1)]
            await served.checkpoint()


async def test_what_is_read_ahead_covers_entries_as_they_usually_are():
    on_disk = EntriesOnDisk(b"x" * 796)
    await Batch(BatchRead(1, 0, 9, 3, 10_000), 1 << 20, usual_bytes=800).read(on_disk)
    assert on_disk.asked == [3 * 800 + 100, 2 * 800 + 100, 800 + 100], "and an eighth of one"


async def test_the_next_batch_of_a_ledger_knows_how_large_its_entries_are():
    on_disk = EntriesOnDisk(b"x" * 796)
    responses = Responses(on_disk, RequestLimits())
    for ledger_id, guess in ((1, 1024), (1, 800), (2, 1024), (2, 800)):
        on_disk.asked.clear()
        request = BatchRead(ledger_id, 0, 9, 1, 10_000)
        await responses.from_disk(Call(version2.header(version2.BATCH_READ), request), 1 << 20)
        assert on_disk.asked == [guess + guess // 8]
