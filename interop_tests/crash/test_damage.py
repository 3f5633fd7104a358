"""A data directory with real messages, damaged in each way there is: all of them are there, or the
server refuses to start with one sentence that names the way out, and the way out works.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pulsar
import pytest

from magnetar import standalone
from magnetar.child import FREE_PORTS
from magnetar.core.metadata import log_file
from magnetar.core.metadata.history import Names
from magnetar.core.metadata.tests.stores import cut, flip

STANDALONE = (sys.executable, "-P", "-m", "magnetar", "standalone", *FREE_PORTS)

RECEIVE_MS = 15_000
TOPICS = ("persistent://public/default/one", "persistent://public/default/two")
COUNT = 300
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Path:
    """Stopped once, so that half is in entry logs, then killed: the rest is in the journal."""
    data = tmp_path_factory.mktemp("used") / "data"
    with standalone(data) as server:
        for part in (range(COUNT // 2), range(COUNT // 2, COUNT)):
            client = pulsar.Client(server.pulsar_url)
            for topic in TOPICS:
                client.subscribe(
                    topic, "s", initial_position=pulsar.InitialPosition.Earliest
                ).close()
                producer = client.create_producer(topic)
                for number in part:
                    producer.send_async(b"%d " % number + topic.encode() * 5, lambda *_: None)
                producer.flush()
            client.close()
            server.stop() if not part[0] else server.kill()
            if not part[0]:
                server.start()
    return data


def numbers(server, topic) -> list[int]:
    client = pulsar.Client(server.pulsar_url)
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        found = [reader.read_next(RECEIVE_MS).data() for _ in range(COUNT)]
        assert all(data.endswith(topic.encode() * 5) for data in found)
        return [int(data.split()[0]) for data in found]
    finally:
        client.close()


def names(data: Path) -> Names:
    return Names(data / "metadata")


def newest_log(data: Path) -> Path:
    return names(data).log(names(data).generations()[-1])


def acknowledged_end(data: Path) -> int:
    return log_file.read(newest_log(data)).end


def removed(pattern: str) -> Damage:
    def damage(data: Path) -> None:
        found = list(data.glob(pattern))
        assert found, pattern
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def flipped(pattern: str, at: int) -> Damage:
    def damage(data: Path) -> None:
        for path in data.glob(pattern):
            flip(path, at)

    return damage


def zeroed_last_commit(data: Path) -> None:
    path = newest_log(data)
    start = log_file.read(path).commits[-2].end
    whole = path.read_bytes()
    path.write_bytes(whole[:start] + bytes(len(whole) - start))


REFUSED: dict[str, tuple[Damage, str]] = {
    "a bit of the metadata's log": (lambda data: flip(newest_log(data), 500), "metadata repair"),
    "its first byte": (lambda data: flip(newest_log(data), 0), "metadata repair"),
    "its last commit zeroed": (zeroed_last_commit, "were acknowledged"),
    "cut in its middle": (
        lambda data: cut(newest_log(data), acknowledged_end(data) // 2),
        "metadata repair",
    ),
    "cut before its last byte": (
        lambda data: cut(newest_log(data), log_file.read(newest_log(data)).commits[-2].end),
        "metadata repair",
    ),
    "the metadata's log deleted": (lambda data: newest_log(data).unlink(), "metadata repair"),
    "the mark deleted": (removed("metadata.end"), "metadata repair"),
    "all metadata deleted": (removed("metadata.*"), "restore that from a backup"),
    "journals deleted": (removed("bookie/journal/current/*.txn"), "bookie repair"),
    "the last journal cut": (
        lambda data: cut(max((data / "bookie/journal/current").glob("*.txn")), 512),
        "bookie repair",
    ),
    "lastMark deleted": (removed("bookie/ledgers/current/lastMark"), "bookie repair"),
    "the bookie deleted": (removed("bookie"), "has stored entries before"),
    "magnetar.json deleted": (removed("magnetar.json"), "restore it, or write"),
    "a cookie deleted": (removed("bookie/journal/current/VERSION"), "copy VERSION from"),
}

HARMLESS: dict[str, Damage] = {
    "nothing": lambda data: None,
    "a torn tail of the log": lambda data: flip(newest_log(data), acknowledged_end(data) + 3),
    "the live tree deleted": removed("metadata.live*"),
    "the live tree flipped": flipped("metadata.live*", 5000 % 4096),
    "a slot of the mark flipped": flipped("metadata.end", 12),
    "locations deleted": removed("bookie/ledgers/current/locations"),
    "a table deleted": removed("bookie/ledgers/current/locations/*.sst"),
    "a table flipped": flipped("bookie/ledgers/current/locations/*.sst", 20),
    "the ledgers index deleted": removed("bookie/ledgers/current/ledgers"),
    "both indexes deleted": lambda data: [
        removed(f"bookie/ledgers/current/{name}")(data) for name in ("locations", "ledgers")
    ],
    "lastId deleted": lambda data: (data / "bookie/ledgers/current/lastId").unlink(missing_ok=True),
    "the ids deleted": removed("bookie/*/current/highestLedger"),
    "the inventory deleted": removed("bookie/journal/current/inventory"),
    "the locks deleted": lambda data: [path.unlink() for path in data.rglob("lock")],
}


def start(data: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STANDALONE, "--data-dir", str(data)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def repair(data: Path, part: str) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "magnetar", part, "repair", "--accept-loss",
         "--data-dir", str(data)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "repaired" in done.stdout


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_sentence_that_names_the_way_out(used, tmp_path, what) -> None:
    damage, words = REFUSED[what]
    data = tmp_path / "data"
    shutil.copytree(used, data)
    damage(data)
    for _ in range(2):  # and nothing of it has changed
        done = start(data)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("magnetar: "), done.stderr
        assert "Traceback" not in done.stderr
        assert words in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("what", HARMLESS)
def test_nothing_is_lost(used, tmp_path, what) -> None:
    data = tmp_path / "data"
    shutil.copytree(used, data)
    HARMLESS[what](data)
    with standalone(data) as server:
        for topic in TOPICS:
            assert numbers(server, topic) == list(range(COUNT))


def test_a_repaired_log_gives_no_topic_anothers_messages(used, tmp_path) -> None:
    """What was seen: ledger ids given twice, and a new topic served the messages of an old one."""
    data = tmp_path / "data"
    shutil.copytree(used, data)
    path = newest_log(data)
    cut(path, log_file.read(path).commits[3].end)
    assert start(data).returncode == 2
    repair(data, "metadata")
    with standalone(data) as server:
        client = pulsar.Client(server.pulsar_url)
        fresh = "persistent://public/default/fresh"
        producer = client.create_producer(fresh)
        position = producer.send(b"fresh")
        reader = client.create_reader(fresh, pulsar.MessageId.earliest)
        assert reader.read_next(RECEIVE_MS).data() == b"fresh"
        assert not reader.has_message_available()
        assert position.ledger_id() > 3
        client.close()


@pytest.mark.parametrize("what", ["journals deleted", "the last journal cut", "lastMark deleted"])
def test_a_repaired_journal_costs_what_was_only_there(used, tmp_path, what) -> None:
    data = tmp_path / "data"
    shutil.copytree(used, data)
    REFUSED[what][0](data)
    repair(data, "bookie")
    with standalone(data) as server:
        client = pulsar.Client(server.pulsar_url)
        for topic in TOPICS:
            reader = client.create_reader(topic, pulsar.MessageId.earliest)
            found = []
            while reader.has_message_available():
                found.append(int(reader.read_next(RECEIVE_MS).data().split()[0]))
            assert found[: COUNT // 2] == list(range(COUNT // 2))
            if what == "lastMark deleted":
                assert found == list(range(COUNT))
            client.create_producer(topic).send(b"on")
        client.close()


def test_metadata_from_an_old_backup_costs_what_was_made_since(used, tmp_path) -> None:
    """And no ledger is made twice: the bookie knows better than the counter."""
    data = tmp_path / "data"
    with standalone(data) as server:
        client = pulsar.Client(server.pulsar_url)
        client.create_producer("before").send(b"before")
        client.close()
    shutil.copytree(data, tmp_path / "backup")
    with standalone(data) as server:
        client = pulsar.Client(server.pulsar_url)
        for i in range(5):
            client.create_producer(f"since-{i}").send(b"since %d" % i)
        client.close()
    for path in data.glob("metadata.*"):
        path.unlink()
    for path in (tmp_path / "backup").glob("metadata.*"):
        shutil.copy(path, data / path.name)
    with standalone(data) as server:
        client = pulsar.Client(server.pulsar_url)
        for i in range(5):
            topic = f"later-{i}"
            client.create_producer(topic).send(b"later %d" % i)
            reader = client.create_reader(topic, pulsar.MessageId.earliest)
            assert reader.read_next(RECEIVE_MS).data() == b"later %d" % i
            assert not reader.has_message_available()
        reader = client.create_reader("before", pulsar.MessageId.earliest)
        assert reader.read_next(RECEIVE_MS).data() == b"before"
        client.close()
