"""`magnetar gateway`: stock clients over three bookies of ours, some of which are killed; a second
gateway on the same cluster, and one that lost its place.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pulsar
import pytest
import trio
from confluent_kafka import Consumer

from interop_tests.bookkeeper.cluster import Bookie, wait_until
from interop_tests.bookkeeper.zookeeper import ZooKeeper
from magnetar.bookie.cluster.formatting import initialize_cluster
from magnetar.child import FREE_PORTS
from magnetar.core.metadata.zookeeper.addresses import parse
from magnetar.core.metadata.zookeeper.store import open_zookeeper

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(240)]
MAGNETAR = str(Path(sys.executable).with_name("magnetar"))
SESSION_SECONDS = 2
END_SECONDS = 60
"""More than a session takes to expire."""


class Gateway:
    """A gateway as a process, on ports of its own; it is killed with the `with` block."""

    def __init__(self, folder: Path, zookeeper: ZooKeeper, *more: str) -> None:
        folder.mkdir()
        self._folder = folder
        self._ready = folder / "ready.json"
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [
                    MAGNETAR, "gateway", "--metadata", f"zk:{zookeeper.address}",
                    "--bookkeeper", f"zk+hierarchical://{zookeeper.address}/ledgers",
                    "--zk-timeout", str(SESSION_SECONDS), "--ready-file", str(self._ready),
                    *FREE_PORTS, *more,
                ],
                cwd=folder, stderr=log,
            )  # fmt: skip

    def serve(self) -> None:
        wait_until(self._ready.exists, self.process, "the gateway")

    def url(self, listener: str) -> str:
        return str(json.loads(self._ready.read_text())[listener])

    def log(self) -> str:
        return (self._folder / "log").read_text()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


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


def test_a_gateway_that_lost_its_place_ends(
    zookeeper: ZooKeeper, bookies: list[Bookie], tmp_path: Path
) -> None:
    with Gateway(tmp_path / "one", zookeeper) as first, ExitStack() as stack:
        first.serve()
        publish(first, "taken", ["a", "b"])
        first.process.send_signal(signal.SIGSTOP)
        second = stack.enter_context(Gateway(tmp_path / "two", zookeeper))
        second.serve()  # once the session of the first has timed out
        publish(second, "taken", ["c"])
        first.process.send_signal(signal.SIGCONT)
        assert first.process.wait(END_SECONDS) == 1
        assert "another gateway may run" in first.log()
        assert read(second, "taken", 3) == ["a", "b", "c"]


def test_a_cluster_that_is_not_there_is_an_operators_error(
    zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    with Gateway(
        tmp_path / "one", zookeeper, "--bookkeeper", f"zk://{zookeeper.address}/other/ledgers"
    ) as gateway:
        assert gateway.process.wait(END_SECONDS) == 2
        assert "there is no BookKeeper cluster at /ledgers" in gateway.log()
        assert "Traceback" not in gateway.log()
