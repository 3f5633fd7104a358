"""Groups of stock clients: shared topics, rebalances, offsets that outlast everybody, tools."""

import asyncio
import contextlib
import itertools
import logging
import socket
import struct
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import httpx
import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from interop_tests.waiting import until

from .conftest import produce
from .console import CONSUMER, GROUPS, Console
from .crash.work import make_topic

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

SECONDS = 30
PARTITIONS = 8
CLASSIC = {"group.protocol": "classic"}
NEWER = {"group.protocol": "consumer"}
KINDS = pytest.mark.parametrize("kind", [CLASSIC, NEWER], ids=["classic", "consumer"])


class Reader:
    """A librdkafka consumer that reads in a thread of its own, and commits what it has read.

    Nobody else calls it: to ask for its assignment from another thread can lock both for ever.
    """

    def __init__(self, server: Any, group: str, *topics: str, **options: Any) -> None:
        self.values: list[int] = []
        self.held: set[int] = set()
        """Numbers of the partitions that are its own now, and how many these are."""
        self.holds = 0
        self.assigned: list[set[int]] = []
        """What it was given, whenever that changed."""
        self.consumer = Consumer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **options,
            }
        )
        self.consumer.subscribe(list(topics), on_assign=self._assign)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned.append({one.partition for one in partitions})

    def _read(self) -> None:
        while not self._ends.is_set():
            message = self.consumer.poll(0.1)
            assignment = self.consumer.assignment()
            self.held, self.holds = {one.partition for one in assignment}, len(assignment)
            if message is not None and message.error() is None:
                self.values.append(int(message.value()))
                self.consumer.commit(message, asynchronous=True)

    def stop(self) -> None:
        if not self._ends.is_set():
            self._ends.set()
            self._thread.join()
            self.consumer.close()


@pytest.fixture
def readers(server) -> Iterator[Callable[..., Reader]]:
    """Makes readers, and stops those that are left."""
    running: list[Reader] = []

    def make(*args: Any, on: Any = None, **options: Any) -> Reader:
        running.append(Reader(on or server, *args, **options))
        return running[-1]

    yield make
    for one in running:
        one.stop()


def offsets(server: Any, group: str) -> dict[int, int]:
    """What a group has committed, by partition. A new client: one that was connected when the
    server was killed goes on with a handle that it has given up itself.
    """
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    requested = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return {one.partition: one.offset for one in requested[group].result().topic_partitions}


# -- sharing --------------------------------------------------------------------------------------


@KINDS
def test_members_share_and_take_over(server, topic, made, readers, kind) -> None:
    made(topic)
    produce(server.bootstrap_servers, topic, 40)
    first = readers(topic, topic, **kind)
    until(lambda: len(first.values) == 40)
    second = readers(topic, topic, **kind)
    until(lambda: first.holds == second.holds == 2)
    produce(server.bootstrap_servers, topic, 40, first=40)
    until(lambda: len(first.values + second.values) >= 80)
    assert {*first.values, *second.values} == set(range(80))
    assert second.values, "it has read its share"
    first.stop()
    until(lambda: second.holds == 4)
    produce(server.bootstrap_servers, topic, 40, first=80)
    until(lambda: set(range(80, 120)) <= set(second.values))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_strategies_of_the_classic_protocol(server, topic, made, readers, strategy) -> None:
    made(topic, 6)
    options = {**CLASSIC, "partition.assignment.strategy": strategy}
    group = [readers(topic, topic, **options) for _ in range(3)]
    until(lambda: [one.holds for one in group] == [2, 2, 2])
    held = [reader.held for reader in group]
    assert set.union(*held) == set(range(6))


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_assignors_of_the_newer_protocol(server, topic, made, readers, assignor) -> None:
    made(topic, 6)
    options = {**NEWER, "group.remote.assignor": assignor}
    group = [readers(topic, topic, **options) for _ in range(3)]
    until(lambda: [one.holds for one in group] == [2, 2, 2])
    held = [reader.held for reader in group]
    assert set.union(*held) == set(range(6))
    if assignor == "range":
        assert sorted(map(min, held)) == [0, 2, 4]


@KINDS
def test_topics_by_pattern_that_come_later(server, topic, made, readers, kind) -> None:
    made(f"{topic}-a", 1)
    options = {**kind, "topic.metadata.refresh.interval.ms": "500"}
    reader = readers(topic, f"^{topic}-[ab]$", **options)
    until(lambda: reader.holds == 1)
    made(f"{topic}-c", 1)
    made(f"{topic}-b", 2)
    until(lambda: reader.holds == 3)


@KINDS
def test_a_static_member_comes_back_to_what_it_had(server, topic, made, readers, kind) -> None:
    made(topic)
    static = {**kind, "group.instance.id": "one"}
    first, second = readers(topic, topic, **static), readers(topic, topic, **kind)
    until(lambda: first.holds == second.holds == 2)
    before = first.held
    rounds = len(second.assigned)
    first.stop()
    again = readers(topic, topic, **static)
    until(lambda: again.holds == 2)
    assert again.held == before
    assert len(second.assigned) == rounds, "the other one has not noticed"


def test_kafka_python(server, topic, made) -> None:
    made(topic)
    produce(server.bootstrap_servers, topic, 20)
    assert read_by_kafka_python(server, topic, 20) == set(range(20))
    produce(server.bootstrap_servers, topic, 10, first=20)
    strategy = {"partition_assignment_strategy": [RoundRobinPartitionAssignor]}
    assert read_by_kafka_python(server, topic, 10, **strategy) == set(range(20, 30))
    assert sum(offsets(server, topic).values()) == 30


def read_by_kafka_python(server: Any, topic: str, count: int, **options: Any) -> set[int]:
    """What comes first, committed."""
    found: set[int] = set()
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=server.bootstrap_servers,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **options,
    )

    def read() -> bool:
        batches = consumer.poll(200).values()
        found.update(int(one.value) for batch in batches for one in batch)
        return len(found) >= count

    try:
        until(read)
        consumer.commit()
    finally:
        consumer.close()
    return found


def test_aiokafka(server, topic, made) -> None:
    made(topic)
    produce(server.bootstrap_servers, topic, 20)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

    async def read(count: int) -> set[int]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=server.bootstrap_servers,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            found = {int((await consumer.getone()).value) for _ in range(count)}
            await consumer.commit()
        finally:
            await consumer.stop()
        return found

    assert asyncio.run(asyncio.wait_for(read(20), SECONDS)) == set(range(20))
    produce(server.bootstrap_servers, topic, 4, first=20)
    assert asyncio.run(asyncio.wait_for(read(4), SECONDS)) == set(range(20, 24))


# -- a server that is gone for a while ------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_across_a_restart(magnetar_function, topic, readers, kind, how) -> None:
    """What was committed is known; nobody has to begin again by hand, and nothing is missed."""
    server = magnetar_function
    make_topic(server, topic, 4)
    produce(server.bootstrap_servers, topic, 40)
    group = [readers(topic, topic, on=server, **kind) for _ in range(2)]
    until(lambda: [one.holds for one in group] == [2, 2])
    until(lambda: len(group[0].values + group[1].values) >= 40)
    until(lambda: sum(offsets(server, topic).values()) == 40)
    before = offsets(server, topic)
    if how == "killed":
        server.kill()
        server.start()
    else:
        server.restart()
    assert offsets(server, topic) == before
    produce(server.bootstrap_servers, topic, 40, first=40)
    until(lambda: {*group[0].values, *group[1].values} == set(range(80)))
    until(lambda: [one.holds for one in group] == [2, 2])
    until(lambda: sum(offsets(server, topic).values()) == 80)


@pytest.mark.heavy
def test_an_application_moves_over_to_the_newer_protocol_and_back(
    magnetar_function, topic, readers
) -> None:
    """One by one, with a kill amid: everything is read, and everybody has a share."""
    server = magnetar_function
    make_topic(server, topic, 4)
    group = []

    def read(first: int) -> None:
        share = 4 // len(group)
        until(lambda: [one.holds for one in group] == [share] * len(group), str(first))
        produce(server.bootstrap_servers, topic, 20, first=first)
        until(lambda: set(range(first, first + 20)) <= {n for one in group for n in one.values})

    older = {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}
    group.append(readers(topic, topic, on=server, **older))
    read(0)
    group.append(readers(topic, topic, on=server, **NEWER))
    read(20)
    server.kill()
    server.start()
    read(40)
    group.pop(0).stop()
    read(60)
    group.append(readers(topic, topic, on=server, **older))
    read(80)
    group.pop(0).stop()
    read(100)
    until(lambda: sum(offsets(server, topic).values()) == 120)


def test_configs_of_a_group_survive_a_kill(magnetar_function, topic) -> None:
    server, name = magnetar_function, "consumer.heartbeat.interval.ms"
    entry = ConfigEntry(name, "7000", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    admin.incremental_alter_configs([group])[group].result()
    server.kill()
    server.start()
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    group = ConfigResource(ResourceType.GROUP, topic)
    assert admin.describe_configs([group])[group].result()[name].value == "7000"


def test_what_is_acknowledged_survives_a_kill(magnetar_function, topic) -> None:
    """Of commits that go on and on, the last that was acknowledged, or a later one."""
    server = magnetar_function
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    acknowledged = 0
    for _ in range(6):
        enough = threading.Event()
        killer = threading.Thread(target=lambda enough=enough: enough.wait() and server.kill())
        killer.start()
        host, _, port = server.bootstrap_servers.rpartition(":")
        with (
            socket.create_connection((host, int(port)), SECONDS) as peer,
            contextlib.suppress(OSError),
        ):
            for count in itertools.count(1):
                commit_by_hand(peer, topic, acknowledged + 1)
                acknowledged += 1
                if count == 30:
                    enough.set()
        killer.join()
        server.start()
        known = offsets(server, topic)
        assert set(known) == set(range(PARTITIONS))
        assert set(known.values()) <= {acknowledged, acknowledged + 1}
        acknowledged = max(known.values())


def commit_by_hand(peer: socket.socket, topic: str, offset: int) -> None:
    """OffsetCommit 2, for all partitions: clients go on by themselves when a server is gone, and
    do not say when they were told what.
    """
    name = struct.pack(">h", len(topic)) + topic.encode()
    parts = b"".join(struct.pack(">iqh", number, offset, 0) for number in range(PARTITIONS))
    head = struct.pack(">hhih", 8, 2, offset, -1)
    body = name + struct.pack(">ihqi", -1, 0, -1, 1) + name + struct.pack(">i", PARTITIONS) + parts
    peer.sendall(struct.pack(">i", len(head + body)) + head + body)
    (size,) = struct.unpack(">i", taken(peer, 4))
    answer = taken(peer, size)
    assert struct.unpack_from(">i", answer) == (offset,)
    assert {code for _, code in struct.iter_unpack(">ih", answer[-6 * PARTITIONS :])} == {0}


def taken(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = peer.recv(size - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


# -- tools ----------------------------------------------------------------------------------------


@pytest.mark.java
def test_console_tools(server, topic, made, readers) -> None:
    made(topic, 2)
    produce(server.bootstrap_servers, topic, 10)
    console = Console(server.bootstrap_servers)
    reader = readers(topic, topic, **CLASSIC)
    until(lambda: sum(offsets(server, topic).values()) == 10)
    shown = console.run(GROUPS, "--describe", "--group", topic)
    assert [line.split()[2:6] for line in shown.splitlines() if line.startswith(topic)] == [
        ["0", "5", "5", "0"],
        ["1", "5", "5", "0"],
    ]
    assert "Stable" in console.run(GROUPS, "--describe", "--group", topic, "--state")
    reader.stop()
    earliest = ("--reset-offsets", "--to-earliest", "--execute", "--topic", topic)
    console.run(GROUPS, "--group", topic, *earliest)
    assert offsets(server, topic) == {0: 0, 1: 0}
    console.run(GROUPS, "--group", topic, "--delete-offsets", "--topic", f"{topic}:0")
    assert offsets(server, topic) == {1: 0}
    assert topic in console.run(GROUPS, "--list").split()
    console.run(GROUPS, "--delete", "--group", topic)
    assert topic not in console.run(GROUPS, "--list").split()


@pytest.mark.java
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumer(server, topic, made, protocol) -> None:
    made(topic)
    produce(server.bootstrap_servers, topic, 10)
    console = Console(server.bootstrap_servers)
    expected = ("--topic", topic, "--group", topic, "--max-messages", "10", "--timeout-ms", "20000")
    options = ("--command-property", f"group.protocol={protocol}", "--from-beginning")
    read = console.run(CONSUMER, *expected, *options).split()
    assert sorted(map(int, read)) == list(range(10))
    assert sum(offsets(server, topic).values()) == 10
    assert protocol.capitalize() in console.run(GROUPS, "--list", "--type")


# -- crossing -------------------------------------------------------------------------------------


def test_groups_and_subscriptions_are_the_same(server, client, topic, made, readers) -> None:
    """Pulsar's stats show what a group has before it, Kafka's tools where a subscription is."""
    made(topic, 1)
    theirs = client.subscribe(topic, "theirs")
    produce(server.bootstrap_servers, topic, 10)
    reader = readers("ours", topic)
    until(lambda: offsets(server, "ours") == {0: 10})
    reader.stop()
    produce(server.bootstrap_servers, topic, 5, first=10)
    base = f"{server.http_url}/admin/v2/persistent/public/default/{topic}-partition-0"
    found = httpx.get(f"{base}/stats").raise_for_status().json()["subscriptions"]
    assert found["ours"]["msgBacklog"] > 0
    labels = f'{{consumergroup="ours",topic="{topic}",partition="0"}}'
    figures = httpx.get(f"{server.http_url}/metrics").raise_for_status().text.splitlines()
    assert f"kafka_consumergroup_lag{labels} 5" in figures
    assert f"kafka_consumergroup_current_offset{labels} 10" in figures
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    listed = {one.group_id: one.state.name for one in admin.list_consumer_groups().result().valid}
    assert (listed["ours"], listed["theirs"]) == ("EMPTY", "STABLE")
    assert offsets(server, "theirs") == {0: 0}
    for _ in range(15):
        theirs.acknowledge(theirs.receive(10_000))
    until(lambda: offsets(server, "theirs") == {0: 15})
