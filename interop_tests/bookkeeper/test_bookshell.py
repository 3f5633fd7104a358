"""Apache's BookieShell judges directories that our bookie wrote."""

import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from interop_tests.bookkeeper.bookshell import BookShell
from magnetar import standalone
from magnetar.bookie.embedded import open_embedded
from magnetar.bookie.server.settings import BookieSettings
from magnetar.bookie.tests.metadata_fake import DictMetadata
from magnetar.wire.pulsar.tests import peer

pytestmark = [pytest.mark.bookshell, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]
KEY = "850bf1071c5e3d8c24235676f8816ae0cbe2f14f"


SETTINGS = BookieSettings(checkpoint_interval_seconds=3600)


async def fill(directory: Path, metadata: DictMetadata) -> None:
    """Ledgers 0 to 2 with 25,000, 50 and 1 entries in two checkpoints; 3 is fenced and empty."""
    async with open_embedded(directory, metadata, SETTINGS, on_fatal=pytest.fail) as store:
        writers = [await store.create({}) for _ in range(4)]
        for count, writer in zip((25_000, 50, 1), writers, strict=False):
            synced = trio.Event()
            half = count // 2
            if half:
                writer.append([b"payload %d" % i for i in range(half)], lambda error: None)
            writer.append(
                [b"payload %d" % i for i in range(half, count)], lambda e, s=synced: s.set()
            )
            await synced.wait()
        await store.checkpoint()
        synced = trio.Event()
        writers[1].append([b"late"] * 10, lambda error: synced.set())
        await synced.wait()
        await writers[0].close()
        await store.open(writers[3].ledger_id, recover=True)


def entry_ids(said: str, ledger_id: int) -> list[int]:
    """Entries of a ledger that readjournal or readlog names, in their order."""
    lines = re.findall(r"FormatUtil Entry \{([^}]*entrySize[^}]*)\}", said)
    pairs = [dict(item.split("=") for item in line.split(", ")) for line in lines]
    return [int(p["entryId"]) for p in pairs if int(p["ledgerId"]) == ledger_id]


def test_a_directory_that_was_left_cleanly(tmp_path):
    directory = tmp_path / "bookie"
    trio.run(fill, directory, DictMetadata())
    shell = BookShell(directory, tmp_path)
    journals = [int(path.stem, 16) for path in directory.glob("journal/current/*.txn")]
    mark = struct.unpack(">qq", (directory / "ledgers/current/lastMark").read_bytes())

    said = shell.run("lastmark")
    assert f"Journal Id - {mark[0]}({mark[0]:x}.txn), Pos - {mark[1]}" in said

    said = shell.run("readjournal", str(journals[0]))
    assert [i for i in entry_ids(said, 0) if i >= 0] == list(range(25_000))
    assert [i for i in entry_ids(said, 1) if i >= 0] == list(range(60))
    assert re.search(rf"MasterKey \{{entryId=-4096, ledgerId=0, masterKey={KEY}", said)
    assert re.search(r"Fenced \{entryId=-8192, ledgerId=3", said)

    said = shell.run("readlogmetadata", "0")
    assert re.search(r"Size of ledger's entries \{ledgerId=0, size=\d+\}", said)
    assert re.search(r"Size of ledger's entries \{ledgerId=1, size=\d+\}", said)

    said = shell.run("readlog", "0")
    assert entry_ids(said, 0) == list(range(25_000))
    assert entry_ids(said, 1) == list(range(60))
    assert entry_ids(said, 2) == [0]

    for ledger_id, count in ((0, 25_000), (1, 60), (2, 1)):
        said = shell.run("ledger", str(ledger_id))
        located = re.findall(r"entry (\d+)\s*:\s*\(log: 0, pos: \d+\)", said)
        assert [int(i) for i in located] == list(range(count))

    assert "Check passed" in shell.run("localconsistencycheck")
    assert "completed successfully" in shell.run("check-db-ledgers-index")


async def start_and_stop(directory: Path, metadata: DictMetadata) -> None:
    async with open_embedded(directory, metadata, SETTINGS, on_fatal=pytest.fail):
        pass


def test_indexes_that_were_rebuilt(tmp_path):
    directory = tmp_path / "bookie"
    metadata = DictMetadata()
    trio.run(fill, directory, metadata)
    for index in ("locations", "ledgers"):
        shutil.rmtree(directory / "ledgers/current" / index)
    trio.run(start_and_stop, directory, metadata)
    shell = BookShell(directory, tmp_path)
    for ledger_id, count in ((0, 25_000), (1, 60), (2, 1)):
        said = shell.run("ledger", str(ledger_id))
        located = re.findall(r"entry (\d+)\s*:\s*\(log: \d+, pos: \d+\)", said)
        assert [int(i) for i in located] == list(range(count))
    assert "Check passed" in shell.run("localconsistencycheck")
    assert "completed successfully" in shell.run("check-db-ledgers-index")


def test_a_directory_whose_process_was_killed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "magnetar.bookie.tests.crash_child", str(tmp_path), "sync"],
        stdout=subprocess.PIPE,
    ) as child:
        results = {}
        for _ in range(600):
            ledger_id, last = map(int, child.stdout.readline().split())
            results[ledger_id] = last
        child.kill()
    shell = BookShell(tmp_path / "bookie", tmp_path)
    current = tmp_path / "bookie" / "ledgers" / "current"
    mark_id, _ = struct.unpack(">qq", (current / "lastMark").read_bytes())
    assert f"Journal Id - {mark_id}" in shell.run("lastmark")

    seen: dict[int, set[int]] = {ledger_id: set() for ledger_id in results}
    for path in (tmp_path / "bookie/journal/current").glob("*.txn"):
        said = shell.run("readjournal", str(int(path.stem, 16)))
        for ledger_id in results:
            seen[ledger_id].update(entry_ids(said, ledger_id))
    for path in current.glob("*.log"):
        said = shell.run("readlog", str(int(path.stem, 16)))
        for ledger_id in results:
            seen[ledger_id].update(entry_ids(said, ledger_id))
    for ledger_id, last in results.items():
        assert seen[ledger_id] >= set(range(last + 1))
    assert "Check passed" in shell.run("localconsistencycheck")


def test_what_a_killed_server_left_behind(tmp_path, raw, topic):
    """A whole server's data directory, with the ledgers of a topic and of its cursor."""
    with standalone() as server:
        with raw(server) as one:
            assert one.introduce().ask(peer.subscribe(1, 1, topic, "s")).kind == "SUCCESS"
            assert one.ask(peer.producer(2, 1, topic)).kind == "PRODUCER_SUCCESS"
            one.say(b"".join(peer.send(1, number) for number in range(500)))
            receipts = [one.receive().body.message_id for _ in range(500)]
            where = receipts[100].ledger_id, receipts[100].entry_id
            assert one.ask(peer.ack(1, where, request_id=3)).kind == "ACK_RESPONSE"
        server.kill()
        shell = BookShell(server.data_dir / "bookie", tmp_path)
        (journal,) = (server.data_dir / "bookie/journal/current").glob("*.txn")
        said = shell.run("readjournal", str(int(journal.stem, 16)))
        assert [i for i in entry_ids(said, where[0]) if i >= 0] == list(range(500))
        assert "Check passed" in shell.run("localconsistencycheck")
