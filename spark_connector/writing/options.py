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
from magnetar.spark_connector import security
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.option_values import OptionNames, OptionValues
from magnetar.spark_connector.security import NOTHING_SAID, QuerySecurity

COMPRESSIONS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Kafka's codecs and their numbers (`CompressionType.java` of 4.3)."""
SINK_ID_LETTERS_MAX: Final = 200
NAMES_CACHED_MAX: Final = 10_000
"""Names of topics that rows may give, one each."""


class Delivery(enum.Enum):
    """What is promised."""

    AT_LEAST_ONCE = "at_least_once"
    DEDUP = "dedup"
    EXACTLY_ONCE = "exactly_once"


class SinkOptions(Struct, frozen=True):
    """See the module's docstring."""

    service_urls: tuple[str, ...]
    """HTTP addresses of the server, to be asked in turn."""
    security: QuerySecurity = NOTHING_SAID
    topic: str = ""
    """Where rows go that have no topic of their own."""
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    sink_id: str = ""
    """Empty for the id of the query, or of the job."""
    batch_id: int = -1
    """Which batch of its sink a batch job is; -1 if it is the only one."""
    compression: int = 0
    batch_bytes: int = 256 << 10
    """Of keys, values and headers in one record batch, before they are compressed."""
    buffer_bytes: int = 32 << 20
    """Of rows that a task holds until they are acknowledged."""
    timeout_seconds: float = 120.0
    """How long the server may acknowledge nothing."""
    transaction_seconds: float = 600.0
    """How long all tasks of a batch may be silent before what they wrote is given up."""


NAMES: Final = OptionNames(
    (
        "service.url", "topic", "delivery", "sinkId", "batchId", "compression", "maxBatchBytes",
        "maxBufferBytes", "sendTimeoutMs", "transactionTimeoutMs", *security.NAMES,
    ),
    {"serviceurl": "service.url", **security.ALIASES},
    ("spark.", "path", "checkpointlocation", "queryname"),
)  # fmt: skip
KNOWN: Final = NAMES.known
IDENTIFIED: Final = ("sinkid", "batchid")


def parse(given: Mapping[str, str], *, stream: bool) -> SinkOptions:
    """The options of a query; `OptionError` says what is wrong with them."""
    values = NAMES.given(given)
    delivery = Delivery(values.choice("delivery", tuple(each.value for each in Delivery)))
    _check_identity(values, delivery, stream=stream)
    compression = values.choice("compression", tuple(COMPRESSIONS))
    urls = values.urls()
    found = SinkOptions(
        service_urls=urls,
        security=security.parse(values, urls),
        topic=topic_of(values.text("topic")) if values.text("topic") else "",
        delivery=delivery,
        sink_id=values.text("sinkid"),
        batch_id=values.number("batchid", 0) if "batchid" in values else -1,
        compression=COMPRESSIONS[compression],
        batch_bytes=values.size("maxbatchbytes", "256k"),
        buffer_bytes=values.size("maxbufferbytes", "32m"),
        timeout_seconds=values.number("sendtimeoutms", 120_000) / 1000,
        transaction_seconds=values.number("transactiontimeoutms", 600_000) / 1000,
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


def _check_identity(values: OptionValues, delivery: Delivery, *, stream: bool) -> None:
    """Which sink it is and which batch, is known of streams; of batch jobs only if users say it."""
    given = [KNOWN[name] for name in IDENTIFIED if name in values]
    if len(values.text("sinkid")) > SINK_ID_LETTERS_MAX:
        raise OptionError(f'"sinkId" has {SINK_ID_LETTERS_MAX} letters at most')
    if delivery is Delivery.AT_LEAST_ONCE:
        if given:
            raise OptionError(f'"{given[0]}" is for dedup and exactly_once, not at_least_once')
    elif stream:
        if "batchid" in values:
            raise OptionError('"batchId" is for a batch job: streams have their own')
    elif len(given) == 1:
        raise OptionError('"sinkId" and "batchId" go together: a batch of one sink is written once')
    elif not given and delivery is Delivery.DEDUP:
        raise OptionError(
            '"dedup" needs "sinkId" and "batchId", by which a batch job is known again'
        )
