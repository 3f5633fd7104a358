"""Namespaces with listeners of their own, tried with paho, and read by a Kafka client."""

from __future__ import annotations

import json
import urllib.request

import pytest
from confluent_kafka import Consumer

from interop_tests.keys import Authority
from interop_tests.mqtt.conftest import Paho
from magnetar import standalone

NAMESPACE = "acme/devices"


def put(server, path: str, body: object) -> None:
    request = urllib.request.Request(
        f"{server.http_url}/admin/v2/{path}", json.dumps(body).encode(),
        {"content-type": "application/json"}, method="PUT",
    )  # fmt: skip
    urllib.request.urlopen(request).close()


@pytest.fixture
def mounted(tmp_path):
    authority = Authority(tmp_path, "ours")
    certificate, key = authority.issue("server")
    points = {NAMESPACE: "0 tls:0 ws:0 wss:0"}
    mqtt = {"mount_points": points}
    with standalone(tls_certificate=certificate, tls_key=key, mqtt=mqtt) as server:
        put(server, "tenants/acme", {"adminRoles": [], "allowedClusters": ["standalone"]})
        put(server, f"namespaces/{NAMESPACE}", {})
        yield server, authority


@pytest.mark.parametrize("kind", ["mqtt", "mqtt_tls", "mqtt_ws", "mqtt_wss"])
def test_clients_of_a_mount_point_see_its_namespace_only(mounted, kind):
    server, authority = mounted
    transport = "websockets" if kind in ("mqtt_ws", "mqtt_wss") else "tcp"
    there = Paho(server.listeners[f"{kind}@{NAMESPACE}"], "same", transport=transport)
    if kind in ("mqtt_tls", "mqtt_wss"):
        there.host = "localhost"
        there.client.tls_set(ca_certs=authority.certificate)
    here = Paho(server.listeners["mqtt"], "same")
    for client in (there, here):
        client.connect()
        assert client.subscribe("#", 1) == [1]
    there.publish("t", b"there", 1)
    here.publish("t", b"here", 1)
    assert [one.payload for one in there.take(1)] == [b"there"]
    assert [one.payload for one in here.take(1)] == [b"here"]
    assert there.received.empty()
    assert here.received.empty()
    for client in (there, here):
        client.disconnect()
        client.cut()
    consumer = Consumer({
        "bootstrap.servers": server.bootstrap_servers, "group.id": "g",
        "auto.offset.reset": "earliest",
    })  # fmt: skip
    consumer.subscribe([f"{NAMESPACE}/mqtt"])
    message = consumer.poll(30)
    consumer.close()
    assert (message.key(), message.value()) == (b"t", b"there")
