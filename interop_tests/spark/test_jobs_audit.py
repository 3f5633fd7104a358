"""The job that audits topics: what is well, and each thing that is wrong."""

import json

import pytest

from magnetar import standalone
from magnetar.spark_connector.jobs import audit
from magnetar.spark_connector.jobs.session import TopicSelection

from .conftest import kafka_producer

pytestmark = pytest.mark.spark
FULL_NAME = "persistent://public/default/"


def audited(spark, server, topic: str, **more) -> audit.JobReport:
    return audit.run(spark, audit.AuditOptions(TopicSelection(server.http_url, (topic,)), **more))


def kinds(report) -> dict[str, int]:
    return {kind: entries for _, kind, entries in report.tables[1].rows}


def test_what_takes_a_place_without_messages_is_well(spark, lending, connect, topic) -> None:
    producer = kafka_producer(lending, **{"transactional.id": f"x-{topic}"})
    producer.init_transactions(10)
    for ends in ("commit", "abort", "commit"):
        producer.begin_transaction()
        for part in range(5):
            producer.produce(topic, f"{ends} {part}", f"k{part}")
        producer.flush()
        getattr(producer, f"{ends}_transaction")(10)
    client = connect(lending.pulsar_url)
    large = client.create_producer(topic, chunking_enabled=True, batching_enabled=False)
    large.send(bytes(17 << 20))
    report = audited(spark, lending, topic)
    assert report.problems == []
    assert report.facts["messages"] == 11
    assert kinds(report) == {"marker": 3, "aborted": 1, "chunk": 1}
    (row,) = report.tables[0].rows
    assert row[:3] == (f"{FULL_NAME}{topic}", 0, 11)
    assert row[3] > 17 << 20
    assert row[5] == 0


def test_rotten_entries_are_named(spark, connect, topic, tmp_path) -> None:
    data = tmp_path / "data"
    settings = {"bookie_port": 0, "storage": {"scrub_mb_per_second": 0}}
    with standalone(data, **settings) as server:
        producer = connect(server.pulsar_url).create_producer(topic, batching_enabled=False)
        for number in range(200):
            producer.send_async(b"%d " % number + bytes(1000), lambda *_: None)
        producer.flush()
        producer.close()
        server.stop()
        (path, *_) = sorted((data / "bookie/ledgers/current").glob("*.log"))
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(bytes(4096))
        server.start()
        report = audited(spark, server, topic)
        by_server = TopicSelection(server.http_url, (topic,), options={"readFrom": "gateway"})
        through = audit.run(spark, audit.AuditOptions(by_server))
    assert through.facts == report.facts
    assert len(through.problems) == len(report.problems)
    rows = report.facts["messages"]
    assert 190 <= rows < 200
    assert len(report.problems) >= 1
    assert all(one.startswith(f"{FULL_NAME}{topic}: ") for one in report.problems)
    lost = [one for one in report.problems if "damaged" in one or "missing" in one]
    assert sum(_entries(one) for one in lost) == 200 - rows


def _entries(sentence: str) -> int:
    number = sentence.partition(": ")[2].split()[0]
    return int(number) if number.isdecimal() else 1


def test_sequence_ids_that_begin_anew_are_no_duplicates(spark, lending, connect, topic) -> None:
    client = connect(lending.pulsar_url)
    for value in (b"first", b"second"):
        producer = client.create_producer(topic, producer_name=f"p-{topic}")
        producer.send(value)
        producer.close()
    report = audited(spark, lending, topic)
    assert (report.facts["messages"], report.problems) == (2, [])


def test_a_message_that_was_sent_again(spark, lending, connect, topic) -> None:
    """No stock client can be made to: the rows are those of one that was not answered in time."""
    connect(lending.pulsar_url).create_producer(topic, producer_name="p").send(b"x")
    frame = TopicSelection(lending.http_url, (topic,)).frame(spark)
    again = frame.withColumn("offset", frame["offset"] + 7)
    other = again.withColumn("value", frame.producer_name.cast("binary"))
    assert audit._duplicates(frame.unionByName(again).unionByName(other)) == [
        f"{FULL_NAME}{topic}, partition 0: message 0 of producer p is there 2 times, "
        "at offsets 0, 7"
    ]


def test_copies_are_compared(spark, lending, topic) -> None:
    producer = kafka_producer(lending)
    names = [topic, f"{topic}-same", f"{topic}-swapped", f"{topic}-short"]
    sent = [(f"k{number % 3}", f"v{number}") for number in range(20)]
    swapped = [*sent[:7], sent[8], sent[7], *sent[9:]]
    for name, messages in zip(names, (sent, sent, swapped, sent[:15]), strict=True):
        for key, value in messages:
            producer.produce(name, value, key, headers=[("h", b"1")])
        producer.flush()

    def compared(other: str) -> list[str]:
        selection = TopicSelection(lending.http_url, (other,))
        return list(audited(spark, lending, topic, other=selection, duplicates=False).problems)

    same, swapped_name, short = names[1:]
    assert compared(same) == []
    assert compared(swapped_name) == [
        f"partition 0: they differ from message 8 on: offset 7 of {topic}, "
        f"offset 7 of {swapped_name}"
    ]
    assert compared(short) == [
        f"partition 0: only {topic} has 5 messages",
        f"partition 0: they differ from message 16 on: offset 15 of {topic}, nothing in {short}",
    ]


def test_as_a_command(lending, connect, topic, tmp_path, run_job) -> None:
    connect(lending.pulsar_url).create_producer(topic).send(b"x")
    page = tmp_path / "audit.html"
    done = run_job("audit", "--url", lending.http_url, "--topic", topic, "--json",
                   "--report", str(page))  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["ok"], report["facts"]["messages"]) == (True, 1)
    assert "<svg" in page.read_text()
