"""Kafka Connect, distributed, with its three compacted topics: from a file to a topic to a file.

The source is exactly once, so its lines are in transactions; the sink may write lines again that it
had not committed when the server was killed. A worker that starts reads what is committed up to the
very end of its topics, so it waits until the transactions are over that a killed one has left open.
"""

import itertools
import socket
import subprocess

import httpx
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from interop_tests.kafka.crash.work import PATIENT
from interop_tests.waiting import until
from magnetar import standalone

from .driver import command

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

SECONDS = 60
LOOK_SECONDS = 0.2
FILES = "org.apache.kafka.connect.file.FileStream"
WORKER = """
bootstrap.servers={url}
listeners=http://127.0.0.1:{port}
group.id=workers
exactly.once.source.support=enabled
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=-1
offset.storage.replication.factor=-1
status.storage.replication.factor=-1
offset.storage.partitions=2
status.storage.partitions=2
offset.flush.interval.ms=500
plugin.discovery=service_load
reconnect.backoff.max.ms=500
session.timeout.ms=6000
heartbeat.interval.ms=300
scheduled.rebalance.max.delay.ms=0
producer.transaction.timeout.ms=10000
consumer.session.timeout.ms=6000
consumer.heartbeat.interval.ms=300
"""


class Worker:
    """One worker in a process of its own, which may be killed and started again."""

    def __init__(self, folder, url):
        self._log = folder / "connect.log"
        self._settings = folder / "worker.properties"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._settings.write_text(WORKER.format(url=url, port=port))
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS)
        self.start()

    def start(self):
        words = ["org.apache.kafka.connect.cli.ConnectDistributed", str(self._settings)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command(*words), stdout=log, stderr=log)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def close(self):
        self.kill()
        self._http.close()

    def connect(self, name, **config):
        """Tell it of a connector, as soon as it listens."""
        config = {key.replace("_", "."): value for key, value in config.items()}
        until(lambda: self._ask("PUT", f"/connectors/{name}/config", json=config), self.log)

    def runs(self, name):
        status = self._ask("GET", f"/connectors/{name}/status")
        states = [one["state"] for one in (status or {}).get("tasks", [])]
        assert "FAILED" not in states, status
        return states == ["RUNNING"]

    def log(self):
        return "\n".join(self._log.read_text().splitlines()[-40:])

    def _ask(self, how, path, **more):
        """What it answers; None while it cannot."""
        try:
            answer = self._http.request(how, path, **more)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None


@pytest.fixture
def parts(tmp_path):
    """A server and a worker."""
    with standalone() as server:
        worker = Worker(tmp_path, server.bootstrap_servers)
        yield server, worker
        worker.close()


def committed(server, topic):
    """What is in a topic of one partition, for readers of what is committed."""
    settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": "nobody", **PATIENT}
    settings |= {"enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = []
    while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
        found.append(message.value().decode())
    consumer.close()
    assert message is not None
    assert message.error().code() == KafkaError._PARTITION_EOF
    return found


def test_a_file_goes_through_a_topic_into_a_file(parts, tmp_path, topic):
    server, worker = parts
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    numbers, lines = itertools.count(), []

    def write():
        more = [f"line {next(numbers)}" for _ in range(100)]
        lines.extend(more)
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in more)

    def has_come():
        return sink.exists() and set(sink.read_text().splitlines()) >= set(lines)

    write()
    worker.connect("in", connector_class=f"{FILES}SourceConnector", file=str(source), topic=topic)
    worker.connect("out", connector_class=f"{FILES}SinkConnector", file=str(sink), topics=topic)
    until(has_come, worker.log)
    assert worker.runs("in")
    assert worker.runs("out")
    server.kill()
    server.start()
    write()
    until(has_come, worker.log)
    worker.kill()
    worker.start()
    write()
    until(has_come, worker.log)
    assert committed(server, topic) == lines
    assert list(dict.fromkeys(sink.read_text().splitlines())) == lines
