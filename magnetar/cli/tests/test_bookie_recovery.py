"""What a person hears who waits for a recovery; `interop_tests/bookkeeper` has the commands."""

from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from magnetar.bookie.client.quorum.tests.bookies import local_cluster
from magnetar.bookie.replication.tests.recovering import client_of, marks_of, members
from magnetar.bookie.replication.tests.test_bookie_recovery import recovery_of
from magnetar.bookie.replication.tests.test_ledger_repair import written
from magnetar.cli.bookie_recovery import LOOKS_A_LINE, LedgersLeft, Replacement
from magnetar.cli.printing import progress
from magnetar.cli.root import root
from magnetar.core.ports.metadata_store import ABSENT
from magnetar.core.testing.metadata import remove

WAITS = "magnetar: nobody is the auditor: this waits until a recovery runs (`magnetar recovery`)\n"


def told(capsys: pytest.CaptureFixture[str], auditor: str | None, counts: list[int]) -> str:
    with progress(1, "ledgers", output=False) as bar:
        left = LedgersLeft(bar, "b:1", auditor)
        for count in counts:
            left.tell(count)
    return capsys.readouterr().err


def test_who_waits_for_nobody_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    needed = "magnetar: 2 ledgers need the bookie b:1\n"
    assert told(capsys, None, [2, 2, 1]) == WAITS + needed
    assert told(capsys, "a:1", [2, 2, 1]) == needed
    assert told(capsys, None, [0]) == ""


def test_the_rest_is_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, "a:1", [9] * LOOKS_A_LINE + [4])
    assert said.splitlines()[1:] == ["magnetar: 4 ledgers need the bookie b:1"]


def test_switches_that_contradict_each_other() -> None:
    words = ["bookie", "autorecovery", "--enable", "--disable", "--metadata-uri", "zk:h:1"]
    assert "not both" in str(CliRunner().invoke(root, words).exception)


async def test_a_ledger_that_a_worker_has_comes_last_and_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        local_cluster(tmp_path, 4) as cluster,
        cluster.client(3, 3, 2) as store,
        client_of(cluster) as client,
    ):
        ids = [await written(store, b"x") for _ in range(3)]
        ensembles = [(await members(cluster, each))[0] for each in ids]
        one = min(set.intersection(*map(set, ensembles)))  # three of them lack three of four
        lock = marks_of(cluster).lock_of(ids[0])
        await cluster.metadata.put(lock, b'bookieId: "worker:1"\n', ABSENT)
        replacement = Replacement(recovery_of(cluster, client, one), skip_open=False, as_json=True)
        said = f"ledger {ids[0]} is being repaired by worker:1: this waits until it is not"
        told = ""
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(replacement.run, ids)
                while said not in told:
                    await trio.lowlevel.checkpoint()
                    told += capsys.readouterr().err
                assert replacement.done == 2, f"the others are through: {told}"
                await remove(cluster.metadata, lock)
        assert (replacement.done, replacement.failures) == (3, 0)
