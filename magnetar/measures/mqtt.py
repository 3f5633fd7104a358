"""Counts of the MQTT front as metric families."""

from collections.abc import Mapping
from typing import Protocol

from magnetar.wire.http.metrics.exposition import Family, counter, gauge, label_text
from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.traffic import Traffic


class MeasuredServices(Protocol):
    """What has figures of its own: the clients of one namespace."""

    traffic: Traffic

    def statistics(self) -> MqttStatistics: ...


def families(services: Mapping[str, MeasuredServices]) -> list[Family]:
    """All metrics of MQTT clients, by namespace; their messages are also those of their topics."""
    found: dict[str, Family] = {}
    for namespace, each in services.items():
        labels = label_text([("namespace", namespace)])
        for family, value in _figures(each.statistics(), each.traffic):
            found.setdefault(family.name, family).add(value, labels)
    return list(found.values())


def _figures(now: MqttStatistics, traffic: Traffic) -> list[tuple[Family, float]]:
    def now_is(name: str, about: str, value: float) -> tuple[Family, float]:
        return gauge(f"magnetar_mqtt_{name}", about), value

    def since_start(name: str, about: str, value: float) -> tuple[Family, float]:
        return counter(f"magnetar_mqtt_{name}_total", about), value

    too_much = "Messages that a client had no room for, or that were too large for it"
    return [
        now_is("clients", "Connected clients", now.connected),
        now_is("sessions_asleep", "Sessions without a connection", now.asleep),
        now_is("waiting_messages", "Messages that sessions have not read, estimated", now.waiting),
        now_is("waiting_bytes", "Their size, estimated", now.waiting_bytes),
        now_is("session_bytes", "Memory of sessions", now.session_bytes),
        now_is("session_stored_bytes", "Size of their records", now.session_bytes_stored),
        since_start("sessions_expired", "Sessions that expired", now.expired),
        now_is("subscriptions", "Subscriptions of connected clients", now.subscriptions),
        now_is("subscription_bytes", "Their memory", now.subscription_bytes),
        now_is("shared_subscriptions", "Shared subscriptions", now.shared_subscriptions),
        now_is("retained_messages", "Retained messages", now.retained),
        now_is("retained_bytes", "Memory of those in memory", now.retained_bytes),
        since_start("connections", "Connections opened", traffic.connections),
        since_start("connects", "CONNECT packets", traffic.connects),
        since_start("packets_received", "Packets received", traffic.packets_received),
        since_start("packets_sent", "Packets sent", traffic.packets_sent),
        since_start("received_bytes", "Bytes received", traffic.bytes_received),
        since_start("sent_bytes", "Bytes sent", traffic.bytes_sent),
        since_start("messages_received", "Messages received", traffic.publishes_received),
        since_start("messages_sent", "Messages sent", traffic.publishes_sent),
        since_start("messages_received_bytes", "Their size", traffic.publish_bytes_received),
        since_start("messages_sent_bytes", "Their size", traffic.publish_bytes_sent),
        since_start("messages_dropped", too_much, traffic.publishes_dropped),
    ]
