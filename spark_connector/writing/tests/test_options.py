"""The options of a sink: what is needed, and what is said of mistakes."""

import pytest

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.writing import options
from magnetar.spark_connector.writing.options import Delivery

URL = {"service.url": "http://a:1"}


def test_only_the_server_is_needed() -> None:
    found = options.parse(URL)
    assert (found.service_urls, found.topic) == (("http://a:1",), "")
    assert (found.delivery, found.compression) == (Delivery.AT_LEAST_ONCE, 0)


def test_names_and_values_are_in_any_case() -> None:
    given = {**URL, "TOPIC": "t", "compression": "LZ4", "Delivery": "at_least_once"}
    found = options.parse(given)
    assert found.topic == "persistent://public/default/t"
    assert (found.compression, found.delivery) == (3, Delivery.AT_LEAST_ONCE)


def test_what_spark_adds_is_passed_over() -> None:
    added = {"checkpointLocation": "x", "queryName": "q", "path": "p", "spark.y": "z"}
    assert options.parse({**URL, **added}) == options.parse(URL)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"service.url": ""}, '"service.url" is missing'),
        ({"topics": "t"}, 'there is no option "topics"; did you mean "topic"?'),
        ({"delivery": "once"}, '"delivery" is at_least_once, not'),
        ({"compression": "rar"}, '"compression" is none or gzip or'),
        ({"topic": "a/b"}, '"a/b" is no topic'),
        ({"topic": "non-persistent://a/b/c"}, "nothing is stored there"),
        ({"topic": "t-partition-1"}, 'put the number into the column "partition"'),
        ({"maxBufferBytes": "1k"}, '"maxBufferBytes" is less than "maxBatchBytes"'),
    ],
)
def test_mistakes_are_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as raised:
        options.parse({**URL, **given})
    assert said in str(raised.value)
