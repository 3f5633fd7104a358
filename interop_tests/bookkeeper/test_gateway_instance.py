"""A gateway keeps to the BookKeeper cluster that its topics are stored in."""

from pathlib import Path

import pulsar
import pytest
from kazoo.client import KazooClient

from interop_tests.bookkeeper.cluster import Bookie
from interop_tests.bookkeeper.gateway import SESSION_SECONDS, Gateway
from interop_tests.bookkeeper.recovery import command
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from magnetar.storage.instance import INSTANCE

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]
END_SECONDS = 60
ANOTHER = "topics here are stored in the BookKeeper cluster"
NONE_OF_THEM = "has none of the ledgers that topics here name"
ONE = ("--ensemble-size", "1", "--write-quorum", "1", "--ack-quorum", "1")


def read(gateway: Gateway, topic: str) -> list[bytes]:
    client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(30_000).data())
    client.close()
    return found


def publish(gateway: Gateway, topic: str) -> None:
    client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}")
    client.create_producer(topic).send(b"a")
    client.close()


def refused(folder: Path, zookeeper: ZooKeeper, *more: str, says: str = ANOTHER) -> None:
    with Gateway(folder, zookeeper, *ONE, *more) as gateway:
        assert gateway.process.wait(END_SECONDS) == 2, gateway.log()
        assert says in gateway.log()
        assert "Traceback" not in gateway.log()


def test_another_cluster_and_a_formatted_one_are_refused(
    own_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    at = f"zk+hierarchical://{own_zookeeper.address}"
    uri, other = f"{at}/ledgers", f"{at}/other/ledgers"
    client = KazooClient(own_zookeeper.address)
    client.start()
    client.create("/other")
    command(uri, "bookie", "init-cluster")
    command(other, "bookie", "init-cluster")
    (tmp_path / "bookie").mkdir()
    flags = ("--metadata-uri", uri, "--zk-timeout", str(SESSION_SECONDS))
    with Bookie(tmp_path / "bookie", *flags):
        for name, texts in (("one", []), ("two", [b"a"])):
            with Gateway(tmp_path / name, own_zookeeper, *ONE) as gateway:
                gateway.serve()
                assert read(gateway, "t") == texts
                publish(gateway, "t")
                gateway.process.terminate()
                assert gateway.process.wait(END_SECONDS) == 0
            refused(tmp_path / f"{name}-other", own_zookeeper, "--bookkeeper", other)
        instance = command(uri, "bookie", "format-cluster", "--force")["instance"]
        refused(tmp_path / "formatted", own_zookeeper)
        client.delete(INSTANCE)
        refused(tmp_path / "unknown", own_zookeeper, says=NONE_OF_THEM)
        client.create(INSTANCE, instance.encode())
    (tmp_path / "fresh").mkdir()
    with (
        Bookie(tmp_path / "fresh", *flags),
        Gateway(tmp_path / "three", own_zookeeper, *ONE) as gateway,
    ):
        gateway.serve()
        publish(gateway, "t")
        assert read(gateway, "t") == [b"a"], "what was stored is given up"
    client.stop()
    client.close()
