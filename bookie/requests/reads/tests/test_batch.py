"""Batched reads: what fits, across runs and from the disk."""

import pytest

from magnetar.bookie.requests.tests.peers import add, entry
from magnetar.bookie.rpc.messages import BatchRead, Status


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
