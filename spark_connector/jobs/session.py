"""The Spark session of a job, and what of topics it reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from magnetar.core.kernel.names import TopicName
from magnetar.spark_connector import options, security

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from magnetar.core.ledger.read.reading_plan import Place
    from magnetar.spark_connector.options import SourceOptions
    from magnetar.spark_connector.planning.planner import Plans
    from magnetar.spark_connector.security import QuerySecurity

CONFIGURATION: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""Of a job's own session; `--conf` goes before."""


class TopicSelection(Struct, frozen=True):
    """Which topics of which server a job reads."""

    url: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    options: Mapping[str, str] = {}
    """Further options of the source."""

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(filter(None, map(str.strip, self.url.split(","))))

    def reader_options(self, **more: str) -> dict[str, str]:
        """As Spark's reader takes them."""
        named = (
            {"topics": ",".join(self.topics)} if self.topics else {"topicsPattern": self.pattern}
        )
        return {"service.url": self.url, **named, **self.options, **more}

    @property
    def security_options(self) -> dict[str, str]:
        """Those of the options that say how the server is trusted."""
        known = {*map(str.lower, security.NAMES), *security.ALIASES}
        return {name: value for name, value in self.options.items() if name.lower() in known}

    @property
    def security(self) -> QuerySecurity:
        """The same, parsed."""
        return security.parse(options.NAMES.given(self.security_options), self.urls)

    def parsed(self, **more: str) -> SourceOptions:
        return options.parse(self.reader_options(**more))

    def frame(self, spark: SparkSession, **more: str) -> DataFrame:
        """The messages."""
        register(spark)
        return spark.read.format("magnetar").options(**self.reader_options(**more)).load()

    def stream(self, spark: SparkSession, **more: str) -> DataFrame:
        register(spark)
        return spark.readStream.format("magnetar").options(**self.reader_options(**more)).load()


def position(place: Place) -> str | int:
    """A place as options name it; a topic that has had no message has no ledger."""
    if place.ledger_id < 0:
        return max(place.index, 0)
    return f"{place.ledger_id}:{place.entry_id}"


def positions(plans: Plans) -> str:
    """Where logs end in a plan, as the option `endingOffsets`."""
    topics: dict[str, str | int | dict[int, str | int]] = {}
    for log, plan in plans.items():
        name, end = TopicName.parse(log), position(plan.stable)
        if name.partitioned:
            partitions = topics.setdefault(name.base.full, {})
            assert isinstance(partitions, dict)
            partitions[name.partition_index] = end
        else:
            topics[log] = end
    return msgspec.json.encode(topics).decode()


def session(name: str, master: str, configuration: Mapping[str, str]) -> SparkSession:
    """The session that `spark-submit` has begun, or a new one."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"magnetar {name}")
    if master:
        builder = builder.master(master)
    for key, value in {**CONFIGURATION, **configuration}.items():
        builder = builder.config(key, value)
    made: SparkSession = builder.getOrCreate()
    return made


def register(spark: SparkSession) -> None:
    """Have the session know the format, wherever Spark looks for such modules."""
    from magnetar.spark_connector.source import MagnetarSource

    spark.dataSource.register(MagnetarSource)
