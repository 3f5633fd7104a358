"""Each figure of MQTT is there once, and Prometheus reads it."""

from prometheus_client.parser import text_string_to_metric_families

from magnetar.measures.mqtt import families
from magnetar.wire.http.metrics.exposition import text
from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.traffic import Traffic


def test_every_figure_is_there_once() -> None:
    traffic = Traffic()
    for number, name in enumerate(Traffic.__slots__):
        setattr(traffic, name, 100 + number)
    fields = MqttStatistics.__struct_fields__
    now = MqttStatistics(*range(len(fields)))
    found = [
        sample.value
        for family in text_string_to_metric_families(text(families(now, traffic)))
        for sample in family.samples
    ]
    shown = set(fields) - {"connected_max"}  # a maximum is the reader's business
    expected = {getattr(now, name) for name in shown}
    expected |= {getattr(traffic, name) for name in Traffic.__slots__}
    assert (set(found), len(found)) == (expected, len(expected))
