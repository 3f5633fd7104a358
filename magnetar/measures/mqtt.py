"""Counts of the MQTT front as metric families."""

from magnetar.wire.http.metrics.exposition import Family, counter, gauge
from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.traffic import Traffic


def families(now: MqttStatistics, traffic: Traffic) -> list[Family]:
    """All metrics of MQTT clients; their messages are also those of their topics."""
    return [
        gauge("magnetar_mqtt_clients", "Connected clients", now.connected),
        gauge("magnetar_mqtt_sessions_asleep", "Sessions without a connection", now.asleep),
        gauge("magnetar_mqtt_session_bytes", "Memory of sessions", now.session_bytes),
        gauge(
            "magnetar_mqtt_session_stored_bytes", "Size of their records", now.session_bytes_stored
        ),
        counter("magnetar_mqtt_sessions_expired_total", "Sessions that expired", now.expired),
        gauge(
            "magnetar_mqtt_subscriptions", "Subscriptions of connected clients", now.subscriptions
        ),
        gauge("magnetar_mqtt_subscription_bytes", "Their memory", now.subscription_bytes),
        gauge(
            "magnetar_mqtt_shared_subscriptions", "Shared subscriptions", now.shared_subscriptions
        ),
        gauge("magnetar_mqtt_retained_messages", "Retained messages", now.retained),
        gauge("magnetar_mqtt_retained_bytes", "Memory of those in memory", now.retained_bytes),
        counter("magnetar_mqtt_connections_total", "Connections opened", traffic.connections),
        counter(
            "magnetar_mqtt_packets_received_total", "Packets received", traffic.packets_received
        ),
        counter("magnetar_mqtt_packets_sent_total", "Packets sent", traffic.packets_sent),
        counter("magnetar_mqtt_received_bytes_total", "Bytes received", traffic.bytes_received),
        counter("magnetar_mqtt_sent_bytes_total", "Bytes sent", traffic.bytes_sent),
        counter(
            "magnetar_mqtt_messages_received_total", "Messages received", traffic.publishes_received
        ),
        counter("magnetar_mqtt_messages_sent_total", "Messages sent", traffic.publishes_sent),
        counter(
            "magnetar_mqtt_messages_dropped_total",
            "Messages that a client had no room for, or that were too large for it",
            traffic.publishes_dropped,
        ),
    ]
