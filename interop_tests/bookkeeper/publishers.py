"""Stock clients of three protocols that publish all the time, and when each message was
acknowledged.
"""

import threading
import time
from itertools import pairwise
from typing import Any, Self

import paho.mqtt.client as paho
import pulsar
from confluent_kafka import Producer

WINDOW = 50
"""Messages that a publisher has in flight."""
END_SECONDS = 60


class Publisher:
    """One that publishes numbered texts to a topic; subclasses say with which client."""

    def __init__(self, name: str) -> None:
        self.topic = f"loss-{name}-{time.monotonic_ns()}"
        self.stored_in = self.topic
        """The topic as Pulsar's clients name it."""
        self.times: list[float] = []
        """When each acknowledgement came."""
        self.acknowledged: list[str] = []
        self.failed: list[str] = []
        self._room = threading.Semaphore(WINDOW)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _connect(self, gateway: Any) -> None:
        raise NotImplementedError

    def _send(self, text: str) -> None:
        raise NotImplementedError

    def _disconnect(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        number = 0
        while not self._over.is_set():
            if self._room.acquire(timeout=0.1):
                self._send(f"m{number}")
                number += 1

    def _acked(self, text: str) -> None:
        self.times.append(time.monotonic())
        self.acknowledged.append(text)
        self._room.release()

    def _refused(self, what: object) -> None:
        self.failed.append(str(what))
        self._room.release()

    def begin(self, gateway: Any) -> Self:
        self._connect(gateway)
        self._thread.start()
        return self

    def finish(self) -> None:
        """Publish no more, and wait for what is in flight."""
        self._over.set()
        self._thread.join(END_SECONDS)
        for _ in range(WINDOW):
            assert self._room.acquire(timeout=END_SECONDS), f"{self.topic}: no answer"
        self._disconnect()

    def stall_after(self, begin: float) -> float:
        """The longest time without an acknowledgement from a moment on."""
        since = [begin, *(each for each in self.times if each > begin)]
        return max(b - a for a, b in pairwise(since))


class PulsarPublisher(Publisher):
    """The C++ client, without batches."""

    def _connect(self, gateway: Any) -> None:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        self._client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}", logger=logger)
        self._producer = self._client.create_producer(self.topic, batching_enabled=False)

    def _send(self, text: str) -> None:
        def done(result: pulsar.Result, _: object) -> None:
            if result == pulsar.Result.Ok:
                self._acked(text)
            else:
                self._refused(result)

        self._producer.send_async(text.encode(), done)

    def _disconnect(self) -> None:
        self._client.close()


class KafkaPublisher(Publisher):
    """librdkafka, with `acks=all` and idempotence."""

    def _connect(self, gateway: Any) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": gateway.url("kafka"),
                "enable.idempotence": True,
                "linger.ms": 1,
                "log_level": 0,
            }
        )
        self._poller = threading.Thread(target=self._poll)
        self._polled = threading.Event()
        self._poller.start()

    def _poll(self) -> None:
        while not self._polled.is_set():
            self._producer.poll(0.05)

    def _send(self, text: str) -> None:
        def done(error: object, _: object) -> None:
            if error is None:
                self._acked(text)
            else:
                self._refused(error)

        self._producer.produce(self.topic, text.encode(), on_delivery=done)

    def _disconnect(self) -> None:
        self._polled.set()
        self._poller.join()


class MqttPublisher(Publisher):
    """paho, with QoS 1."""

    def _connect(self, gateway: Any) -> None:
        self.stored_in = "mqtt"
        self._halves: dict[int, Any] = {}
        self._lock = threading.Lock()
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, self.topic, protocol=paho.MQTTv5)
        client.max_inflight_messages_set(WINDOW)
        client.on_publish = self._published
        host, _, port = gateway.url("mqtt").rpartition(":")
        client.connect(host, int(port))
        client.loop_start()
        self._client = client

    def _send(self, text: str) -> None:
        self._match(self._client.publish(self.topic, text, qos=1).mid, text)

    def _published(self, _client: Any, _data: Any, mid: int, reason: Any, _properties: Any) -> None:
        self._match(mid, reason)

    def _match(self, mid: int, half: Any) -> None:
        """The text and the answer of a message: an answer may come before `publish` returns."""
        with self._lock:
            other = self._halves.pop(mid, None)
            if other is None:
                self._halves[mid] = half
                return
        text, reason = (half, other) if isinstance(half, str) else (other, half)
        if reason.is_failure:
            self._refused(reason)
        else:
            self._acked(text)

    def _disconnect(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


PUBLISHERS = {"pulsar": PulsarPublisher, "kafka": KafkaPublisher, "mqtt": MqttPublisher}


def read_all(gateway: Any, topic: str, seconds: float = 30) -> list[str]:
    """All messages of a topic, as Pulsar's clients see them."""
    logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(f"pulsar://{gateway.url('pulsar')}", logger=logger)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(timeout_millis=int(seconds * 1000)).data().decode())
    client.close()
    return found
