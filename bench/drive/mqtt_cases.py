"""The cases of the MQTT front, beside mosquitto. A table; see `drive/cases.py`.

Messages are stored here, and only sent on there. 20 in flight is mosquitto's default window.
"""

from functools import partial

from bench.drive.cases import Case, Options
from bench.drive.generator import MQTTLOAD

BOTH: Options = {"mode": "both"}
FEW: Options = {"depth": 20}
MANY: Options = {"depth": 1000}
FAN_IN: Options = {"connections": 10}
FAN_OUT: Options = {"consumers": 50}

load = partial(Case, generator=MQTTLOAD)
ZERO: Options = {**BOTH, "qos": 0}
ONE: Options = {**BOTH, "qos": 1}

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
]
