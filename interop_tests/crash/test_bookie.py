"""A bookie that serves BookKeeper's clients, as a process: killed behind each of its syncs, with
pieces damaged or missing, with a disk that fails or fills.

What it acknowledged is there afterwards, or it says that it cannot tell; never "no such entry".
"""

import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from interop_tests import disks
from interop_tests.waiting import until
from magnetar.bookie.format import digests
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.bookie.requests.tests.peers import KEY, add
from magnetar.bookie.rpc import version2
from magnetar.bookie.rpc.messages import Add, Added, BookieMessage, Read, ReadEntry, Status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MAGNETAR = str(Path(sys.executable).with_name("magnetar"))
CRC32C = digests.digest_type(LedgerMetadata.CRC32C, b"")
DENIALS = (Status.NO_ENTRY, Status.NO_LEDGER)
FENCED = 9
SLOW_SECONDS = 10.0


class Process:
    """One life of a bookie, and a connection to it."""

    def __init__(self, folder: Path, more: tuple[str, ...], environment: dict[str, str]) -> None:
        ready = folder / "ready"
        ready.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [
                MAGNETAR, "bookie", "--data-dir", str(folder / "data"), "--port", "0",
                "--bookie-id", "b1", "--ready-file", str(ready), "--log-level", "warning", *more,
            ],
            env={**os.environ, **environment}, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.socket: socket.socket | None = None
        until(lambda: ready.exists() or self.process.poll() is not None)
        if self.process.poll() is None:
            host, port = json.loads(ready.read_text())["bookie"].split(":")
            self.socket = socket.create_connection((host, int(port)), timeout=20)

    def another_connection(self) -> socket.socket:
        assert self.socket is not None
        return socket.create_connection(self.socket.getpeername(), timeout=60)

    def refusal(self) -> str:
        """What a bookie that did not start has said; "" if it runs."""
        if self.socket is not None:
            return ""
        _, said = self.process.communicate(timeout=30)
        assert self.process.returncode == 2, said
        return said.decode()

    def ask(self, request: BookieMessage) -> BookieMessage:
        assert self.socket is not None
        body = version2.pack_request(request)
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        return version2.parse_response(self._exactly(*struct.unpack(">I", self._exactly(4))))

    def _exactly(self, size: int) -> bytes:
        assert self.socket is not None
        found = b""
        while len(found) < size:
            some = self.socket.recv(size - len(found))
            if not some:
                raise ConnectionError("the bookie is gone")
            found += some
        return found

    def end(self, how: signal.Signals) -> int:
        if self.socket is not None:
            self.socket.close()
        self.process.send_signal(how)
        self.process.communicate(timeout=60)
        return self.process.returncode


@contextmanager
def running(
    folder: Path, *more: str, environment: dict[str, str] | None = None
) -> Iterator[Process]:
    bookie = Process(folder, more, environment or {})
    try:
        yield bookie
    finally:
        bookie.end(signal.SIGKILL)


def payload(ledger_id: int, entry_id: int) -> bytes:
    return b"%d-%d;" % (ledger_id, entry_id) * 20


def put(bookie: Process, ledger_id: int, first: int, count: int) -> None:
    for entry_id in range(first, first + count):
        sent = add(ledger_id, entry_id, payload(ledger_id, entry_id))
        assert bookie.ask(sent) == Added(Status.OK, ledger_id, entry_id)


def read(bookie: Process, ledger_id: int, entry_id: int) -> Status:
    """How a read ends. What is read is right, or its digest says that it is not."""
    found = bookie.ask(Read(ledger_id, entry_id))
    assert isinstance(found, ReadEntry)
    if found.status is Status.OK:
        sent = add(ledger_id, entry_id, payload(ledger_id, entry_id)).entry
        if found.entry != sent:
            return Status.IO_ERROR  # for a client, which checks the digest
    return found.status


def fence(bookie: Process, ledger_id: int) -> None:
    found = bookie.ask(Read(ledger_id, -1, KEY, fence=True))
    assert isinstance(found, ReadEntry)
    assert found.status in (Status.OK, *DENIALS)


@pytest.fixture(scope="module")
def breaker(tmp_path_factory) -> str:
    return str(disks.library(tmp_path_factory.mktemp("c")))


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")
def test_killed_behind_each_sync_of_a_flush(tmp_path, breaker) -> None:
    """Of journal, entry log, both indexes, their marks and lastMark: the number of the sync is
    counted up until the flush ends before it.
    """
    counter = tmp_path / "syncs"
    environment = {"LD_PRELOAD": breaker, "KILLING_DISK": str(counter)}
    killed = entries = 0
    while True:
        with running(tmp_path, environment=environment) as bookie:
            put(bookie, 1, entries, 5)
            put(bookie, 2, entries, 5)
            entries += 5
            fence(bookie, 1_000 + killed)
            counter.write_text(str(killed + 1))
            ended = bookie.end(signal.SIGTERM)
        counter.unlink(missing_ok=True)
        with running(tmp_path) as bookie:
            for ledger_id in (1, 2):
                for entry_id in range(entries):
                    assert read(bookie, ledger_id, entry_id) is Status.OK, killed
                assert read(bookie, ledger_id, entries) is Status.NO_ENTRY
            for number in range(killed + 1):
                refused = bookie.ask(add(1_000 + number, 0))
                assert refused == Added(Status.FENCED, 1_000 + number, 0), killed
            assert bookie.end(signal.SIGKILL) == -signal.SIGKILL
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += 1
    assert killed >= 6, "points of a flush"


def flip(path: Path, at: int) -> None:
    """Change one bit of a file."""
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        place = file.tell()
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0x10]))


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def each(pattern: str, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    """Damage to all files of a bookie that a pattern names."""

    def do(bookie: Path) -> None:
        found = sorted(bookie.glob(pattern))
        assert found, pattern
        for path in found:
            damage(path)

    return do


JOURNAL, LEDGERS = "journal/current", "ledgers/current"
REFUSED = {
    "cookie of the journal removed": each(f"{JOURNAL}/VERSION", remove),
    "cookie of the ledgers removed": each(f"{LEDGERS}/VERSION", remove),
    "cookie of the journal flipped": each(f"{JOURNAL}/VERSION", lambda path: flip(path, 5)),
    "cookie of the ledgers flipped": each(f"{LEDGERS}/VERSION", lambda path: flip(path, 20)),
    "lastMark removed": each(f"{LEDGERS}/lastMark", remove),
    "journals removed": each(f"{JOURNAL}/*.txn", remove),
    "header of the journals flipped": each(f"{JOURNAL}/*.txn", lambda path: flip(path, 1)),
    "directory of the ledgers emptied": each(LEDGERS, remove),
    "directory of the journal emptied": each(JOURNAL, remove),
}
TOLD = {
    "lastMark flipped in its journal": each(f"{LEDGERS}/lastMark", lambda path: flip(path, 6)),
    "lastMark flipped in its offset": each(f"{LEDGERS}/lastMark", lambda path: flip(path, 14)),
    "entry logs removed": each(f"{LEDGERS}/*.log", remove),
    "entry logs flipped in a length": each(f"{LEDGERS}/*.log", lambda path: flip(path, 1025)),
    "entry logs flipped in an id": each(f"{LEDGERS}/*.log", lambda path: flip(path, 1035)),
    "entry logs flipped in a digest": each(f"{LEDGERS}/*.log", lambda path: flip(path, 1061)),
    "entry logs flipped in a payload": each(f"{LEDGERS}/*.log", lambda path: flip(path, 1070)),
    "index of entries removed": each(f"{LEDGERS}/locations", remove),
    "index of ledgers removed": each(f"{LEDGERS}/ledgers", remove),
    "tables of entries flipped": each(f"{LEDGERS}/locations/*.sst", lambda path: flip(path, 20)),
    "tables of ledgers flipped": each(f"{LEDGERS}/ledgers/*.sst", lambda path: flip(path, 20)),
    "tables of entries removed": each(f"{LEDGERS}/locations/*.sst", remove),
    "journal flipped in a payload": each(f"{JOURNAL}/*.txn", lambda path: flip(path, 700)),
}


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Path:
    """A bookie with entries that are in its entry log, and others that are in its journal only."""
    folder = tmp_path_factory.mktemp("used")
    with running(folder) as bookie:
        put(bookie, 1, 0, 20)
        put(bookie, 2, 0, 20)
        assert bookie.end(signal.SIGTERM) == 0
    with running(folder) as bookie:
        put(bookie, 1, 20, 20)
        fence(bookie, FENCED)
        assert bookie.end(signal.SIGKILL) == -signal.SIGKILL
    return folder


@pytest.mark.parametrize("damage", REFUSED, ids=lambda name: name.replace(" ", "-"))
def test_a_piece_without_which_it_does_not_start(tmp_path, used, damage) -> None:
    shutil.copytree(used / "data", tmp_path / "data")
    REFUSED[damage](tmp_path / "data/bookie")
    with running(tmp_path) as bookie:
        said = bookie.refusal()
        assert str(tmp_path / "data") in said
        assert "Traceback" not in said
        assert "magnetar bookie repair" not in said, "it is for whole servers"


@pytest.mark.parametrize("damage", TOLD, ids=lambda name: name.replace(" ", "-"))
def test_damage_is_never_told_as_absence(tmp_path, used, damage) -> None:
    """It does not start and says why, or it starts, and tells of no entry that it is not there."""
    shutil.copytree(used / "data", tmp_path / "data")
    TOLD[damage](tmp_path / "data/bookie")
    for _ in range(3):  # rot of an index may be found by a read, and mended by the next start
        with running(tmp_path) as bookie:
            if said := bookie.refusal():
                assert str(tmp_path / "data") in said
                assert "Traceback" not in said
                continue
            ends = [read(bookie, 1, i) for i in range(40)] + [read(bookie, 2, i) for i in range(20)]
            assert not set(ends).intersection(DENIALS), damage
            assert bookie.ask(add(FENCED, 0)) == Added(Status.FENCED, FENCED, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")
def test_a_sync_that_fails_is_the_end(tmp_path, breaker) -> None:
    mark = tmp_path / "broken"
    environment = {"LD_PRELOAD": breaker, "BROKEN_DISK": str(mark)}
    with running(tmp_path, environment=environment) as bookie:
        put(bookie, 1, 0, 10)
        mark.touch()
        with suppress(ConnectionError):
            refused = bookie.ask(add(1, 10, payload(1, 10)))
            assert isinstance(refused, Added)
            assert refused.status is not Status.OK
        assert bookie.process.wait(30) == 1
    mark.unlink()
    with running(tmp_path) as bookie:
        assert [read(bookie, 1, i) for i in range(10)] == [Status.OK] * 10
        put(bookie, 1, 11, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is Linux's")
@pytest.mark.parametrize("ends", ["well", "killed"])
def test_a_sync_that_takes_ten_seconds(tmp_path, breaker, ends) -> None:
    """Nothing is acknowledged meanwhile, and what is stored is read."""
    mark = tmp_path / "slow"
    environment = {"LD_PRELOAD": breaker, "SLOW_DISK": str(mark)}
    with running(tmp_path, environment=environment) as bookie:
        put(bookie, 1, 0, 10)
        mark.touch()
        waiting = bookie.another_connection()
        body = version2.pack_request(add(1, 10, payload(1, 10)))
        waiting.sendall(struct.pack(">I", len(body)) + body)
        end = time.monotonic() + SLOW_SECONDS
        while time.monotonic() < end:
            began = time.monotonic()
            assert read(bookie, 1, 9) is Status.OK
            assert time.monotonic() - began < SLOW_SECONDS / 2, "readers do not wait for it"
            assert not select.select([waiting], [], [], 0.05)[0], "it is not durable"
        if ends == "killed":
            assert bookie.end(signal.SIGKILL) == -signal.SIGKILL
        mark.unlink()
        if ends == "well":
            (size,) = struct.unpack(">I", waiting.recv(4, socket.MSG_WAITALL))
            answer = version2.parse_response(waiting.recv(size, socket.MSG_WAITALL))
            assert answer == Added(Status.OK, 1, 10)
            assert bookie.end(signal.SIGKILL) == -signal.SIGKILL
        waiting.close()
    with running(tmp_path) as bookie:
        assert [read(bookie, 1, i) for i in range(10)] == [Status.OK] * 10
        assert read(bookie, 1, 10) in (Status.OK, Status.NO_ENTRY)
        if ends == "well":
            assert read(bookie, 1, 10) is Status.OK


@pytest.fixture
def small_disks(tmp_path) -> Iterator[list[Path]]:
    """Two file systems of 48 MB."""
    folders = [tmp_path / "one", tmp_path / "two"]
    mounted = []
    try:
        for folder in folders:
            folder.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
            if subprocess.run(mount, capture_output=True, check=False).returncode:
                pytest.skip("mounting a small disk needs root's privilege")
            mounted.append(folder)
        yield folders
    finally:
        for folder in mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_full_ledger_directories(tmp_path, small_disks) -> None:
    """One is passed over, both make it read-only, and room makes it writable again."""
    configuration = tmp_path / "magnetar.toml"
    configuration.write_text(
        "[storage]\nentry_log_size_limit_mb = 4\nflush_interval_seconds = 0.2\n"
        "disk_check_interval_seconds = 0.1\ndisk_usage_threshold = 0.7\n"
        "disk_usage_low_water_mark = 0.6\n"
    )
    flags = ("--config", str(configuration), "--ledger-dirs", ",".join(map(str, small_disks)))
    ballast = small_disks[1] / "ballast"
    body = os.urandom(1 << 20)
    sealed = [
        digests.seal_entry(CRC32C, DigestHeader(1, i, i - 1, (i + 1) << 20), body)
        for i in range(80)
    ]

    def send(bookie: Process, entry_id: int) -> Status:
        answer = bookie.ask(Add(1, entry_id, KEY, sealed[entry_id]))
        assert isinstance(answer, Added)
        return answer.status

    with running(tmp_path, *flags) as bookie:
        ballast.write_bytes(bytes(36 << 20))
        stored = 0
        while send(bookie, stored) is Status.OK:
            stored += 1
        used = [sum(f.stat().st_size for f in d.glob("current/*.log")) for d in small_disks]
        assert used[0] > 2 * used[1], "it went on where there was room"
        assert send(bookie, stored) is Status.READ_ONLY
        ballast.unlink()
        deadline = time.monotonic() + 30
        while (status := send(bookie, stored)) is not Status.OK:
            assert status is Status.READ_ONLY
            assert time.monotonic() < deadline
        for entry_id in range(stored + 1):
            found = bookie.ask(Read(1, entry_id))
            assert isinstance(found, ReadEntry)
            assert found.entry == sealed[entry_id]
        assert bookie.end(signal.SIGKILL) == -signal.SIGKILL
    with running(tmp_path, *flags) as bookie:
        assert not bookie.refusal()
        for entry_id in range(stored + 1):
            found = bookie.ask(Read(1, entry_id))
            assert isinstance(found, ReadEntry)
            assert found.entry == sealed[entry_id]
