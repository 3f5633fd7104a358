"""`magnetar gateway`: stock clients over three bookies of ours, some of which are killed; a second
gateway on the same cluster, and one that lost its place.
"""

import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pulsar
import pytest
import trio
from confluent_kafka import Consumer
from kazoo.client import KazooClient
from kazoo.security import READ_ACL_UNSAFE

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.gateway import SESSION_SECONDS, Gateway
from interop_tests.bookkeeper.recovery import command, members
from interop_tests.bookkeeper.zookeeper import ZooKeeper, free_port, running
from interop_tests.waiting import until
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]
END_SECONDS = 60
"""More than a session takes to expire."""


@pytest.fixture(scope="module")
def bookies(zookeeper: ZooKeeper, tmp_path_factory) -> Iterator[list[Bookie]]:
    uri = f"zk+hierarchical://{zookeeper.address}/ledgers"

    async def begin() -> None:
        async with open_zookeeper(parse(uri), 10) as store:
            await initialize_cluster(store, "6a1f0f3e-0000-4000-8000-000000000002")

    trio.run(begin)
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                Bookie(
                    tmp_path_factory.mktemp("bookie"),
                    "--metadata-uri", uri, "--zk-timeout", str(SESSION_SECONDS),
                )
            )
            for _ in range(3)
        ]  # fmt: skip


def publish(gateway: Gateway, topic: str, texts: list[str]) -> None:
    """Each is acknowledged before this returns."""
    client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}")
    producer = client.create_producer(topic)
    for text in texts:
        producer.send(text.encode())
    client.close()


def read(gateway: Gateway, topic: str, count: int) -> list[str]:
    client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = [reader.read_next(timeout_millis=30_000).data().decode() for _ in range(count)]
    assert not reader.has_message_available()
    client.close()
    return found


def test_what_was_acknowledged_outlives_a_bookie_and_the_gateway(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    texts = [f"m{number}" for number in range(300)]
    quorum = ("--ensemble-size", "2", "--write-quorum", "2", "--ack-quorum", "2")
    with Gateway(tmp_path / "one", zookeeper, *quorum) as gateway:
        gateway.serve()
        assert not (tmp_path / "one" / "data").exists()
        large = 5 * 1024 * 1024 - 128 * 1024
        publish(gateway, "large", ["x" * large])
        assert read(gateway, "large", 1) == ["x" * large]
        with pytest.raises(pulsar.MessageTooBig):
            publish(gateway, "large", ["x" * 6_000_000])
        publish(gateway, "kept", texts[:100])
        bookies[0].kill()
        publish(gateway, "kept", texts[100:200])
        gateway.process.kill()
    with Gateway(tmp_path / "two", zookeeper, *quorum) as gateway:
        gateway.serve()  # once the session of the first has timed out
        publish(gateway, "kept", texts[200:])
        assert read(gateway, "kept", 300) == texts
        consumer = Consumer(
            {
                "bootstrap.servers": gateway.url("kafka"),
                "group.id": "g",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["kept"])
        seen: list[str] = []
        while len(seen) < 300:
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            seen.append(message.value().decode())
        assert seen == texts
        consumer.close()
        gateway.process.terminate()
        assert gateway.process.wait(END_SECONDS) == 0
    bookies[0].start()


@pytest.mark.parametrize("digest", ["CRC32", "MAC"])
def test_ledgers_with_another_digest_and_a_password(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path, digest: str
) -> None:
    """They are recovered by the next gateway that knows the password."""
    uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
    before = {each["ledger"] for each in command(uri, "ledger", "list")}
    chosen = ("--digest-type", digest, "--ledger-password", "secret")
    topic, texts = f"digest-{digest}", [f"m{number}" for number in range(100)]
    for name, part in (("one", texts[:50]), ("two", texts[50:])):
        with Gateway(tmp_path / name, zookeeper, *chosen) as gateway:
            gateway.serve()
            publish(gateway, topic, part)
            assert read(gateway, topic, len(texts[: texts.index(part[-1]) + 1]))[-50:] == part
    made = {each["ledger"] for each in command(uri, "ledger", "list")} - before
    for ledger_id in made:
        found = command(uri, "ledger", "metadata", str(ledger_id))["digest"]
        assert found == digest
    assert made


def test_racks_that_are_set_over_http_are_used(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    """With two of three bookies in one rack, a write quorum of two has always the third one."""
    uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
    quorum = ("--ensemble-size", "2", "--write-quorum", "2", "--ack-quorum", "2")
    strict = ("--enforce-min-racks-per-write-quorum",)
    with Gateway(tmp_path / "one", zookeeper, *quorum, *strict) as gateway:
        gateway.serve()
        at = f"http://{gateway.url('http')}/admin/v2/bookies"
        known = {each["bookieId"] for each in httpx.get(f"{at}/all").json()["bookies"]}
        assert known == {bookie.address for bookie in bookies}
        for bookie, rack in zip(bookies, ("/one", "/one", "/two"), strict=True):
            info = {"rack": rack, "hostname": "h"}
            path = f"{at}/racks-info/{bookie.address}"
            assert httpx.post(path, params={"group": "default"}, json=info).status_code == 204
            assert httpx.get(path).json() == info
        before = {each["ledger"] for each in command(uri, "ledger", "list")}
        for number in range(10):
            publish(gateway, f"racks-{number}", ["a"])
        made = {each["ledger"] for each in command(uri, "ledger", "list")} - before
        ensembles = [members(uri, ledger_id)[0] for ledger_id in made]
        assert len(ensembles) >= 10
        assert all(bookies[2].address in ensemble for ensemble in ensembles), ensembles
        for bookie in bookies:
            path = f"{at}/racks-info/{bookie.address}"
            assert httpx.delete(path).status_code == 204
        assert httpx.get(f"{at}/racks-info").json() == {}


def test_a_policy_decides_on_the_bookies_of_new_ledgers(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
    quorum = ("--ensemble-size", "2", "--write-quorum", "2", "--ack-quorum", "1")
    with Gateway(tmp_path / "one", zookeeper, *quorum) as gateway:
        gateway.serve()
        here = f"http://{gateway.url('http')}/admin/v2/persistent/public/default/sized"

        def decide(*sizes: int) -> None:
            names = ("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum")
            value = dict(zip(names, sizes, strict=True))
            assert httpx.post(f"{here}/persistence", json=value).status_code == 204

        def sizes_of(ledger_id: int) -> list[int]:
            found = command(uri, "ledger", "metadata", str(ledger_id))
            return [found[name] for name in ("ensemble", "write_quorum", "ack_quorum")]

        def unload() -> None:
            assert httpx.put(f"{here}/unload").status_code == 204

        publish(gateway, "sized", ["usual"])
        applied = httpx.get(f"{here}/persistence", params={"applied": "true"}).json()
        assert list(applied.values()) == [2, 2, 1, 0.0]
        decide(3, 3, 2)
        publish(gateway, "sized", ["in the same ledger"])
        unload()
        client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}")
        consumer = client.subscribe("sized", "s", initial_position=pulsar.InitialPosition.Earliest)
        publish(gateway, "sized", ["in a larger one"])
        consumer.acknowledge(consumer.receive(30_000))
        stats: dict[str, Any] = {}

        def is_saved() -> bool:
            stats.update(httpx.get(f"{here}/internalStats").json())
            return bool(stats["cursors"]["s"]["cursorLedger"] >= 0)

        until(is_saved)
        ledgers = [each["ledgerId"] for each in stats["ledgers"]]
        assert [sizes_of(each) for each in ledgers] == [[2, 2, 1], [3, 3, 2]]
        assert sizes_of(stats["cursors"]["s"]["cursorLedger"]) == [3, 3, 2]
        client.close()

        decide(4, 2, 2)
        unload()
        address = f"pulsar://{gateway.url('pulsar')}"
        client = pulsar.Client(address, operation_timeout_seconds=2)
        with pytest.raises(pulsar.PulsarException):
            client.create_producer("sized")
        client.close()
        assert "fewer than 4 bookies take writes" in gateway.log()
        publish(gateway, "another", ["goes on"])
        assert httpx.delete(f"{here}/persistence").status_code == 204
        publish(gateway, "sized", ["usual again"])
        found = read(gateway, "sized", 4)
        assert found == ["usual", "in the same ledger", "in a larger one", "usual again"]


def test_a_second_gateway_is_refused(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    with Gateway(tmp_path / "one", zookeeper) as first:
        first.serve()
        with Gateway(tmp_path / "two", zookeeper) as second:
            assert second.process.wait(END_SECONDS) == 2
            assert "another gateway runs on this cluster" in second.log()
            assert f"process {first.process.pid}" in second.log()
        publish(first, "undisturbed", ["a"])
        assert read(first, "undisturbed", 1) == ["a"]


def test_a_gateway_that_waits_listens_nowhere_and_ends_at_once(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    """So that clients try the one that serves."""
    port = free_port()
    with Gateway(tmp_path / "one", zookeeper) as first:
        first.serve()
        waits = ("--pulsar-port", str(port), "--zk-timeout", "20")
        with Gateway(tmp_path / "two", zookeeper, *waits) as second:
            until(lambda: "waiting for the end of another gateway" in second.log())
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            second.process.terminate()
            assert second.process.wait(5) == 0
            assert "Traceback" not in second.log()
        with Gateway(tmp_path / "three", zookeeper, *waits) as third:
            until(lambda: "waiting for the end of another gateway" in third.log())
            first.process.terminate()
            third.serve()
            assert third.url("pulsar") == f"127.0.0.1:{port}"
            third.process.terminate()
            assert third.process.wait(END_SECONDS) == 0


def test_a_gateway_waits_for_a_session_that_is_longer_than_it_asked_for(tmp_path: Path) -> None:
    """Its predecessor was killed, and this ZooKeeper keeps no session for less than 9 seconds."""
    with running(tmp_path / "zookeeper", session_seconds_min=9) as zookeeper:

        async def begin() -> float:
            at = parse(f"zk+hierarchical://{zookeeper.address}/ledgers")
            async with open_zookeeper(at, 2) as store:
                await initialize_cluster(store, "6a1f0f3e-0000-4000-8000-000000000003")
                return store.session_seconds

        assert trio.run(begin) == 9
        with Gateway(tmp_path / "one", zookeeper) as first:
            first.serve()
        with Gateway(tmp_path / "two", zookeeper, "--zk-timeout", "2") as second:
            second.serve()
            assert "waiting for the end of another gateway" in second.log()


@pytest.mark.parametrize("free", [(), ("magnetar", "magnetar-writers")])
def test_metadata_that_may_not_be_written_is_an_operators_error(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path, free: tuple[str, ...]
) -> None:
    """Where the gateway takes its place, and where the broker begins."""
    root = f"locked-{len(free)}"
    client = KazooClient(zookeeper.address)
    client.start()
    client.create(root, b"")
    for name in free:
        client.create(f"{root}/{name}", b"")
    client.set_acls(root, READ_ACL_UNSAFE)
    client.stop()
    client.close()
    where = ("--metadata", f"zk:{zookeeper.address}/{root}")
    with Gateway(tmp_path / "one", zookeeper, *where) as gateway:
        assert gateway.process.wait(END_SECONDS) == 2, gateway.log()
        assert "NoAuth" in gateway.log()
        assert "Traceback" not in gateway.log()


@pytest.mark.parametrize("policy", ["shutdown", "reconnect"])
def test_a_gateway_that_lost_its_place_ends(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path, policy: str
) -> None:
    topic = f"taken-{policy}"
    flag = ("--zk-session-expired-policy", policy)
    with Gateway(tmp_path / "one", zookeeper, *flag) as first, ExitStack() as stack:
        first.serve()
        publish(first, topic, ["a", "b"])
        first.process.send_signal(signal.SIGSTOP)
        second = stack.enter_context(Gateway(tmp_path / "two", zookeeper))
        second.serve()  # once the session of the first has timed out
        publish(second, topic, ["c"])
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(END_SECONDS) == 1
        assert "another gateway may run" in first.log()
        assert "Traceback" not in first.log()
        assert read(second, topic, 3) == ["a", "b", "c"]


def test_a_cluster_that_is_not_there_is_an_operators_error(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with Gateway(
        tmp_path / "one", zookeeper, "--bookkeeper", f"zk://{zookeeper.address}/other/ledgers"
    ) as gateway:
        assert gateway.process.wait(END_SECONDS) == 2
        assert "there is no BookKeeper cluster at /other/ledgers" in gateway.log()
        assert "Traceback" not in gateway.log()


@pytest.mark.parametrize("session_seconds", [1, 20])
def test_a_frozen_zookeeper_does_not_hold_a_stop(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path, session_seconds: int
) -> None:
    """Whether the session, or the time for the drain, ends first. The last test of this file, for
    one of the sessions stays.
    """
    session = ("--zk-timeout", str(session_seconds))
    with Gateway(tmp_path / "one", zookeeper, *session, drain_seconds=2) as gateway:
        gateway.serve()
        client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}")
        consumer = client.subscribe(f"frozen-{session_seconds}", "s")
        client.create_producer(f"frozen-{session_seconds}").send(b"x")
        zookeeper.freeze()
        try:
            consumer.acknowledge(consumer.receive(10_000))
            consumer.close()  # acknowledgements are sent together, and before this
            gateway.process.terminate()
            assert gateway.process.wait(5) == 1, gateway.log()
        finally:
            zookeeper.thaw()
        ended = "another gateway may run" if session_seconds == 1 else "stopped before all was"
        assert ended in gateway.log()
        client.shutdown()
