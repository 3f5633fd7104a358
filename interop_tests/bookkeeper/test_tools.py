"""`magnetar bookie` and `magnetar ledger` on a cluster: stock metadata, ledgers of Apache's client,
bookies of ours and of Apache's.
"""

import base64
import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from interop_tests.bookkeeper.apache import ApacheBookie, running_bookie
from interop_tests.bookkeeper.cluster import MAGNETAR, Bookie, Client, ZooKeeper, driver

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]
BOTH = {"ensemble": 2, "quorum": 2, "ack": 2}


def magnetar(*words: object, code: int = 0, uri: str = "") -> subprocess.CompletedProcess[str]:
    """A command that ends so; nothing but sentences on standard error."""
    environment = {**os.environ, "MAGNETAR_METADATA_URI": uri} if uri else None
    command = [MAGNETAR, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


class Cluster:
    """One bookie of ours and one of Apache's."""

    def __init__(self, client: Client, ours: Bookie, apache: ApacheBookie) -> None:
        self.client = client
        self.ours = ours
        self.apache = apache
        self.uri = client.zookeeper.uri

    def write(self, **scene) -> str:
        ledger = self.client.play("ledgers.write", **scene)
        self.client.play("ledgers.close", ledger=ledger)
        return ledger

    def ask(self, *words: object, code: int = 0):
        return json.loads(magnetar(*words, "--json", uri=self.uri, code=code).stdout)

    def tell(self, *words: object, code: int = 0) -> str:
        return magnetar(*words, uri=self.uri, code=code).stdout


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("tools")
    with ZooKeeper(folder) as zookeeper, driver(folder) as java:
        uri = zookeeper.uri
        assert (
            "no BookKeeper cluster at /ledgers"
            in magnetar("ledger", "list", uri=uri, code=2).stderr
        )
        made = json.loads(magnetar("bookie", "init-cluster", "--json", uri=uri).stdout)
        assert (made["root"], made["layout"]) == ("/ledgers", "hierarchical")
        with (
            Bookie(tmp_path_factory.mktemp("ours")) as ours,
            running_bookie(uri, tmp_path_factory.mktemp("apache")) as apache,
        ):
            client = Client(zookeeper, java)
            client.register(ours)
            yield Cluster(client, ours, apache)


def texts(count: int, first: int = 0) -> list[str]:
    return [f"{i} entry {i}" for i in range(first, first + count)]


def test_bookies(cluster):
    found = {each["bookie"]: each for each in cluster.ask("bookie", "list")}
    assert set(found) == {cluster.ours.address, cluster.apache.bookie_id}
    assert found[cluster.ours.address]["endpoints"] == [
        {"protocol": "bookie-rpc", "address": cluster.ours.address}
    ]
    assert cluster.ask("bookie", "list", "--mode", "ro") == []
    assert f"{cluster.ours.address}  rw  bookie-rpc " in cluster.tell("bookie", "list")


def test_a_ledger_is_listed_described_and_read(cluster, tmp_path):
    ledger = cluster.write(count=1000, **BOTH)
    assert int(ledger) in [each["ledger"] for each in cluster.ask("ledger", "list")]
    assert ledger in cluster.tell("ledger", "list").splitlines()
    assert f"ledger {ledger}: CLOSED, last entry 999, " in cluster.tell("ledger", "list", "--long")
    found = cluster.ask("ledger", "metadata", ledger)
    assert (found["state"], found["last_entry"], found["digest"]) == ("CLOSED", 999, "CRC32")
    (segment,) = found["segments"]
    assert set(segment["bookies"]) == {cluster.ours.address, cluster.apache.bookie_id}
    assert "password" not in found
    assert "write quorum 2, ack quorum 2, digest CRC32" in cluster.tell(
        "ledger", "metadata", ledger
    )
    assert cluster.tell("ledger", "read", ledger).splitlines() == texts(1000)
    part = cluster.tell("ledger", "read", ledger, "--first", 5, "--last", 7)
    assert part.splitlines() == texts(3, 5)
    one = ("ledger", "read", ledger, "--last", 0)
    assert cluster.tell(*one, "--format", "hex") == f"0 {b'entry 0'.hex()}\n"
    assert base64.b64decode(cluster.ask(*one)["payload"]) == b"entry 0"
    for words, said in (
        (("--first", 1000), "there is no entry 1000: the last one that is confirmed is 999"),
        (("--first", 5, "--last", 4), "--first 5 is behind --last 4"),
        (("--output", tmp_path / "none/x"), f"cannot write to {tmp_path}/none/x: No such file or "),
    ):
        assert said in magnetar("ledger", "read", ledger, *words, uri=cluster.uri, code=2).stderr
    path = tmp_path / "payloads"
    assert cluster.tell(*one, "--format", "raw", "--output", path) == ""
    assert path.read_bytes() == b"entry 0"


def test_a_bookie_is_killed(cluster):
    ledger = cluster.write(count=100, **BOTH)
    cluster.ours.kill()
    try:
        assert cluster.tell("ledger", "read", ledger).splitlines() == texts(100)
    finally:
        cluster.ours.start()


def test_damage_is_named_and_passed(cluster):
    """The only replica of an entry is damaged, on the disk of either bookie."""
    for bookie in (cluster.ours, cluster.apache):
        name = bookie.address if bookie is cluster.ours else bookie.bookie_id
        ledger = None
        while ledger is None or name not in str(cluster.ask("ledger", "metadata", ledger)):
            ledger = cluster.write(count=10, size=100, digest="CRC32C")
        if bookie is cluster.ours:
            bookie.stop()
        else:
            bookie.stop(signal.SIGTERM)
        begin = int(ledger).to_bytes(8, "big") + (4).to_bytes(8, "big")
        for path in bookie.directory.rglob("ledgers/current/*.log"):
            data = path.read_bytes()
            if (at := data.find(begin)) >= 0:
                path.write_bytes(data[: at + 60] + b"!" + data[at + 61 :])
                shown = magnetar("bookie", "read-log", path, "--ledger", ledger, code=1).stdout
                assert f"entry {ledger}:4, 136 bytes" in shown
                assert "; 1 with a wrong digest, 0 places" in shown
        bookie.start()
        done = magnetar("ledger", "read", ledger, uri=cluster.uri, code=1)
        assert f"entry {ledger}:4 cannot be read: {name} " in done.stderr
        assert [line.split(" ")[0] for line in done.stdout.splitlines()] == list("012356789")
        found = cluster.tell("ledger", "read", ledger, "--json", code=1).splitlines()
        assert json.loads(found[4])["entry"] == 4
        assert "cannot be read" in json.loads(found[4])["error"]


def test_files_of_a_stock_bookie(cluster):
    ledger = cluster.write(count=50, size=3000, digest="CRC32C", **BOTH)
    for bookie in (cluster.apache, cluster.ours):
        seen = set()
        for path in bookie.directory.rglob("journal/current/*.txn"):
            done = magnetar("bookie", "read-journal", path, "--ledger", ledger, "--json")
            parts = [json.loads(line) for line in done.stdout.splitlines()]
            seen |= {part["entry"] for part in parts if part["part"] == "entry"}
            assert all(part["crc32c"] for part in parts if part["part"] == "entry")
        assert seen == set(range(50))
        marks = json.loads(magnetar("bookie", "last-mark", _ledgers(bookie), "--json").stdout)
        assert len(marks) == 1


def _ledgers(bookie):
    (found,) = [path.parent for path in bookie.directory.rglob("ledgers/current")]
    return found


def test_a_ledger_is_deleted(cluster):
    ledger = cluster.write(count=10)
    refused = magnetar("ledger", "delete", ledger, uri=cluster.uri, code=2)
    assert "--force deletes ledger" in refused.stderr
    assert cluster.ask("ledger", "delete", ledger, "--force") == {"ledger": int(ledger)}
    for command in ("metadata", "read"):
        done = magnetar("ledger", command, ledger, uri=cluster.uri, code=2)
        assert done.stderr == f"magnetar: there is no ledger {ledger}\n"


def test_a_bookie_is_formatted_and_its_cookie_forgotten(cluster, tmp_path):
    zookeeper = KazooClient(cluster.client.zookeeper.address)
    zookeeper.start()
    try:
        with Bookie(tmp_path) as bookie:
            assert bookie.stop() == 0
            node = f"/ledgers/cookies/{bookie.address}"
            (version,) = tmp_path.rglob("ledgers/current/VERSION")
            zookeeper.create(node, version.read_bytes(), makepath=True)
            words = ("bookie", "format", "--data-dir", tmp_path / "data")
            assert "--force drops" in magnetar(*words, uri=cluster.uri, code=2).stderr
            assert zookeeper.exists(node)
            magnetar(*words, "--force", uri=cluster.uri)
            assert not zookeeper.exists(node)
            bookie.start()
            zookeeper.create(node, b"5\n")
            gone = ("bookie", "delete-cookie", bookie.address)
            assert "may begin anew" in magnetar(*gone, uri=cluster.uri, code=2).stderr
            magnetar(*gone, "--force", uri=cluster.uri)
            assert not zookeeper.exists(node)
            assert "has no cookie" in magnetar(*gone, "--force", uri=cluster.uri, code=2).stderr
            runs = ("bookie", "delete-cookie", cluster.apache.bookie_id, "--force")
            assert "is running" in magnetar(*runs, uri=cluster.uri, code=2).stderr
            assert zookeeper.exists(f"/ledgers/cookies/{cluster.apache.bookie_id}")
    finally:
        zookeeper.stop()
        zookeeper.close()


def test_ledgers_that_lack_replicas(cluster):
    """Apache's shell finds the same."""
    assert cluster.ask("ledger", "under-replicated") == []
    ledger = 70_000
    node = f"/ledgers/underreplication/ledgers/0000/0000/0001/1170/urL{ledger:010d}"
    zookeeper = KazooClient(cluster.client.zookeeper.address)
    zookeeper.start()
    try:
        lost = b'replica: "127.0.0.1:9"\nreplica: "lost"\nctime: 1700000000000\n'
        zookeeper.create(node, lost, makepath=True)
        assert cluster.ask("ledger", "under-replicated") == [
            {"ledger_id": ledger, "missing": ["127.0.0.1:9", "lost"], "found_ms": 1_700_000_000_000}
        ]
        told = cluster.tell("ledger", "under-replicated")
        assert told == "ledger 70000: missing on 127.0.0.1:9, lost\n"
        assert str(ledger) in cluster.apache.shell("listunderreplicated")
    finally:
        zookeeper.delete(node)
        zookeeper.stop()
        zookeeper.close()


def test_a_cluster_begins_and_ends(cluster):
    uri = cluster.uri.replace("/ledgers", "/other/ledgers")
    first = json.loads(magnetar("bookie", "init-cluster", "--json", uri=uri).stdout)
    again = magnetar("bookie", "init-cluster", uri=uri, code=2).stderr
    said = f"/other/ledgers is a cluster already, with the instance id {first['instance']}"
    assert again == f"magnetar: {said}\n"
    assert "--force does it" in magnetar("bookie", "format-cluster", uri=uri, code=2).stderr
    second = json.loads(magnetar("bookie", "format-cluster", "--force", "--json", uri=uri).stdout)
    assert first["instance"] != second["instance"]
    for words in ((), ("--force", "--instance-id", second["instance"])):
        assert "not both" in magnetar("bookie", "nuke-cluster", *words, uri=uri, code=2).stderr
    wrong = magnetar("bookie", "nuke-cluster", "--instance-id", first["instance"], uri=uri, code=2)
    assert "is not the instance" in wrong.stderr
    done = magnetar("bookie", "nuke-cluster", "--instance-id", second["instance"], uri=uri)
    assert done.stdout == "there is no cluster at /other/ledgers any more\n"
    zookeeper = KazooClient(cluster.client.zookeeper.address)
    zookeeper.start()
    try:
        assert zookeeper.get_children("/other") == [], "nothing of ours is left"
    finally:
        zookeeper.stop()
        zookeeper.close()
    assert "no BookKeeper cluster" in magnetar("bookie", "list", uri=uri, code=2).stderr
    refused = magnetar("bookie", "nuke-cluster", "--force", uri=cluster.uri, code=2).stderr
    assert "are running" in refused


def test_metadata_that_make_no_sense_are_named_and_hide_no_others(cluster):
    sound, broken = (int(cluster.write(count=1, **BOTH)) for _ in range(2))
    node = f"/ledgers/00/0000/L{broken:04}"
    zookeeper = KazooClient(cluster.client.zookeeper.address)
    zookeeper.start()
    try:
        zookeeper.set(node, b"garbage")
        listed = cluster.tell("ledger", "list", "--long", code=1).splitlines()
        assert any(one.startswith(f"ledger {sound}: CLOSED, last entry 0, ") for one in listed)
        assert f"metadata of ledger {broken}: ledger metadata does not begin as it should" in listed
        found = {each["ledger"]: each for each in cluster.ask("ledger", "list", "--long", code=1)}
        assert "does not begin" in found[broken]["error"]
        for verb in ("read", "metadata"):
            said = magnetar("ledger", verb, broken, uri=cluster.uri, code=2).stderr
            assert f"ledger {broken}" in said
    finally:
        zookeeper.delete(node)
        zookeeper.stop()
        zookeeper.close()


def test_mistakes_are_sentences():
    for command in (("bookie", "list"), ("ledger", "list"), ("ledger", "read", "7")):
        assert "--metadata-uri" in magnetar(*command, code=2).stderr
        done = magnetar(*command, uri="http://127.0.0.1", code=2)
        assert "expected zk:HOST:PORT" in done.stderr
        assert len(done.stderr.splitlines()) == 1
