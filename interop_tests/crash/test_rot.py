"""Four kilobytes of an old entry log have rotted: what was in them is lost, and nothing else."""

import shutil
from pathlib import Path

import httpx
import pulsar
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from interop_tests.waiting import until
from magnetar import standalone

COUNT = 900
BODY = bytes(1000)
RECEIVE_MS = 15_000
ROT_BYTES = 4096
SETTINGS = {"storage": {"scrub_mb_per_second": 0}}
FULL_NAME = "persistent://public/default/"


def said_as(number: int) -> bytes:
    return b"%d " % number + BODY


def published(server, topic: str, numbers: range) -> None:
    """By clients of both protocols, in turn: entries of either form lie in between."""
    client = pulsar.Client(server.pulsar_url)
    producer = client.create_producer(FULL_NAME + topic, batching_enabled=False)
    for number in numbers:
        producer.send_async(said_as(number), lambda *_: None)
    producer.flush()
    client.close()


def produced(server, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap_servers, "batch.num.messages": 1})
    failed: list[KafkaError] = []
    for number in numbers:
        producer.produce(
            topic, said_as(number), partition=0, on_delivery=lambda e, _: failed.append(e)
        )
    assert producer.flush(20) == 0
    assert failed == [None] * len(numbers)


def subscribed(server, topic: str) -> None:
    client = pulsar.Client(server.pulsar_url)
    earliest = pulsar.InitialPosition.Earliest
    client.subscribe(FULL_NAME + topic, "s", initial_position=earliest).close()
    client.close()


@pytest.fixture(scope="module")
def rotten(tmp_path_factory) -> Path:
    """Stopped, so that all is in an entry log; then 4 KB are zeroed in the middle of each topic."""
    data = tmp_path_factory.mktemp("rot") / "data"
    with standalone(data, **SETTINGS) as server:
        subscribed(server, "p")
        subscribed(server, "k")
        published(server, "p", range(COUNT))
        server.stop()
        server.start()
        produced(server, "k", range(COUNT))
    (first, second) = sorted((data / "bookie/ledgers/current").glob("*.log"))[:2]
    for path in (first, second):
        rot(path, path.stat().st_size // 2)
    return data


def rot(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at - at % ROT_BYTES)
        file.write(bytes(ROT_BYTES))


@pytest.fixture
def data(rotten, tmp_path) -> Path:
    return Path(shutil.copytree(rotten, tmp_path / "data"))


def internal(server, topic: str) -> dict:
    url = f"{server.http_url}/admin/v2/persistent/public/default/{topic}/internalStats"
    return httpx.get(url).raise_for_status().json()


def lost(server, topic: str) -> dict:
    """The only range of the topic that is lost, a few entries in its middle."""
    (found,) = internal(server, topic)["lostRanges"]
    assert 0 < found["lastEntry"] - found["firstEntry"] + 1 <= 8
    assert found["firstEntry"] <= COUNT // 2 <= found["lastEntry"]
    return found


def said(server) -> int:
    return server.logs().count(" are lost: ")


def received(consumer, count: int) -> list[int]:
    found = []
    for _ in range(count):
        message = consumer.receive(RECEIVE_MS)
        found.append(int(message.data().split()[0]))
        consumer.acknowledge(message)
    return found


KINDS = {
    kind.name: kind
    for kind in (
        pulsar.ConsumerType.Exclusive,
        pulsar.ConsumerType.Shared,
        pulsar.ConsumerType.KeyShared,
    )
}


@pytest.mark.parametrize("topic", ["p", "k"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_subscription_waits_until_the_damage_is_skipped(data, topic, kind) -> None:
    with standalone(data, **SETTINGS) as server:
        client = pulsar.Client(server.pulsar_url)
        consumer = client.subscribe(FULL_NAME + topic, "s", consumer_type=KINDS[kind])
        until(lambda: internal(server, topic)["lostRanges"])
        found = lost(server, topic)
        first = received(consumer, found["firstEntry"])
        with pytest.raises(pulsar.Timeout):
            consumer.receive(500)
        assert sorted(first) == list(range(found["firstEntry"]))
        client.create_producer(FULL_NAME + topic).send(b"%d" % COUNT)
        entries = found["lastEntry"] - found["firstEntry"] + 1
        base = f"{server.http_url}/admin/v2/persistent/public/default/{topic}"

        def backlog() -> int:
            stats = httpx.get(f"{base}/stats").raise_for_status().json()
            assert (stats["lostRanges"], stats["lostEntries"]) == (1, entries)
            return stats["subscriptions"]["s"]["msgBacklog"]

        until(lambda: backlog() == COUNT + 1 - found["firstEntry"])
        httpx.post(f"{base}/subscription/s/skip/{entries}").raise_for_status()
        rest = received(consumer, COUNT - found["lastEntry"])
        assert sorted(rest) == list(range(found["lastEntry"] + 1, COUNT + 1))
        until(lambda: backlog() == 0)
        assert said(server) == 1
        metrics = httpx.get(f"{server.http_url}/metrics").text
        assert f'topic="{FULL_NAME}{topic}"}} {entries}\n' in "".join(
            line + "\n"
            for line in metrics.splitlines()
            if line.startswith("magnetar_lost_entries_total{")
        )
        client.close()


@pytest.mark.parametrize("topic", ["p", "k"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_subscription_goes_on_by_itself_where_that_is_set(data, topic, kind) -> None:
    with standalone(data, ledgers={"auto_skip_non_recoverable_data": True}, **SETTINGS) as server:
        client = pulsar.Client(server.pulsar_url)
        consumer = client.subscribe(FULL_NAME + topic, "s", consumer_type=KINDS[kind])
        client.create_producer(FULL_NAME + topic).send(b"%d" % COUNT)
        found = []
        while COUNT not in found:
            found += received(consumer, 1)
        gone = lost(server, topic)
        assert sorted(found) == [
            n for n in range(COUNT + 1) if not gone["firstEntry"] <= n <= gone["lastEntry"]
        ]
        assert said(server) == 1
        client.close()


@pytest.mark.parametrize("topic", ["p", "k"])
def test_kafka_hears_of_it_and_seeks_past(data, topic) -> None:
    """What stands before is given first; then the application is told, and may seek."""
    with standalone(data, **SETTINGS) as server:
        produced(server, topic, range(COUNT, COUNT + 10))
        consumer = Consumer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "group.id": "g",
                "enable.auto.commit": False,
                "fetch.error.backoff.ms": 50,
            }
        )
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found = []
        while not (message := consumer.poll(20)).error():
            found.append(int(message.value().split()[0]))
        assert message.error().code() == KafkaError.INVALID_MSG
        gone = lost(server, topic)
        assert found == list(range(gone["firstIndex"]))
        assert (gone["firstIndex"], gone["nextIndex"]) == (
            gone["firstEntry"],
            gone["lastEntry"] + 1,
        )
        behind = TopicPartition(topic, 0, gone["nextIndex"])
        consumer.commit(offsets=[behind], asynchronous=False)
        assert consumer.committed([TopicPartition(topic, 0)])[0].offset == gone["nextIndex"]
        consumer.seek(behind)
        rest = []
        while not rest or rest[-1] < COUNT + 9:
            message = consumer.poll(20)
            if not message.error():  # some may have been on their way
                rest.append(int(message.value().split()[0]))
        assert rest == list(range(gone["nextIndex"], COUNT + 10))
        (at,) = consumer.offsets_for_times([TopicPartition(topic, 0, 1)])
        assert at.offset == 0
        assert said(server) == 1
        consumer.close()


@pytest.mark.parametrize("topic", ["p", "k"])
def test_readers_may_begin_behind_the_damage(data, topic) -> None:
    """By place, by time, and at the end: none of them reads what is lost."""
    with standalone(data, **SETTINGS) as server:
        client = pulsar.Client(server.pulsar_url)
        reader = client.create_reader(FULL_NAME + topic, pulsar.MessageId.earliest)
        assert int(reader.read_next(RECEIVE_MS).data().split()[0]) == 0
        assert reader.has_message_available()
        reader.seek(pulsar.MessageId.latest)
        client.create_producer(FULL_NAME + topic).send(b"%d" % COUNT)
        assert int(reader.read_next(RECEIVE_MS).data()) == COUNT
        client.close()


def test_an_entry_log_that_is_gone(data) -> None:
    """All that was in it is one lost range of each topic; the topic is written on."""
    sorted((data / "bookie/ledgers/current").glob("*.log"))[0].unlink()
    with standalone(data, **SETTINGS) as server:
        client = pulsar.Client(server.pulsar_url)
        consumer = client.subscribe(FULL_NAME + "p", "s")
        producer = client.create_producer(FULL_NAME + "p")
        producer.send(b"%d" % COUNT)
        until(lambda: internal(server, "p")["lostRanges"])
        (gone,) = internal(server, "p")["lostRanges"]
        assert (gone["firstEntry"], gone["lastEntry"]) == (0, COUNT - 1)
        url = f"{server.http_url}/admin/v2/persistent/public/default/p/subscription/s/skip_all"
        httpx.post(url).raise_for_status()
        producer.send(b"%d" % (COUNT + 1))
        assert received(consumer, 1) == [COUNT + 1]
        client.close()


def last_values(server) -> dict[str, bytes]:
    """What a reader gets that reads compacted."""
    client = pulsar.Client(server.pulsar_url)
    reader = client.create_reader(
        FULL_NAME + "c", pulsar.MessageId.earliest, is_read_compacted=True
    )
    found = {}
    while reader.has_message_available():
        message = reader.read_next(RECEIVE_MS)
        found[message.partition_key()] = message.data()
    client.close()
    return found


def keyed(server, numbers: range) -> None:
    """Values of as many keys, which are compacted then."""
    client = pulsar.Client(server.pulsar_url)
    producer = client.create_producer(FULL_NAME + "c", batching_enabled=False)
    for number in numbers:
        producer.send_async(said_as(number), lambda *_: None, partition_key=str(number))
    producer.flush()
    client.close()
    url = f"{server.http_url}/admin/v2/persistent/public/default/c/compaction"
    assert httpx.put(url).status_code == 204
    until(lambda: httpx.get(url).json()["status"] == "SUCCESS")


def test_a_compacted_ledger_is_read_round_its_damage(tmp_path) -> None:
    """And the next one, made of it, is whole."""
    skips = {**SETTINGS, "ledgers": {"auto_skip_non_recoverable_data": True}}
    with standalone(tmp_path / "data", **SETTINGS) as server:
        keyed(server, range(COUNT))
        ledger_id = internal(server, "c")["compactedLedger"]["ledgerId"]
    (path,) = (tmp_path / "data/bookie/ledgers/current").glob("*.log")
    rot(path, path.read_bytes().rindex(said_as(COUNT // 2)))  # the later one is the compacted one
    with standalone(tmp_path / "data", **skips) as server:
        found = last_values(server)
        gone = {str(number) for number in range(COUNT)} - found.keys()
        assert 0 < len(gone) <= 8
        assert str(COUNT // 2) in gone
        assert f"of the compacted ledger {ledger_id} are lost: " in server.logs()
        keyed(server, range(COUNT, COUNT + 1))
    with standalone(tmp_path / "data", **SETTINGS) as server:
        again = last_values(server)
        assert again == {**found, str(COUNT): said_as(COUNT)}
