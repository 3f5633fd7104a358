"""The options of `df.write.format("magnetar")` and of `writeStream`. Pure.

`option_values.py` says how names and values are checked.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import TopicName
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.option_values import OptionNames

COMPRESSIONS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Kafka's codecs and their numbers (`CompressionType.java` of 4.3)."""
NAMES_CACHED_MAX: Final = 10_000
"""Names of topics that rows may give, one each."""


class Delivery(enum.Enum):
    """What is promised."""

    AT_LEAST_ONCE = "at_least_once"


class SinkOptions(Struct, frozen=True):
    """See the module's docstring."""

    service_urls: tuple[str, ...]
    """HTTP addresses of the server, to be asked in turn."""
    topic: str = ""
    """Where rows go that have no topic of their own."""
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    compression: int = 0
    batch_bytes: int = 256 << 10
    """Of keys, values and headers in one record batch, before they are compressed."""
    buffer_bytes: int = 32 << 20
    """Of rows that a task holds until they are acknowledged."""
    timeout_seconds: float = 120.0
    """How long the server may acknowledge nothing."""


NAMES: Final = OptionNames(
    (
        "service.url", "topic", "delivery", "compression", "maxBatchBytes", "maxBufferBytes",
        "sendTimeoutMs",
    ),
    {"serviceurl": "service.url"},
    ("spark.", "path", "checkpointlocation", "queryname"),
)  # fmt: skip
KNOWN: Final = NAMES.known


def parse(given: Mapping[str, str]) -> SinkOptions:
    """The options of a query; `OptionError` says what is wrong with them."""
    values = NAMES.given(given)
    delivery = Delivery(values.choice("delivery", tuple(each.value for each in Delivery)))
    compression = values.choice("compression", tuple(COMPRESSIONS))
    found = SinkOptions(
        service_urls=values.urls(),
        topic=topic_of(values.text("topic")) if values.text("topic") else "",
        delivery=delivery,
        compression=COMPRESSIONS[compression],
        batch_bytes=values.size("maxbatchbytes", "256k"),
        buffer_bytes=values.size("maxbufferbytes", "32m"),
        timeout_seconds=values.number("sendtimeoutms", 120_000) / 1000,
    )
    if found.buffer_bytes < found.batch_bytes:
        raise OptionError('"maxBufferBytes" is less than "maxBatchBytes"')
    return found


@lru_cache(NAMES_CACHED_MAX)
def topic_of(text: str) -> str:
    """The full name of a topic that may be written to."""
    try:
        name = TopicName.parse(text)
    except InvalidName as error:
        raise OptionError(f'"{text}" is no topic: {error}') from error
    if not name.persistent:
        raise OptionError(f'"{text}" is not persistent: nothing is stored there')
    if name.partitioned:
        raise OptionError(
            f'"{text}" is a partition: name the topic {name.base.full}, and put the number '
            'into the column "partition"'
        )
    return name.full
