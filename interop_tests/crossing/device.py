"""A connected client of paho's, and the end of the topic where its messages are stored."""

from __future__ import annotations

import threading
from typing import Any

import paho.mqtt.client as mqtt
from confluent_kafka import Consumer, TopicPartition
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.subscribeoptions import SubscribeOptions

SECONDS = 20
FUNNEL = "mqtt"


class Device:
    """A client with what it receives."""

    def __init__(self, server: Any, version: int = 5) -> None:
        protocol = MQTTProtocolVersion(version)
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=protocol)
        self.got: list[mqtt.MQTTMessage] = []
        self._changed = threading.Condition()
        self._subscribed = threading.Event()
        self.client.on_message = self._on_message
        self.client.on_subscribe = lambda *_: self._subscribed.set()
        host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
        self.client.connect(host, int(port))
        self.client.loop_start()

    def _on_message(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        with self._changed:
            self.got.append(message)
            self._changed.notify_all()

    def subscribe(self, filter: str, qos: int = 1, options: SubscribeOptions | None = None) -> None:
        self._subscribed.clear()
        self.client.subscribe(filter, 0 if options else qos, options)
        assert self._subscribed.wait(SECONDS)

    def publish(self, topic: str, payload: bytes, qos: int = 1, **options: Any) -> None:
        self.client.publish(topic, payload, qos, **options).wait_for_publish(SECONDS)

    def take(self, count: int) -> list[mqtt.MQTTMessage]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) >= count, SECONDS)
            return self.got[:count]

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()
        self.client._reset_sockets()


def tail(server: Any) -> Consumer:
    """A consumer of Kafka's at the present end of the funnel."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "none"})
    _, end = consumer.get_watermark_offsets(TopicPartition(FUNNEL, 0), SECONDS)
    consumer.assign([TopicPartition(FUNNEL, 0, end)])
    return consumer
