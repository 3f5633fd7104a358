"""The job that tells lag: readers of three protocols, each somewhere else."""

import threading

import paho.mqtt.client as mqtt
import pulsar
import pytest
from confluent_kafka import Consumer, TopicPartition
from paho.mqtt.enums import CallbackAPIVersion

from interop_tests.crossing.device import Device
from magnetar.spark_connector.jobs import lag
from magnetar.spark_connector.jobs.session import TopicSelection

from .conftest import kafka_producer

pytestmark = pytest.mark.spark
FULL_NAME = "persistent://public/default/"


def told(spark, server, *topics: str, **more) -> lag.JobReport:
    selection = TopicSelection(server.http_url, topics)
    return lag.run(spark, lag.LagOptions(selection, **more))


def found(report) -> dict[tuple[str, str], int]:
    return {(kind, name): messages for kind, name, _, messages, *_ in report.tables[0].rows}


def test_readers_of_two_protocols(spark, lending, connect, topic, tmp_path) -> None:
    client = connect(lending.pulsar_url)
    earliest = pulsar.InitialPosition.Earliest
    names = ("none", "some", "all")
    consumers = {each: client.subscribe(topic, each, initial_position=earliest) for each in names}
    batched = client.create_producer(topic, batching_max_publish_delay_ms=10_000)
    for number in range(10):
        batched.send_async(b"%d" % number, lambda *_: None)
    batched.flush()
    producer = kafka_producer(lending, **{"linger.ms": 0, "batch.num.messages": 1})
    for number in range(10, 20):
        producer.produce(topic, str(number), partition=0)
        producer.flush()
    for _ in range(20):
        consumers["all"].acknowledge(consumers["all"].receive(10_000))
    for _ in range(13):
        consumers["some"].acknowledge(consumers["some"].receive(10_000))
    group = Consumer({"bootstrap.servers": lending.bootstrap_servers, "group.id": f"g-{topic}"})
    group.commit(offsets=[TopicPartition(topic, 0, 15)], asynchronous=False)
    group.close()
    for consumer in consumers.values():
        consumer.close()  # so that what was acknowledged is stored
    history = tmp_path / "found, 100%25 of it"
    report = told(spark, lending, topic, history=history)
    assert found(report) == {
        ("subscription", "none"): 20,
        ("subscription", "some"): 7,
        ("group", f"g-{topic}"): 5,
        ("subscription", "all"): 0,
    }
    (first, *_) = report.tables[0].rows
    assert first[1] == "none"
    assert first[4] > 0, "its age"
    assert report.ok
    limited = told(spark, lending, topic, max_messages=6, history=history)
    assert limited.problems == [
        f"subscription none of {FULL_NAME}{topic} is 20 messages behind",
        f"subscription some of {FULL_NAME}{topic} is 7 messages behind",
    ]
    (line, *_) = limited.charts[2].lines.values()
    assert [messages for _, messages in line] == [20, 20]
    assert spark.read.parquet(f"file://{history}").count() == 8


def test_mqtt_sessions_in_all_namespaces(spark, lending) -> None:
    host, _, port = lending.mqtt_url.removeprefix("mqtt://").rpartition(":")
    sleeper = mqtt.Client(
        CallbackAPIVersion.VERSION2, "lag-sleeper", clean_session=False,
        protocol=mqtt.MQTTv311,
    )  # fmt: skip
    subscribed = threading.Event()
    sleeper.on_subscribe = lambda *_: subscribed.set()
    sleeper.connect(host, int(port))
    sleeper.loop_start()
    sleeper.subscribe("lag/#", 1)
    assert subscribed.wait(20)
    sleeper.disconnect()
    sleeper.loop_stop()
    device = Device(lending)
    for number in range(4):
        device.publish(f"lag/{number}", b"x")
    device.close()
    report = told(spark, lending)
    assert found(report)["session", "lag-sleeper"] == 4
