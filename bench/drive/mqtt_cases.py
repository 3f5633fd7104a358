"""The cases of the MQTT front, beside mosquitto. A table; see `drive/cases.py`.

Messages are stored here, and only sent on there. 20 in flight is mosquitto's default window.
"""

from functools import partial

from bench.drive.cases import Case, Kind, Memory, Options
from bench.drive.generator import MQTTLOAD

BOTH: Options = {"mode": "both"}
FEW: Options = {"depth": 20}
MANY: Options = {"depth": 1000}
FAN_IN: Options = {"connections": 10}
FAN_OUT: Options = {"consumers": 50}

load = partial(Case, generator=MQTTLOAD)
memory = partial(load, kind=Kind.MEMORY)
ZERO: Options = {**BOTH, "qos": 0}
ONE: Options = {**BOTH, "qos": 1}
MANY_PUBLISHED: Options = {
    "mode": "publish",
    "qos": 1,
    "connections": 10,
    "depth": 100,
}

MQTT_CASES = [
    load("mqtt-0", "QoS 0, 1 to 1", options=ZERO, goal="CPU <= 1/3 of mosquitto's"),
    load(
        "mqtt-0-in", "same, 10 to 1", options={**ZERO, **FAN_IN}, goal="CPU <= 1/3 of mosquitto's"
    ),
    load(
        "mqtt-0-out", "same, 1 to 50", options={**ZERO, **FAN_OUT}, goal="CPU <= 1/3 of mosquitto's"
    ),
    load(
        "mqtt-1",
        "QoS 1, 1 to 1, 20 in flight",
        options={**ONE, **FEW},
        goal="CPU <= 1/2 of mosquitto's",
    ),
    load("mqtt-1-many", "same, 1,000 in flight", options={**ONE, **MANY}),
    load(
        "mqtt-1-in",
        "QoS 1, 10 to 1, 20 in flight each",
        options={**ONE, **FEW, **FAN_IN},
        goal="CPU <= 1/2 of mosquitto's",
    ),
    load(
        "mqtt-1-out",
        "QoS 1, 1 to 50, 20 in flight",
        options={**ONE, **FEW, **FAN_OUT},
        goal="CPU <= 1/2 of mosquitto's",
    ),
    load(
        "mqtt-2",
        "QoS 2, 1 to 1, 20 in flight",
        options={**BOTH, **FEW, "qos": 2},
        goal="CPU <= mosquitto's",
    ),
    load(
        "mqtt-pace",
        "one device, QoS 1, 1 in flight",
        options={"mode": "publish", "qos": 1, "depth": 1},
        goal="p50 <= disk + 0.4 ms, p99 <= disk p99 + 1.5 ms",
    ),
    load(
        "mqtt-10000",
        "10,000 devices connect, then QoS 1, one message a second each",
        options={
            "mode": "publish",
            "qos": 1,
            "depth": 1,
            "connections": 10_000,
            "rate": 10_000,
        },
        goal="attached in 5 s, p99 <= 50 ms, pause <= 10 ms",
    ),
    load(
        "mqtt-filters",
        "QoS 0, 1 to 1, beside 100,000 filters with wildcards of others",
        options=ZERO,
        beside={"connections": 1_000, "producers": 1, "subscriptions": 100, "wildcards": ""},
    ),
    memory(
        "mqtt-idle",
        "memory of 1,000 idle connections",
        options={"connections": 1_000, "producers": 0},
        memory=Memory(stays=True),
        goal="<= 5 MB",
    ),
    memory(
        "mqtt-retained",
        "memory of 100,000 retained messages of 100 B",
        options={**MANY_PUBLISHED, "messages": 100_000, "retain": ""},
        memory=Memory(
            before={**MANY_PUBLISHED, "messages": 300_000},
            reading={"mode": "consume", "qos": 1, "messages": 100_000},
        ),
        goal="<= 40 MB",
    ),
    memory(
        "mqtt-sleeping",
        "memory of 100,000 sleeping sessions with 3 subscriptions each",
        options={
            "mode": "subscribe",
            "keep": "",
            "qos": 1,
            "consumers": 100_000,
            "subscriptions": 3,
        },
        memory=Memory(),
        goal="<= 60 MB, also after a restart",
    ),
]
