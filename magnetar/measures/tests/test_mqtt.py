"""Each figure of MQTT is there once, and Prometheus reads it."""

from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from magnetar.measures.mqtt import families
from magnetar.wire.http.metrics.exposition import text
from magnetar.wire.mqtt.clients.statistics import MqttStatistics
from magnetar.wire.mqtt.traffic import Traffic


class Measured(NamedTuple):
    now: MqttStatistics
    traffic: Traffic

    def statistics(self) -> MqttStatistics:
        return self.now


def test_namespaces_are_labels() -> None:
    now = MqttStatistics(*range(len(MqttStatistics.__struct_fields__)))
    measured = {name: Measured(now, Traffic()) for name in ("public/default", "acme/devices")}
    (clients, *_) = text_string_to_metric_families(text(families(measured)))
    labels = [sample.labels for sample in clients.samples]
    assert labels == [{"namespace": "public/default"}, {"namespace": "acme/devices"}]


def test_every_figure_is_there_once() -> None:
    traffic = Traffic()
    for number, name in enumerate(Traffic.__slots__):
        setattr(traffic, name, 100 + number)
    fields = MqttStatistics.__struct_fields__
    now = MqttStatistics(*range(len(fields)))
    measured = Measured(now, traffic)
    found = [
        sample.value
        for family in text_string_to_metric_families(text(families({"a/b": measured})))
        for sample in family.samples
    ]
    shown = set(fields) - {"connected_max"}  # a maximum is the reader's business
    expected = {getattr(now, name) for name in shown}
    expected |= {getattr(traffic, name) for name in Traffic.__slots__}
    assert (set(found), len(found)) == (expected, len(expected))
