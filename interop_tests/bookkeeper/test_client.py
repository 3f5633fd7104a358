"""Apache BookKeeper's Java client on our bookies, with a real ZooKeeper."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from interop_tests.bookkeeper.cluster import Bookie, Client, ZooKeeper, driver
from interop_tests.driver import SceneError
from interop_tests.keys import Authority

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]

VERSIONS = pytest.mark.parametrize("version", [2, 3])
THREE = {"ensemble": 3, "quorum": 3, "ack": 2}


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("bookkeeper")
    with ZooKeeper(folder) as zookeeper, driver(folder) as java:
        made = Client(zookeeper, java)
        assert made.play("cluster.init")
        yield made


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def bookies(client, authority, tmp_path_factory) -> Iterator[list[Bookie]]:
    certificate, key = authority.issue("bookie")
    tls = ("--tls-certificate", certificate, "--tls-key", key)
    with ExitStack() as running:
        folders = [tmp_path_factory.mktemp("bookie") for _ in range(4)]
        made = [running.enter_context(Bookie(folder, *tls)) for folder in folders]
        for bookie in made:
            client.register(bookie)
        yield made


def texts(count):
    return [f"entry {i}" for i in range(count)]


@VERSIONS
@pytest.mark.parametrize("digest", ["CRC32", "CRC32C", "MAC", "DUMMY"])
def test_any_digest_in_either_version(client, bookies, version, digest):
    args = {"version": version, "digest": digest}
    ledger = client.play("ledgers.write", count=200, **args)
    assert client.play("ledgers.close", ledger=ledger) == 199
    found = client.play("ledgers.read", ledger=ledger, **args)
    assert found["entries"] == texts(200)


@VERSIONS
def test_three_bookies_and_entries_of_any_size(client, bookies, version):
    for size in (1, 1024, 100_000, 1_000_000):
        ledger = client.play("ledgers.write", version=version, count=20, size=size, **THREE)
        client.play("ledgers.close", ledger=ledger)
        found = client.play("ledgers.read", version=version, ledger=ledger)
        assert found["entries"] == texts(20)
        assert found["length"] >= 20 * size


@VERSIONS
def test_striping_over_three_bookies(client, bookies, version):
    args = {"version": version, "ensemble": 3, "quorum": 2, "ack": 2}
    ledger = client.play("ledgers.write", count=300, **args)
    client.play("ledgers.close", ledger=ledger)
    assert client.play("ledgers.read", ledger=ledger, version=version)["entries"] == texts(300)


@VERSIONS
def test_a_recovery_fences_the_writer_and_keeps_what_was_acknowledged(client, bookies, version):
    ledger = client.play("ledgers.write", version=version, count=100, **THREE)
    found = client.play("ledgers.read", version=version, ledger=ledger, recover=True)
    assert found["entries"] == texts(100)
    with pytest.raises(SceneError, match="LedgerFenced"):
        client.play("ledgers.append", ledger=ledger, first=100, count=1)
    again = client.play("ledgers.read", version=version, ledger=ledger)
    assert again["last"] == 99


def test_a_recovery_with_a_bookie_that_was_killed(client, bookies):
    ledger = client.play("ledgers.write", count=100, **THREE)
    bookies[1].kill()
    found = client.play("ledgers.read", ledger=ledger, recover=True)
    assert found["entries"] == texts(100)
    bookies[1].start()
    again = client.play("ledgers.write", count=10, **THREE)
    client.play("ledgers.close", ledger=again)


@pytest.mark.parametrize("digest", ["CRC32", "CRC32C", "MAC", "DUMMY"])
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_was_acknowledged_survives(client, bookies, end, digest):
    """With one bookie, so that nobody else has it."""
    ledgers = {}
    for count in (1, 50, 2000):
        ledger = client.play("ledgers.write", count=count, digest=digest, version=2)
        ledgers[ledger] = count
    for bookie in bookies:
        getattr(bookie, end)()
        bookie.start()
    for ledger, count in ledgers.items():
        found = client.play("ledgers.read", ledger=ledger, digest=digest, recover=True, version=2)
        assert found["entries"] == texts(count)


@VERSIONS
def test_ids_that_the_writer_chooses(client, bookies, version):
    """`LedgerHandleAdv`: entries arrive in any order, and one id is written once."""
    chosen = 7_000_000_000 + version
    args = {"version": version, "id": str(chosen)}
    assert client.play("ledgers.advanced", count=100, **args) == {
        "last": 99,
        "refused": "BKDuplicateEntryIdException",
    }
    found = client.play("ledgers.read", ledger=str(chosen), version=version)
    assert found["entries"] == texts(100)


@VERSIONS
def test_entries_beyond_what_is_confirmed(client, bookies, version):
    ledger = client.play("ledgers.write", count=10, version=version, **THREE)
    found = client.play("ledgers.unconfirmed", ledger=ledger, last=9, version=version)
    assert found["entries"] == texts(10)
    assert found["last"] < 9, "nothing has told the bookies that the last one is confirmed"
    client.play("ledgers.close", ledger=ledger)


def test_batches(client, bookies):
    ledger = client.play("ledgers.write", version=2, count=500, size=2000)
    client.play("ledgers.close", ledger=ledger)
    assert client.play("ledgers.batch", version=2, ledger=ledger, count=50) == texts(500)


def test_a_long_poll_hears_of_the_next_entry(client, bookies):
    ledger = client.play("ledgers.write", count=9, **THREE)
    client.play("ledgers.append", ledger=ledger, first=9, count=1)
    tail = client.start("ledgers.tail", ledger=ledger, next=9)
    assert tail.wait_for("last") == 8
    client.play("ledgers.append", ledger=ledger, first=10, count=1)
    found = tail.result()
    assert found["last"] >= 9
    assert found["entry"] in (None, "entry 9")
    # nobody appends: the poll ends with its time
    tail = client.start("ledgers.tail", ledger=ledger, next=50, wait_ms=300)
    tail.wait_for("last")
    assert tail.result()["entry"] is None
    assert client.play("ledgers.close", ledger=ledger) == 10


@VERSIONS
def test_tls_in_the_middle_of_a_connection(client, bookies, authority, version):
    args = {"version": version, "trusted": authority.certificate}
    ledger = client.play("ledgers.write", count=50, size=50_000, **args, **THREE)
    client.play("ledgers.close", ledger=ledger)
    assert client.play("ledgers.read", ledger=ledger, **args)["entries"] == texts(50)


def test_an_explicit_lac(client, bookies):
    ledger = client.play("ledgers.write", count=10, explicit_lac_ms=100, **THREE)
    assert client.play("ledgers.explicit", ledger=ledger, last=9) == 9
    client.play("ledgers.close", ledger=ledger)


def test_a_force(client, bookies):
    assert client.play("ledgers.force") == [-1, 4]


def test_disks_and_lists_of_entries(client, bookies):
    seen = client.play("cluster.info")
    assert set(seen) == {bookie.address for bookie in bookies}
    assert all(0 < free <= total for free, total in seen.values())
    ledger = client.play("ledgers.write", count=30, ensemble=3, quorum=2, ack=2)
    client.play("ledgers.close", ledger=ledger)
    held = [
        set(client.play("ledgers.list", bookie=one.address, ledger=ledger, count=30))
        for one in bookies
    ]
    for entry_id in range(30):
        assert sum(entry_id in ids for ids in held) == 2
