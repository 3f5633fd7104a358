"""Real processes, killed with SIGKILL in the middle of writing: what was acknowledged is there."""

import subprocess
import sys

import pytest

from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.crash_child import payload
from magnetar.bookie.tests.metadata_fake import DictMetadata


def acknowledged_until_killed(directory, mode, lines):
    """Last acknowledged entry per ledger, as the process said before it was killed."""
    with subprocess.Popen(
        [sys.executable, "-m", "magnetar.bookie.tests.crash_child", str(directory), mode],
        stdout=subprocess.PIPE,
    ) as child:
        last = {}
        for _ in range(lines):
            ledger_id, entry_id = map(int, child.stdout.readline().split())
            last[ledger_id] = entry_id
        child.kill()
        for line in child.stdout.read().splitlines():
            ledger_id, entry_id = map(int, line.split())
            last[ledger_id] = entry_id
    return last


@pytest.mark.parametrize(
    ("mode", "lines"), [("sync", 3), ("sync", 300), ("sync", 1500), ("nosync", 300)]
)
async def test_everything_acknowledged_survives_kill_9(tmp_path, mode, lines):
    results = acknowledged_until_killed(tmp_path, mode, lines)
    metadata = DictMetadata(tmp_path / "metadata.json")
    assert len(results) == 3
    async with open_embedded(
        tmp_path / "bookie", metadata, BookieSettings(), on_fatal=pytest.fail
    ) as store:
        for ledger_id, last in results.items():
            reader = await store.open(ledger_id, recover=True)
            assert reader.last_confirmed >= last
            found = await reader.read(0, reader.last_confirmed, 1 << 30)
            assert found == [payload(ledger_id, i) for i in range(len(found))]
            assert len(found) == reader.last_confirmed + 1


async def test_killed_again_and_again(tmp_path):
    results = {}
    for _ in range(4):
        results |= acknowledged_until_killed(tmp_path, "sync", 200)
    metadata = DictMetadata(tmp_path / "metadata.json")
    assert len(results) == 12
    async with open_embedded(
        tmp_path / "bookie", metadata, BookieSettings(), on_fatal=pytest.fail
    ) as store:
        for ledger_id, last in results.items():
            reader = await store.open(ledger_id, recover=True)
            assert reader.last_confirmed >= last
            found = await reader.read(0, reader.last_confirmed, 1 << 30)
            assert found == [payload(ledger_id, i) for i in range(len(found))]
