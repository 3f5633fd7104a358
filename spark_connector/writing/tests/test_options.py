"""The options of a sink: what is needed, and what is said of mistakes."""

import pytest

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.writing import options
from magnetar.spark_connector.writing.options import Delivery

URL = {"service.url": "http://a:1"}


def test_only_the_server_is_needed() -> None:
    found = options.parse(URL, stream=True)
    assert (found.service_urls, found.topic) == (("http://a:1",), "")
    assert (found.delivery, found.compression, found.batch_id) == (Delivery.AT_LEAST_ONCE, 0, -1)


def test_names_and_values_are_in_any_case() -> None:
    given = {**URL, "TOPIC": "t", "compression": "LZ4", "Delivery": "exactly_once", "sinkid": "S"}
    found = options.parse(given, stream=True)
    assert found.topic == "persistent://public/default/t"
    assert (found.compression, found.delivery, found.sink_id) == (3, Delivery.EXACTLY_ONCE, "S")


def test_what_spark_adds_is_passed_over() -> None:
    added = {"checkpointLocation": "x", "queryName": "q", "path": "p", "spark.y": "z"}
    assert options.parse({**URL, **added}, stream=True) == options.parse(URL, stream=True)


@pytest.mark.parametrize("delivery", ["dedup", "exactly_once"])
def test_a_batch_of_a_sink_is_named_by_both(delivery: str) -> None:
    given = {**URL, "delivery": delivery, "sinkId": "S", "batchId": "7"}
    found = options.parse(given, stream=False)
    assert (found.sink_id, found.batch_id) == ("S", 7)


@pytest.mark.parametrize(
    ("given", "stream", "said"),
    [
        ({"service.url": ""}, False, '"service.url" is missing'),
        ({"topics": "t"}, False, 'there is no option "topics"; did you mean "topic"?'),
        ({"delivery": "once"}, False, '"delivery" is at_least_once or dedup or exactly_once'),
        ({"compression": "rar"}, False, '"compression" is none or gzip or'),
        ({"topic": "a/b"}, False, '"a/b" is no topic'),
        ({"topic": "non-persistent://a/b/c"}, False, "nothing is stored there"),
        ({"topic": "t-partition-1"}, False, 'put the number into the column "partition"'),
        ({"sinkId": "S"}, True, '"sinkId" is for dedup and exactly_once'),
        ({"delivery": "exactly_once", "sinkId": "S" * 201}, True, "200 letters at most"),
        ({"delivery": "exactly_once", "batchId": "1"}, True, '"batchId" is for a batch job'),
        ({"delivery": "exactly_once", "sinkId": "S"}, False, '"sinkId" and "batchId" go together'),
        ({"delivery": "dedup"}, False, '"dedup" needs "sinkId" and "batchId"'),
        ({"maxBufferBytes": "1k"}, False, '"maxBufferBytes" is less than "maxBatchBytes"'),
    ],
)
def test_mistakes_are_named(given: dict[str, str], stream: bool, said: str) -> None:
    with pytest.raises(OptionError) as raised:
        options.parse({**URL, **given}, stream=stream)
    assert said in str(raised.value)
