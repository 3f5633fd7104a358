"""The audit log of a real server, whatever protocol a change or a denial comes by."""

import json
import time

import httpx
from confluent_kafka.admin import AdminClient, NewTopic

from .pulsar_people import Administrator, secured, token
from .test_mqtt import Device


def sasl(server, name):
    return {
        "bootstrap.servers": server.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "x",
        "sasl.password": f"token:{token(name)}",
    }


def test_each_protocol(tmp_path):
    path = tmp_path / "audit.log"
    with secured(tmp_path, audit_log=str(path)) as server:
        administrator = Administrator(server)
        administrator.grant("ann", "consume")
        administrator.http.close()
        for name in ("root", "eve"):
            client = AdminClient(sasl(server, name))
            (made,) = client.create_topics([NewTopic("t", 1)]).values()
            assert (made.exception(timeout=30) is None) is (name == "root")
        with Device(server, "x", token("ann")) as device:
            assert device.hears("connect") == "Success"
            device.client.publish("m", b"0", qos=1)
            assert device.hears("published") == "Not authorized"
        wrong = httpx.get(
            f"{server.http_url}/admin/v2/clusters",
            headers={"authorization": f"Bearer {token('root', secret=b'x' * 32)}"},
        )
        assert wrong.status_code == 401
        # each line was written before its answer was
        found = [json.loads(line) for line in path.read_text().splitlines()]
        pages = httpx.get(
            f"{server.http_url}/metrics", headers={"authorization": f"Bearer {token('root')}"}
        )
        assert 'pulsar_authentication_failures_total{auth_method="token"} 1' in pages.text
    told = [
        (one["event"], one.get("who"), one.get("operation") or one.get("action"), what(one))
        for one in found
    ]
    assert told == [
        ("changed", "root", f"POST {NAMESPACE}/permissions/ann", "status 204"),
        ("changed", "root", "CreateTopics", ["topic t"]),
        ("denied", "eve", "create", "topic t"),
        ("denied", "ann", "write", "MQTT topic m"),
        ("login failed", None, None, "the token's signature is wrong"),
    ]
    assert all(one["host"] == "127.0.0.1" for one in found)
    assert all(abs(time.time() - parsed(one["time"])) < 120 for one in found)


NAMESPACE = "/admin/v2/namespaces/public/default"


def what(line):
    return line.get("resources") or line.get("resource") or line.get("outcome") or line.get("why")


def parsed(text):
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()
