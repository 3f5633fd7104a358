"""docs/admin.md: its requests about MQTT's clients, as curl sends them, to a real server."""

import re
import shlex
import threading
from pathlib import Path

import httpx
import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

import magnetar

ADMIN = (Path(__file__).parents[2] / "docs/admin.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"
SECONDS = 20.0


def _client(server: magnetar.Standalone, name: str, *, clean: bool) -> mqtt.Client:
    """A connected client of paho's with a subscription."""
    done = threading.Event()
    client = mqtt.Client(CallbackAPIVersion.VERSION2, name, clean_session=clean)
    client.on_connect = lambda *_: client.subscribe("sensors/#", 1)
    client.on_subscribe = lambda *_: done.set()
    host, _, port = server.mqtt_url.removeprefix("mqtt://").rpartition(":")
    client.connect(host, int(port))
    client.loop_start()
    assert done.wait(SECONDS)
    return client


def _curl(line: str, address: str) -> httpx.Response:
    words = shlex.split(line)[1:]
    method, data, headers = "", None, {}
    url = ""
    while words:
        word = words.pop(0)
        if word == "-X":
            method = words.pop(0)
        elif word == "-d":
            data = words.pop(0)
        elif word == "-H":
            name, _, value = words.pop(0).partition(": ")
            headers[name] = value
        else:
            url = word
    method = method or ("GET" if data is None else "POST")
    return httpx.request(method, url.replace(ADDRESS, address), content=data, headers=headers)


def test_the_requests_about_mqtt_clients() -> None:
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", ADMIN, re.DOTALL | re.MULTILINE)
        for line in block.replace("\\\n", "").splitlines()
        if "/admin/v2/mqtt" in line
    ]
    assert len(lines) >= 10
    with magnetar.standalone() as server:
        dashboard = _client(server, "dashboard", clean=False)
        topic = "sensors/1/temperature"
        dashboard.publish(topic, b"21.5", 1, retain=True).wait_for_publish(SECONDS)
        dashboard.disconnect()
        dashboard.loop_stop()
        meter = _client(server, "meter", clean=True)
        for line in lines:
            response = _curl(line, server.http_url)
            assert response.is_success, (line, response.text)
        meter.loop_stop()
