"""Logs as stock clients see them: records by time, records that are deleted, logs with holes."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
import warnings

import pulsar
import pytest
from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from interop_tests.waiting import until
from magnetar import standalone

from .console import CONSUMER, Console

with warnings.catch_warnings():  # it reads its files in a way that is going out of use
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE = "org.apache.kafka.tools.DeleteRecordsCommand"
DIRECTORIES = "org.apache.kafka.tools.LogDirsCommand"
SECONDS = 30
BASE_MS = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
OFTEN = {"housekeeping_interval_seconds": 0.02}
COMPACT = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "300",
}


@pytest.fixture
def often(tmp_path):
    """A server that looks after its topics all the time."""
    with standalone(tmp_path, broker=OFTEN) as server:
        yield server


def create(server, topic: str, **configs: str) -> AdminClient:
    """A topic with one partition."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 1, config=configs)])[topic].result()
    return admin


def alter(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    expected_value = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([expected_value])[expected_value].result()


def send(server, topic: str, records: list[dict], **options: str) -> list[int]:
    """Each in a batch of its own, unless options say otherwise; returns their offsets."""
    settings = {"bootstrap.servers": server.bootstrap_servers, "linger.ms": 0, **options}
    producer = Producer({key.replace("_", "."): value for key, value in settings.items()})
    offsets: list[int] = []
    for record in records:
        producer.produce(
            topic,
            partition=0,
            on_delivery=lambda error, message: offsets.append(error or message.offset()),
            **record,
        )
        if not options:
            assert producer.flush(SECONDS) == 0
    assert producer.flush(SECONDS) == 0
    return offsets


def everything(server, topic: str, first: int = 0) -> list[tuple[int, bytes, bytes | None]]:
    """Offset, key and value of each record up to the end, from one on that is there."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": "none",
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, first)])
    found: list[tuple[int, bytes, bytes | None]] = []
    try:
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, "nothing came"
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return found
            found.append((message.offset(), message.key(), message.value()))
    finally:
        consumer.close()


# -- by time --------------------------------------------------------------------------------------


def test_records_by_their_times(server, topic) -> None:
    late = [30, 10, 50, 20, 40]
    create(server, topic)
    send(server, topic, [{"value": b"x", "timestamp": BASE_MS + one} for one in late])
    first = {
        since: next((at for at, one in enumerate(late) if one >= since), None)
        for since in range(5, 56, 5)
    }
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "none"})
    for since, expected in first.items():
        requested = [TopicPartition(topic, 0, BASE_MS + since)]
        (found,) = consumer.offsets_for_times(requested, SECONDS)
        assert found.offset == (-1 if expected is None else expected)
    consumer.close()
    other = kafka.KafkaConsumer(bootstrap_servers=server.bootstrap_servers)
    partition = kafka.TopicPartition(topic, 0)
    for since, expected in first.items():
        found = other.offsets_for_times({partition: BASE_MS + since})[partition]
        if expected is None:
            assert found is None
        else:
            assert (found.offset, found.timestamp) == (expected, BASE_MS + late[expected])
    other.close()


def test_ends_and_the_latest_record(server, topic) -> None:
    admin = create(server, topic)
    times = [30, 50, 10]
    send(server, topic, [{"value": b"x", "timestamp": BASE_MS + one} for one in times])
    partition = TopicPartition(topic, 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 3),
        (OffsetSpec.max_timestamp(), 1),
        (OffsetSpec.for_timestamp(BASE_MS + 40), 1),
    ):
        assert admin.list_offsets({partition: spec})[partition].result().offset == offset


# -- deletion -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_deleted_records_stay_deleted(magnetar_function, connect, topic, how) -> None:
    server = magnetar_function
    admin = create(server, topic)
    send(server, topic, [{"value": b"%d" % number} for number in range(20)])
    client = connect(server.pulsar_url)
    subscribed = f"{topic}-partition-0"
    client.subscribe(subscribed, "s", initial_position=pulsar.InitialPosition.Earliest).close()
    requested = admin.delete_records([TopicPartition(topic, 0, 12)])
    assert [one.result().low_watermark for one in requested.values()] == [12]
    if how == "killed":
        server.kill()
        server.start()
    else:
        server.restart()
    assert [offset for offset, _, _ in everything_from_the_beginning(server, topic)] == list(
        range(12, 20)
    )
    client = connect(server.pulsar_url)
    consumer = client.subscribe(subscribed, "s")
    reader = client.create_reader(subscribed, pulsar.MessageId.earliest)
    for number in range(12, 20):
        assert consumer.receive(SECONDS * 1000).data() == b"%d" % number
        assert reader.read_next(SECONDS * 1000).data() == b"%d" % number


def everything_from_the_beginning(server, topic: str) -> list[tuple[int, bytes, bytes | None]]:
    """By a client that asks where that is: before it, there is an error, and it begins anew."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=server.bootstrap_servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    partition = kafka.TopicPartition(topic, 0)
    found: list[tuple[int, bytes, bytes | None]] = []
    deadline = time.monotonic() + SECONDS
    with contextlib.closing(consumer):
        consumer.assign([partition])
        consumer.seek(partition, 0)
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            assert time.monotonic() < deadline, "the end never came"
            polled = consumer.poll(100).get(partition, ())
            found += [(message.offset, message.key, message.value) for message in polled]
    return found


def test_all_records_may_go(server, topic) -> None:
    admin = create(server, topic)
    send(server, topic, [{"value": b"x"}] * 5)
    requested = admin.delete_records([TopicPartition(topic, 0, -1)])
    assert [one.result().low_watermark for one in requested.values()] == [5]
    assert everything(server, topic, 5) == []
    assert send(server, topic, [{"value": b"new"}]) == [5]
    assert everything(server, topic, 5) == [(5, None, b"new")]
    assert everything_from_the_beginning(server, topic) == [(5, None, b"new")]
    (too_far,) = admin.delete_records([TopicPartition(topic, 0, 9)]).values()
    with pytest.raises(KafkaException, match="out of range"):
        too_far.result()


# -- compaction -----------------------------------------------------------------------------------


def rounds(count: int, keys: int, body: bytes = b"") -> list[dict]:
    """Each key again and again; every fifth is deleted in the last round."""
    made = [
        {"key": b"key %d" % key, "value": b"%d %d %b" % (number, key, body)}
        for number in range(count)
        for key in range(keys)
    ]
    return made + [{"key": b"key %d" % key, "value": None} for key in range(0, keys, 5)]


def end_ledger(server, topic: str) -> None:
    """What was written before it is in ledgers that have ended."""
    for _ in range(2):
        time.sleep(0.15)  # longer than a ledger lasts: what comes then is in the next one
        send(server, topic, [{"key": b"end", "value": b""}])


@pytest.mark.parametrize("codec", CODECS)
def test_the_last_value_of_each_key_stays(often, topic, codec) -> None:
    create(often, topic, **COMPACT)
    records = rounds(20, 50)
    offsets = send(often, topic, records, compression_type=codec, linger_ms="5")
    assert offsets == list(range(len(records)))
    last = {record["key"]: at for at, record in enumerate(records)}
    left = [
        (at, record["key"], record["value"])
        for at, record in enumerate(records)
        if last[record["key"]] == at and record["value"] is not None
    ]

    def compacted() -> bool:
        end_ledger(often, topic)
        found = [one for one in everything(often, topic) if one[1] != b"end"]
        assert set(left) <= set(found)
        return found == left

    until(compacted)
    often.kill()
    often.start()
    found = everything(often, topic)
    assert [one for one in found if one[1] != b"end"] == left
    if codec in ("none", "gzip"):  # what kafka-python reads without other libraries
        assert everything_from_the_beginning(often, topic) == found


def test_a_few_old_records_are_compacted_in_time(often, topic) -> None:
    """However little is new, and whatever is said of ledgers."""
    patient = {"min.cleanable.dirty.ratio": "1", "segment.ms": "86400000"}
    admin = create(often, topic, **{**COMPACT, **patient})
    send(often, topic, rounds(20, 50), linger_ms="5")

    def left() -> int:
        return sum(key != b"end" for _, key, _ in everything(often, topic))

    end_ledger(often, topic)
    before = left()
    alter(admin, topic, "max.compaction.lag.ms", "100")

    def compacted() -> bool:
        end_ledger(often, topic)
        return left() == 40

    assert before > 1_000, "a day has not passed"
    until(compacted)


def test_transactions_are_compacted(often, topic) -> None:
    """What was committed is as good as anything else; what was aborted never was."""
    admin = create(often, topic, **COMPACT, **{"min.compaction.lag.ms": "3600000"})
    producer = Producer(
        {"bootstrap.servers": often.bootstrap_servers, "transactional.id": topic, "log_level": 0}
    )
    producer.init_transactions(SECONDS)
    for number in range(12):
        producer.begin_transaction()
        for key in range(5):
            producer.produce(topic, b"%d" % number, b"key %d" % key, partition=0)
        if number % 3 == 2:
            producer.flush(SECONDS)
            producer.abort_transaction(SECONDS)
        else:
            producer.commit_transaction(SECONDS)

    def left() -> list[tuple[bytes, bytes | None]]:
        found = everything(often, topic)
        return [(key, value) for _, key, value in found if key != b"end"]

    def compacted() -> bool:
        end_ledger(often, topic)
        return len(left()) == 5

    assert len(left()) == 40
    alter(admin, topic, "min.compaction.lag.ms", "0")
    until(compacted)
    assert left() == [(b"key %d" % key, b"10") for key in range(5)]
    often.kill()
    often.start()
    assert left() == [(b"key %d" % key, b"10") for key in range(5)]


def test_pulsars_readers_see_what_is_left(often, connect, topic) -> None:
    create(often, topic, **COMPACT)
    send(often, topic, rounds(10, 20), linger_ms="5")
    client = connect(often.pulsar_url)
    name = f"{topic}-partition-0"
    consumer = client.subscribe(name, "s", initial_position=pulsar.InitialPosition.Earliest)
    taken = [consumer.receive(SECONDS * 1000) for _ in range(3)]

    def compacted() -> bool:
        end_ledger(often, topic)
        return sum(one[1] != b"end" for one in everything(often, topic)) == 16

    until(compacted)
    for message in taken:
        consumer.acknowledge(message)
    consumer.close()
    expected = [value for _, _, value in everything(often, topic)]
    for again in (client.subscribe(name, "s"), client.subscribe(name, "t", **EARLIEST)):
        found = []
        while len(found) < len(expected):
            found.append(again.receive(SECONDS * 1000))
            again.acknowledge(found[-1])
        assert [message.data() for message in found] == expected


EARLIEST = {"initial_position": pulsar.InitialPosition.Earliest}


def test_kills_in_the_middle_of_compactions(tmp_path, topic) -> None:
    """Whatever was acknowledged is there, as the last value of its key, after each of many."""
    chance = random.Random(7)
    values: dict[bytes, int] = {}
    unsure: dict[bytes, set[int]] = {}
    with standalone(tmp_path, broker=OFTEN) as server:
        create(server, topic, **COMPACT)
        for number in range(6):
            killer = threading.Timer(chance.uniform(1, 2), server.kill)
            killer.start()
            _write_until_it_ends(server, topic, number * 1_000_000, values, unsure)
            killer.join()
            server.start()
            found = {key: int(value) for _, key, value in everything(server, topic)}
            for key, value in values.items():
                assert found[key] == value or found[key] in unsure.get(key, ()), key
            values, unsure = dict(found), {}
        assert len(values) == 100, "hardly anything was ever written"
        offsets = [offset for offset, _, _ in everything(server, topic)]
        assert offsets == sorted(set(offsets))
        assert len(offsets) < offsets[-1], "nothing was ever compacted"


def _write_until_it_ends(
    server, topic: str, first: int, values: dict[bytes, int], unsure: dict[bytes, set[int]]
) -> None:
    """Ten thousand values over and over of a hundred keys, until the server is gone."""
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "linger.ms": 1,
            "message.timeout.ms": 1000,
            "enable.idempotence": True,
            "log_level": 0,
        }
    )
    number = first
    gone = False

    def results(error, message) -> None:
        nonlocal gone
        if error is None:
            values[message.key()] = max(int(message.value()), values.get(message.key(), -1))
        else:
            gone = True

    while not gone:
        for _ in range(200):
            key = b"key %d" % (number % 100)
            unsure.setdefault(key, set()).add(number)
            with contextlib.suppress(BufferError, KafkaException):
                producer.produce(topic, b"%d" % number, key, partition=0, on_delivery=results)
            number += 1
        producer.poll(0.01)
    producer.purge()
    producer.flush(1)


@pytest.mark.parametrize("batched", [True, False], ids=["batches", "single"])
def test_what_pulsar_wrote_is_compacted_too(often, connect, topic, batched) -> None:
    create(often, topic, **COMPACT)
    client = connect(often.pulsar_url)
    name = f"{topic}-partition-0"
    producer = client.create_producer(
        name, batching_enabled=batched, compression_type=pulsar.CompressionType.LZ4
    )
    for number in range(20):
        for key in range(10 if number < 19 else 5):
            producer.send_async(b"%d" % number, None, partition_key=f"key {key}")
        producer.flush()
    # a batch goes as a whole, or not at all
    expected = [(b"key %d" % key, b"18") for key in range(0 if batched else 5, 10)]
    expected += [(b"key %d" % key, b"19") for key in range(5)]

    def compacted() -> bool:
        end_ledger(often, topic)
        found = [(key, value) for _, key, value in everything(often, topic) if key != b"end"]
        return found == expected

    until(compacted)
    reader = client.create_reader(name, pulsar.MessageId.earliest)
    found = [reader.read_next(SECONDS * 1000) for _ in expected]
    assert [(one.partition_key().encode(), one.data()) for one in found] == expected


# -- Kafka's own tools and client -----------------------------------------------------------------


@pytest.mark.java
def test_console_tools(often, topic, tmp_path) -> None:
    """The Java client reads what is left; its tools find and delete records."""
    console = Console(often.bootstrap_servers)
    create(often, topic, **COMPACT)
    send(often, topic, rounds(10, 20), compression_type="lz4", linger_ms="5")

    def compacted() -> bool:
        end_ledger(often, topic)
        return sum(one[1] != b"end" for one in everything(often, topic)) == 16

    until(compacted)
    left = everything(often, topic)
    shown = console.run(
        CONSUMER,
        *("--topic", topic, "--from-beginning", "--max-messages", str(len(left))),
        *("--property", "print.key=true", "--property", "print.offset=true"),
    )
    assert [line.split("\t") for line in shown.splitlines() if "Offset" in line] == [
        [f"Offset:{offset}", key.decode(), (value or b"").decode()] for offset, key, value in left
    ]
    requested = ("--topic", topic, "--time")
    found = console.run(OFFSETS, *requested, "earliest").split()
    assert found == [f"{topic}:0:0"]
    plain = f"{topic}-plain"
    create(often, plain)
    send(often, plain, [{"value": b"x", "timestamp": BASE_MS + one} for one in (5, 9, 7)])
    assert console.run(OFFSETS, "--topic", plain, "--time", "max-timestamp").split() == [
        f"{plain}:0:1"
    ]
    expected_value = tmp_path / "delete.json"
    expected_value.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": plain, "partition": 0, "offset": 2}]})
    )
    assert "low_watermark: 2" in console.run(DELETE, "--offset-json-file", str(expected_value))
    shown = console.run(DIRECTORIES, "--describe", "--topic-list", plain)
    assert f'"partition":"{plain}-0"' in shown


# -- where they lie -------------------------------------------------------------------------------


def test_where_partitions_lie_and_who_leads(server, topic) -> None:
    admin = create(server, topic)
    send(server, topic, [{"value": b"x" * 1000}])
    other = kafka.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    (found,) = other.describe_log_dirs()
    assert topic in str(found)
    (directory,) = [one["log_dir"] for one in found["log_dirs"]]
    where = kafka.TopicPartitionReplica(topic, 0, found["broker"])
    moved = {path: other.alter_replica_log_dirs({where: path}) for path in (directory, "/nowhere")}
    assert moved[directory][where].errno == 0
    assert moved["/nowhere"][where].message == "LOG_DIR_NOT_FOUND"
    place = kafka.TopicPartition(topic, 0)
    for broker, error in ((found["broker"], None), (found["broker"] + 1, 39)):
        results = other.alter_partition_reassignments({place: [broker]})[place]
        assert getattr(results, "errno", results) == error
    assert other.list_partition_reassignments() == {}
    other.close()
    requested = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)])
    (error,) = requested.result().values()
    assert error.name() == "ELECTION_NOT_NEEDED"
